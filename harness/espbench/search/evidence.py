# SPDX-License-Identifier: Apache-2.0
"""What all trials of a case so far say about one loss goal: its bounds, and what is confirmed.

Everything is derived from the list of trials; nothing is remembered beside it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from espbench.search.goals import Judgement, Observation, frames_to_see, judge
from espbench.terms import Phase

# Of the frames: who loses more is overloaded, whatever a host may have done; no second trial is needed to see it.
CLEAR_LOSS = 0.05
PASSES = (Judgement.MET, Judgement.MET_PROVISIONALLY)


@dataclass(frozen=True)
class TrialRequest:
    """The trial the search wants next; `attempt` counts repeats of an INVALID trial."""

    load_fps: float
    duration_s: float
    phase: Phase
    attempt: int


@dataclass(frozen=True)
class Entry:
    """One trial: what was asked for, what was seen, its place in the order of trials."""

    index: int
    asked: TrialRequest
    seen: Observation

    @property
    def load_fps(self) -> float:
        return self.asked.load_fps


class Evidence:
    """The valid trials of a case, as one goal sees them; rates in frames/s.

    The upper bound is the lowest load that ever missed the goal, the lower bound the highest
    passing load below it. So a DUT that passes above a load it failed is reported below its first
    failure, and no load with a missed trial, short or final, is ever reported.

    With loss verification (ETSI GS NFV-TST 009) a load that lost little misses the goal only when more
    than `verified` of its short trials did, or of its final ones.
    """

    def __init__(self, goal: float, entries: Sequence[Entry], verified: int = 0) -> None:
        self.goal = goal
        self.valid = [entry for entry in entries if entry.seen.valid]
        self._judged = [(entry, judge(entry.seen, goal)) for entry in self.valid]
        misses = [entry for entry, what in self._judged if what is Judgement.MISSED]
        clear = {e.load_fps for e in misses if not e.seen.sustained or e.seen.loss_ratio > CLEAR_LOSS}
        again = Counter((entry.load_fps, entry.seen.final) for entry in misses)
        self._missed = clear | {load for (load, _), times in again.items() if times > verified}
        self._passed = {entry.load_fps for entry, what in self._judged if what in PASSES} - self._missed
        self.upper = min(self._missed, default=None)

    def lower(self, floor: float) -> float | None:
        """The highest passing load from `floor` up to below the upper bound."""
        return max((load for load in self.passed_below_upper() if load >= floor), default=None)

    def confirmed(self, floor: float) -> float | None:
        """The highest load from `floor` up to below the upper bound that met the goal in a final trial."""
        loads = [load for load in self.passed_below_upper() if load >= floor]
        return max((load for load in loads if self.confirmation(load)), default=None)

    def passed_below_upper(self) -> list[float]:
        """Loads that passed below every load that missed, rising."""
        return sorted(load for load in self._passed if self.upper is None or load < self.upper)

    def passed_above_upper(self) -> list[float]:
        """Loads that passed on enough frames although a lower one missed: the DUT is not monotone."""
        faint = self.faint_loss()
        enough = frames_to_see(faint) if faint and self.goal == 0 else 0.0
        return sorted(
            {
                entry.load_fps
                for entry, what in self._judged
                if what is Judgement.MET and entry.load_fps in self._passed
                if self.upper is not None and entry.load_fps > self.upper and entry.seen.frames >= enough
            },
        )

    def missed_below(self, maximum: float) -> int:
        """How many different loads below the maximum missed."""
        return sum(load < maximum for load in self._missed)

    def forwarded_at(self, load: float) -> float | None:
        """The forwarding rate seen at a load, frames/s; None where none is known."""
        rates = [e.seen.forwarding_fps for e in self.valid if e.load_fps == load and e.seen.forwarding_fps]
        return rates[-1] if rates else None

    def passed_count(self, at_least: float) -> int:
        """How many different loads from `at_least` on passed, below the upper bound."""
        return sum(load >= at_least for load in self.passed_below_upper())

    def finals_missed(self) -> int:
        """How many different loads missed in a final trial."""
        return len(
            {e.load_fps for e, what in self._judged if what is Judgement.MISSED and e.seen.final}
            & self._missed,
        )

    def finals(self) -> int:
        """Valid final trials so far."""
        return sum(entry.seen.final for entry in self.valid)

    def undecided(self, floor: float) -> list[float]:
        """Loads between the bounds that only had trials with too few frames to decide."""
        settled = self._missed | self._passed
        lower = self.lower(floor) or 0.0
        return sorted(
            {
                load
                for load in {entry.load_fps for entry in self.valid} - settled
                if load >= floor and load > lower and (self.upper is None or load < self.upper)
            },
        )

    def longest_s(self, load: float) -> float:
        """The longest trial asked for at a load, s."""
        return max((e.asked.duration_s for e in self.valid if e.load_fps == load), default=0.0)

    def confirmation(self, load: float) -> Entry | None:
        """The last final trial that met the goal at `load`, if none at that load missed it."""
        met = [e for e, what in self._judged if what is Judgement.MET and e.seen.final and e.load_fps == load]
        return met[-1] if met and load not in self._missed else None

    def doubted(self, load: float) -> list[Entry]:
        """The trials that missed at a load that did not, as long as it may be verified."""
        if load in self._missed:
            return []
        return [e for e, what in self._judged if what is Judgement.MISSED and e.load_fps == load]

    def finals_at(self, load: float) -> int:
        """Valid final trials at a load, without those in doubt."""
        return sum(e.seen.final for e in self._undoubted(load))

    def frames_at(self, load: float) -> int:
        """Frames sent at a load in all its valid trials, without those in doubt."""
        return sum(e.seen.frames for e in self._undoubted(load))

    def valid_at(self, load: float) -> int:
        """Valid trials at a load."""
        return sum(entry.load_fps == load for entry in self.valid)

    def _undoubted(self, load: float) -> list[Entry]:
        doubted = self.doubted(load)
        return [entry for entry in self.valid if entry.load_fps == load and entry not in doubted]

    def faint_loss(self) -> float | None:
        """The smallest loss ratio from the upper bound upwards; see the function."""
        return faint_loss(self.valid, self.upper)


def faint_loss(entries: Sequence[Entry], upper: float | None) -> float | None:
    """The smallest loss ratio of the valid trials from the load `upper` upwards, taken together.

    This is the loss a loss-free trial below must be long enough to see before the two can be
    called different. None where a queue, not loss, made the upper bound, or nothing missed.
    Trials are pooled rising from the upper bound, and the smallest pooled ratio counts, so a
    DUT that loses one frame in 200,000 at any rate is seen as such, and heavy loss far above
    does not hide it.
    """
    if upper is None:
        return None
    above = [entry for entry in entries if entry.seen.valid and entry.load_fps >= upper]
    lost = frames = 0
    faintest: float | None = None
    for load in sorted({entry.load_fps for entry in above}):
        here = [entry.seen for entry in above if entry.load_fps == load]
        if not all(seen.sustained for seen in here):
            break
        lost += sum(seen.lost_frames for seen in here)
        frames += sum(seen.frames for seen in here)
        faintest = min(faintest or 1.0, lost / frames)
    return faintest


def check_answer(asked: TrialRequest | None, seen: Observation) -> TrialRequest:
    """What was asked for; ValueError if what was seen is of another load or phase: another search's trial."""
    if asked is None:
        raise ValueError(f"no trial was asked for, but one at {seen.load_fps:g} frames/s came")
    same_phase = seen.final == (asked.phase == "final")
    if not math.isclose(seen.load_fps, asked.load_fps, rel_tol=1e-4) or not same_phase:
        came = f"a {'final' if seen.final else 'search'} trial at {seen.load_fps:g}"
        wanted = f"a {asked.phase} trial at {asked.load_fps:g} frames/s"
        raise ValueError(f"{wanted} was asked for, {came} came")
    return asked


def tidy(load: float) -> float:
    """Six significant digits: a load a reader can type again, finer than any resolution."""
    return float(f"{load:.6g}")
