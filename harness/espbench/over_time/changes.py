# SPDX-License-Identifier: Apache-2.0
"""Finds where a series changes: an exact series where its value changes, a noisy one near the place that jumpavg finds.

jumpavg (like MLRsearch from FD.io's continuous tests) groups consecutive results so that the description of the groups
as normal distributions takes the fewest bits. Its computing time rises with the square of the number of results, so it
gets only WINDOW of them at a time. Changes in the first half of a window are final, and the next window begins at the
last of them, or in the middle. A new level needs LEAST runs in a row; if fewer runs differ from those around them, they
are outliers. Failures are a level of their own.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import statistics
from bisect import bisect
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass

from espbench.errors import MachineLacks
from espbench.over_time.records import Point

WINDOW = 50
Windows = MutableMapping[str, list[int]]
LEAST = 3
_SETTLED = WINDOW // 2


@dataclass(frozen=True)
class Jump:
    """A change at points[at], compared with points[before]; was, now: as in Change."""

    before: int
    at: int
    was: float | None
    now: float | None


def exact(points: Sequence[Point]) -> list[Jump]:
    """Return each place where the figure differs from the last one before it, or else the status from the run before.

    Figures differ if a repeat that both runs have differs.
    """
    jumps = []
    last: int | None = None  # the last run that has a figure
    for at, now in enumerate(points):
        if last is not None and _differ(points[last], now):
            jumps.append(Jump(last, at, points[last].value, now.value))
        elif at > 0 and points[at - 1].status != now.status:
            jumps.append(Jump(at - 1, at, points[at - 1].value, now.value))
        if now.repeats:
            last = at
    return jumps


def _differ(was: Point, now: Point) -> bool:
    return any(was.repeats[n] != now.repeats[n] for n in was.repeats.keys() & now.repeats.keys())


def noisy(points: Sequence[Point], known_windows: Windows | None = None) -> list[Jump]:
    """Return the places that jumpavg finds, and where figures end or begin again; other runs without one are skipped.

    Figures end where LEAST runs in a row have none because they are VIOLATED or BELOW_MINIMUM.

    known_windows: results of earlier searches, by the content of the window; new results are added.
    """
    windows: Windows = {} if known_windows is None else known_windows
    known = [number for number, point in enumerate(points) if point.repeats]
    starts = _starts([list(points[number].repeats.values()) for number in known], windows)
    failures = [(first, last, bisect(known, first)) for first, last in _failures(points)]
    edges = sorted({0, *starts, *(place for _, _, place in failures), len(known)})
    level: dict[int, float] = {}
    for a, b in itertools.pairwise(edges):
        values = (value for number in known[a:b] for value in points[number].repeats.values())
        level |= dict.fromkeys(known[a:b], statistics.fmean(values))
    jumps = {
        known[at]: Jump(known[at - 1], known[at], level[known[at - 1]], level[known[at]]) for at in starts
    }
    for first, last, place in failures:
        if place > 0:
            jumps[first] = Jump(known[place - 1], first, level[known[place - 1]], None)
        if place < len(known):  # at another level, the change from the last figure says more
            jumps.setdefault(known[place], Jump(last, known[place], None, level[known[place]]))
    return [jumps[at] for at in sorted(jumps)]


def _failures(points: Sequence[Point]) -> list[tuple[int, int]]:
    """Return the first and the last failure of each LEAST or more of them without a figure in between."""
    # A run that is INVALID, say, neither confirms a failure nor ends a row of them.
    decided = [number for number, point in enumerate(points) if point.repeats or point.is_failure]
    rows = [
        list(row)
        for is_failure, row in itertools.groupby(decided, lambda number: points[number].is_failure)
        if is_failure
    ]
    return [(row[0], row[-1]) for row in rows if len(row) >= LEAST]


def _starts(values: Sequence[Sequence[float]], windows: Windows) -> list[int]:
    """Return the index at which each group but the first begins; values: for each run, its repeats' figures."""
    starts: list[int] = []
    start = 0
    while len(values) - start > 1:
        window = values[start : start + WINDOW]
        content = hashlib.sha256(json.dumps(window).encode()).hexdigest()
        if (within := windows.get(content)) is None:
            within = windows[content] = _in_window(window)
        jumps = [start + at for at in within]
        if start + WINDOW >= len(values):
            return [*starts, *jumps]
        settled = [at for at in jumps if at <= start + _SETTLED]
        starts += settled
        start = settled[-1] if settled else start + _SETTLED
    return starts


def _in_window(values: Sequence[Sequence[float]]) -> list[int]:
    """Return the index at which each group but the first begins; groups of fewer than LEAST runs are left out."""
    kept = list(range(len(values)))
    while True:
        groups = _groups([values[number] for number in kept])
        starts = list(itertools.accumulate(groups[:-1]))
        short = [
            n
            for start, size in zip([0, *starts], groups, strict=True)
            if size < LEAST
            for n in range(start, start + size)
        ]
        if not short:
            return [kept[start] for start in starts]
        kept = [number for place, number in enumerate(kept) if place not in set(short)]


def _groups(values: Sequence[Sequence[float]]) -> list[int]:
    """Return the number of runs in each group, in their order."""
    one = [max(len(values), LEAST)]
    # There are too few runs for two groups, or all values are zero, while jumpavg divides by the greatest.
    if len(values) < 2 * LEAST or max(max(of_run) for of_run in values) <= 0:
        return one
    try:
        import jumpavg  # noqa: PLC0415  (most series are read and not searched again)
    except ImportError:
        raise MachineLacks(
            "jumpavg, which finds changes of noisy series, is not installed", "make setup"
        ) from None

    plain = [of_run[0] if len(of_run) == 1 else list(of_run) for of_run in values]
    return [len(group.run_list) for group in jumpavg.classify(plain)]
