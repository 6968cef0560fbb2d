# SPDX-License-Identifier: Apache-2.0
"""Marks figures that contradict each other: ESP that is faster than plain forwarding of the same frames."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import median
from typing import Any

from espbench.reporting.parts.figures import with_figure
from espbench.sentences import Code
from espbench.terms import Outcome, Remark

_PLAIN = "plain"
# Figures of one throughput differ by this much without a reason; a step of most searches is greater.
_LEAST = 1.02


def marked(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the outcomes; one whose median throughput is above that of plain at the same point has a remark.

    A lower bound of plain contradicts nothing, since plain may be faster.
    """
    plain: defaultdict[Any, list[Outcome]] = defaultdict(list)
    own: defaultdict[Any, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.stack == _PLAIN:
            plain[_point(outcome)].append(outcome)
        else:
            own[outcome.stack, outcome.suite, _point(outcome)].append(outcome)
    remarks = {}
    for (stack, suite, point), repeats in own.items():
        baseline = with_figure(plain[point])
        mine = [o.throughput_fps for o in with_figure(repeats) if o.throughput_fps]
        theirs = [o.throughput_fps for o in baseline if o.throughput_fps and not o.is_lower_bound]
        if mine and theirs and len(theirs) == len(baseline) and median(mine) > _LEAST * median(theirs):
            remarks[stack, suite, point] = Remark.of(
                Code.FASTER_THAN_PLAIN, fps=median(theirs), pct=100 * (median(mine) / median(theirs) - 1)
            )
    return [
        o.model_copy(update={"warnings": [*o.warnings, remark]})
        if (remark := remarks.get((o.stack, o.suite, _point(o)))) is not None
        else o
        for o in outcomes
    ]


def _point(outcome: Outcome) -> tuple[Any, ...]:
    return (
        outcome.dut, outcome.ip_version, outcome.frame_size, outcome.direction, outcome.test, outcome.loss_goal,
    )  # fmt: skip
