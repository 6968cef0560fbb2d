# SPDX-License-Identifier: Apache-2.0
"""What every search for loss goals is asked with, checked."""

from __future__ import annotations

import math
from collections.abc import Sequence


def check_arguments(
    goals: Sequence[float],
    *,
    minimum_fps: float,
    maximum_fps: float,
    resolution: float,
    trial_s: float,
    final_trial_s: float,
    retries: int,
    directions: int,
) -> None:
    """Raises ValueError on arguments that make no search; units as in throughput.py."""
    if not goals or any(not 0 <= goal < 1 for goal in goals) or len(set(goals)) != len(goals):
        raise ValueError(f"loss goals must be different ratios from 0 to below 1, not {list(goals)}")
    if not 0 < minimum_fps <= maximum_fps < math.inf:
        raise ValueError(f"0 < minimum <= maximum expected, not {minimum_fps} and {maximum_fps}")
    if not 1e-4 <= resolution < 1:
        raise ValueError(f"a resolution from 0.0001 to below 1 expected, not {resolution}")
    if not 0 < trial_s <= final_trial_s:
        raise ValueError(f"0 < trial <= final trial expected, not {trial_s} s and {final_trial_s} s")
    if retries < 0 or directions not in (1, 2):
        raise ValueError(f"retries >= 0 and 1 or 2 directions expected, not {retries} and {directions}")
