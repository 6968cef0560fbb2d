# SPDX-License-Identifier: Apache-2.0
"""Computes how sure a counted share is, for the tables and the goals of the benchmarks."""

from __future__ import annotations

import math
from statistics import NormalDist


def wilson(hits: int, of: int, z: float = 1.96) -> tuple[float, float]:
    """The interval of a share (E. B. Wilson, 1927), 95 % unless another quantile of the normal is given."""
    share = hits / of
    middle = (share + z**2 / (2 * of)) / (1 + z**2 / of)
    half = z / (1 + z**2 / of) * math.sqrt(share * (1 - share) / of + z**2 / (4 * of**2))
    # Rounding may leave 0 or 1 by a hair, which a table would print as -0.0 %.
    return max(0.0, middle - half), min(1.0, middle + half)


def surely_above(hits: int, of: int, share: float, tries: int = 1) -> bool:
    """Return whether so many hits are more than chance makes of this share.

    tries: of so many counts this is the worst; each is then held against chance more strictly (Bonferroni).
    """
    return of > 0 and wilson(hits, of, _quantile(tries))[0] > share


def surely_below(hits: int, of: int, share: float, tries: int = 1) -> bool:
    """Return whether so many hits are fewer than chance makes of this share; tries as above."""
    return of > 0 and wilson(hits, of, _quantile(tries))[1] < share


def _quantile(tries: int) -> float:
    return NormalDist().inv_cdf(1 - 0.025 / tries)
