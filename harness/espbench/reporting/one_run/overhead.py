# SPDX-License-Identifier: Apache-2.0
"""Computes the cost of a suite relative to the plain baseline at the same frame size: ratios of throughput and CPU."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from espbench.reporting.parts.figures import Group
from espbench.reporting.parts.table import Table
from espbench.reporting.parts.wording import NONE, goal_name, number
from espbench.terms import Outcome, for_median

# (plain's figure is a lower bound, the suite's figure is one) → what the throughput ratio means.
_DOUBTS = {
    (False, False): "",
    (True, False): "plain may be faster than measured: the true throughput ratio may be lower",
    (False, True): "the suite may be faster than measured: the true throughput ratio may be higher",
    (True, True): "both may be faster than measured: the throughput ratio says nothing of the DUT",
}


def overhead(group: Group) -> Table:
    """Return a row for each frame size and suite, at the strictest loss goal at which suite and baseline have figures.

    Ratios are of the medians over the repeats, relative to plain; there is none if a repeat is VIOLATED or
    BELOW_MINIMUM. If a figure is a lower bound, the throughput ratio is a bound too, and the row says so. It also says
    so if other repeats have no figure.
    """
    rows = []
    for size in group.sizes:
        for suite in dict.fromkeys(o.suite for o in group.outcomes):
            for goal in group.goals:
                own = _repeats([o for o in group.outcomes if o.suite == suite], size, goal)
                plain = _repeats(group.baseline, size, goal)
                if for_median(own) and for_median(plain):
                    rows.append([str(size), suite, goal_name(goal), *_ratios(own, plain)])
                    break
    if not any(row[-1] for row in rows):
        rows = [row[:-1] for row in rows]
    head = [
        "Frame, bytes", "Suite", "Loss goal", "Throughput / plain", "Home µs per frame / plain",
        "Office µs per frame / plain", "But",
    ]  # fmt: skip
    return Table(head[: len(rows[0])] if rows else head, rows, numeric=[0, 2, 3, 4, 5])


def _repeats(outcomes: Sequence[Outcome], size: int | str, goal: float) -> list[Outcome]:
    return [o for o in outcomes if o.frame_size == size and o.loss_goal == goal]


def _ratios(own: list[Outcome], plain: list[Outcome]) -> list[str]:
    """Return the three ratios of a row and the doubts about them, from all repeats of both sides."""
    used = for_median(own), for_median(plain)

    def ratio(field: str) -> str:
        mine, theirs = ([value for o in side if (value := getattr(o, field)) is not None] for side in used)
        return f"{number(median(mine) / median(theirs), 3)} ×" if mine and theirs and median(theirs) else NONE

    bounds = _DOUBTS[any(o.is_capped for o in used[1]), any(o.is_capped for o in used[0])]
    return [
        ratio("throughput_fps"),
        ratio("cpu_home_us_per_frame"),
        ratio("cpu_office_us_per_frame"),
        "; ".join(filter(None, [bounds, *_missing("the suite", own), *_missing("plain", plain)])),
    ]


def _missing(side: str, repeats: list[Outcome]) -> list[str]:
    """Return how many repeats of a side have a figure, if some have none."""
    n = len(for_median(repeats))
    return [] if n == len(repeats) else [f"{side}: {n} of {len(repeats)} repeats"]
