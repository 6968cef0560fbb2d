# SPDX-License-Identifier: Apache-2.0
"""Measures one case from its first trial to its last: sets gateways up, again if they die, and keeps each record."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from espbench.measure import trial, unmeasured
from espbench.measure.inputs.actions import Action
from espbench.measure.inputs.setup import Request, Setup, TrialBroken, Waits
from espbench.measure.proof import readiness
from espbench.measure.record import OfCase
from espbench.measure.repeated import Repeated
from espbench.plan.keys.model import Throughput
from espbench.plan.resolved.cases import Case
from espbench.procedures.procedure import Procedure, TrialMaker
from espbench.runs.setups import Setups
from espbench.sentences import Code
from espbench.stacks.daemons.daemon import NegotiationFailed
from espbench.stacks.plain import Plain
from espbench.terms import SAME_AS_TRIAL, Encryption, Reason, Remark, Trial

# After this many rebuilds at one load, the load is given up if the gateways die there again.
MAXIMUM_REBUILDS = 2
# The pause after a trial that the host disturbed, s; it doubles with each attempt. The disturbance may end meanwhile.
HOST_PAUSE_S, MAXIMUM_PAUSE_S = 0.25, 2.0
_RESOLUTION = 0.01  # of tests without a search


class TrialObserver(Protocol):
    """Gets the news of a case's trials."""

    def trial_started(
        self, request: Request, bounds: list[tuple[float, float | None, float | None]]
    ) -> None: ...
    def trial_progress(self, event: dict[str, Any]) -> None: ...
    def trial_done(self, record: Trial) -> None: ...


class _Deaths:
    """Counts the deaths of a case's gateways at each load.

    A load at which they died too often is given up, because they may survive a lower one. If they then die at another
    load too, with no complete trial in between, the load is not the cause.
    """

    def __init__(self) -> None:
        self._at: Counter[float] = Counter()
        self._given_up: dict[float, Reason] = {}
        self._lived_since = True

    def reason(self, load_fps: float) -> Reason | None:
        """Return why no more trials are made at this load; None if it is not given up."""
        return self._given_up.get(load_fps)

    def went_through(self) -> None:
        """Note that a trial was complete."""
        self._lived_since = True

    def died(self, load_fps: float, why: Reason) -> bool:
        """Count a trial in which gateways died; return whether they die at other loads too."""
        elsewhere = bool(self._given_up) and not self._lived_since
        self._at[load_fps] += 1
        if self._at[load_fps] > MAXIMUM_REBUILDS:
            self._given_up[load_fps] = why
            self._lived_since = False
        return elsewhere


class OneCase:
    """Makes the trials that a case's procedure asks for, for one case after the other.

    keep writes a trial to disk and returns when it is durable there.
    """

    def __init__(
        self, setups: Setups, keep: Callable[[Trial], None], observer: TrialObserver, *, virtual_time: bool
    ) -> None:
        self.pace = 1.0  # the host's seconds for one second of a trial: not 1 in virtual time
        self._setups = setups
        self._keep = keep
        self._observer = observer
        self._virtual_time = virtual_time
        self._repeated = Repeated()
        self._hopeless: dict[tuple[Any, ...], str] = {}  # pairs that can never be set up → why

    def measure(
        self, running: Procedure, pair: Setup | None, on_left: Callable[[float], None]
    ) -> Setup | None:
        """Make every trial that the procedure still wants; return the pair that is up then, to be used again or closed.

        pair: gateways of the case's own kind that are up already. on_left is called after each trial with an estimate
        of the time left for the case, s.
        """
        case = running.case
        deaths = _Deaths()
        warm = False
        while (request := running.next()) is not None:
            sequence = len(running.trials)
            self._observer.trial_started(request, running.brackets())
            if why := deaths.reason(request.load_fps):
                self._take(running, trial.broken(request, why, case=case.id, sequence=sequence))
                continue
            try:
                if pair is None:
                    pair = self._set_up(case)
                if not warm:
                    self._warm_up(case, pair, running)
                    warm = True
                began = time.monotonic()
                record = running.measure(request, self._maker(case, pair, sequence))
                if self._virtual_time and SAME_AS_TRIAL not in record.host:
                    spent_s = request.duration_s + case.settings.learning + case.settings.residue
                    self.pace = (time.monotonic() - began) / spent_s
                deaths.went_through()
            except (TrialBroken, readiness.NotReady, NegotiationFailed) as error:
                why = Reason.of(error.code, text=str(error))
                leak = isinstance(error, readiness.InClear)
                record = trial.broken(request, why, case=case.id, sequence=sequence, leak=leak)
                self._setups.discard(pair)
                pair, warm = None, False
                elsewhere = deaths.died(request.load_fps, why)
                if isinstance(error, NegotiationFailed) and error.final:
                    self._hopeless[self._kind(case)] = str(error)
                # Gateways in virtual time that were not ready once will never be ready.
                for_good = self._virtual_time and isinstance(error, readiness.NotReady)
                if not leak and (elsewhere or for_good or self._kind(case) in self._hopeless):
                    self._give_up(running, why)
                    return pair
            self._take(running, record)
            if record.disturbed:
                time.sleep(min(HOST_PAUSE_S * 2**record.attempt, MAXIMUM_PAUSE_S))
            on_left(self.pace * running.remaining_s())
        return pair

    def _kind(self, case: Case) -> tuple[Any, ...]:
        """Return the key of the pairs that a failure rules out: in virtual time only the pair of this case."""
        return (case.id,) if self._virtual_time else case.pair

    def _set_up(self, case: Case) -> Setup:
        if why := self._hopeless.get(self._kind(case)):
            raise NegotiationFailed(why)
        return self._setups.set_up(case)

    def _give_up(self, running: Procedure, reason: Reason) -> None:
        """Give the case up because its pair keeps failing: record all its other trials as INVALID.

        The records are on disk, so a resumed run gives the case up too.
        """
        while (request := running.next()) is not None:
            record = trial.broken(request, reason, case=running.case.id, sequence=len(running.trials))
            self._take(running, record)

    def _take(self, running: Procedure, record: Trial) -> None:
        self._keep(record)
        running.add(record)
        self._observer.trial_done(record)

    def _maker(self, case: Case, setup: Setup, sequence: int) -> TrialMaker:
        """Return the TrialMaker for the case's procedure."""

        def measured(request: Request, actions: Sequence[Action]) -> Trial:
            of = OfCase(case.id, sequence, resolution_of(case), case.fragments)

            def make() -> Trial:
                return trial.measure(
                    setup,
                    self._setups.traffic(case),
                    request,
                    of,
                    waits_of(case),
                    actions=actions,
                    on_progress=self._observer.trial_progress,
                )

            return make() if actions else self._repeated.record(setup.bed, request, of, make)

        return TrialMaker(setup, measured)

    def _warm_up(self, case: Case, setup: Setup, running: Procedure) -> None:
        if case.settings.warm_up > 0:
            unmeasured.warm_up(
                setup,
                self._setups.traffic(case),
                running.warm_up_fps,
                case.settings.warm_up,
                fragments=case.fragments,
            )


def waits_of(case: Case) -> Waits:
    """Return the waits around each trial that the plan asks for."""
    s = case.settings
    return Waits(learning_s=s.learning, residue_s=s.residue, settle_s=s.settle)


def resolution_of(case: Case) -> float:
    """Return the share of the load by which the received rate may be lower; beyond it, frames count as stored."""
    return case.settings.resolution if isinstance(case.settings, Throughput) else _RESOLUTION


def encryption_of(case: Case, trials: Iterable[Trial], *, external: bool) -> Encryption:
    """Return `baseline` for a stack without ESP; otherwise `proven` or `not proven`, from the trials' records.

    external: the boxes are the user's own, so that the stack is unknown and `plain` is no baseline.
    """
    if case.stack.stack == Plain.name and not external:
        return "baseline"
    trials = list(trials)
    counted = [t for t in trials if t.validity == "VALID" or t.disturbed]
    if any(t.violated for t in trials):
        return "not proven"
    return "proven" if counted and all(t.proof.get("proven") for t in counted) else "not proven"


def case_warnings(case: Case, notes: Iterable[str], shared: Iterable[str]) -> list[Remark]:
    """Return the remarks for every figure of a case; notes: about its device; shared: about CPUs with two roles."""
    return [
        *(Remark.of(Code.OF_CASE, text=note) for note in case.notes),
        *(Remark.of(Code.STANDING_IN, text=note) for note in notes),
        *(Remark.of(Code.CPUS_SHARED, text=note) for note in shared),
    ]
