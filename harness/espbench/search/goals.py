# SPDX-License-Identifier: Apache-2.0
"""Judges one observation against one loss goal.

A goal is a frame loss ratio: 0 (zero loss) or a small number such as 1e-5 (0.001 %).

Goal above zero: to tell one lost frame from none at a ratio of g takes at least 1/g frames in
each direction. With that many the goal is met if the measured ratio is at most g. With fewer, a
loss-free trial meets it provisionally: enough to steer a search, never enough for a result; a
trial that lost frames misses it only if a DUT exactly at the goal would lose that many less than
once in a hundred trials; anything between is undecided, and the trial must be longer.

Goal zero: met if nothing was lost. That N frames passed without loss excludes only loss ratios
above 3/N (the rule of three, 95 % confidence): `frames_to_see` says how many frames a loss-free
trial needs before it can be called different from one that did lose.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

SIGNIFICANCE = 0.01  # a goal is missed on few frames only if chance explains the loss less often than this
RULE_OF_THREE = 3.0


class Judgement(Enum):
    """What one trial says about one goal."""

    MET = "met"
    MET_PROVISIONALLY = "met, on too few frames for a result"
    MISSED = "missed"
    UNDECIDED = "too few frames to decide"
    INVALID = "the trial may not be trusted"


@dataclass(frozen=True)
class Observation:
    """What the search needs to know of one trial.

    load_fps, frames (sent) and lost_frames (sent - received intact) are sums over both
    directions; frames_per_direction is the smaller direction's count. `final` says the trial was
    asked for as a final one. `sustained` is False when the load was stored in a queue instead of
    forwarded: such a trial misses every goal. forwarding_fps is the rate received while sending,
    None where unknown. `reasons` says why the trial is not valid, or not sustained.
    """

    load_fps: float
    frames: int
    lost_frames: int
    frames_per_direction: int
    duration_s: float
    final: bool
    valid: bool = True
    sustained: bool = True
    forwarding_fps: float | None = None
    reasons: tuple[str, ...] = ()

    @property
    def loss_ratio(self) -> float:
        """RFC 2544 26.3 as a ratio, not a percentage."""
        return max(self.lost_frames, 0) / self.frames if self.frames else 0.0


def frames_needed(goal: float) -> int:
    """Frames per direction before a trial can tell one lost frame from the goal."""
    return math.ceil(round(1 / goal, 6)) if goal > 0 else 1


def frames_to_see(ratio: float) -> float:
    """Frames a loss-free trial needs to exclude the loss ratio `ratio` (rule of three)."""
    return RULE_OF_THREE / ratio


def poisson_tail(count: int, mean: float) -> float:
    """P(X >= count) of a Poisson variable: the chance to lose so many frames by luck alone."""
    if count <= 0:
        return 1.0
    if mean <= 0:
        return 0.0
    if count > mean + 60 * math.sqrt(mean) + 200:
        return 0.0
    below = math.fsum(math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(count))
    return max(0.0, 1.0 - below)


def judge(seen: Observation, goal: float) -> Judgement:
    """Whether the trial met the loss goal; the rules are in the head of this file."""
    if not seen.valid:
        return Judgement.INVALID
    if not seen.sustained:
        return Judgement.MISSED
    lost = seen.lost_frames > 0
    if goal == 0 and lost:
        return Judgement.MISSED
    if seen.frames_per_direction >= frames_needed(goal):
        return Judgement.MET if seen.loss_ratio <= goal else Judgement.MISSED
    if not lost:
        return Judgement.MET_PROVISIONALLY if seen.frames else Judgement.UNDECIDED
    by_luck = poisson_tail(seen.lost_frames, seen.frames * goal)
    return Judgement.MISSED if by_luck < SIGNIFICANCE else Judgement.UNDECIDED
