# SPDX-License-Identifier: Apache-2.0
"""Prints runs, series and changes as tables in the terminal, or as JSON with one object on each line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from rich import box
from rich.console import Console
from rich.table import Table

from espbench.over_time import Change, History, RunRow, Series, telling

_PIPED_WIDTH = 160
_STYLES = {"worse": "red", "better": "green"}


def _console() -> Console:
    console = Console(highlight=False, emoji=False, markup=False)
    if console.is_terminal:
        return console
    return Console(highlight=False, emoji=False, markup=False, width=_PIPED_WIDTH)


def show_runs(runs: Sequence[RunRow]) -> None:
    """Print a line for each run, the oldest first."""
    table = Table(box=box.SIMPLE)
    for column in ("run", "plan", "started", "espbench", "platform", "results"):
        table.add_column(column)
    for run in runs:
        results = ", ".join(f"{count} {status}" for status, count in run.statuses.items()) or "none yet"
        table.add_row(run.name, run.plan, run.started, run.espbench, run.platform, results)
    _console().print(table)


def show_series(series: Sequence[Series]) -> None:
    """Print a line for each series: plan, case, figure, number of runs, newest figure, and what came after it."""
    table = Table(box=box.SIMPLE)
    for column in ("plan", "case", "figure", "runs", "newest", ""):
        table.add_column(column, justify="right" if column in ("runs", "newest") else "left")
    for one in series:
        table.add_row(
            one.plan,
            telling.case_name(one),
            one.figure,
            str(one.runs),
            telling.newest(one),
            "exact" if one.is_exact else "noisy",
        )
    _console().print(table)


def show_changes(changes: Sequence[Change], runs: int, series: Sequence[Series]) -> None:
    """Print a paragraph for each run at which series changed, since one cause often changes many series.

    Series of machines that changed differently are in different paragraphs. runs: the number of all runs; series: all
    series that were searched for changes.
    """
    console = _console()
    by_run: dict[tuple[object, ...], list[Change]] = {}
    for change in changes:
        place = (change.run, change.before, change.exactly, *change.differs)
        by_run.setdefault(place, []).append(change)
    for of_run in by_run.values():
        first = of_run[0]
        console.print(f"{telling.where(first)} ({first.started}), after {first.before}", soft_wrap=True)
        console.print(f"  what else changed: {telling.what_else(first)}", soft_wrap=True)
        for change in of_run:
            name = telling.series_name(change.series)
            console.print(f"  {name}: {telling.move(change)}", style=_STYLES.get(change.word), soft_wrap=True)
    moved = len({change.series.number for change in changes})
    counted = "1 change" if len(changes) == 1 else f"{len(changes):,} changes"
    console.print(f"{runs:,} runs, {len(series):,} series; {counted} in {moved:,} of them", soft_wrap=True)


def json_of_runs(runs: Sequence[RunRow]) -> None:
    """Print the index entry of each run, as JSON."""
    for run in runs:
        print(json.dumps(asdict(run), ensure_ascii=False))


def json_of_series(index: History, series: Sequence[Series]) -> None:
    """Print each series with its points, as JSON."""
    for one in series:
        points = [{"run": p.run, "value": p.value, "status": p.status} for p in index.points(one)]
        print(json.dumps({**asdict(one), "points": points}, ensure_ascii=False))


def json_of_changes(changes: Sequence[Change]) -> None:
    """Print each change with its series, and the other differences as three texts (what, was, now), as JSON."""
    for change in changes:
        print(json.dumps({**asdict(change), "ratio": change.ratio, "word": change.word}, ensure_ascii=False))
