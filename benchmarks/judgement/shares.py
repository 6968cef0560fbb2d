# SPDX-License-Identifier: Apache-2.0
"""Computes the confidence interval of a counted share, for the tables and the goals of the benchmarks."""

from __future__ import annotations

import math
from statistics import NormalDist


def wilson(hits: int, of: int, z: float = 1.96) -> tuple[float, float]:
    """Return the confidence interval of a share (E. B. Wilson, 1927); z: normal quantile, by default for 95 %."""
    share = hits / of
    middle = (share + z**2 / (2 * of)) / (1 + z**2 / of)
    half = z / (1 + z**2 / of) * math.sqrt(share * (1 - share) / of + z**2 / (4 * of**2))
    # Rounding errors may exceed 0 or 1 slightly, which a table would print as -0.0 %.
    return max(0.0, middle - half), min(1.0, middle + half)


def surely_above(hits: int, of: int, share: float, tries: int = 1) -> bool:
    """Return whether the hits are significantly more than this share.

    tries: the number of counts of which this is the worst; the interval is then wider (Bonferroni).
    """
    return of > 0 and wilson(hits, of, _quantile(tries))[0] > share


def surely_below(hits: int, of: int, share: float, tries: int = 1) -> bool:
    """Return whether the hits are significantly fewer than this share; tries: see surely_above."""
    return of > 0 and wilson(hits, of, _quantile(tries))[1] < share


def _quantile(tries: int) -> float:
    return NormalDist().inv_cdf(1 - 0.025 / tries)
