# SPDX-License-Identifier: Apache-2.0
"""Computes the statistics of a comparison: from repeats, each known within an interval, a ratio with an interval.

Everything is in natural logarithms of throughput, since noise and the search's resolution are relative.

**What is known.** A search gives an interval and not a number: the highest rate that met the goal, and the lowest rate
that missed it. So the ratio B / A of two repeats is only known to lie in [lowB / highA, highB / lowA].

**The interval of a mean** is [mean of the low ends - t·se, mean of the high ends + t·se]. It contains the resolution
in full, not divided by √n: repeats that measure the same DUT on the same grid of rates repeat the same error. The
scatter is that of the figures themselves. If all repeats fall on one grid point, the scatter is zero and only the
resolution is left, which is then the exact bound.

**Scatter.** With 3 or 5 repeats and a dozen verdicts at once, a point's own scatter alone (2 or 4 degrees of freedom)
would only show differences of a factor of two or more. So each variance is moderated (G. K. Smyth, Statistical
Applications in Genetics and Molecular Biology 3, 2004): it is drawn towards the mean variance of all points of the two
arms, as far as these points agree with each other, and not at all if they do not. There are three cautions. The result
never falls below the point's own variance. The other points count at most twice as much as the point's own repeats.
They count less if there are few of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from espbench.comparison.deciding import student_t
from espbench.comparison.sorting.model import Estimate

CONFIDENCE = 0.95
PER_CENT = f"{CONFIDENCE * 100:g} %"
FEWEST_REPEATS = 3  # two repeats show almost nothing about the scatter
# The scatter of the other points counts for at most this many times the point's own degrees of freedom.
MOST_BORROWED = 2.0


@dataclass(frozen=True)
class Reading:
    """A logarithm as one repeat measured it: the figure, and the ends between which the true value lies."""

    low: float
    value: float
    high: float

    def __sub__(self, other: Reading) -> Reading:
        return Reading(self.low - other.high, self.value - other.value, self.high - other.low)

    def __neg__(self) -> Reading:
        return Reading(-self.high, -self.value, -self.low)


@dataclass(frozen=True)
class Term:
    """One independent sample that is part of a log ratio: the differences of pairs, or the signed logs of one arm."""

    readings: tuple[Reading, ...]

    @property
    def df(self) -> int:
        return len(self.readings) - 1

    @property
    def scatter(self) -> float:
        """Variance between the repeats; 0 if there is only one."""
        return variance([r.value for r in self.readings]) if self.df else 0.0

    @property
    def grid(self) -> float:
        """Variance that the grid of a search alone would give: of values that spread evenly between the ends."""
        return fmean([(r.high - r.low) ** 2 / 12 for r in self.readings])


@dataclass(frozen=True)
class Prior:
    """An estimate of one point's scatter from all points of a pair: a variance, and how much it counts.

    weight is in multiples of a point's own degrees of freedom.
    """

    variance: float = 0.0
    weight: float = 0.0

    def moderated(self, term: Term) -> tuple[float, float]:
        """Return the moderated (variance, degrees of freedom) of a point's term."""
        own = term.scatter
        return max(own, (self.weight * self.variance + own) / (self.weight + 1)), (1 + self.weight) * term.df


def prior(terms: Sequence[Term], cases: int) -> Prior:
    """Return the common scatter of the same term at several points; `cases` of these are independent of each other.

    Points that are loss goals of the same case are not independent: they share a search.
    """
    known = [term for term in terms if term.df]
    if len(known) < 2 or cases < 2:
        return Prior()
    pooled = sum(t.df * t.scatter for t in known) / sum(t.df for t in known)
    most = min(MOST_BORROWED, (cases - 1) / 2)
    logs = [math.log(max(t.scatter, t.grid, 1e-12)) for t in known]
    # Chance alone makes the log variances spread by trigamma(df / 2); the rest of the spread is the points' own.
    spread = variance(logs) - fmean([trigamma(t.df / 2) for t in known])
    df = fmean([t.df for t in known])
    return Prior(pooled, _weight(spread, df, most))


def _weight(spread: float, df: float, most: float) -> float:
    """Return the weight that explains the spread of the log variances: trigamma(weight · df / 2) = spread.

    It is at most `most`.
    """
    low, high = 0.0, most
    if spread <= trigamma(most * df / 2):
        return most
    for _ in range(40):
        middle = (low + high) / 2
        if trigamma(middle * df / 2) > spread:
            low = middle
        else:
            high = middle
    return low


def trigamma(x: float) -> float:
    """Return the second derivative of log Γ, x > 0 (Abramowitz and Stegun 6.4.6, 6.4.12)."""
    total = 0.0
    while x < 10:
        total += 1 / x**2
        x += 1
    return total + 1 / x + 1 / (2 * x**2) + 1 / (6 * x**3) - 1 / (30 * x**5) + 1 / (42 * x**7)


def interval(terms: Sequence[Term], priors: Sequence[Prior], alpha: float) -> Reading:
    """Return the sum of the terms' means, with an interval that errs with probability alpha (both sides together)."""
    centre = [
        sum(fmean(getattr(r, end) for r in t.readings) for t in terms) for end in ("low", "value", "high")
    ]
    parts = [
        (moderated / len(t.readings), df)
        for t, p in zip(terms, priors, strict=True)
        for moderated, df in [p.moderated(t)]
    ]
    total = sum(part for part, _ in parts)
    if total == 0:
        return Reading(*centre)
    df = total**2 / sum(part**2 / df for part, df in parts)  # Welch and Satterthwaite; one term: its own
    t = student_t.two_sided(alpha, df)
    return Reading(centre[0] - t * math.sqrt(total), centre[1], centre[2] + t * math.sqrt(total))


def geometric(readings: Sequence[Reading]) -> Estimate:
    """Return the geometric mean of repeats given as logarithms, with its own interval (of this point alone)."""
    value = math.exp(fmean(r.value for r in readings))
    if len(readings) == 1:
        return Estimate(value, value, value, 1)
    estimate = interval([Term(tuple(readings))], [Prior()], 1 - CONFIDENCE)
    return ratio(estimate, len(readings))


def arithmetic(values: Sequence[float]) -> Estimate | None:
    """Return the mean of repeats with its interval; None if there are no values."""
    if not values:
        return None
    mean = fmean(values)
    if len(values) == 1:
        return Estimate(mean, mean, mean, 1)
    half = student_t.two_sided(1 - CONFIDENCE, len(values) - 1) * math.sqrt(variance(values) / len(values))
    return Estimate(mean, mean - half, mean + half, len(values))


def ratio(reading: Reading, n: int) -> Estimate:
    """Return the ratio whose logarithm is given; n: the number of repeats."""
    return Estimate(math.exp(reading.value), math.exp(reading.low), math.exp(reading.high), n)
