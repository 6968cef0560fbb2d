# SPDX-License-Identifier: Apache-2.0
"""Computes how sure a counted share is, for the tables of the benchmarks."""

from __future__ import annotations

import math


def wilson(hits: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a share (E. B. Wilson, 1927)."""
    z, share = 1.96, hits / of
    middle = (share + z**2 / (2 * of)) / (1 + z**2 / of)
    half = z / (1 + z**2 / of) * math.sqrt(share * (1 - share) / of + z**2 / (4 * of**2))
    # Rounding may leave 0 or 1 by a hair, which a table would print as -0.0 %.
    return max(0.0, middle - half), min(1.0, middle + half)
