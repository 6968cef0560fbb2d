# SPDX-License-Identifier: Apache-2.0
"""Decides which of two arms, A or B, is faster at each point, and says on which repeats the verdict is based.

In doubt it names no arm. If there are enough repeats and they do not show a difference, the verdict is "no difference
shown". If there are too few, it is "no verdict". An arm that is below the minimum or at the limit of the tester, or
whose higher loads could not be judged, has a bound in place of a figure, and so has the ratio. Verdicts from bounds
have the same confidence as verdicts from figures. If the higher loads could not be judged and the bound decides
nothing, there is no verdict.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from statistics import fmean

from espbench.comparison.deciding import statistics
from espbench.comparison.deciding.points import Side, costs_us
from espbench.comparison.deciding.statistics import CONFIDENCE, FEWEST_REPEATS, Prior, Reading, Term
from espbench.comparison.sorting.model import Estimate, PointVerdict, Word

# Rates come with six digits: bounds closer than this are the same rate.
SAME = 1e-6


@dataclass(frozen=True)
class Point:
    """The two arms at one point; `case` is equal for the loss goals of one search."""

    x: int | str
    case: Hashable
    a: Side
    b: Side
    names: tuple[str, str] = ("A", "B")

    @property
    def sides(self) -> tuple[tuple[str, Side], tuple[str, Side]]:
        """(name, repeats) of A and of B."""
        return (self.names[0], self.a), (self.names[1], self.b)

    @property
    def has_figures(self) -> bool:
        """True if both sides have figures, so that their ratio is a figure and not a bound."""
        return self.a.has_figure and self.b.has_figure


def verdicts(points: Sequence[Point], *, paired: bool, family: int) -> list[PointVerdict]:
    """Return one verdict for each point, in their order.

    The probability that any verdict of the comparison is wrong is at most 1 - CONFIDENCE.
    points: all points of one pair of arms. family: the number of verdicts of the whole comparison, over all its pairs.
    """
    alpha = (1 - CONFIDENCE) / max(family, 1)  # Bonferroni
    terms = [ratio_terms(point.a, point.b, paired) for point in points]
    informative = [(point, t) for point, t in zip(points, terms, strict=True) if t and point.has_figures]
    cases = len({point.case for point, _ in informative})
    priors = [statistics.prior([t[k] for _, t in informative], cases) for k in range(1 if paired else 2)]
    return [_verdict(point, t, priors, alpha, paired) for point, t in zip(points, terms, strict=True)]


def ratio_terms(a: Side, b: Side, paired: bool = False) -> list[Term]:
    """Return the independent samples whose means add up to log(B / A); an empty list if there are too few repeats."""
    ours, theirs = a.readings, b.readings
    if paired:
        both = [key for key in ours if key in theirs]
        if len(both) < FEWEST_REPEATS:
            return []
        return [Term(tuple(theirs[key] - ours[key] for key in both))]
    if min(len(ours), len(theirs)) < FEWEST_REPEATS:
        return []
    return [Term(tuple(theirs.values())), Term(tuple(-r for r in ours.values()))]


def _verdict(
    point: Point, terms: list[Term], priors: list[Prior], alpha: float, paired: bool
) -> PointVerdict:
    a, b = point.a, point.b
    left_out = _left_out(point)
    cpu = cpu_ratio(point, paired)
    if not terms:
        bare = bare_ratio(a, b) if point.has_figures else None
        return PointVerdict(point.x, bare, "no verdict", _too_few(point, paired) + left_out, cpu)
    reading = statistics.interval(terms, priors, alpha)
    n = min(len(t.readings) for t in terms)
    how = f"{n} pairs of repeats" if paired else f"{len(b.readings)} and {len(a.readings)} repeats"
    why = "; ".join([how, *_bounds(point)]) + left_out
    low, high = (end if math.isfinite(end) else None for end in (reading.low, reading.high))
    if low is None and high is None:
        why = (
            "both missed the goal even at their minimum"
            if a.below
            else "both figures are lower bounds: either may be faster"
            if a.is_in_doubt or b.is_in_doubt
            else "both met the limit of the tester or of the search: either may be faster"
        )
        return PointVerdict(point.x, None, "no verdict", why + left_out, cpu)
    if low is not None and high is not None:
        return PointVerdict(point.x, statistics.ratio(reading, n), word_of(reading), why, cpu)
    word = word_of(reading)
    if word == "no difference shown" and (a.is_in_doubt or b.is_in_doubt):
        word = "no verdict"
    return PointVerdict(
        point.x,
        None,
        word,
        why,
        cpu,
        at_least=None if low is None else math.exp(low),
        at_most=None if high is None else math.exp(high),
        bound_by="minimum" if a.below or b.below else "limit",
    )


def word_of(reading: Reading) -> Word:
    """Return the verdict that an interval of log(B / A) supports."""
    if reading.low > SAME:
        return "B faster"
    return "A faster" if reading.high < -SAME else "no difference shown"


def _bounds(point: Point) -> list[str]:
    """Say for each arm whose figure is a bound why it is one."""
    return [
        f"{name} missed the goal even at its minimum in all {len(side.below)} repeats"
        if side.below
        else _why_capped(name, side)
        for name, side in point.sides
        if (side.below or side.is_capped) and not side.is_mixed
    ]


def _why_capped(name: str, side: Side) -> str:
    if side.unjudged:
        which = f"in {side.unjudged} of {len(side.ok)} repeats " if side.unjudged < len(side.ok) else ""
        return f"{name}'s figure is {which}a lower bound, since the loads above it could not be judged"
    if side.slowed:
        return f"{name}'s figure is a lower bound: slow CPUs may have lowered it, and the arms did not take turns"
    return f"{name} met the limit of the tester or of the search and may be faster than its figure"


def _too_few(point: Point, paired: bool) -> str:
    if leaks := [
        f"{name} let frames pass without encryption in {side.violated} of {side.left_out.total()} repeats"
        for name, side in point.sides
        if side.violated
    ]:
        return "; ".join(leaks)
    for name, side in point.sides:
        if side.is_mixed:
            total = len(side.ok) + len(side.below)
            return f"{name} was below its minimum in {len(side.below)} of {total} repeats: it has no mean"
    counts = ", ".join(f"{name} {len(side.readings)}" for name, side in point.sides)
    if paired:
        both = sum(key in point.b.readings for key in point.a.readings)
        if min(len(point.a.readings), len(point.b.readings)) > both:
            counts += f", {both} of them in pairs"
    text = f"usable repeats: {counts}; a verdict takes {FEWEST_REPEATS}"
    return "; ".join([text, *_bounds(point)])


def _left_out(point: Point) -> str:
    parts = [f"{n} {status} of {name}" for name, side in point.sides for status, n in side.left_out.items()]
    return f"; left out: {', '.join(parts)}" if parts else ""


def bare_ratio(a: Side, b: Side) -> Estimate:
    """Return the ratio B / A of the means; its `n` is 1, since it has no interval."""
    means = [statistics.geometric(list(side.readings.values())).value for side in (a, b)]
    value = means[1] / means[0]
    return Estimate(value, value, value, 1)


def cpu_ratio(point: Point, paired: bool) -> Estimate | None:
    """Return the ratio B / A of CPU per frame, with the interval of this point alone; None if it is not known."""
    a, b = (
        {key: Reading(*[math.log(us)] * 3) for key, us in costs_us(side).items() if us}
        for side in (point.a, point.b)
    )
    if paired:
        terms = [Term(tuple(b[key] - a[key] for key in a if key in b))]
    else:
        terms = [Term(tuple(b.values())), Term(tuple(-r for r in a.values()))]
    n = min(len(t.readings) for t in terms)
    if n == 0:
        return None
    if n < FEWEST_REPEATS:
        value = math.exp(sum(fmean(r.value for r in t.readings) for t in terms))
        return Estimate(value, value, value, 1)
    return statistics.ratio(statistics.interval(terms, [Prior()] * len(terms), 1 - CONFIDENCE), n)
