# SPDX-License-Identifier: Apache-2.0
"""The MLRsearch library as a function of the trials on record: the one file that imports it.

The library drives a measurer and keeps its state inside. A run must go on where it was interrupted, so
each time the library runs from its start over what is on record, and stops at the first trial nobody has
made yet. That costs milliseconds, and nothing of its state needs to be kept. The durations it counts are
those asked for: a trial of 59.9999 s is no reason for another one.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from espbench.search.arguments import SearchSpec
from espbench.search.evidence import Entry, TrialRequest
from espbench.search.goals import Observation
from espbench.sentences import Code
from espbench.terms import Reason

MOST_TRIALS = 1000  # valid ones; only a DUT that never shows the same twice needs more
PRECEDING_TARGETS = 2  # coarser searches with shorter trials before the final one: the library's default
NARROWEST = 2.5  # widths from minimum to maximum, at least: on a narrower range the library does not end

Request = Callable[[float, float, int], TrialRequest]  # load (frames/s), duration (s), attempt


def _library() -> Any:
    """Imported by the first search that needs it: that takes longer than all else of a start, and few do."""
    return importlib.import_module("MLRsearch")


def goal(
    loss_ratio: float,
    spec: SearchSpec,
    *,
    duration_sum_s: float,
    exceed_ratio: float,
) -> Any:
    """The library's SearchGoal; ValueError where it makes none."""
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
    *,
    minimum_fps: float,
    maximum_fps: float,
) -> Replayed:
    """The library after these trials; with no goals there is nothing to do."""
    if not goals:
        return Replayed(None)
    width = max(goal.relative_width for goal in goals)
    library = _library().MultipleLossRatioSearch(
        _library().Config(
            goals=goals,
            min_load=min(minimum_fps, maximum_fps * (1 - width) ** NARROWEST),
            max_load=maximum_fps,
            search_duration_max=math.inf,  # it would ask the clock
            warmup_duration=None,  # the procedure's
        )
    )
    recorded = _Recorded(entries, max(goal.loss_ratio for goal in goals), request)
    try:
        library.search(recorded, debug=lambda _: None)
    except _NotMadeYet as stop:
        return Replayed(library, wanted=stop.asked)
    except _TooMany:
        return Replayed(library, why_none=Reason.of(Code.TRIALS_DISAGREE, trials=MOST_TRIALS))
    except (RuntimeError, ValueError) as error:
        return Replayed(library, why_none=Reason.of(Code.LIBRARY_GAVE_UP, why=str(error)))
    return Replayed(library)


@dataclass(frozen=True)
class Replayed:
    """The library where the record ends: what it wants next, or why it cannot go on."""

    library: Any
    wanted: TrialRequest | None = None
    why_none: Reason | None = None

    def relevant(self, goal: Any) -> Any:
        """The library's RelevantBounds of a goal; None for a goal it was not given."""
        target = self._target(goal)
        return self.library.database.get_relevant_bounds(target) if target else None

    def conditional_throughput(self, goal: Any) -> float:
        """The lower bound less the loss that its trials show (draft, Conditional Throughput)."""
        lower = self.relevant(goal).clo
        (stat,) = lower.target_to_stat.values()
        return float(lower * (1.0 - stat.pessimistic_loss_ratio))

    def _target(self, goal: Any) -> Any:
        scaling = self.library.scaling if self.library else None
        return scaling.goal_to_final_target.get(goal) if scaling else None


class _NotMadeYet(Exception):
    """The library wants a trial that is not on record."""

    def __init__(self, asked: TrialRequest) -> None:
        super().__init__(asked)
        self.asked = asked


class _TooMany(Exception):
    """The library does not come to an end."""


class _Recorded:
    """The library's measurer: answers with the trials on record, in their order."""

    def __init__(
        self,
        entries: Sequence[Entry],
        largest_goal: float,
        request: Request,
    ) -> None:
        self._left = iter(entries)
        self._largest_goal = largest_goal
        self._request = request
        self._answered = 0

    def measure(self, intended_duration: float, intended_load: float) -> Any:
        """The first valid trial of what is left; raises _NotMadeYet where there is none."""
        self._answered += 1
        if self._answered > MOST_TRIALS:
            raise _TooMany
        attempts = 0
        for entry in self._left:
            if entry.seen.valid:
                return _library().MeasurementResult(
                    intended_duration=intended_duration,
                    intended_load=intended_load,
                    offered_count=entry.seen.frames,
                    loss_count=self._lost(entry.seen),
                )
            attempts += 1
        raise _NotMadeYet(self._request(intended_load, intended_duration, attempts))

    def _lost(self, seen: Observation) -> int:
        """Frames lost; of a load that was only stored, those that did not come in time: it misses every goal."""
        if seen.sustained:
            return max(seen.lost_frames, 0)
        in_time = seen.forwarding_fps * seen.duration_s if seen.forwarding_fps is not None else seen.frames
        missed = math.floor(self._largest_goal * seen.frames) + 1
        return min(max(seen.lost_frames, math.ceil(seen.frames - in_time), missed), seen.frames)
