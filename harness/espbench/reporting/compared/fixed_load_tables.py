# SPDX-License-Identifier: Apache-2.0
"""Makes the tables of a comparison at fixed loads: its verdicts, and the figures at every load."""

from __future__ import annotations

from collections.abc import Sequence

from espbench.comparison.sorting.model import Estimate, FixedLoadVerdict, Name
from espbench.comparison.telling.numbers import factor
from espbench.reporting.parts.chart_parts import size_name
from espbench.reporting.parts.table import Table
from espbench.reporting.parts.wording import NONE, count, goal_name, number
from espbench.terms import SLOW_PCT

_CPU = {"B costs less": "▲ B costs less", "B costs more": "▼ B costs more"}
_RATE = {"B faster": "▲ B faster", "A faster": "▼ A faster"}
_NEITHER = {"no difference shown": "○ no difference shown", "no verdict": "– no verdict"}


def verdicts(judged: Sequence[FixedLoadVerdict]) -> Table:
    """Return a table with a row for each point: both ratios with their intervals and verdicts."""
    head = [
        "Frame size", "B / A", "Conditions", "CPU per frame, B / A", "Verdict on CPU", "Throughput, B / A",
        "Verdict on throughput", "Pairs", "Void trials",
    ]  # fmt: skip
    rows = [
        [
            str(v.x),
            f"{v.b} / {v.a}",
            _conditions(v),
            _ratio(v.cpu),
            (_CPU | _NEITHER)[v.cpu_word],
            _throughput(v),
            (_RATE | _NEITHER)[v.word],
            count(v.pairs),
            f"{v.void} of {v.trials}",
        ]
        for v in judged
    ]
    return Table(head, rows, numeric=[0, 3, 5, 7, 8])


def loads(judged: Sequence[FixedLoadVerdict]) -> Table:
    """Return a table with a row for each point and load."""
    head = [
        "Frame size", "B / A", "Conditions", "Load", "Frames/s", "A, µs/frame", "B, µs/frame",
        "CPU per frame, B / A", "Loss of A", "Loss of B", "Pairs", "Speed of the CPUs",
    ]  # fmt: skip
    rows = [
        [
            str(v.x),
            f"{v.b} / {v.a}",
            _conditions(v),
            f"{load.share * 100:g} %",
            count(load.fps),
            number(load.cpu_a_us, 3),
            number(load.cpu_b_us, 3),
            _ratio(load.cpu),
            _loss(load.loss_a),
            _loss(load.loss_b),
            count(load.pairs),
            _speeds(load.speeds_pct),
        ]
        for v in judged
        for load in v.loads
    ]
    return Table(head, rows, numeric=[0, *range(3, 11)])


def point_name(v: FixedLoadVerdict) -> str:
    """Return the name of a verdict's point in a list: `64 B, xfrm / null, uml, one-way, IPv4, loss goal 0 %`."""
    return ", ".join([size_name(v.x), f"{v.b} / {v.a}", _conditions(v)])


def _conditions(v: FixedLoadVerdict) -> str:
    goal = [] if v.loss_goal is None else [f"{Name.LOSS_GOAL} {goal_name(v.loss_goal)}"]
    return ", ".join([*v.conditions.values(), *goal])


def _throughput(v: FixedLoadVerdict) -> str:
    for sign, bound in (("≥", v.at_least), ("≤", v.at_most)):
        if bound is not None:
            return f"{sign} {bound:.3f}"
    return _ratio(v.throughput)


def _ratio(estimate: Estimate | None) -> str:
    """Write a ratio with one more digit than elsewhere, since these intervals are narrow."""
    if estimate is None:
        return NONE
    return (
        f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"
        if estimate.n > 1
        else factor(estimate)
    )


def _speeds(speeds_pct: tuple[float, float] | None) -> str:
    """Return `93–99 %`; `slow CPU, 55–98 %` if some trials were made on slow CPUs, as beside a throughput."""
    if speeds_pct is None:
        return NONE
    least, most = (f"{pct:.0f}" for pct in speeds_pct)
    spread = f"{least} %" if least == most else f"{least}–{most} %"
    return f"slow CPU, {spread}" if speeds_pct[0] < SLOW_PCT else spread


def _loss(ratio: float | None) -> str:
    return NONE if ratio is None else f"{100 * ratio:.3g} %"
