# SPDX-License-Identifier: Apache-2.0
"""B against A over all points of the family: which is faster, and what the verdict rests on.

A verdict errs on the side of none: whatever a point's repeats cannot bear is "no difference shown".
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from statistics import fmean

from espbench.comparison import statistics
from espbench.comparison.model import Estimate, PointVerdict, Word
from espbench.comparison.points import Side, cpu_us, reading
from espbench.comparison.statistics import CONFIDENCE, FEWEST_REPEATS, Prior, Reading, Term
from espbench.terms import Outcome

# Rates come with six digits: bounds closer than this are the same rate.
SAME = 1e-6
NONE_SHOWN: Word = "no difference shown"


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


def verdicts(points: Sequence[Point], *, paired: bool, family: int) -> list[PointVerdict]:
    """One verdict a point, in their order; together they err with probability 1 - CONFIDENCE at most.

    points: all of one pair of arms. family: verdicts of the whole comparison, of all its pairs.
    """
    alpha = (1 - CONFIDENCE) / max(family, 1)  # Bonferroni
    terms = [_terms(point, paired) for point in points]
    informative = [
        (point, t)
        for point, t in zip(points, terms, strict=True)
        if t and not (point.a.is_capped or point.b.is_capped)
    ]
    cases = len({point.case for point, _ in informative})
    priors = [statistics.prior([t[k] for _, t in informative], cases) for k in range(1 if paired else 2)]
    steady = not any(side.is_mixed for point in points for side in (point.a, point.b))
    unlike = sum(bool(point.a.below or point.b.below) for point in points)
    return [
        _by_status(point, steady, unlike) or _by_figures(point, t, priors, alpha, paired)
        for point, t in zip(points, terms, strict=True)
    ]


def _terms(point: Point, paired: bool) -> list[Term]:
    """The independent samples whose means add up to log B / A; none where there are too few repeats."""
    if point.a.is_mixed or point.b.is_mixed:
        return []
    if paired:
        both = [key for key in point.a.ok if key in point.b.ok]
        if len(both) < FEWEST_REPEATS:
            return []
        return [Term(tuple(reading(point.b.ok[key]) - reading(point.a.ok[key]) for key in both))]
    if min(len(point.a.ok), len(point.b.ok)) < FEWEST_REPEATS:
        return []
    a, b = ([reading(o) for o in side.ok.values()] for side in (point.a, point.b))
    return [Term(tuple(b)), Term(tuple(-r for r in a))]


def _by_figures(
    point: Point, terms: list[Term], priors: list[Prior], alpha: float, paired: bool
) -> PointVerdict:
    a, b = point.a, point.b
    left_out = _left_out(point)
    if not terms:
        why = _too_few(point, paired)
        both = a.ok and b.ok and not (a.is_mixed or b.is_mixed or a.is_capped or b.is_capped)
        return PointVerdict(
            point.x, _bare_ratio(a, b) if both else None, NONE_SHOWN, why + left_out, cpu_ratio(point, paired)
        )
    found = statistics.interval(terms, priors, alpha)
    n = min(len(t.readings) for t in terms)
    cpu = cpu_ratio(point, paired)
    how = f"{n} pairs of repeats" if paired else f"{len(b.ok)} and {len(a.ok)} repeats"
    if a.is_capped and b.is_capped:
        why = "both met the limit of the tester or of the search: either may be faster"
        return PointVerdict(point.x, None, NONE_SHOWN, why + left_out, cpu)
    if a.is_capped or b.is_capped:
        name = point.names[0] if a.is_capped else point.names[1]
        limit = f"{name} met the limit of the tester or of the search and may be faster than its figure"
        # The capped one's figure is a bound, and so is the ratio: only one of its ends means anything.
        low = found.low if b.is_capped else -math.inf
        high = found.high if a.is_capped else math.inf
        return PointVerdict(
            point.x,
            None,
            word_of(Reading(low, found.value, high)),
            f"{how}; {limit}{left_out}",
            cpu,
            at_least=math.exp(low) if b.is_capped else None,
            at_most=math.exp(high) if a.is_capped else None,
        )
    return PointVerdict(point.x, statistics.ratio(found, n), word_of(found), how + left_out, cpu)


def word_of(found: Reading) -> Word:
    """The verdict an interval of log B / A bears."""
    if found.low > SAME:
        return "B faster"
    return "A faster" if found.high < -SAME else NONE_SHOWN


def _by_status(point: Point, steady: bool, unlike: int) -> PointVerdict | None:
    """A verdict where an arm is below the minimum throughout; None where the figures decide.

    Two equal arms near the minimum may fall to its two sides by chance: with n repeats each, all of one
    and none of the other, at 2 / 4^n at most. At one point that is rare enough from three repeats on; at
    `unlike` points together only if at none of the pair's points an arm is now below, now not (`steady`).
    """
    a, b = point.a, point.b
    if not (a.below or b.below) or a.is_mixed or b.is_mixed:
        return None
    if a.below and b.below:
        why = "both missed the goal even at their minimum"
        return PointVerdict(point.x, None, NONE_SHOWN, why + _left_out(point))
    (name, slow), (other, fast) = point.sides if a.below else reversed(point.sides)
    if not fast.ok:
        return None
    least = min(slow.valid, fast.valid)
    why = (
        f"{name} missed the goal even at its minimum in all {slow.below} repeats, "
        f"{other} met it in all {len(fast.ok)}"
    )
    chance = 2 * (1 if steady else unlike) / 4**least
    if least < FEWEST_REPEATS or chance > 1 - CONFIDENCE:
        return PointVerdict(
            point.x, None, NONE_SHOWN, f"{why}: too few repeats to rule out chance{_left_out(point)}"
        )
    word: Word = "B faster" if a.below else "A faster"
    return PointVerdict(point.x, None, word, why + _left_out(point))


def _too_few(point: Point, paired: bool) -> str:
    for name, side in point.sides:
        if side.is_mixed:
            return f"{name} was below its minimum in {side.below} of {side.valid} repeats: it has no mean"
    counts = (
        " and ".join(f"{name} has {len(side.ok)}" for name, side in point.sides) + " repeats with a figure"
    )
    if paired:
        both = sum(key in point.b.ok for key in point.a.ok)
        if min(len(point.a.ok), len(point.b.ok)) > both:
            counts += f", {both} of them in pairs"
    return f"{counts}; a verdict takes {FEWEST_REPEATS}"


def _left_out(point: Point) -> str:
    told = [f"{n} {status} of {name}" for name, side in point.sides for status, n in side.left_out.items()]
    return f"; left out: {', '.join(told)}" if told else ""


def _bare_ratio(a: Side, b: Side) -> Estimate:
    """B / A of the means; `n` 1, since no interval is claimed."""
    means = [statistics.geometric([reading(o) for o in side.ok.values()]).value for side in (a, b)]
    value = means[1] / means[0]
    return Estimate(value, value, value, 1)


def cpu_ratio(point: Point, paired: bool) -> Estimate | None:
    """CPU per frame, B / A, with the interval of this point alone; None where it is not known."""

    def log(o: Outcome) -> Reading | None:
        used = cpu_us(o)
        return Reading(*[math.log(used)] * 3) if used else None

    a, b = ({key: r for key, o in side.ok.items() if (r := log(o))} for side in (point.a, point.b))
    if not a or not b:
        return None
    n = min(len(a), len(b))
    if paired:
        pairs = [b[key] - a[key] for key in a if key in b]
        terms, n = [Term(tuple(pairs))], len(pairs)
    else:
        terms = [Term(tuple(b.values())), Term(tuple(-r for r in a.values()))]
    if n == 0:
        return None
    if n == 1:
        value = math.exp(sum(fmean(r.value for r in t.readings) for t in terms))
        return Estimate(value, value, value, 1)
    return statistics.ratio(statistics.interval(terms, [Prior()] * len(terms), 1 - CONFIDENCE), n)
