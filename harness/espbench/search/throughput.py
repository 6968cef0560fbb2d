# SPDX-License-Identifier: Apache-2.0
"""RFC 2544 26.1 throughput for several loss goals in one search; pure, deterministic.

There is one bracket per goal, and every trial is judged against every goal. Search trials are short; the result rests
only on final trials:

    maximum ─ missed ─ guess (forwarding rate) ─ growing steps ─ bisection ─ final trial ─ OK
                                                                   ▲            │ missed
                                                                   └─ steps down, final length

The load of a trial is the offered load, not the intended one. A pass is evidence for the load of the row at or below
the mean that was offered. A miss is evidence for the load at or above the highest rate at which the DUT may have
received the frames: if a sender paused, the mean rate is lower than that. A final trial that was INVALID, disturbed
or short of its load is repeated, `retries` times. If a load still cannot be judged, the search continues with other
loads (evidence.py). In the end the answer is the highest load with a final trial that passed. It is OK if a valid
trial missed one step above, or if the maximum passed; otherwise LOWER_BOUND, with the reason why the loads above
could not be judged.

Loads are taken from a row with equal ratios (loads.py). Bisection halves the *ratio* of the bounds, because the
resolution is relative; so the number of trials depends on log(maximum/minimum), not on the throughput. If there is a
hint from sizes measured before (frame_cost.py), the search begins there instead of at the maximum.

RFC 2544 asks for the fastest rate without loss. A DUT need not be monotone. Of all rates that passed, this search
reports the highest below *every* rate that missed, and warns of passes above. A figure that a trial at a lower rate
contradicts would be useless for planning.

Each goal has a floor: the slowest load whose final trials have enough frames to judge it, if they are lengthened
LENGTHEN times (goals.py: a sequential test over at most MOST_FINALS_AT_A_LOAD final trials at a load). Loads below
the floor are not searched. For zero loss the floor follows from the loss at higher loads. If a final trial without
loss has too few frames to show that loss, longer ones are made, up to LENGTHEN times as long and VERIFICATIONS times.
After one lost frame in a final trial of the usual length, this always suffices: it needs the frames of three such
trials without loss. If it does not suffice, the answer says so. In virtual time a repetition would be the same trial,
so one trial is made that may be as long as AS_ONE such trials.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from espbench.search.arguments import SearchSpec
from espbench.search.evidence import (
    MOST_FINALS_AT_A_LOAD,
    MOST_GIVEN_UP,
    Entry,
    Evidence,
    GivenUp,
    TrialRequest,
    check_answer,
    rates_apart,
    tidy,
)
from espbench.search.goals import (
    Observation,
    frames_missing,
    frames_needed,
    frames_to_see,
    frames_to_steer,
)
from espbench.search.loads import Loads
from espbench.search.results import GoalResult, why_given_up
from espbench.search.words import answer
from espbench.sentences import Code
from espbench.terms import Phase, Reason, Remark, Status

VERIFICATIONS = MOST_FINALS_AT_A_LOAD  # most final trials at a load to exclude the faint loss above it
# Final trials of a search with up to two loss goals, and of each further goal. Only a DUT whose loss has little to do
# with the load needs more.
MAXIMUM_FINALS, FINALS_OF_A_GOAL = 40, 20
LENGTHEN = 5.0  # a final trial may be this many times longer, to have the frames that a goal needs
AS_ONE = 3.0  # in virtual time, one final trial for zero loss may have the length of so many lengthened ones
FRAME_MARGIN = 1.01  # a valid trial may send 0.5 % less than intended
GROWTH_UP = 4  # factor by which steps grow up from a guess that passed
GROWTH_DOWN = 2  # factor by which steps grow down from guesses that missed
FINAL_GROWTH = 2  # factor by which steps grow down after missed final trials
HINTED_STEPS = 3  # steps up from a hint that passed, before the maximum is tried after all
BELOW_THE_RATE = 0.1  # the guess is below the forwarding rate by this share of a resolution


@dataclass(frozen=True)
class _Wish:
    """A trial that one goal needs."""

    load_fps: float
    duration_s: float
    phase: Phase
    attempt: int = 0


@dataclass(frozen=True)
class _Verdict:
    """The end of a goal that needs no more trials: its status and the reason."""

    status: Status
    reason: Reason | None = None


class ThroughputSearch:
    """Proposes trials by bisection: ask `next()` for a trial, run it, `add()` its observation, until `next()` is
    None.

    hints_fps: a guess of the throughput for each goal, or None; it only decides where the search begins.
    loss_verification: how often a load that lost little is tried again before it counts as missed (evidence.py).
    Decisions depend on nothing but these arguments and the observations: replaying the trials of an interrupted run
    continues it.
    """

    def __init__(
        self, spec: SearchSpec, *, hints_fps: Sequence[float | None] = (), loss_verification: int = 0
    ) -> None:
        self.goals = spec.goals
        self.minimum_fps = spec.minimum_fps
        self.maximum_fps = spec.maximum_fps
        self.resolution = spec.resolution
        self.trial_s = spec.trial_s
        self.final_trial_s = spec.final_trial_s
        self._longest_final_s = spec.final_trial_s * LENGTHEN
        self.retries = spec.retries
        self.loss_verification = loss_verification
        self.directions = spec.directions
        self._hints = dict(zip(self.goals, hints_fps, strict=False))
        self._loads = Loads(spec.minimum_fps, spec.maximum_fps, spec.resolution)
        self._entries: list[Entry] = []
        # The evidence and the state of each goal are kept until there is one more entry. Another maximum
        # changes the state.
        self._derived: dict[float, Evidence] = {}
        self._states: dict[float, _Wish | _Verdict] = {}

    # -- what the caller uses ---------------------------------------------------------------

    def next(self) -> TrialRequest | None:
        """Return the next trial; None when every goal has its answer. Calling it again without `add` returns the same
        trial.
        """
        states = [self._state(goal) for goal in sorted(self.goals)]
        wishes = [state for state in states if isinstance(state, _Wish)]
        # All goals finish their short trials before the first final trial, because one final trial may serve
        # several goals.
        wish = next((wish for wish in wishes if wish.phase == "search"), wishes[0] if wishes else None)
        if wish is None:
            return None
        return TrialRequest(wish.load_fps, wish.duration_s, wish.phase, wish.attempt)

    def add(self, seen: Observation) -> None:
        """Add the observation of the trial of the last `next()`.

        Raise ValueError if it is of another load or phase, and so belongs to another search.
        """
        asked = check_answer(self.next(), seen)
        passes, misses = self._evidence_for(asked.load_fps, seen)
        self._entries.append(Entry(len(self._entries), asked, seen, passes, misses))
        self._derived.clear()
        self._states.clear()

    def limit(self, maximum_fps: float) -> None:
        """Lower the maximum, because the tester cannot offer more. All observations stay.

        The maximum is never lowered below a load that some goal is known to pass, nor below the minimum.
        """
        known = [lower for goal in self.goals if (lower := self.bounds(goal)[0]) is not None]
        lowered = tidy(max(maximum_fps, self.minimum_fps, *known))
        if lowered < self.maximum_fps:
            self.maximum_fps = lowered
            self._loads.end_at(lowered)
            self._states.clear()

    def bounds(self, goal: float) -> tuple[float | None, float | None]:
        """Return (highest load that passed, lowest that missed) that steer the search, frames/s; None = none yet."""
        evidence = self._evidence(goal)
        return evidence.lower(0.0), evidence.upper

    def results(self) -> list[GoalResult]:
        """Return one result per goal, in the order given. Raise ValueError if the search still wants trials."""
        if self.next() is not None:
            raise ValueError("the search is not finished")
        return [self._result(goal) for goal in self.goals]

    def remaining_s(self, around_s: float = 0.0) -> float:
        """Estimate the seconds still to come; around_s: what a trial takes beside its traffic, s."""
        bisections = 0.0
        finals: set[float | None] = set()
        for goal in self.goals:
            if not isinstance(self._state(goal), _Wish):
                continue
            lower, upper = self.bounds(goal)
            high = upper or self.maximum_fps
            ratio = high / min(lower or self.minimum_fps, high)
            left = math.log2(max(math.log(ratio) / self.resolution, 1.0))
            bisections = max(bisections, left if self._entries else left + 1)
            finals.add(lower)
        started = any(entry.seen.final for entry in self._entries)
        step_s = self.final_trial_s if started else self.trial_s
        return bisections * (step_s + around_s) + len(finals) * (self.final_trial_s + around_s)

    # -- one goal -----------------------------------------------------------------------------

    def _evidence(self, goal: float) -> Evidence:
        if goal not in self._derived:
            self._derived[goal] = Evidence(goal, self._entries, self.loss_verification, self.retries)
        return self._derived[goal]

    def _evidence_for(self, intended: float, seen: Observation) -> tuple[float | None, float | None]:
        """Return the loads for which a pass, and a miss, of the trial is evidence; None: the intended load."""
        mean, highest = rates_apart(seen, intended, self.resolution)
        passes = None if mean is None else self._loads.at_or_below(mean)
        return passes, None if highest is None else self._loads.at_or_above(highest)

    def _state(self, goal: float) -> _Wish | _Verdict:
        """Return the trial that this goal needs next, or how the goal ended."""
        if goal not in self._states:
            self._states[goal] = self._new_state(goal)
        return self._states[goal]

    def _new_state(self, goal: float) -> _Wish | _Verdict:
        evidence = self._evidence(goal)
        state = self._wanted(evidence)
        if isinstance(state, _Verdict):
            return state
        # This limit concerns only goals that still want trials: a goal that has its answer keeps it, however
        # many another goal needs.
        most = max(MAXIMUM_FINALS, FINALS_OF_A_GOAL * len(self.goals))
        if evidence.finals() >= most:
            return _Verdict("INVALID", Reason.of(Code.FINALS_DISAGREE, trials=most))
        # A load that is needed and could not be judged ends the search: no other load helps.
        if (given_up := evidence.exhausted.get((state.load_fps, state.phase))) is not None:
            return _Verdict("INVALID", why_given_up(given_up, goal))
        attempt = len(evidence.attempts(state.load_fps, state.phase))
        return _Wish(state.load_fps, state.duration_s, state.phase, attempt)

    def _wanted(self, evidence: Evidence) -> _Wish | _Verdict:
        floor = self._floor(evidence)
        if floor > self.maximum_fps:
            return _Verdict("UNRESOLVABLE", self._too_few(evidence, self.maximum_fps))
        unjudged = [given for given in evidence.given_up if given.phase == "final" or not given.counted]
        if len(unjudged) >= MOST_GIVEN_UP:
            return self._last_word(evidence, floor, unjudged)
        if evidence.upper is not None and evidence.upper <= floor:
            return self._at_the_floor(evidence, floor)
        return self._between_the_bounds(evidence, floor)

    def _last_word(self, evidence: Evidence, floor: float, unjudged: list[GivenUp]) -> _Wish | _Verdict:
        """End the search. But if no final trial passed yet, first ask for one at the highest load that short trials
        passed.
        """
        lower = evidence.lower(floor)
        tried = sum(given.phase == "final" for given in unjudged) >= MOST_GIVEN_UP
        if lower is not None and not tried and evidence.bound(floor) is None:
            state = self._final(evidence, lower)
            if isinstance(state, _Wish) and (state.load_fps, state.phase) not in evidence.exhausted:
                return state
        return _Verdict("INVALID", why_given_up(unjudged[-1], evidence.goal))

    def _between_the_bounds(self, evidence: Evidence, floor: float) -> _Wish | _Verdict:
        """Try undecided loads first, then bisect until the bracket closes, then ask for final trials."""
        if undecided := evidence.undecided(floor):
            return self._lengthened(evidence, undecided)
        # After a missed final trial, short passes do not count any more: the load of that final trial had
        # passed one, too.
        lower = evidence.shown(floor) if evidence.finals_missed() else evidence.lower(floor)
        if lower is not None and self._closed(lower, evidence.upper):
            return self._confirm(evidence, lower)
        load = self._inside(evidence, floor, lower)
        finals_began = any(entry.seen.final for entry in self._entries)
        return self._final(evidence, load) if finals_began else _Wish(load, self.trial_s, "search")

    def _floor(self, evidence: Evidence) -> float:
        """Return the slowest load of the row at which this goal can have a result, frames/s."""
        floor = max(self.minimum_fps, self._floor_of_frames(evidence))
        return self._loads.up(floor) if floor <= self.maximum_fps else floor

    def _floor_of_frames(self, evidence: Evidence) -> float:
        """Return the slowest load whose final trials have enough frames for this goal, frames/s."""
        if evidence.goal > 0:
            frames = frames_needed(evidence.goal) * self.directions * FRAME_MARGIN
            return frames / (MOST_FINALS_AT_A_LOAD * self._longest_final_s)
        faint = evidence.faint_loss()
        if faint is None:
            return 0.0
        return frames_to_see(faint) * FRAME_MARGIN / (_verifications(evidence) * self._longest_s(evidence))

    def _at_the_floor(self, evidence: Evidence, floor: float) -> _Wish | _Verdict:
        """Ask for one long trial at the minimum, then return the verdict: every load with enough frames missed."""
        assert evidence.upper is not None
        if evidence.upper in evidence.soft_missed:
            return self._final(evidence, evidence.upper)
        if evidence.upper <= self.minimum_fps:
            return _Verdict("BELOW_MINIMUM", Reason.of(Code.BELOW_MINIMUM, fps=self.minimum_fps))
        longest = self._final_s(evidence, self.minimum_fps)
        if evidence.longest_s(self.minimum_fps) < longest:
            return _Wish(self.minimum_fps, longest, "search")
        return _Verdict("UNRESOLVABLE", self._too_few(evidence, floor))

    def _too_few(self, evidence: Evidence, floor: float) -> Reason:
        trials = _verifications(evidence)
        return Reason.of(Code.TOO_FEW_BELOW, fps=floor, trials=trials, trial_s=self._longest_s(evidence))

    def _lengthened(self, evidence: Evidence, undecided: list[float]) -> _Wish | _Verdict:
        """Ask again for the middle one of the undecided loads, with enough frames to decide."""
        load = undecided[len(undecided) // 2]
        if doubted := evidence.doubted(load):
            last = doubted[-1].asked
            return _Wish(load, last.duration_s, last.phase)
        if evidence.finals_at(load):
            return self._another_final(evidence, load)
        frames = frames_to_steer(evidence.goal) * self.directions * FRAME_MARGIN
        duration = min(max(frames / load, self.trial_s), self._final_s(evidence, load))
        if evidence.longest_s(load) >= duration:
            return _Verdict("UNRESOLVABLE", Reason.of(Code.TRIAL_SENT_TOO_FEW, fps=load))
        return _Wish(load, duration, "search")

    def _closed(self, lower: float, upper: float | None) -> bool:
        if upper is None:
            return lower >= self.maximum_fps  # it may be above if it passed before the maximum was lowered
        return self._loads.are_neighbours(lower, upper)

    def _confirm(self, evidence: Evidence, load: float) -> _Wish | _Verdict:
        """Ask for final trials at the lower bound until they decide, then at an upper bound that no valid trial
        judged.
        """
        if evidence.confirmation(load) is None:
            return self._final(evidence, load)
        faint = evidence.faint_loss() if evidence.goal == 0 else None
        if faint is not None and evidence.frames_met_at(load) < frames_to_see(faint):
            duration = self._final_s(evidence, load, faint)
            new = not _only_longer(evidence) or evidence.longest_s(load) < duration
            if new and evidence.finals_at(load) < VERIFICATIONS:
                return _Wish(load, duration, "final")
            return _Verdict("UNRESOLVABLE", self._too_few(evidence, load))
        if evidence.upper is not None and evidence.upper in evidence.soft_missed:
            return self._final(evidence, evidence.upper)
        return _Verdict("OK")

    def _final(self, evidence: Evidence, load: float) -> _Wish | _Verdict:
        """Ask for a final trial at a load: the first one, or one more if the earlier ones did not decide."""
        if evidence.finals_at(load):
            return self._another_final(evidence, load)
        faint = evidence.faint_loss() if evidence.goal == 0 else None
        return _Wish(load, self._final_s(evidence, load, faint), "final")

    def _another_final(self, evidence: Evidence, load: float) -> _Wish | _Verdict:
        if evidence.goal > 0 and evidence.finals_at(load) < MOST_FINALS_AT_A_LOAD:
            counts = evidence.final_counts_at(load)
            missing = max(
                (frames_missing(frames, lost, evidence.goal) for frames, lost in counts), default=0.0
            )
            wanted_s = _round_up(missing * self.directions * FRAME_MARGIN / load)
            return _Wish(load, min(max(self.final_trial_s, wanted_s), self._longest_final_s), "final")
        return _Verdict("UNRESOLVABLE", Reason.of(Code.FINALS_SENT_TOO_FEW, fps=load))

    def _final_s(self, evidence: Evidence, load: float, faint: float | None = None) -> float:
        """Return the duration of a final trial at a load, s: as configured, or longer if the goals need more frames."""
        needed = max(frames_needed(goal) for goal in self.goals) * self.directions
        frames = max(needed, frames_to_see(faint) if faint else 0) * FRAME_MARGIN
        return min(max(self.final_trial_s, _round_up(frames / load)), self._longest_s(evidence))

    def _longest_s(self, evidence: Evidence) -> float:
        """Return the duration of the longest final trial for a goal, s."""
        return self._longest_final_s * (AS_ONE if _only_longer(evidence) else 1)

    def _inside(self, evidence: Evidence, floor: float, lower: float | None) -> float:
        """Return the next load to try: the hint or the maximum first, then loads inside the bracket until it closes."""
        upper = evidence.upper
        if upper is None:
            return self._without_a_miss(evidence, floor, lower)
        low = lower or floor
        if self._closed(low, upper):
            return low  # the floor, not tried yet
        if finals_missed := evidence.finals_missed():
            if lower is not None:
                return self._loads.middle(low, upper)
            return max(self._steps(upper, -(FINAL_GROWTH ** (finals_missed - 1))), floor)
        return self._near_the_guess(evidence, floor, low, upper) or self._loads.middle(low, upper)

    def _without_a_miss(self, evidence: Evidence, floor: float, lower: float | None) -> float:
        """Return the load to try while none has missed: the hint, then growing steps up from it, then the maximum.

        After HINTED_STEPS steps the hint was wrong, so the maximum is tried.
        """
        hint = self._hint(evidence.goal, floor)
        if hint is None:
            return self.maximum_fps
        if lower is None or lower < hint:
            return hint
        passed = evidence.passed_count(hint)
        return self._steps(lower, GROWTH_UP ** (passed - 1)) if passed <= HINTED_STEPS else self.maximum_fps

    def _near_the_guess(self, evidence: Evidence, floor: float, low: float, upper: float) -> float | None:
        """Return a load near the throughput, estimated from the forwarding rate of the overloaded DUT; None without
        an estimate.

        Coming from higher loads, try the guess. After each miss, step down by at least a step that grows, so that a
        DUT with a little loss at any load is not searched in small steps. Coming from lower loads, step up by steps
        that grow. Neither goes past the middle of the bracket, unless the guess itself does.
        """
        guess = self._guess(evidence, floor, low, upper)
        if guess is None:
            return None
        middle = self._loads.middle(low, upper)
        if guess <= low:
            return min(self._steps(low, GROWTH_UP ** (evidence.passed_count(guess) - 1)), middle)
        misses = evidence.missed_below(self.maximum_fps)
        if misses == 0:
            return guess
        return min(guess, max(self._steps(upper, -(GROWTH_DOWN ** (misses - 1))), middle))

    def _guess(self, evidence: Evidence, floor: float, low: float, upper: float) -> float | None:
        """Return a load a little below the rate that the DUT forwarded at the lowest load that missed; None if not
        known.

        It is a little below, since a DUT exactly at its limit loses a frame now and then. It is only a guess: a DUT
        that collapses under overload forwards less than its throughput. Until a load below the maximum has missed,
        the hint is the guess.
        """
        hint = self._hint(evidence.goal, floor)
        if hint is not None and low < hint < upper and evidence.missed_below(self.maximum_fps) == 0:
            return hint
        rate = evidence.forwarded_at(upper)
        if rate is None:
            return None
        guess = self._loads.down(min(rate * (1 - self.resolution * BELOW_THE_RATE), upper))
        return guess if floor < guess < upper else None

    def _hint(self, goal: float, floor: float) -> float | None:
        """Return the load at which to begin; None without a hint, or if the hint is not between the floor and the
        maximum.
        """
        hint = self._hints.get(goal)
        load = self._loads.down(hint) if hint else None
        return load if load is not None and floor < load < self.maximum_fps else None

    def _steps(self, load: float, steps: int) -> float:
        """Return the load this many places up or down the row."""
        return self._loads[self._loads.place(load) + steps]

    def _result(self, goal: float) -> GoalResult:
        evidence = self._evidence(goal)
        state = self._state(goal)
        assert isinstance(state, _Verdict)
        floor = self._floor(evidence)
        status = state.status
        throughput = evidence.confirmed(floor) if status == "OK" else None
        final = evidence.confirmation(throughput) if throughput is not None else None
        # If the tester could not offer the minimum itself, a load below the minimum that passed is a bound.
        if _leaves_a_bound(state) and (final := evidence.bound(self._floor_of_frames(evidence))) is not None:
            status, throughput = "LOWER_BOUND", final.pass_fps
        lower, upper = evidence.hard_lower(), evidence.hard_upper
        warnings = [
            Remark.of(Code.NOT_MONOTONE, passed_fps=load, missed_fps=upper)
            for load in evidence.passed_above_upper()
            if upper is not None and (load - upper) / load > self.resolution
        ]
        void_finals, excluded = 0, None
        if throughput is not None:
            assert final is not None
            void_finals = evidence.void_finals(final)
            excluded = evidence.loss_bound(final)
            if doubted := evidence.doubted(throughput):
                lost = sum(entry.seen.lost_frames for entry in doubted)
                trials = evidence.valid_at(throughput)
                warnings.append(Remark.of(Code.LOSS_VERIFIED, lossy=len(doubted), trials=trials, lost=lost))
        if status == "LOWER_BOUND" and final is not None and not final.seen.valid:
            warnings.append(Remark.of(Code.DISTURBED_PASS, why=final.seen.reasons))
        at_maximum = throughput is not None and throughput >= self.maximum_fps
        return GoalResult(
            goal=goal,
            status=status,
            throughput_fps=throughput,
            lower_fps=lower,
            upper_fps=upper,
            trials=len(self._entries),
            final_trial_index=final.index if final else None,
            at_maximum=at_maximum,
            reasons=[state.reason] if state.reason else [],
            warnings=warnings,
            answer=answer(evidence, status, state.reason, throughput, at_maximum=at_maximum),
            void_finals=void_finals,
            loss_bound=excluded,
            missing=evidence.missing(),
        )


def _leaves_a_bound(verdict: _Verdict) -> bool:
    """Return whether the search ended because a load could not be judged. Then a lower load that passed is a bound."""
    too_few = (Code.TRIAL_SENT_TOO_FEW, Code.FINALS_SENT_TOO_FEW)
    return verdict.status == "INVALID" or (verdict.reason is not None and verdict.reason.code in too_few)


def _only_longer(evidence: Evidence) -> bool:
    """Return whether only a longer trial shows more for this goal: a repetition would be the same (virtual time)."""
    return evidence.goal == 0 and evidence.same_each_time


def _verifications(evidence: Evidence) -> int:
    """Return how many final trials at a load are worth making to exclude a faint loss."""
    return 1 if _only_longer(evidence) else VERIFICATIONS


def _round_up(load: float) -> float:
    down = tidy(load)
    return down if down >= load else tidy(load * (1 + 1e-5))
