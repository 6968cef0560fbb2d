# SPDX-License-Identifier: Apache-2.0
"""Judges trials against a loss goal: one trial by itself, or all final trials at one load together.

A goal is a frame loss ratio: 0 (zero loss) or a small number such as 1e-5 (0.001 %).

Goal zero: a trial meets it if nothing was lost. N frames without loss only exclude loss ratios above 3/N (the rule of
three, 95 % confidence). `frames_to_see` says how many frames a loss-free trial needs before it counts as different
from a trial that lost frames.

Goal above zero: the number of lost frames is a matter of chance, so a figure needs a rule with stated errors. The
final trials at a load are weighed by a sequential probability ratio test (Wald 1945) of the Poisson distribution. A
DUT that loses `ALTERNATIVE` times the goal passes with a probability of at most `ERROR`. A DUT that loses exactly the
goal misses with a probability of at most `ERROR`. Until the test decides for one of the two, another trial is needed.
If a DUT is so near to the goal that six trials cannot decide, it does not meet the goal (evidence.py; docs/search.md
has the probabilities). Each direction is weighed by itself: the goal is met if both meet it, and missed if one misses
it.

Search trials only steer the search. With 1/goal frames the loss ratio decides where it continues. With fewer frames, a
loss-free trial passes provisionally, and a trial with loss is undecided. A miss is sure only if the probability of so
much loss, for a DUT that loses exactly the goal, is less than `SIGNIFICANCE`. Any other miss is confirmed by final
trials before it limits a figure (evidence.py).

Frames that were lost while the host or the sender stood still ("excused") say nothing about the DUT. If a trial would
meet the goal without them, it counts neither as a pass nor as a miss, and is repeated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from espbench.terms import Reason, within_goal

SIGNIFICANCE = 0.01  # a search trial with few frames misses only if its loss is less probable than this
RULE_OF_THREE = 3.0
ALTERNATIVE = 2.0  # the test distinguishes a loss of the goal from a loss of this many times the goal
ERROR = 0.1  # the probability of either error
_DECIDED = math.log((1 - ERROR) / ERROR)
CONFIDENCE = 0.95  # of the loss bound that is reported with a figure


class Judgement(Enum):
    """The possible judgements of a trial against one loss goal."""

    MET = "met"
    MET_PROVISIONALLY = "met, on too few frames for a result"
    MISSED = "missed"
    UNDECIDED = "too few frames to decide"
    DISTURBED = "frames were lost only while the host stood still"
    INVALID = "the trial may not be trusted"


@dataclass(frozen=True)
class DirectionCount:
    """One direction of a trial: the frames sent, the frames lost (sent − received intact), and how many of these in
    stalls.
    """

    frames: int
    lost: int
    excused: int = 0


@dataclass(frozen=True)
class Observation:
    """The parts of one trial that the search needs.

    * load_fps: the intended load. offered_fps: the offered load (RFC 2285 3.5), a mean; None: as intended.
      highest_fps: the highest rate at which the DUT may have received the frames (terms.Trial.highest_fps); None: as
      intended, or as offered if that is more.
    * frames (sent), lost_frames (sent - received intact): sums over both directions.
    * frames_per_direction: the count of the direction with fewer frames.
    * directions: each direction by itself. Empty: not known; then all loss is attributed to the smaller direction.
    * final: the search asked for a final trial.
    * sustained: False if the load was stored in a queue instead of forwarded. Such a trial misses every goal.
    * forwarding_fps: the rate received while sending; None where unknown.
    * reasons: why the trial is not valid, or not sustained.
    * counted: an INVALID trial whose counts are right, since only the host disturbed it. It is no evidence, but it
      may steer the search, and bound the throughput from below.
    * backlog_excused: the trial was not sustained only because of stalls of the host.
    * same_each_time: a trial of virtual time, which would be the same if it were repeated.
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
    reasons: tuple[Reason, ...] = ()
    offered_fps: float | None = None
    highest_fps: float | None = None
    directions: tuple[DirectionCount, ...] = ()
    counted: bool = False
    backlog_excused: bool = False
    same_each_time: bool = False

    @property
    def loss_ratio(self) -> float:
        """The frame loss rate of RFC 2544 26.3, as a ratio instead of a percentage."""
        return max(self.lost_frames, 0) / self.frames if self.frames else 0.0

    @property
    def by_direction(self) -> tuple[DirectionCount, ...]:
        """Each direction's count. If these are not known, all loss is attributed to the direction with fewer frames."""
        return self.directions or (DirectionCount(self.frames_per_direction, max(self.lost_frames, 0)),)

    @property
    def excused(self) -> int:
        """Frames lost while the host or the sender stood still, of all directions."""
        return sum(count.excused for count in self.directions)


def frames_to_steer(goal: float) -> int:
    """Return the frames per direction from which on a search trial's loss ratio is compared with the goal."""
    return math.ceil(round(1 / goal, 6)) if goal > 0 else 1


def frames_needed(goal: float) -> int:
    """Return the frames per direction that final trials without any loss need to meet the goal."""
    return math.ceil(_DECIDED / ((ALTERNATIVE - 1) * goal)) if goal > 0 else 1


def frames_missing(frames: int, lost: int, goal: float) -> float:
    """Return how many more frames, without loss, a direction with these frames and losses needs to meet the goal."""
    return max(0.0, (_DECIDED + lost * math.log(ALTERNATIVE)) / ((ALTERNATIVE - 1) * goal) - frames)


def frames_to_see(ratio: float) -> float:
    """Return the number of frames that a loss-free trial needs to exclude the loss ratio `ratio` (rule of three)."""
    return RULE_OF_THREE / ratio


@lru_cache(maxsize=1 << 14)  # after each trial a search weighs all earlier counts again
def poisson_tail(count: int, mean: float) -> float:
    """Return P(X >= count) of a Poisson variable X: the probability of losing so many frames by chance alone."""
    if count <= 0:
        return 1.0
    if mean <= 0:
        return 0.0
    if count > mean + 60 * math.sqrt(mean) + 200:
        return 0.0
    below = math.fsum(math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(count))
    return max(0.0, 1.0 - below)


def loss_bound(frames: int, lost: int) -> float | None:
    """Return the loss ratio that these frames exclude with 95 % confidence (exact Poisson bound); None if no frames."""
    if frames <= 0:
        return None
    low, high = 0.0, lost + 10 * math.sqrt(lost + 1) + 10
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if poisson_tail(lost + 1, middle) < CONFIDENCE else (low, middle)
    return min(high / frames, 1.0)


def weigh(counts: Iterable[tuple[int, int]], goal: float) -> Judgement:
    """Return the verdict of the sequential test on (frames, lost) of one direction's trials: MET, MISSED or
    UNDECIDED.

    The trials are weighed in order, and the test ends with the first trial that decides it.
    """
    evidence = 0.0
    for frames, lost in counts:
        evidence += lost * math.log(ALTERNATIVE) - frames * (ALTERNATIVE - 1) * goal
        # frames_needed() is rounded up to whole frames. Rounding errors here must not make that number too
        # small.
        if evidence <= -_DECIDED + 1e-9:
            return Judgement.MET
        if evidence >= _DECIDED - 1e-9:
            return Judgement.MISSED
    return Judgement.UNDECIDED


def direction_counts(trials: Iterable[Observation]) -> list[tuple[int, int]]:
    """Return (frames, lost) of each direction over these trials."""
    rows = [seen.by_direction for seen in trials]
    width = max((len(row) for row in rows), default=0)
    columns = [[row[n] for row in rows if n < len(row)] for n in range(width)]
    return [(sum(c.frames for c in column), sum(c.lost for c in column)) for column in columns]


def joint_loss_bound(trials: Iterable[Observation]) -> float | None:
    """Return the loss ratio that these trials exclude with 95 % confidence, of the worse direction; None if no
    frames.

    All loss counts as the DUT's, including loss in stalls, so the bound holds for disturbed trials as well. A
    repeated trial that could only be the same (virtual time) adds no confidence: it is counted once.
    """
    bounds = [loss_bound(frames, lost) for frames, lost in direction_counts(without_repetitions(trials))]
    return max((bound for bound in bounds if bound is not None), default=None)


def without_repetitions(trials: Iterable[Observation]) -> list[Observation]:
    """Return the trials without those that could only be the same as an earlier one (virtual time)."""
    kept: list[Observation] = []
    for seen in trials:
        if not (seen.same_each_time and seen in kept):
            kept.append(seen)
    return kept


def weigh_finals(trials: Sequence[Observation], goal: float) -> Judgement:
    """Judge final trials at one load against a goal above zero, direction by direction."""
    if any(not seen.sustained for seen in trials):
        return Judgement.MISSED
    width = max((len(seen.by_direction) for seen in trials), default=0)
    columns = [[seen.by_direction[n] for seen in trials if n < len(seen.by_direction)] for n in range(width)]
    judgements = [weigh(((c.frames, c.lost) for c in column), goal) for column in columns]
    return _worst(judgements) if judgements else Judgement.UNDECIDED


def judge(seen: Observation, goal: float) -> Judgement:
    """Judge whether one trial met the loss goal, by the rules in the docstring of this module."""
    return judge_counts(seen, goal) if seen.valid else Judgement.INVALID


def judge_counts(seen: Observation, goal: float) -> Judgement:
    """Judge one trial as `judge` does, even if it is INVALID."""
    if seen.sustained:
        return _judge_loss(seen, goal)
    if not seen.backlog_excused:
        return Judgement.MISSED
    # Stalls excuse the backlog, but not losses that happened outside of them.
    by_loss = _judge_loss(seen, goal)
    return by_loss if by_loss is Judgement.MISSED else Judgement.DISTURBED


def _judge_loss(seen: Observation, goal: float) -> Judgement:
    """Judge one trial by the frames that it lost."""
    if goal == 0:
        return _zero_loss(seen)
    if seen.final:
        return _with_excuses(seen, lambda count, lost: weigh([(count.frames, lost)], goal))
    return _with_excuses(seen, lambda count, lost: _short(count.frames, lost, goal))


def _zero_loss(seen: Observation) -> Judgement:
    if seen.lost_frames <= 0:
        return Judgement.MET if seen.frames else Judgement.UNDECIDED
    return Judgement.MISSED if seen.lost_frames > seen.excused else Judgement.DISTURBED


def _with_excuses(seen: Observation, rule: Callable[[DirectionCount, int], Judgement]) -> Judgement:
    """Judge each direction with all its loss, and again without its loss in stalls; if they differ, it is DISTURBED."""
    judgements = []
    for count in seen.by_direction:
        whole, rest = rule(count, count.lost), rule(count, count.lost - count.excused)
        judgements.append(whole if whole is rest or rest is Judgement.MISSED else Judgement.DISTURBED)
    return _worst(judgements)


def is_sure(missed: Observation, goal: float) -> bool:
    """Return whether the miss of a trial is more than chance for a DUT that loses exactly the goal.

    A final trial is sure by its own rule. The loss ratio of a search trial may exceed the goal by a frame or two: with
    100,000 frames, a DUT that loses half of 0.001 % loses two or more in 9 % of the trials.
    """
    if goal == 0 or missed.final or not missed.sustained:
        return True
    return any(
        poisson_tail(count.lost - count.excused, count.frames * goal) < SIGNIFICANCE
        for count in missed.by_direction
    )


def _short(frames: int, lost: int, goal: float) -> Judgement:
    """Judge one direction of a search trial by its frames."""
    if frames >= frames_to_steer(goal):
        return Judgement.MET if within_goal(frames, lost, goal) else Judgement.MISSED
    if lost <= 0:
        return Judgement.MET_PROVISIONALLY if frames else Judgement.UNDECIDED
    return Judgement.MISSED if poisson_tail(lost, frames * goal) < SIGNIFICANCE else Judgement.UNDECIDED


_FROM_WORST = (
    Judgement.MISSED,
    Judgement.DISTURBED,
    Judgement.UNDECIDED,
    Judgement.MET_PROVISIONALLY,
    Judgement.MET,
)


def _worst(judgements: Sequence[Judgement]) -> Judgement:
    return next(what for what in _FROM_WORST if what in judgements)
