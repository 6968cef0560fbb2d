# SPDX-License-Identifier: Apache-2.0
"""Defines and checks the arguments that all searches share."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class SearchSpec:
    """The arguments that all searches share.

    goals: loss goals, as frame loss ratios. minimum_fps and maximum_fps: the range of loads, frames/s, summed over
    `directions`. resolution: the ratio by which neighbouring loads differ, relative to the upper one. trial_s and
    final_trial_s: the shortest and the longest trial, s. retries: how often an INVALID trial at one load is repeated.

    Raises ValueError if no search is possible with these arguments.
    """

    goals: tuple[float, ...]
    minimum_fps: float
    maximum_fps: float
    resolution: float
    trial_s: float
    final_trial_s: float
    retries: int = 3
    directions: int = 1

    def __post_init__(self) -> None:
        goals = self.goals
        if not goals or any(not 0 <= goal < 1 for goal in goals) or len(set(goals)) != len(goals):
            raise ValueError(f"loss goals must be different ratios from 0 to below 1, not {list(goals)}")
        if not 0 < self.minimum_fps <= self.maximum_fps < math.inf:
            raise ValueError(
                f"0 < minimum <= maximum expected, not {self.minimum_fps} and {self.maximum_fps}"
            )
        if not 1e-4 <= self.resolution < 1:
            raise ValueError(f"a resolution from 0.0001 to below 1 expected, not {self.resolution}")
        if not 0 < self.trial_s <= self.final_trial_s:
            raise ValueError(
                f"0 < trial <= final trial expected, not {self.trial_s} s and {self.final_trial_s} s"
            )
        if self.retries < 0 or self.directions not in (1, 2):
            raise ValueError(
                f"retries >= 0 and 1 or 2 directions expected, not {self.retries} and {self.directions}"
            )
