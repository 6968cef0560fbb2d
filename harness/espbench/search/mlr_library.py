# SPDX-License-Identifier: Apache-2.0
"""The MLRsearch library as a function of the recorded trials: the one file that imports it.

The library calls a measurer and keeps its state inside. But a run must be able to continue where it was interrupted.
So the library is run from its start over the recorded trials each time, and stops at the first trial that has not
been made yet. That takes milliseconds, and none of its state needs to be kept. The durations it counts are the
intended ones: a trial of 59.9999 s is no reason for another one.

A load whose trials are all void is given up. So that the library continues with other loads, it gets the result of
the median of these trials, or, if none has right counts, a loss of all frames. This only steers the library: no OK
rests on it (mlr.py).
"""

from __future__ import annotations

import dataclasses
import importlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from espbench.search.arguments import SearchSpec
from espbench.search.evidence import MOST_GIVEN_UP, Entry, GivenUp, TrialRequest, patience
from espbench.search.goals import Observation
from espbench.sentences import Code
from espbench.terms import Reason

MOST_TRIALS = 1000  # that the library may ask for; only a DUT that differs each time needs more
PRECEDING_TARGETS = 2  # coarser searches with shorter trials before the final one: the library's default
NARROWEST = 2.5  # least range of loads, in widths: on a narrower range the library does not end

Request = Callable[[float, float, int], TrialRequest]  # load (frames/s), duration (s), attempt


@dataclass(frozen=True)
class Repeats:
    """The number of repeats of void trials, and the durations of the shortest and the longest trial and of their
    sum, s.
    """

    retries: int
    trial_s: float
    final_s: float
    sum_s: float


def _library() -> Any:
    """Import the library when the first search needs it: the import takes longer than the rest of a start, and few
    runs need it.
    """
    return importlib.import_module("MLRsearch")


def goal(
    loss_ratio: float,
    spec: SearchSpec,
    *,
    duration_sum_s: float,
    exceed_ratio: float,
) -> Any:
    """Return the library's SearchGoal. Raise ValueError if the library refuses the arguments."""
    return _library().SearchGoal(
        loss_ratio=loss_ratio,
        exceed_ratio=exceed_ratio,
        relative_width=spec.resolution,
        initial_trial_duration=spec.trial_s,
        final_trial_duration=spec.final_trial_s,
        duration_sum=duration_sum_s,
        preceding_targets=PRECEDING_TARGETS,
        fail_fast=False,
    )


def replay(
    entries: Sequence[Entry],
    goals: Sequence[Any],
    request: Request,
    repeats: Repeats,
    *,
    minimum_fps: float,
    maximum_fps: float,
) -> Replayed:
    """Return the state of the library after these trials; without goals there is nothing to do."""
    if not goals:
        return Replayed(None)
    width = max(goal.relative_width for goal in goals)
    lowest = min(minimum_fps, maximum_fps * (1 - width) ** NARROWEST)
    library = _library().MultipleLossRatioSearch(
        _library().Config(
            goals=goals,
            min_load=lowest,
            max_load=maximum_fps,
            search_duration_max=math.inf,  # the library would read the clock for it
            warmup_duration=None,  # the procedure warms up
        )
    )
    recorded = _Recorded(entries, max(goal.loss_ratio for goal in goals), request, repeats, lowest)
    replayed = Replayed(library, given_up=recorded.given_up)
    try:
        library.search(recorded, debug=lambda _: None)
    except _NotMadeYet as stop:
        return dataclasses.replace(replayed, wanted=stop.asked)
    except _TooManyVoid:
        return dataclasses.replace(replayed, has_ended=False)
    except _TooMany:
        return dataclasses.replace(replayed, why_none=Reason.of(Code.TRIALS_DISAGREE, trials=MOST_TRIALS))
    except (RuntimeError, ValueError) as error:
        return dataclasses.replace(replayed, why_none=Reason.of(Code.LIBRARY_GAVE_UP, why=str(error)))
    return replayed


@dataclass(frozen=True)
class Replayed:
    """The library at the end of the record: the trial it wants next, or why it cannot continue.

    given_up: the loads whose trials were all void, in their order; has_ended: False if there were too many of them.
    """

    library: Any
    wanted: TrialRequest | None = None
    why_none: Reason | None = None
    given_up: Sequence[GivenUp] = ()
    has_ended: bool = True

    def relevant(self, goal: Any) -> Any:
        """Return the library's RelevantBounds of a goal; None for a goal that the library was not given."""
        target = self._target(goal)
        return self.library.database.get_relevant_bounds(target) if target else None

    def conditional_throughput(self, goal: Any) -> float:
        """Return the lower bound minus the loss of its trials (Conditional Throughput in the draft), frames/s."""
        lower = self.relevant(goal).clo
        (stat,) = lower.target_to_stat.values()
        return float(lower * (1.0 - stat.pessimistic_loss_ratio))

    def _target(self, goal: Any) -> Any:
        scaling = self.library.scaling if self.library else None
        return scaling.goal_to_final_target.get(goal) if scaling else None


class _NotMadeYet(Exception):
    """The library wants a trial that is not recorded yet."""

    def __init__(self, asked: TrialRequest) -> None:
        super().__init__(asked)
        self.asked = asked


class _TooMany(Exception):
    """The library asked for more than MOST_TRIALS results and does not end."""


class _TooManyVoid(Exception):
    """Too many loads in a row could not be judged, so no further one is tried."""


class _Recorded:
    """The measurer that the library calls: it answers with the recorded trials, in their order."""

    def __init__(
        self,
        entries: Sequence[Entry],
        largest_goal: float,
        request: Request,
        repeats: Repeats,
        lowest_fps: float,
    ) -> None:
        self.given_up: list[GivenUp] = []
        self._left = iter(entries)
        self._largest_goal = largest_goal
        self._request = request
        self._repeats = repeats
        self._lowest_fps = lowest_fps
        self._answered = 0
        self._vainly = False  # the last load was given up, and no load was judged since
        # These count the loads in a row that were given up without anything known about them.
        self._in_a_row = {"search": 0, "final": 0}
        self._answers: dict[tuple[float, float], tuple[int, int]] = {}  # for loads given up: frames, lost
        self._void: dict[tuple[float, float], list[Entry]] = {}  # all void trials by load and duration

    def measure(self, intended_duration: float, intended_load: float) -> Any:
        """Return the next valid trial, or the assumed result of a load that was given up. Raise _NotMadeYet if there
        is neither.
        """
        self._answered += 1
        if self._answered > MOST_TRIALS:
            raise _TooMany
        place = intended_load, intended_duration
        frames, lost = self._answers.get(place) or self._counts(*place)
        return _library().MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            offered_count=frames,
            loss_count=lost,
        )

    def _counts(self, load: float, duration_s: float) -> tuple[int, int]:
        final = duration_s >= self._repeats.final_s
        most = patience(self._repeats.retries, final=final, vainly=self._vainly)
        void: list[Entry] = []  # since the last valid one
        all_void = self._void.setdefault((load, duration_s), [])
        for entry in self._left:
            if entry.seen.valid:
                self._vainly = False
                self._in_a_row |= {"search": 0} | ({"final": 0} if final else {})
                return entry.seen.frames, self._lost(entry.seen)
            void.append(entry)
            all_void.append(entry)
            if len(void) > most or len(all_void) > self._repeats.retries:
                self._vainly = True
                self._answers[load, duration_s] = counts = self._give_up(all_void, load, duration_s)
                return counts
        raise _NotMadeYet(self._request(load, duration_s, len(void)))

    def _give_up(self, void: list[Entry], load: float, duration_s: float) -> tuple[int, int]:
        """Note that a load could not be judged; return the result that the library gets for it: frames, and how many
        lost.
        """
        asked = void[0].asked
        known = [
            e for e in void if e.seen.counted and e.seen.frames and (e.seen.lost_frames or not e.fell_short)
        ]
        known.sort(key=lambda e: self._lost(e.seen) / e.seen.frames)
        whole = max(1, round(load * duration_s))
        counts = whole, whole
        passed = False
        if known:
            middle = known[len(known) // 2].seen
            counts = middle.frames, self._lost(middle)
            as_good = sum(e.asked.duration_s for e in known[: len(known) // 2 + 1])
            passed = counts[1] <= self._largest_goal * counts[0]
            if asked.phase == "final" and passed and as_good < self._repeats.sum_s:
                # These trials passed, but are too few for a bound: only a lower load can give one.
                counts = middle.frames, self._miss(middle.frames)
        elif (
            asked.phase == "search"
            and math.isclose(load, self._lowest_fps)
            and any(e.fell_short for e in void)
        ):
            counts = whole, 0  # no lower load is left, so final trials shall show what can be offered
        given_up = GivenUp(asked.load_fps, asked.phase, tuple(void), passed)
        self.given_up.append(given_up)
        costly = asked.phase == "final" and self._repeats.final_s > self._repeats.trial_s
        self._in_a_row[asked.phase] += costly or not given_up.counted
        if self._in_a_row[asked.phase] >= MOST_GIVEN_UP:
            raise _TooManyVoid
        return counts

    def _miss(self, frames: int) -> int:
        """Return a number of lost frames that misses every goal."""
        return min(math.floor(self._largest_goal * frames) + 1, frames)

    def _lost(self, seen: Observation) -> int:
        """Return the frames lost. If the load was only stored, late frames count too, and every goal is missed.

        Each direction has to meet the goal, so the loss ratio of the worse direction is applied to all frames.
        """
        lost = max(
            (-(-seen.frames * c.lost // c.frames) for c in seen.by_direction if c.frames > 0), default=0
        )
        if seen.sustained:
            return min(max(lost, 0), seen.frames)
        in_time = seen.forwarding_fps * seen.duration_s if seen.forwarding_fps is not None else seen.frames
        late = math.ceil(seen.frames - in_time)
        return min(max(lost, late, self._miss(seen.frames)), seen.frames)
