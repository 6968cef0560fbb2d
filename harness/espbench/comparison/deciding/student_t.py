# SPDX-License-Identifier: Apache-2.0
"""Computes the quantile of Student's t distribution.

It uses the incomplete beta function (Abramowitz and Stegun 26.5, 26.7).
"""

from __future__ import annotations

import math
from functools import lru_cache

_SMALLEST = 1e-300


@lru_cache(maxsize=4096)
def two_sided(alpha: float, df: float) -> float:
    """Return the t that |T| exceeds with probability alpha; df need not be a whole number.

    It is accurate to nine digits for df up to a million. Raise ValueError unless 1e-12 < alpha < 1 and df > 0.
    """
    if not 1e-12 < alpha < 1 or df <= 0:
        raise ValueError(f"1e-12 < alpha < 1 and df > 0 expected, not {alpha} and {df}")
    high = 1.0
    while _outside(high, df) > alpha:
        high *= 2
    low = 0.0
    while high - low > 1e-11 * high:
        middle = (low + high) / 2
        if _outside(middle, df) > alpha:
            low = middle
        else:
            high = middle
    return high


def _outside(t: float, df: float) -> float:
    """Return P(|T| > t) = I_x(df/2, 1/2) with x = df / (df + t²) (26.7.1)."""
    x, a, b = df / (df + t * t), df / 2, 0.5
    front = (
        math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
        if x < 1
        else 0.0
    )
    # The fraction converges fast on one side of the mean only; the other follows by symmetry (26.5.2).
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, 1 - x) / b


def _fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction 26.5.8, evaluated forwards (Lentz)."""
    c, d = 1.0, 1 / _not_zero(1 - (a + b) * x / (a + 1))
    result = d
    for m in range(1, 1000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _not_zero(1 + term * d)
            c = _not_zero(1 + term / c)
            result *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return result


def _not_zero(value: float) -> float:
    return value if abs(value) > _SMALLEST else _SMALLEST
