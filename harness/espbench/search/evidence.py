# SPDX-License-Identifier: Apache-2.0
"""Derives from the trials of a case what is known for one loss goal: bounds, confirmed loads, and loads without a
judgement.

Everything is derived from the list of trials; no other state is kept.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from espbench.search.goals import (
    Judgement,
    Observation,
    direction_counts,
    frames_to_see,
    is_sure,
    joint_loss_bound,
    judge,
    judge_counts,
    weigh_finals,
    without_repetitions,
)
from espbench.terms import Phase

# This is a share of the frames. A DUT that loses more is overloaded, whatever the host did, so no second
# trial is needed.
CLEAR_LOSS = 0.05
PASSES = (Judgement.MET, Judgement.MET_PROVISIONALLY)
_SAYS_NOTHING = (Judgement.INVALID, Judgement.DISTURBED)
RECORDED_TO = 1e-3  # frames/s; a record rounds loads to this
# At most this many final trials are made at one load to decide whether it meets a goal.
MOST_FINALS_AT_A_LOAD = 6
# No further load is tried once this many loads could not be judged by final trials.
MOST_GIVEN_UP = 4


@dataclass(frozen=True)
class TrialRequest:
    """The trial that the search wants next; `attempt` counts repeats of an INVALID trial."""

    load_fps: float
    duration_s: float
    phase: Phase
    attempt: int


@dataclass(frozen=True)
class Entry:
    """One trial: its index in the order of trials, its request and its result.

    passes_fps is the load of the row for which a pass is evidence: the one at or below the offered load. misses_fps
    is the load for which a miss is evidence: the one at or above the highest rate at which the DUT may have received
    the frames; infinite if that is above the maximum. None: the intended load.
    """

    index: int
    asked: TrialRequest
    seen: Observation
    passes_fps: float | None = None
    misses_fps: float | None = None

    @property
    def load_fps(self) -> float:
        return self.asked.load_fps

    @property
    def pass_fps(self) -> float:
        return self.load_fps if self.passes_fps is None else self.passes_fps

    @property
    def miss_fps(self) -> float:
        return self.load_fps if self.misses_fps is None else self.misses_fps

    @property
    def fell_short(self) -> bool:
        """True if less was offered than intended, by more than the resolution."""
        return self.pass_fps < self.load_fps

    @property
    def went_beyond(self) -> bool:
        """True if the DUT may have received frames faster than intended, by more than the resolution."""
        return self.miss_fps > self.load_fps

    def judges_its_load(self, what: Judgement) -> bool:
        """Return whether this judgement of the trial is evidence for the intended load.

        If less was offered, only a miss is evidence; if more was offered, only a pass is.
        """
        if what is Judgement.MISSED:
            return not self.went_beyond
        return not self.fell_short and (what in PASSES or not self.went_beyond)

    @property
    def is_exact(self) -> bool:
        """True if any judgement of this trial is evidence for the intended load."""
        return not self.fell_short and not self.went_beyond


@dataclass(frozen=True)
class GivenUp:
    """A load that could not be judged: its trials that gave no judgement, and whether most of them passed."""

    load_fps: float
    phase: Phase
    entries: tuple[Entry, ...]
    passed: bool

    @property
    def counted(self) -> bool:
        """True if the counts of at least one of these trials were right."""
        return any(entry.seen.counted or entry.seen.valid for entry in self.entries)


class Evidence:
    """The trials of a case, judged against one goal; rates in frames/s.

    The upper bound is the lowest load that ever missed the goal. The lower bound is the highest load below it that
    passed. So no load with a missed trial, short or final, is ever reported.

    A load cannot be judged if a trial and its `retries` repeats were all INVALID, disturbed, short of the load, or
    missed at more than the load. All trials of one phase at a load share this number of repeats (`_loads_exhausted`).
    To choose the next load, such a load counts as passed or missed by the majority of its trials (`upper`, `lower`).
    What is reported rests on valid trials (`hard_upper`, `confirmed`).

    With loss verification (ETSI GS NFV-TST 009), a load that lost little misses the goal only if more than `verified`
    of its short trials, or of its final trials, missed it.
    """

    def __init__(self, goal: float, entries: Sequence[Entry], verified: int = 0, retries: int = 3) -> None:
        self.goal = goal
        self.retries = retries
        self._entries = entries
        self._asked: dict[tuple[float, Phase], list[Entry]] = {}
        for entry in entries:
            self._asked.setdefault((entry.load_fps, entry.asked.phase), []).append(entry)
        self.valid = [entry for entry in entries if entry.seen.valid]
        self._judgements = {entry.index: judge(entry.seen, goal) for entry in entries}
        self._judged = [(entry, self._judgements[entry.index]) for entry in self.valid]
        # A miss beyond the maximum is evidence for no load of the row.
        misses = [e for e, what in self._judged if what is Judgement.MISSED and math.isfinite(e.miss_fps)]
        clear = {e.miss_fps for e in misses if not e.seen.sustained or e.seen.loss_ratio > CLEAR_LOSS}
        # A short trial that lost a frame or two more than the goal allows may be chance: it steers, but only final
        # trials at its load decide. Loss verification repeats such trials instead.
        self._unsure = [e for e in misses if not verified and not is_sure(e.seen, goal)]
        again = Counter((e.miss_fps, e.seen.final) for e in misses if e not in self._unsure)
        hard = clear | {load for (load, _), times in again.items() if times > verified}
        self._missed = hard
        self._weighed = {load: self._weigh(load) for load in {e.pass_fps for e in self.valid if e.seen.final}}
        self._missed = hard | {load for load, what in self._weighed.items() if what is Judgement.MISSED}
        passed = {entry.pass_fps for entry, what in self._judged if what in PASSES}
        passed |= {load for load, what in self._weighed.items() if what is Judgement.MET}
        self._hard_passed = passed - self._missed
        self.hard_upper = min(self._missed, default=None)
        self.exhausted = self._loads_exhausted()
        self.given_up = self._loads_given_up()
        # A load with only short passes may be given up too: it need not be tried again and again for a final
        # trial that cannot be made.
        shown = {load for load, what in self._weighed.items() if what is Judgement.MET}
        soft_missed = {g.load_fps for g in self.given_up if not g.passed} | {e.miss_fps for e in self._unsure}
        soft_missed -= shown | self._missed
        soft_passed = {g.load_fps for g in self.given_up if g.passed} - self._missed - soft_missed
        self.soft_missed = soft_missed
        self._passed = (self._hard_passed | soft_passed) - soft_missed
        self.upper = min(self._missed | soft_missed, default=None)

    # -- what could not be judged -----------------------------------------------------------------

    def attempts(self, load: float, phase: Phase) -> list[Entry]:
        """Return the latest trials that were requested at a load without judging it, after the last one that judged
        it.
        """
        made = self._asked.get((load, phase), [])
        return list(takewhile(self._is_no_judgement, reversed(made)))[::-1]

    def _is_no_judgement(self, entry: Entry) -> bool:
        what = self._judgements[entry.index]
        return what in _SAYS_NOTHING or not entry.judges_its_load(what)

    def _loads_exhausted(self) -> dict[tuple[float, Phase], GivenUp]:
        """Return the loads and phases for which no further trial is worth making.

        These are loads whose latest trials all gave no judgement, as many in a row as `_patience` allows, and loads
        with more than `retries` trials in all that gave no judgement, whatever came between. Without the second rule,
        each valid trial that does not decide would allow as many repeats again.
        """
        exhausted = {}
        for (load, phase), made in self._asked.items():
            last = self.attempts(load, phase)
            vain = [entry for entry in made if self._is_no_judgement(entry)]
            if last and (len(vain) > self.retries or len(last) > self._patience(last[0])):
                exhausted[load, phase] = GivenUp(load, phase, tuple(vain), self._most_passed(vain))
        return exhausted

    def _patience(self, first: Entry) -> int:
        """Return how often a trial is worth repeating: less if the trials just before these gave no judgement either.

        Otherwise, on a host that is never quiet, every load would get all its repeats, and a case would take most of
        an hour.
        """
        before = [entry for entry in self._entries if entry.index < first.index][-self.retries - 1 :]
        told_nothing = all(self._judgements[entry.index] in _SAYS_NOTHING for entry in before)
        vainly = len(before) > self.retries and told_nothing
        return patience(self.retries, final=first.seen.final, vainly=vainly)

    def _loads_given_up(self) -> list[GivenUp]:
        """Return each exhausted load once. Final trials, whether they judge a load or not, take precedence over
        search trials.
        """
        finals = {load for load, phase in self.exhausted if phase == "final"}
        decided = {e.pass_fps for e, what in self._judged if what in PASSES} | self._missed
        return [
            given
            for (load, phase), given in self.exhausted.items()
            if phase == "final" or load not in finals | decided
        ]

    def _most_passed(self, entries: Sequence[Entry]) -> bool:
        """Return whether most of these trials met the goal, of those that did not fall short and whose counts are
        right.
        """
        known = [e for e in entries if (e.seen.counted or e.seen.valid) and not e.fell_short]
        return 2 * len(self._passing(known)) > len(known)

    def _passing(self, known: Sequence[Entry]) -> list[Entry]:
        """Return the trials at one load that meet the goal: all together if they are final, else each on its own
        frames.
        """
        judged = [(entry, judge_counts(entry.seen, self.goal)) for entry in known]
        together = [e for e, what in judged if e.seen.final and what in (*PASSES, Judgement.UNDECIDED)]
        if self.goal > 0 and weigh_finals([e.seen for e in together], self.goal) is Judgement.MET:
            return together
        return [entry for entry, what in judged if what in PASSES]

    def void_finals(self, confirming: Entry) -> int:
        """Return how many final trials at the load of a confirming one are INVALID, or lost frames only in stalls."""
        void = [e for e in self._entries if self._judgements[e.index] in _SAYS_NOTHING]
        return len(finals_beside(confirming, void))

    def bound(self, floor: float) -> Entry | None:
        """Return the final trial that shows the highest load known to pass: a valid one, or one of a load that was
        given up.

        Disturbed trials count only where most of those at the load whose counts are right passed, on frames enough to
        decide. A disturbance can only make a DUT slower, never faster; but a single pass among many trials may be luck
        and is no bound. Nor is zero loss on too few frames to show the faint loss of the loads above, as for a figure
        that is OK.
        """
        loads = [load for load in self._all_confirmed(floor) if self._shows_no_loss(self.frames_met_at(load))]
        best = self.confirmation(max(loads)) if loads else None
        for given in self.given_up:
            if given.phase != "final" or not given.passed or given.load_fps < floor:
                continue
            if self.hard_upper is not None and given.load_fps >= self.hard_upper:
                continue
            passing = self._passing([e for e in given.entries if e.seen.counted and not e.fell_short])
            frames = self.frames_met_at(given.load_fps) + sum(
                e.seen.frames for e in passing if not e.seen.valid
            )
            if not passing or not self._shows_no_loss(frames):
                continue
            if best is None or passing[-1].pass_fps > best.pass_fps:
                best = passing[-1]
        return best

    def _shows_no_loss(self, frames: float) -> bool:
        """Return whether this number of frames without loss differs from the faint loss above; True for other goals."""
        faint = self.faint_loss()
        return self.goal > 0 or faint is None or frames >= frames_to_see(faint)

    # -- bounds -----------------------------------------------------------------------------------

    def hard_lower(self) -> float | None:
        """Return the highest load that passed in a valid trial and is below the lowest load that missed in one."""
        below = [load for load in self._hard_passed if self.hard_upper is None or load < self.hard_upper]
        return max(below, default=None)

    def shown(self, floor: float) -> float | None:
        """Return the highest load below the upper bound at which final trials passed, or most of them if it was given
        up.
        """
        given_up = {g.load_fps for g in self.given_up if g.phase == "final"}
        loads = [load for load in self.passed_below_upper() if load >= floor]
        return max((load for load in loads if load in given_up or self.confirmation(load)), default=None)

    def lower(self, floor: float) -> float | None:
        """Return the highest passing load from `floor` up to below the upper bound."""
        return max((load for load in self.passed_below_upper() if load >= floor), default=None)

    def confirmed(self, floor: float) -> float | None:
        """Return the highest load from `floor` up to below the upper bound that met the goal in valid final trials."""
        return max(self._all_confirmed(floor), default=None)

    def _all_confirmed(self, floor: float) -> list[float]:
        return [load for load in self.passed_below_upper() if load >= floor and self.confirmation(load)]

    def passed_below_upper(self) -> list[float]:
        """Return the loads that passed and are below every load that missed, rising."""
        return sorted(load for load in self._passed if self.upper is None or load < self.upper)

    def passed_above_upper(self) -> list[float]:
        """Return the loads that passed on enough frames although a lower one missed: the DUT is not monotone."""
        faint = self.faint_loss()
        enough = frames_to_see(faint) if faint and self.goal == 0 else 0.0
        return sorted(
            {
                entry.pass_fps
                for entry, what in self._judged
                if what is Judgement.MET and entry.pass_fps in self._hard_passed
                if self.hard_upper is not None
                and entry.pass_fps > self.hard_upper
                and entry.seen.frames >= enough
            },
        )

    def missing(self) -> tuple[int, ...]:
        """Return the indexes of the valid trials for which the upper bound counts as missed: those that missed it, or,
        if none did by itself, the final trials at it that missed it together. Empty without an upper bound.
        """
        alone = [e for e, what in self._judged if what is Judgement.MISSED and e.miss_fps == self.hard_upper]
        together = [e for e in self.valid if e.seen.final and e.pass_fps == self.hard_upper]
        return tuple(entry.index for entry in alone or together)

    def missed_below(self, maximum: float) -> int:
        """Return how many different loads below the maximum missed, or count as missed."""
        return sum(load < maximum for load in self._missed | self.soft_missed)

    def forwarded_at(self, load: float) -> float | None:
        """Return the forwarding rate measured at a load, frames/s; None if not known."""
        rates = [
            e.seen.forwarding_fps
            for e in self._entries
            if load in (e.load_fps, e.miss_fps) and (e.seen.valid or e.seen.counted) and e.seen.forwarding_fps
        ]
        return rates[-1] if rates else None

    def passed_count(self, at_least: float) -> int:
        """Return how many different loads passed that are at least `at_least` and below the upper bound."""
        return sum(load >= at_least for load in self.passed_below_upper())

    def finals_missed(self) -> int:
        """Return how many different loads missed in final trials, or count as missed because these could not judge
        them.
        """
        missed = {e.miss_fps for e, what in self._judged if what is Judgement.MISSED and e.seen.final}
        weighed = {load for load, what in self._weighed.items() if what is Judgement.MISSED}
        soft = {g.load_fps for g in self.given_up if g.phase == "final"} & self.soft_missed
        return len(((missed | weighed) & self._missed) | soft)

    def finals(self) -> int:
        """Return the number of valid final trials so far."""
        return sum(entry.seen.final for entry in self.valid)

    def undecided(self, floor: float) -> list[float]:
        """Return the loads between the bounds whose trials did not decide, on too few frames or with a miss in doubt;
        rising.
        """
        settled = self._missed | self._passed | self.soft_missed
        lower = self.lower(floor) or 0.0
        unsure = (Judgement.UNDECIDED, Judgement.MISSED)  # a miss may be in doubt
        open_ = {e.load_fps for e, what in self._judged if what in unsure and e.judges_its_load(what)}
        return sorted(
            {
                load
                for load in open_ - settled
                if load >= floor and load > lower and (self.upper is None or load < self.upper)
            },
        )

    def longest_s(self, load: float) -> float:
        """Return the duration of the longest trial requested at a load, s."""
        return max((e.asked.duration_s for e in self.valid if e.load_fps == load), default=0.0)

    def confirmation(self, load: float) -> Entry | None:
        """Return the last of the final trials by which `load` met the goal; None if it missed the goal or is not
        decided.
        """
        if load in self._missed or self._weighed.get(load) is not Judgement.MET:
            return None
        finals = self._finals_of(load)
        met = [e for e in finals if self._judgements[e.index] is Judgement.MET]
        return (met or finals)[-1]

    def doubted(self, load: float) -> list[Entry]:
        """Return the trials that missed the goal at a load which does not count as missed, since loss verification
        may repeat them, or since they offered more.
        """
        if load in self._missed:
            return []
        missed = [e for e, what in self._judged if what is Judgement.MISSED and e.load_fps == load]
        return [entry for entry in missed if entry not in self._unsure]

    def finals_at(self, load: float) -> int:
        """Return the number of valid final trials at a load, without those in doubt."""
        return len(self._finals_of(load))

    def frames_met_at(self, load: float) -> int:
        """Return the frames sent at a load in the valid trials that met the goal. Only these are evidence of zero
        loss. A repetition that could only be the same (virtual time) is no further evidence.
        """
        met = [e.seen for e, what in self._judged if e.pass_fps == load and what in PASSES]
        return sum(seen.frames for seen in without_repetitions(met))

    @property
    def same_each_time(self) -> bool:
        """True if repeating a trial shows nothing new (virtual time)."""
        return any(entry.seen.same_each_time for entry in self.valid)

    def final_counts_at(self, load: float) -> list[tuple[int, int]]:
        """Return (frames, lost) of each direction over the valid final trials at a load."""
        return direction_counts(entry.seen for entry in self._finals_of(load))

    def loss_bound(self, confirming: Entry) -> float | None:
        """Return the loss ratio that the final trials behind a figure exclude with 95 % confidence.

        If the confirming trial was disturbed, all trials of its load whose counts are right are taken, not only those
        that passed.
        """
        finals = self._finals_of(confirming.pass_fps)
        if not confirming.seen.valid:
            given = (g for g in self.given_up if confirming in g.entries)
            finals = [e for g in given for e in g.entries if e.seen.counted and not e.fell_short]
        return joint_loss_bound(entry.seen for entry in finals)

    def valid_at(self, load: float) -> int:
        """Return the number of valid trials at a load."""
        return sum(entry.load_fps == load for entry in self.valid)

    def faint_loss(self) -> float | None:
        """Return the smallest loss ratio from the upper bound upwards, as the function `faint_loss` defines it."""
        return faint_loss(self.valid, self.hard_upper)

    # -- final trials at a load together ----------------------------------------------------------

    def _finals_of(self, load: float) -> list[Entry]:
        """Return the valid final trials that say something about a load, without those in doubt."""
        doubted = self.doubted(load)
        return [
            entry
            for entry, what in self._judged
            if entry.seen.final
            and entry.pass_fps == load
            and entry not in doubted
            and what not in _SAYS_NOTHING
        ]

    def _weigh(self, load: float) -> Judgement:
        """Judge a load by all its final trials together.

        A trial that offered more than this load, in the mean or in a faster part, counts for the load but not against
        it: it may have lost its frames at that higher rate.
        """
        finals = self._finals_of(load)
        if self.goal == 0:
            what = [self._judgements[entry.index] for entry in finals]
            return Judgement.MET if Judgement.MET in what else Judgement.UNDECIDED
        if weigh_finals([entry.seen for entry in finals], self.goal) is Judgement.MET:
            return Judgement.MET
        exact = [entry.seen for entry in finals if entry.is_exact]
        weighed = weigh_finals(exact, self.goal)
        lossy = any(seen.lost_frames > 0 for seen in exact)
        if weighed is Judgement.UNDECIDED and lossy and len(exact) >= MOST_FINALS_AT_A_LOAD:
            return Judgement.MISSED  # the load is so near to the goal that no trial can show that it meets it
        return weighed


def rates_apart(seen: Observation, intended: float, resolution: float) -> tuple[float | None, float | None]:
    """Return the rates for which a trial is evidence, frames/s: its mean rate for a pass, its highest rate for a
    miss.

    None stands for the intended load, within the resolution. A mean above the intended load counts as intended, too,
    since a pass at a higher load is a pass.
    """
    offered = seen.offered_fps or intended
    highest = max(offered, intended) if seen.highest_fps is None else seen.highest_fps
    near = max(resolution * intended, RECORDED_TO)
    passes = offered if offered < intended - near else None
    return passes, highest if abs(highest - intended) > near else None


def finals_beside(confirming: Entry, entries: Sequence[Entry]) -> list[Entry]:
    """Return the final trials at the load or the figure of a confirming trial: those that were requested there, or
    offered it.
    """
    loads = {confirming.load_fps, confirming.pass_fps}
    return [e for e in entries if e.seen.final and not loads.isdisjoint((e.load_fps, e.pass_fps))]


def patience(retries: int, *, final: bool, vainly: bool) -> int:
    """Return how often a trial is repeated; vainly: the loads before it gave no judgement either."""
    if retries == 0 or not vainly:
        return retries
    return (retries + 1) // 2 if final else 1


def faint_loss(entries: Sequence[Entry], upper: float | None) -> float | None:
    """Return the smallest loss ratio of the valid trials from the load `upper` upwards, taken together.

    A loss-free trial below `upper` must have enough frames to show this loss before the two loads count as different.
    None if no valid trial lost a frame there, or if a queue and not loss made the upper bound. Trials are pooled from
    the upper bound upwards, and the smallest pooled ratio counts. So a DUT that loses one frame in 200,000 at any rate
    is recognised, and heavy loss at much higher loads does not hide it.
    """
    if upper is None:
        return None
    above: dict[float, list[Observation]] = {}
    for entry in entries:
        # A trial without loss shows nothing about a load above its mean, however fast a part of it was.
        reached = entry.miss_fps if entry.seen.lost_frames > 0 or not entry.seen.sustained else entry.pass_fps
        if entry.seen.valid and reached >= upper:
            above.setdefault(entry.miss_fps, []).append(entry.seen)
    lost = frames = 0
    faintest: float | None = None
    for _, here in sorted(above.items()):
        if not all(seen.sustained for seen in here):
            break
        lost += sum(seen.lost_frames for seen in here)
        frames += sum(seen.frames for seen in here)
        faintest = min(faintest or 1.0, lost / frames)
    return faintest or None  # a miss of a void trial is above, and no valid one


def check_answer(asked: TrialRequest | None, seen: Observation) -> TrialRequest:
    """Return the trial that was requested. Raise ValueError if none was, or if the observation is of another load or
    phase.

    Such an observation belongs to another search.
    """
    if asked is None:
        raise ValueError(f"no trial was asked for, but one at {seen.load_fps:g} frames/s came")
    same_phase = seen.final == (asked.phase == "final")
    same_load = math.isclose(seen.load_fps, asked.load_fps, rel_tol=1e-4, abs_tol=RECORDED_TO)
    if not same_load or not same_phase:
        came = f"a {'final' if seen.final else 'search'} trial at {seen.load_fps:g}"
        wanted = f"a {asked.phase} trial at {asked.load_fps:g} frames/s"
        raise ValueError(f"{wanted} was asked for, {came} came")
    return asked


def tidy(load: float) -> float:
    """Round a load to six significant digits: easy to type again, and finer than any resolution."""
    return float(f"{load:.6g}")
