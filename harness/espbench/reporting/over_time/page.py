# SPDX-License-Identifier: Apache-2.0
"""Writes the browser of results: a folder with one page, which contains all that it needs and loads nothing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from espbench.errors import EspbenchError
from espbench.over_time import Change, History, Point, RunRow, Series, telling
from espbench.reporting.over_time.chart import over_time
from espbench.reporting.parts.documents import render_page
from espbench.results.durable import write_atomically

PAGE = "index.html"
_REPORTS = ("report.html",)
_DIGITS = 7  # of figures that scatter


def write(index: History, folder: Path) -> Path:
    """Write `index.html` into a folder, which is made if necessary, and return its path.

    The page links to the reports where they are now. Raise EspbenchError if the folder cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EspbenchError(f"{folder}: cannot make the folder: {error.strerror}") from error
    page_data = data(index, folder)
    text = render_page("history.html.j2", {"series": over_time()}, script="history.js", data=page_data)
    write_atomically(folder / PAGE, text)
    return folder / PAGE


def data(index: History, folder: Path) -> dict[str, Any]:
    """Return the page's data; they refer to a run by its index in `runs`, and to facts by their index in `facts`."""
    listed = index.runs()
    runs = [run for run in listed if not run.problem]
    place = {run.path: number for number, run in enumerate(runs)}
    facts: dict[str, int] = {}
    sets: list[Sequence[tuple[str, str]]] = []
    rows = []
    for run in runs:
        key = repr(sorted(run.facts.items()))
        if key not in facts:
            facts[key] = len(sets)
            sets.append(sorted(run.facts.items()))
        rows.append(_run(run, facts[key], folder))
    changes: dict[int, list[Change]] = {}
    for change in index.changes():
        changes.setdefault(change.series.number, []).append(change)
    return {
        "runs": rows,
        "facts": [dict(each) for each in sets],
        "series": [
            _series(series, index.points(series), changes.get(series.number, []), place)
            for series in index.series()
        ],
        "unread": [f"{run.path}: {run.problem}" for run in listed if run.problem and not run.is_copy],
        "copies": [f"{run.path}: {run.problem}" for run in listed if run.is_copy],
    }


def _run(run: RunRow, facts: int, folder: Path) -> dict[str, Any]:
    report = next((name for name in _REPORTS if (Path(run.path) / name).exists()), None)
    link = quote(os.path.relpath(Path(run.path) / report, folder.resolve())) if report else ""
    results = ", ".join(f"{count} {status}" for status, count in run.statuses.items())
    return {
        "name": run.name, "plan": run.plan, "started": run.started, "espbench": run.espbench,
        "platform": run.platform, "results": results, "facts": facts, "report": link,
    }  # fmt: skip


def _series(
    series: Series, points: Sequence[Point], changes: Sequence[Change], place: dict[str, int]
) -> dict[str, Any]:
    return {
        "plan": series.plan, "case": telling.case_name(series), "figure": series.figure, "unit": series.unit,
        "better": series.better, "exact": series.is_exact, "conditions": series.conditions,
        "points": [_point(point, place, exact=series.is_exact) for point in points],
        "changes": [_change(change, place) for change in changes],
    }  # fmt: skip


def _point(point: Point, place: dict[str, int], *, exact: bool) -> list[Any]:
    """Return [index of the run, figure], and the status as a third item if it is not OK."""
    value = point.value
    if value is not None and not exact:
        value = float(f"{value:.{_DIGITS}g}")
    if value is not None and value.is_integer():
        value = int(value)
    return [place[point.run_path], value, *([point.status] if point.status != "OK" else [])]


def _change(change: Change, place: dict[str, int]) -> dict[str, Any]:
    return {
        "run": place[change.run_path], "before": place[change.before_path], "move": telling.move(change),
        "word": change.word, "else": telling.what_else(change),
    }  # fmt: skip
