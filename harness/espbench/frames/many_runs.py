# SPDX-License-Identifier: Apache-2.0
"""Series of figures over many runs as data frames, as `espbench history` lists them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from espbench.frames.columns import UNITS, frame
from espbench.over_time import Change, RunRow, Series
from espbench.over_time import History as Index
from espbench.over_time.records import Point

_RUNS = ("run", "path", "plan", "started", "espbench", "platform", "is_exact", "problem")
_SERIES = (
    "series",
    "plan",
    "case",
    "test",
    "loss_goal",
    "figure",
    "unit",
    "better",
    "is_exact",
    "conditions",
    "machine",
)
_OF_SERIES = ("runs", "newest", "newest_status")
_POINTS = ("series", "plan", "case", "figure", "unit", "run", "started", "value", "status")
_CHANGES = (
    "series", "plan", "case", "figure", "unit", "run", "started", "before", "was", "now", "ratio", "word", "exactly",
    "was_status", "now_status", "what_else",
)  # fmt: skip
_TIMES = ("started",)


class History:
    """Many runs, as `history` returns them. The data frames show the state at that time.

    `DataFrame.attrs["units"]` has the unit of each numeric column, as for a `Run`. docs/history.md defines series
    and changes.
    """

    def __init__(
        self, runs: list[RunRow], series: list[tuple[Series, list[Point]]], changes: list[Change]
    ) -> None:
        """Take what `history` has read."""
        self._runs = runs
        self._series = series
        self._changes = changes

    def __repr__(self) -> str:
        return f"<espbench history: {len(self._runs)} runs, {len(self._series)} series, {len(self._changes)} changes>"

    @cached_property
    def runs(self) -> pd.DataFrame:
        """One row per run, the oldest first. `problem` says why a run could not be read; otherwise it is empty."""
        rows = ({**vars(run), "run": run.name, "started": run.started or None} for run in self._runs)
        return _in_time(frame(rows, _RUNS))

    @cached_property
    def series(self) -> pd.DataFrame:
        """One row per series: the figure and its case, the number of runs, and the `newest` figure, in `unit`.

        `newest_status` is the status of the newest run if this has no figure; otherwise it is empty.
        """
        return frame((_of(series) | vars(series) for series, _ in self._series), (*_SERIES, *_OF_SERIES))

    @cached_property
    def points(self) -> pd.DataFrame:
        """One row per series and run, the oldest first: `value` in `unit`, missing if the run has no figure."""
        started = {run.path: run.started for run in self._runs}
        rows: Iterator[dict[str, Any]] = (
            {**_of(series), **vars(point), "started": started[point.run_path]}
            for series, points in self._series
            for point in points
        )
        return _in_time(frame(rows, _POINTS))

    @cached_property
    def changes(self) -> pd.DataFrame:
        """One row per change, the newest first: from `run` on, a series differs from its value in `before`.

        `exactly` is False if the change was found by statistics, and so is near that run. `what_else` lists the
        other differences between the two runs' manifests, each as `what: was → now`.
        """
        return _in_time(frame((_of_change(change) for change in self._changes), _CHANGES))


def history(
    *folders: str | PathLike[str],
    plan: str = "",
    case: str = "",
    figure: str = "",
    index: str | PathLike[str] | None = None,
) -> History:
    """Return the runs below some folders as series. The index is updated first, as by `espbench history`.

    plan, case, figure: only series whose plan, case and figure contain these texts. index: the file of the index;
    default: one in the cache. UsageError if there are no runs; MachineLacks if a library that is needed is not
    installed.
    """
    file = None if index is None else Path(index)
    with Index.open([Path(folder) for folder in folders], file) as runs_index:
        series = [(one, runs_index.points(one)) for one in runs_index.series(plan, case, figure)]
        return History(runs_index.runs(), series, runs_index.changes(plan, case, figure))


def _of(series: Series) -> dict[str, Any]:
    return {
        "series": series.number, "plan": series.plan, "case": series.case, "test": series.test,
        "loss_goal": series.goal, "figure": series.figure, "unit": series.unit,
    }  # fmt: skip


def _of_change(change: Change) -> dict[str, Any]:
    differences = [f"{what}: {was} → {now}" for what, was, now in change.differs]
    return {
        **vars(change), **_of(change.series), "ratio": change.ratio, "word": change.word, "what_else": differences,
    }  # fmt: skip


def _in_time(table: pd.DataFrame) -> pd.DataFrame:
    """Return the data frame with its times as UTC timestamps."""
    units = table.attrs[UNITS]
    for column in _TIMES:
        table[column] = pd.to_datetime(table[column], utc=True, format="ISO8601")
    table.attrs[UNITS] = units
    return table
