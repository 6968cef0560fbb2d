# SPDX-License-Identifier: Apache-2.0
"""Refuses what cannot be judged: a base of other conditions or of other cases, and a limit that real time has not."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from espbench.errors import UsageError
from espbench.gate import conditions, real_time
from espbench.gate.base import AT_THROUGHPUT, Base, Point
from espbench.gate.limits import UNITS, Limit, Quantity
from espbench.results import RunDirectory
from espbench.sentences import goal_name

# A throughput that is judged, by its point, its repeat and its loss goal.
Judged = tuple[Point, int, float]
_CASES = "cases"  # a word of --allow-different: the base may have cases that the plan does not have
_MOST_SHOWN = 8


def refuse_different(
    base: Base,
    now: Mapping[str, str],
    free: Collection[str],
    partly: Collection[str] = (),
    remedy: str = "",
) -> None:
    """Raise UsageError for a base with other conditions; partly: as in conditions.Recorded.

    If `now` is of a plan alone, the conditions that only gateways report are not compared.
    """
    of_plan_alone = not conditions.knows_gateways(now)
    was = {key: value for key, value in base.conditions.items() if key in now or not of_plan_alone}
    if differing := conditions.differences(was, now, free=free, partly=partly):
        lines = [f"    {key}: the base's {old}; now {new}" for key, old, new in differing[:_MOST_SHOWN]]
        more = [f"    and {len(differing) - _MOST_SHOWN} more"] if len(differing) > _MOST_SHOWN else []
        instead = f"measure the base anew, or name what may differ: --allow-different '{differing[0][0]}'"
        raise UsageError(
            f"{base.where}: a foreign base\n"
            "  expected: a base measured under the conditions of this plan, espbench and device\n"
            "  got:\n" + "\n".join([*lines, *more]) + "\n"
            f"  what to do: {remedy or instead}"
        )


def refuse_other_cases(
    where: str, known: Collection[Judged], wanted: Collection[Judged], allowed: Collection[str]
) -> None:
    """Raise UsageError if a base lacks a throughput that the plan has (wanted), or has one (known) beside these."""
    if missing := sorted(set(wanted) - set(known), key=_order):
        raise UsageError(
            f"{where}: no base for {len(missing)} of {len(wanted)} throughputs\n"
            f"  expected: each case and loss goal of the plan\n  got: none of {_some(missing)}\n"
            "  what to do: measure the base anew with this plan; no base is ever made silently"
        )
    if _CASES not in allowed and (more := sorted(set(known) - set(wanted), key=_order)):
        raise UsageError(
            f"{where}: {len(more)} throughputs that the plan has not\n"
            f"  expected: the plan's {len(wanted)} throughputs and no other: a case or loss goal that is not measured "
            f"any more can hide a regression\n  got: {_some(more)}\n"
            f"  what to do: measure the base anew with this plan, or say --allow-different {_CASES}"
        )


def refuse_unfit(base: RunDirectory) -> None:
    """Raise UsageError if a base in real time is damaged, or lacks a valid figure or a proof of encryption."""
    if problems := real_time.problems(base):
        lines = [f"    {problem.case}: {problem.why}" for problem in problems[:_MOST_SHOWN]]
        more = [f"    and {len(problems) - _MOST_SHOWN} more"] if len(problems) > _MOST_SHOWN else []
        raise UsageError(
            f"{base.path}: not a base\n"
            "  expected: trials as they were written, and of every case a valid figure with encryption proven\n"
            "  got:\n" + "\n".join([*lines, *more]) + "\n"
            "  what to do: mend the cause and measure the base again, or name another one"
        )


def refuse_numbers(limits: Mapping[Quantity, Limit]) -> None:
    """Raise UsageError for a limit that is a number: in real time figures are ratios to the base."""
    for quantity, limit in limits.items():
        if limit.number:
            raise UsageError(
                f"--limit {quantity}={limit}: no limit for a plan in real time\n"
                "  expected: a share of the base's figure, since figures in real time are ratios to the base\n"
                f"  got: {limit.number:g}, a number\n  what to do: give a share alone, such as --limit {quantity}=2%"
            )


def refuse_too_large(base: Base, limits: Mapping[Quantity, Limit]) -> None:
    """Raise UsageError for a limit that is a number as large as a figure of the base: it could not be exceeded."""
    for case in base.cases.values():
        for sample in case.samples:
            figures: list[tuple[Quantity, float]] = [
                ("instructions", number) for number in sample.instructions.values()
            ]
            if sample.share == AT_THROUGHPUT:
                figures.append(("throughput", sample.load_fps))
            for quantity, figure in figures:
                if (number := limits[quantity].number) >= figure:
                    raise UsageError(
                        f"--limit {quantity}={limits[quantity]}: too large\n"
                        f"  expected: a number below each figure of the base, in {UNITS[quantity]}\n"
                        f"  got: {number:,g}; {case.point} has {figure:,.0f}\n"
                        f"  what to do: give a smaller number, or a share, such as --limit {quantity}=2%"
                    )


def refuse_limit_of_cpu(limited: Collection[Quantity], why: str) -> None:
    """Raise UsageError for a limit of the CPU per frame, which this check does not judge; why says so in a sentence."""
    if "instructions" in limited:
        raise UsageError(
            "--limit instructions: no limit for this check\n"
            "  expected: a figure that the check judges; in real time `instructions` is the limit of CPU per frame\n"
            f"  got: {why}\n"
            "  what to do: leave it out, or let one plan compare both builds at fixed loads (docs/ci.md, ci/pairs.yaml)"
        )


def _order(judged: Judged) -> tuple[object, ...]:
    point, repeat, goal = judged
    return point.order, repeat, goal


def _some(throughputs: Sequence[Judged]) -> str:
    names = [
        f"{point}, repeat {repeat}, {goal_name(goal)}" for point, repeat, goal in throughputs[:_MOST_SHOWN]
    ]
    more = len(throughputs) - _MOST_SHOWN
    return "; ".join(names) + (f"; and {more} more" if more > 0 else "")
