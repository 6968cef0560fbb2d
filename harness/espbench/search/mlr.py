# SPDX-License-Identifier: Apache-2.0
"""MLRsearch (draft-ietf-bmwg-mlrsearch) as a search of espbench; mlr_library.py drives the library.

What is espbench's and not the library's:
- an INVALID trial, one of which less was offered than asked for, or one whose loss lies in stalls of the host alone
  is repeated, up to `retries` times, before the library hears of the load;
- a load that was stored and not forwarded is told as the loss of what did not come in time;
- where trials hold too few frames to judge a goal (goals.py), the goal is UNRESOLVABLE;
- where the library cannot end, the highest load that passed in a valid final trial is a LOWER_BOUND.
A load's trials are counted as the library counts them: each by its loss ratio, not weighed together.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from espbench.search import mlr_library
from espbench.search.arguments import SearchSpec
from espbench.search.evidence import Entry, TrialRequest, check_answer, faint_loss, tidy
from espbench.search.goals import Judgement, Observation, frames_to_see, frames_to_steer, judge_counts
from espbench.search.mlr_library import Replayed
from espbench.search.results import GoalResult, why_invalid
from espbench.sentences import Code
from espbench.terms import Reason, Remark, Statement, Status

_S_DIGITS = 3  # a trial is as long as a reader can type


class MlrSearch:
    """Ask `next()` for a trial, run it, `add()` what was seen, until `next()` is None.

    As ThroughputSearch (throughput.py), whose arguments it shares. A load passes a goal once trials of
    `duration_sum_s` together show it, of which at most the share `exceed_ratio` may have missed the
    goal. Raises ValueError where the library makes no goal of it.
    """

    def __init__(self, spec: SearchSpec, *, duration_sum_s: float, exceed_ratio: float) -> None:
        self.goals = spec.goals
        self.minimum_fps = spec.minimum_fps
        self.maximum_fps = spec.maximum_fps
        self.resolution = spec.resolution
        self.final_trial_s = spec.final_trial_s
        self.duration_sum_s = duration_sum_s
        self.exceed_ratio = exceed_ratio
        self.retries = spec.retries
        self.directions = spec.directions
        self._of_library = {
            goal: mlr_library.goal(goal, spec, duration_sum_s=duration_sum_s, exceed_ratio=exceed_ratio)
            for goal in spec.goals
        }
        self._entries: list[Entry] = []
        self._begins_at = 0  # the trial after which the maximum was lowered: the library began anew
        self._cached: Replayed | None = None

    # -- what the caller uses ---------------------------------------------------------------

    def next(self) -> TrialRequest | None:
        """The next trial, None when every goal has its answer. Asking twice gives the same."""
        wanted = self._replayed().wanted
        return None if wanted is None or wanted.attempt > self.retries else wanted

    def add(self, seen: Observation) -> None:
        """Take what the trial of the last `next()` showed; ValueError if it is another search's."""
        asked = check_answer(self.next(), seen)
        self._entries.append(Entry(len(self._entries), asked, self._usable(seen)))
        self._cached = None

    def _usable(self, seen: Observation) -> Observation:
        """Return it as seen, or INVALID where it is no evidence for the load that the library asked for."""
        why = None
        if seen.offered_fps is not None and seen.offered_fps < (1 - self.resolution) * seen.load_fps:
            why = Reason.of(Code.ONLY_OFFERED, fps=seen.offered_fps)
        elif any(_judge(seen, goal) is Judgement.DISTURBED for goal in self.goals):
            why = Reason.of(Code.LOST_IN_STALLS)
        if not seen.valid or why is None:
            return seen
        return replace(seen, valid=False, counted=True, reasons=(*seen.reasons, why))

    def limit(self, maximum_fps: float) -> None:
        """Lower the maximum: the tester turned out not to offer more. The library then begins anew.

        Never below a load that some goal is known to pass, nor below the minimum.
        """
        known = [lower for goal in self.goals if (lower := self.bounds(goal)[0]) is not None]
        lowered = tidy(max(maximum_fps, self.minimum_fps, *known))
        if lowered < self.maximum_fps:
            self.maximum_fps, self._begins_at, self._cached = lowered, len(self._entries), None

    def bounds(self, goal: float) -> tuple[float | None, float | None]:
        """The library's relevant (lower, upper) bound of a goal so far, frames/s; None = none yet."""
        found = self._replayed().relevant(self._of_library[goal])
        return (self._fps(found.clo), self._fps(found.chi)) if found else (None, None)

    def results(self) -> list[GoalResult]:
        """One result per goal, in the order given. Raises ValueError while trials are wanting."""
        if self.next() is not None:
            raise ValueError("the search is not finished")
        return [self._result(goal) for goal in self.goals]

    def remaining_s(self) -> float:
        """Seconds of traffic still to come, roughly: for a progress line, nothing else."""
        if self.next() is None:
            return 0.0
        widths = 1.0
        for goal in self._resolvable():
            lower, upper = self.bounds(goal)
            high = upper or self.maximum_fps
            widths = max(widths, math.log(high / min(lower or self.minimum_fps, high)) / self.resolution)
        return (2 + math.log2(widths)) / 2 * self.duration_sum_s

    # -- the library ------------------------------------------------------------------------

    def _resolvable(self) -> list[float]:
        """The goals that a final trial at the maximum holds enough frames for."""
        most = self.maximum_fps * self.final_trial_s / self.directions
        return [goal for goal in self.goals if most >= frames_to_steer(goal)]

    def _replayed(self) -> Replayed:
        """The library after all trials on record."""
        if self._cached is None:
            self._cached = mlr_library.replay(
                self._entries[self._begins_at :],
                [self._of_library[goal] for goal in self._resolvable()],
                self._request,
                minimum_fps=self.minimum_fps,
                maximum_fps=self.maximum_fps,
            )
        return self._cached

    def _request(self, load: float, duration_s: float, attempt: int) -> TrialRequest:
        """A trial of the library's as espbench asks for it."""
        fps = self._fps(load)
        assert fps is not None
        final = duration_s >= self.final_trial_s
        return TrialRequest(fps, round(duration_s, _S_DIGITS), "final" if final else "search", attempt)

    def _fps(self, load: Any) -> float | None:
        """A load of the library's, tidy but for the ends of the range, which are as the plan has them."""
        if load is None:
            return None
        ends = (end for end in (self.minimum_fps, self.maximum_fps) if math.isclose(end, float(load)))
        return next(ends, tidy(float(load)))

    # -- one goal -----------------------------------------------------------------------------

    def _result(self, goal: float) -> GoalResult:
        replayed = self._replayed()
        lower, upper = self.bounds(goal)
        status, reason = self._status(goal, lower, upper)
        throughput, final = None, None
        if status == "OK":
            throughput = self._fps(replayed.conditional_throughput(self._of_library[goal]))
            final = next(e for e in reversed(self._long_at(lower)) if _judge(e.seen, goal) is Judgement.MET)
        elif status == "INVALID" and (final := self._bound(goal)) is not None:
            status, throughput = "LOWER_BOUND", final.load_fps
        at_maximum = status == "OK" and lower == self.maximum_fps
        return GoalResult(
            goal=goal,
            status=status,
            throughput_fps=throughput,
            lower_fps=lower,
            upper_fps=upper,
            trials=len(self._entries),
            final_trial_index=final.index if final else None,
            at_maximum=at_maximum,
            reasons=[reason] if reason else [],
            warnings=self._exceeded(goal, lower) if status == "OK" else [],
            answer=self._answer(goal, status, throughput, reason, at_maximum=at_maximum),
            void_finals=sum(not e.seen.valid and e.seen.final and e.load_fps == lower for e in self._entries),
        )

    def _status(self, goal: float, lower: float | None, upper: float | None) -> tuple[Status, Reason | None]:
        """How a goal ended, and why if not well."""
        replayed = self._replayed()
        if goal not in self._resolvable():
            return "UNRESOLVABLE", self._too_few(goal, self.maximum_fps)
        if replayed.wanted is not None:
            return "INVALID", why_invalid(self._entries, replayed.wanted.load_fps)
        if replayed.why_none:
            return "INVALID", replayed.why_none
        return self._below_minimum(goal, upper) if not lower else self._at(goal, lower, upper)

    def _bound(self, goal: float) -> Entry | None:
        """The last trial at the highest load below all that missed at which trials as long as the sum met the goal."""
        valid = [(e, _judge(e.seen, goal)) for e in self._entries if e.seen.valid]
        missed = min((e.load_fps for e, what in valid if what is Judgement.MISSED), default=math.inf)
        passed_s: dict[float, float] = {}
        for e, what in valid:
            if e.seen.final and what is Judgement.MET and e.load_fps < missed:
                passed_s[e.load_fps] = passed_s.get(e.load_fps, 0.0) + e.asked.duration_s
        load = max((load for load, took_s in passed_s.items() if took_s >= self.duration_sum_s), default=None)
        return next((e for e in reversed(self._entries) if e.seen.valid and e.load_fps == load), None)

    def _below_minimum(self, goal: float, upper: float | None) -> tuple[Status, Reason | None]:
        """No load passed; few frames at the minimum may have missed by chance."""
        if self._missed_at(upper, goal):
            return "BELOW_MINIMUM", Reason.of(Code.BELOW_MINIMUM, fps=self.minimum_fps)
        return "UNRESOLVABLE", self._too_few(goal, self.minimum_fps)

    def _at(self, goal: float, lower: float, upper: float | None) -> tuple[Status, Reason | None]:
        """A load passed by the library's rules; now whether its trials held frames enough to tell."""
        if lower < self.minimum_fps:
            return "BELOW_MINIMUM", Reason.of(Code.BELOW_MINIMUM, fps=self.minimum_fps)
        if upper is not None and not self._missed_at(upper, goal):
            return "UNRESOLVABLE", Reason.of(Code.BOUND_ON_TOO_FEW, fps=upper)
        met = [e for e in self._long_at(lower) if _judge(e.seen, goal) is Judgement.MET]
        faint = faint_loss(self._entries[self._begins_at :], upper) if goal == 0 else None
        if not met or (faint is not None and sum(e.seen.frames for e in met) < frames_to_see(faint)):
            return "UNRESOLVABLE", self._too_few(goal, lower)
        return "OK", None

    def _missed_at(self, load: float | None, goal: float) -> bool:
        """Whether a trial at a load missed the goal on frames enough to say so; to the library any loss is one."""
        at_load = [e.seen for e in self._entries[self._begins_at :] if e.load_fps == load]
        return any(_judge(seen, goal) is Judgement.MISSED for seen in at_load)

    def _long_at(self, load: float | None) -> list[Entry]:
        """The valid final trials at a load."""
        recent = self._entries[self._begins_at :]
        return [e for e in recent if e.seen.valid and e.seen.final and e.load_fps == load]

    def _exceeded(self, goal: float, load: float | None) -> list[Remark]:
        """Trials at the throughput that missed the goal and were tolerated."""
        judged = [_judge(e.seen, goal) for e in self._long_at(load)]
        missed = judged.count(Judgement.MISSED)
        return [Remark.of(Code.EXCEEDED, missed=missed, trials=len(judged))] if missed else []

    def _too_few(self, goal: float, load: float) -> Reason:
        if goal == 0:
            return Reason.of(Code.TOO_FEW_IN_TRIALS, fps=load, sum_s=self.duration_sum_s)
        return Reason.of(Code.TOO_FEW_IN_TRIAL, fps=load, trial_s=self.final_trial_s)

    def _answer(
        self,
        goal: float,
        status: Status,
        throughput: float | None,
        reason: Reason | None,
        *,
        at_maximum: bool,
    ) -> Statement:
        if throughput is None:
            return Statement.of(Code.NO_RESULT, goal=goal, why=reason)
        if status == "LOWER_BOUND":
            return Statement.of(Code.PASSES_AT_LEAST, goal=goal, fps=throughput, why=reason)
        return Statement.of(
            Code.PASSES_MLR,
            goal=goal,
            fps=throughput,
            at_maximum=at_maximum,
            exceed_pct=self.exceed_ratio * 100,
            sum_s=self.duration_sum_s,
        )


def _judge(seen: Observation, goal: float) -> Judgement:
    """Judge a valid trial by its own loss ratio, as the library takes it."""
    return judge_counts(replace(seen, final=False), goal) if seen.valid else Judgement.INVALID
