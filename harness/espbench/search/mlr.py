# SPDX-License-Identifier: Apache-2.0
"""MLRsearch (draft-ietf-bmwg-mlrsearch) as a search of espbench; mlr_library.py drives the library.

These rules are espbench's and not the library's:
- A trial is repeated, up to `retries` times at a load and length, if it is INVALID, if less was offered than intended
  (unless it missed all goals), if more was offered and frames were lost, or if its loss lies only in stalls of the
  host. If the load still cannot be judged, the library gets the result that most of these trials showed, so that it
  continues with other loads (mlr_library.py). No OK rests on such a result.
- If a load was stored and not forwarded, the frames that did not arrive in time are passed to the library as lost.
- With two directions, the library gets the loss ratio of the worse one.
- If trials have too few frames to judge a goal (goals.py), the goal is UNRESOLVABLE.
- If the library cannot end, or a load next to the result could not be judged, the result is LOWER_BOUND: the highest
  load that final trials are known to pass.
The trials at a load count as they do in the library: each by its loss ratio, not weighed together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from espbench.search import mlr_library
from espbench.search.arguments import SearchSpec
from espbench.search.evidence import (
    Entry,
    GivenUp,
    TrialRequest,
    check_answer,
    faint_loss,
    finals_beside,
    rates_apart,
    tidy,
)
from espbench.search.goals import (
    Judgement,
    Observation,
    frames_to_see,
    frames_to_steer,
    joint_loss_bound,
    judge_counts,
)
from espbench.search.mlr_library import Repeats, Replayed
from espbench.search.results import GoalResult, why_given_up
from espbench.sentences import Code
from espbench.terms import Reason, Remark, Statement, Status

_S_DIGITS = 3  # decimals of a trial's duration, so that a reader can type it


class MlrSearch:
    """Proposes trials by MLRsearch: ask `next()` for a trial, run it, `add()` its observation, until `next()` is
    None.

    It is used like ThroughputSearch (throughput.py) and shares its arguments. A load passes a goal once trials of
    `duration_sum_s` seconds together show it; at most the share `exceed_ratio` of them may miss the goal. Raises
    ValueError if the library refuses a goal.
    """

    def __init__(self, spec: SearchSpec, *, duration_sum_s: float, exceed_ratio: float) -> None:
        self.goals = spec.goals
        self.minimum_fps = spec.minimum_fps
        self.maximum_fps = spec.maximum_fps
        self.resolution = spec.resolution
        self.trial_s = spec.trial_s
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
        self._begins_at = 0  # the library starts with this trial: the first since the maximum was lowered
        self._cached: Replayed | None = None

    # -- what the caller uses ---------------------------------------------------------------

    def next(self) -> TrialRequest | None:
        """Return the next trial; None when every goal has its answer. Calling it again without `add` returns the same
        trial.
        """
        return self._replayed().wanted

    def add(self, seen: Observation) -> None:
        """Add the observation of the trial of the last `next()`. Raise ValueError if it belongs to another search."""
        asked = check_answer(self.next(), seen)
        mean, highest = rates_apart(seen, asked.load_fps, self.resolution)
        passes = None if mean is None else tidy(mean)
        # The library knows only the loads that it asks for. A miss at a lower rate counts as a miss at the
        # load it asked for.
        misses = tidy(highest) if highest is not None and highest > asked.load_fps else None
        entry = Entry(len(self._entries), asked, seen, passes, misses)
        self._entries.append(replace(entry, seen=self._usable(entry)))
        self._cached = None

    def _usable(self, entry: Entry) -> Observation:
        """Return the observation, as INVALID if it is no evidence for the load that the library asked for."""
        seen, why = entry.seen, None
        judgements = {_judge(seen, goal) for goal in self.goals}
        if entry.went_beyond and (seen.lost_frames > 0 or not seen.sustained):
            why = Reason.of(Code.OFFERED_MORE)
        elif entry.fell_short and judgements != {Judgement.MISSED}:
            why = Reason.of(Code.ONLY_OFFERED, fps=seen.offered_fps)
        elif Judgement.DISTURBED in judgements:
            why = Reason.of(Code.LOST_IN_STALLS)
        if not seen.valid or why is None:
            return seen
        return replace(seen, valid=False, counted=True, reasons=(*seen.reasons, why))

    def limit(self, maximum_fps: float) -> None:
        """Lower the maximum, because the tester cannot offer more. The library then starts again.

        The maximum is never lowered below a load that some goal is known to pass, nor below the minimum.
        """
        known = [lower for goal in self.goals if (lower := self.bounds(goal)[0]) is not None]
        lowered = tidy(max(maximum_fps, self.minimum_fps, *known))
        if lowered < self.maximum_fps:
            self.maximum_fps, self._begins_at, self._cached = lowered, len(self._entries), None

    def bounds(self, goal: float) -> tuple[float | None, float | None]:
        """Return the library's relevant (lower, upper) bound of a goal so far, frames/s; None = none yet."""
        relevant = self._replayed().relevant(self._of_library[goal])
        return (self._fps(relevant.clo), self._fps(relevant.chi)) if relevant else (None, None)

    def results(self) -> list[GoalResult]:
        """Return one result per goal, in the order given. Raise ValueError if the search still wants trials."""
        if self.next() is not None:
            raise ValueError("the search is not finished")
        return [self._result(goal) for goal in self.goals]

    def remaining_s(self, around_s: float = 0.0) -> float:
        """Estimate the seconds still to come; around_s: what a trial takes beside its traffic, s.

        Most of the traffic is sent in trials of the final length.
        """
        if self.next() is None:
            return 0.0
        widths = 1.0
        for goal in self._resolvable():
            lower, upper = self.bounds(goal)
            high = upper or self.maximum_fps
            widths = max(widths, math.log(high / min(lower or self.minimum_fps, high)) / self.resolution)
        traffic_s = (2 + math.log2(widths)) / 2 * self.duration_sum_s
        return traffic_s * (1 + around_s / self.final_trial_s)

    # -- the library ------------------------------------------------------------------------

    def _resolvable(self) -> list[float]:
        """Return the goals for which a final trial at the maximum has enough frames."""
        most = self.maximum_fps * self.final_trial_s / self.directions
        return [goal for goal in self.goals if most >= frames_to_steer(goal)]

    def _replayed(self) -> Replayed:
        """Return the state of the library after all recorded trials."""
        if self._cached is None:
            self._cached = mlr_library.replay(
                self._entries[self._begins_at :],
                [self._of_library[goal] for goal in self._resolvable()],
                self._request,
                Repeats(self.retries, self.trial_s, self.final_trial_s, self.duration_sum_s),
                minimum_fps=self.minimum_fps,
                maximum_fps=self.maximum_fps,
            )
        return self._cached

    def _request(self, load: float, duration_s: float, attempt: int) -> TrialRequest:
        """Return espbench's request for a trial that the library asks for."""
        fps = self._fps(load)
        assert fps is not None
        final = duration_s >= self.final_trial_s
        return TrialRequest(fps, round(duration_s, _S_DIGITS), "final" if final else "search", attempt)

    def _fps(self, load: Any) -> float | None:
        """Return a load of the library, rounded by `tidy`. The ends of the range stay exactly as in the plan."""
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
        elif _leaves_a_bound(status, reason) and (bound := self._bound(goal)) is not None:
            status, (throughput, final) = "LOWER_BOUND", bound
        at_maximum = status == "OK" and lower == self.maximum_fps
        return GoalResult(
            goal=goal,
            status=status,
            throughput_fps=throughput,
            lower_fps=self._shown(lower),
            upper_fps=self._shown(upper),
            trials=len(self._entries),
            final_trial_index=final.index if final else None,
            at_maximum=at_maximum,
            reasons=[reason] if reason else [],
            warnings=self._exceeded(goal, lower) if status == "OK" else _disturbed(final),
            answer=self._answer(goal, status, throughput, reason, at_maximum=at_maximum),
            void_finals=len(finals_beside(final, self._void())) if final else self._void_at(lower),
            loss_bound=self._loss_bound(final) if final else None,
            missing=self._missing(goal, upper),
        )

    def _missing(self, goal: float, upper: float | None) -> tuple[int, ...]:
        """Return the indexes of the valid trials at the upper bound that missed the goal."""
        at_upper = [e for e in self._entries if e.seen.valid and e.load_fps == upper]
        return tuple(e.index for e in at_upper if _judge(e.seen, goal) is Judgement.MISSED)

    def _void(self) -> list[Entry]:
        """Return the trials that say nothing. A trial that only offered too little says something about what it
        offered.
        """
        return [e for e in self._entries if not e.seen.valid and not _only_short(e)]

    def _void_at(self, load: float | None) -> int:
        return sum(e.seen.final and e.load_fps == load for e in self._void())

    def _loss_bound(self, final: Entry) -> float | None:
        """Return the loss ratio that the final trials behind a figure exclude with 95 % confidence.

        If the final trial was disturbed, all trials at its load whose counts are right are taken, not only those that
        passed.
        """
        at_load = [e for e in self._entries if e.seen.final and e.load_fps == final.load_fps]
        if final.seen.valid or _only_short(final):
            known = [e for e in at_load if e.seen.valid or _only_short(e)]
            return joint_loss_bound(e.seen for e in known if e.fell_short == final.fell_short)
        return joint_loss_bound(e.seen for e in at_load if e.seen.counted and not e.fell_short)

    def _shown(self, load: float | None) -> float | None:
        """Return the load if there was a valid trial at it; None if the library only got an assumed result for it."""
        return load if any(e.seen.valid and e.load_fps == load for e in self._entries) else None

    def _status(self, goal: float, lower: float | None, upper: float | None) -> tuple[Status, Reason | None]:
        """Return the status of a goal at the end of the search, and a reason if it is not OK."""
        replayed = self._replayed()
        if goal not in self._resolvable():
            return "UNRESOLVABLE", self._too_few(goal, self.maximum_fps)
        if replayed.why_none:
            return "INVALID", replayed.why_none
        if (given_up := self._unjudged(goal, lower, upper)) is not None:
            return "INVALID", why_given_up(given_up, goal)
        return self._below_minimum(goal, upper) if not lower else self._at(goal, lower, upper)

    def _unjudged(self, goal: float, lower: float | None, upper: float | None) -> GivenUp | None:
        """Return a load that could not be judged, if the library's answer depends on it or it ended the search; else
        None.
        """
        replayed = self._replayed()
        if not replayed.has_ended:
            return replayed.given_up[-1]
        for given in replayed.given_up:
            if given.load_fps == upper and not self._missed_at(upper, goal):
                return given
            # If misses are tolerated, the library counts short trials too.
            if given.load_fps == lower and (given.phase == "final" or self.exceed_ratio > 0):
                return given
        return None

    def _bound(self, goal: float) -> tuple[float, Entry] | None:
        """Return the highest load whose trials pass by the library's rule, below all that missed, and the last of
        these trials.

        Valid trials count, and trials that fell short of the intended load: these are evidence for the load that they
        offered. Disturbed final trials count where most of those at a load passed: a disturbance can only make a DUT
        slower, never faster. Zero loss needs enough frames to show the faint loss of the loads above.
        """
        at_load: dict[tuple[float, bool], list[Entry]] = {}
        for e in self._entries:
            if e.seen.valid or _only_short(e):
                at_load.setdefault((e.load_fps, e.fell_short), []).append(e)
        judged = [[(e, _judge_as_offered(e.seen, goal)) for e in entries] for entries in at_load.values()]
        missed = [
            min(e.miss_fps for e, judgement in judged_trials if judgement is Judgement.MISSED)
            for judged_trials in judged
            if not self._may_pass(judged_trials)
        ]
        groups = [
            [e for e, judgement in judged_trials if judgement is Judgement.MET and e.seen.final]
            for judged_trials in judged
            if self._passes(judged_trials)
        ]
        for given in self._replayed().given_up:
            known = [
                (e, _judge_as_offered(e.seen, goal))
                for e in given.entries
                if e.seen.counted and not e.fell_short
            ]
            passing = [e for e, judgement in known if judgement is Judgement.MET]
            if given.phase == "final" and 2 * len(passing) > len(known) and self._is_enough(passing):
                groups.append(passing)
        lowest_miss = min(missed, default=None)
        faint = faint_loss(self._entries, lowest_miss) if goal == 0 else None
        least = 0.0 if faint is None else frames_to_see(faint)
        enough = [passing for passing in groups if sum(e.seen.frames for e in passing) >= least]
        bounds = [(min(e.pass_fps for e in passing), passing[-1]) for passing in enough]
        below = [bound for bound in bounds if lowest_miss is None or bound[0] < lowest_miss]
        return max(below, key=lambda bound: bound[0], default=None)

    def _passes(self, judged_trials: Sequence[tuple[Entry, Judgement]]) -> bool:
        """Return whether the final trials at a load make it a lower bound by the library's rule."""
        finals = [(e, judgement) for e, judgement in judged_trials if e.seen.final]
        good = [e for e, judgement in finals if judgement is Judgement.MET]
        return self._may_pass(judged_trials) and self._is_enough(good, len(finals) * self.final_trial_s)

    def _is_enough(self, good: Sequence[Entry], of_s: float = 0.0) -> bool:
        """Return whether these trials that met the goal suffice, even if the rest of the sum would miss it."""
        good_s = sum(e.asked.duration_s for e in good)
        return bool(good) and good_s >= (1 - self.exceed_ratio) * max(of_s, self.duration_sum_s)

    def _may_pass(self, judged_trials: Sequence[tuple[Entry, Judgement]]) -> bool:
        """Return whether no more trials at a load missed than the sum of trials tolerates."""
        missed_s = sum(e.asked.duration_s for e, judgement in judged_trials if judgement is Judgement.MISSED)
        of_s = max(self.duration_sum_s, sum(e.asked.duration_s for e, _ in judged_trials if e.seen.final))
        return missed_s <= self.exceed_ratio * of_s

    def _below_minimum(self, goal: float, upper: float | None) -> tuple[Status, Reason | None]:
        """Return the answer if no load passed. With few frames, the miss at the minimum may be chance."""
        if self._missed_at(upper, goal):
            return "BELOW_MINIMUM", Reason.of(Code.BELOW_MINIMUM, fps=self.minimum_fps)
        return "UNRESOLVABLE", self._too_few(goal, self.minimum_fps)

    def _at(self, goal: float, lower: float, upper: float | None) -> tuple[Status, Reason | None]:
        """Return the answer for a load that passed by the library's rules: OK only if its trials had enough frames."""
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
        """Return whether a trial at a load missed the goal on enough frames. For the library, any loss can be a
        miss.
        """
        at_load = [e.seen for e in self._entries[self._begins_at :] if e.load_fps == load]
        return any(_judge(seen, goal) is Judgement.MISSED for seen in at_load)

    def _long_at(self, load: float | None) -> list[Entry]:
        """Return the valid final trials at a load."""
        recent = self._entries[self._begins_at :]
        return [e for e in recent if e.seen.valid and e.seen.final and e.load_fps == load]

    def _exceeded(self, goal: float, load: float | None) -> list[Remark]:
        """Return a remark if trials at the throughput missed the goal and were tolerated."""
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


def _leaves_a_bound(status: Status, reason: Reason | None) -> bool:
    """Return whether a load above could not be judged. Then a lower load that passed is a bound."""
    return status == "INVALID" or (reason is not None and reason.code == Code.BOUND_ON_TOO_FEW)


def _judge(seen: Observation, goal: float) -> Judgement:
    """Judge a valid trial by its own loss ratio, as the library does."""
    return _judge_as_offered(seen, goal) if seen.valid else Judgement.INVALID


def _judge_as_offered(seen: Observation, goal: float) -> Judgement:
    """Judge a trial as `_judge` does, even if it is INVALID or offered another load than intended."""
    return judge_counts(replace(seen, final=False), goal)


def _only_short(entry: Entry) -> bool:
    """Return whether a trial is void only because less was offered than intended (MlrSearch._usable)."""
    return any(reason.code == Code.ONLY_OFFERED for reason in entry.seen.reasons)


def _disturbed(final: Entry | None) -> list[Remark]:
    """Return the warning for a bound that rests on disturbed trials."""
    if final is None or final.seen.valid or _only_short(final):
        return []
    return [Remark.of(Code.DISTURBED_PASS, why=list(final.seen.reasons))]
