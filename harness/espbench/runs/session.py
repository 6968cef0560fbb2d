# SPDX-License-Identifier: Apache-2.0
"""A run from the first calibration to the last outcome: has a pair of gateways made for each stack and suite, measures
its cases on it, puts everything on disk as it comes.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from espbench.generators.base import Generator
from espbench.measure import trial
from espbench.measure.inputs.actions import Action
from espbench.measure.inputs.setup import Request, Setup, TrialBroken, Waits
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.proof import readiness
from espbench.measure.record import OfCase
from espbench.plan.keys.model import Throughput
from espbench.plan.resolved.arms import execution_order
from espbench.plan.resolved.cases import Case
from espbench.plan.resolved.resolved_plan import ResolvedPlan
from espbench.platforms.base import PortName, Testbed
from espbench.procedures.limits import Limits, limits
from espbench.procedures.procedure import OVERHEAD_S, CaseFacts, Known, Procedure, TrialMaker
from espbench.procedures.rfc2544.warm_start import hints
from espbench.results import RunDirectory
from espbench.runs.beds import Beds
from espbench.runs.generator_ceiling import calibrate, choose_path
from espbench.runs.paired_run import PairedRun, RunParts, rivals
from espbench.runs.procedure_kinds import procedure_for
from espbench.runs.setups import Setups
from espbench.sentences import Code
from espbench.stacks.daemons.daemon import NegotiationFailed
from espbench.stacks.plain import Plain
from espbench.terms import Calibration, Encryption, Finding, Outcome, Reason, Remark, Trial

# A pair that dies again and again is not worth more rebuilding than this.
MAXIMUM_REBUILDS = 2
# After a trial that the host spoilt, some time for whatever did it to end, s; doubled each time.
HOST_PAUSE_S, MAXIMUM_PAUSE_S = 0.25, 2.0
# For the guess of the time left, until a case has been timed: trials of a case.
_USUAL_TRIALS = 9
_RESOLUTION = 0.01  # of tests that search nothing


class Observer(Protocol):
    """Who is told how the run goes: the terminal."""

    def note(self, text: str) -> None: ...
    def case_started(self, case: Case, number: int, of: int, done_trials: int) -> None: ...
    def trial_started(
        self, request: Request, bounds: list[tuple[float, float | None, float | None]]
    ) -> None: ...
    def trial_progress(self, event: dict[str, Any]) -> None: ...
    def trial_done(self, record: Trial) -> None: ...
    def case_done(self, results: list[Outcome | Finding]) -> None: ...
    def time_left(self, seconds: float) -> None: ...


class Session:
    """One run over a list of cases, measured in the order the plan asks for; call `run` once."""

    def __init__(
        self,
        resolved: ResolvedPlan,
        cases: Sequence[Case],
        directory: RunDirectory,
        beds: Beds,
        new_generator: Callable[[], Generator],
        observer: Observer,
    ) -> None:
        self._resolved = resolved
        self._plan = resolved.plan
        measured = directory.manifest.base_loads or {case.id for case in cases}
        self._cases = execution_order([case for case in cases if case.id in measured], resolved)
        self._listed = cases
        self._directory = directory
        self._beds = beds
        self._new_generator = new_generator
        self._compared: list[Finding] = []
        self._setups = Setups(resolved, self._cases, directory, beds, new_generator)
        self._observer = observer
        self._hopeless: dict[tuple[Any, ...], str] = {}  # pairs that cannot be had → why
        self._results: dict[str, list[Outcome | Finding]] = {}
        self._case_seconds: list[float] = []
        self._case_began = 0.0
        self._pace = 1.0  # of the host's seconds for one of a trial: virtual ones take what they take

    def run(self) -> list[Outcome | Finding]:
        """Measure every case that is not complete; returns the results in the plan's order."""
        self._calibrate()
        # Where configurations are compared, no repeat inherits its gateways from the one before.
        fresh = self._plan.compare is not None
        own = self._beds.virtual_time
        for _, group in itertools.groupby(
            self._cases, key=lambda c: (c.repeat if fresh else 0, c.pair, c.id if own else "")
        ):
            self._run_group(list(group))
        self._compare_at_fixed_loads()
        return self._save_results()

    def _compare_at_fixed_loads(self) -> None:
        points = rivals(self._resolved, self._listed)
        if not points:
            return

        def new_setups() -> Setups:
            setups = Setups(self._resolved, self._cases, self._directory, self._beds, self._new_generator)
            if self._setups.path:
                setups.path = self._setups.path
                setups.generator.take(setups.path)
            return setups

        parts = RunParts(
            self._plan,
            self._directory,
            self._beds,
            new_setups,
            self._observer,
            maximum_fps=lambda case: self._limits(case).maximum_fps,
            encryption=lambda case, trials: encryption_of(
                case, trials, external=self._plan.topology == "external"
            ),
            warnings=self._case_warnings,
        )
        outcomes = [r for results in self._results.values() for r in results if isinstance(r, Outcome)]
        self._compared = PairedRun(parts, points, outcomes).run()

    def _save_results(self) -> list[Outcome | Finding]:
        results = [r for case in self._listed for r in self._results.get(case.id, [])]
        results += self._compared
        self._directory.save_results(results)
        return results

    # -- calibration --------------------------------------------------------------------------

    def _calibrate(self) -> None:
        """Once per run; a resumed run keeps what it was begun with."""
        manifest = self._directory.manifest
        if self._beds.virtual_time:
            self._observer.note("virtual time: the generator's ceiling is the line rate")
            return
        if manifest.calibration:
            self._setups.path = manifest.calibration[0].path
            if self._setups.path:
                self._setups.generator.take(self._setups.path)
            return
        wanted: dict[int | str, list[Traffic]] = {}
        for case in self._cases:
            variants = wanted.setdefault(case.frame_size, [])
            # How the flows spread is nothing the ceiling depends on.
            traffic = replace(self._setups.traffic(case), tunnels=1, tunnel_bits=0)
            if traffic not in variants:
                variants.append(traffic)
        bed = self._beds.calibration_bed()
        if bed is not None:
            try:
                found = self._calibrated(bed, wanted, returns=True)
            finally:
                bed.close()
        else:
            bed = self._beds.build(self._cases[0])
            try:
                found = self._calibrated(bed, wanted, returns=False)
            finally:
                bed.close()
        self._directory.update_manifest(calibration=found)

    def _calibrated(
        self, bed: Testbed, wanted: dict[int | str, list[Traffic]], *, returns: bool
    ) -> list[Calibration]:
        """Choose the generator's path to the wire, then measure its ceiling."""

        def attach() -> tuple[Testbed, dict[PortName, str]]:
            hops = self._setups.attach(bed, resolve=False).next_hops
            return bed, hops if returns else {"west": _NOBODY, "east": _NOBODY}

        self._setups.attach(bed)  # a next hop that does not answer is named before anything is sent
        probe = next(iter(wanted.values()))[0]
        self._setups.path = choose_path(
            self._setups.generator, attach, probe, returns=returns, on_note=self._observer.note
        )
        _, hops = attach()
        return calibrate(
            self._setups.generator,
            bed,
            hops,
            wanted,
            returns=returns,
            path=self._setups.path,
            on_note=self._observer.note,
        )

    def _calibration_of(self, case: Case) -> Calibration | None:
        for c in self._directory.manifest.calibration:
            if (c.frame_size, c.ip_version, c.direction) == (
                case.frame_size,
                case.ip_version,
                case.direction,
            ):
                return c
        return None

    # -- a pair of gateways and its cases -------------------------------------------------------

    def _run_group(self, cases: list[Case]) -> None:
        pair: Setup | None = None
        try:
            for case in cases:
                pair = self._run_case(case, pair)
        finally:
            if pair is not None:
                pair.bed.close()

    def _run_case(self, case: Case, pair: Setup | None) -> Setup | None:
        done = self._directory.trials_of(case.id)
        running = procedure_for(case, self._known(case), done)
        number = self._cases.index(case) + 1
        self._case_began = time.monotonic()
        self._observer.case_started(case, number, len(self._cases), len(done))
        broken = 0
        warm = False
        while (request := running.next()) is not None:
            sequence = len(running.trials)
            self._observer.trial_started(request, running.brackets())
            try:
                if pair is None:
                    pair = self._set_up(case)
                if not warm:
                    self._warm_up(case, pair, running)
                    warm = True
                began = time.monotonic()
                record = running.measure(request, self._maker(case, pair, sequence))
                if self._beds.virtual_time:
                    spent_s = request.duration_s + case.settings.learning + case.settings.residue
                    self._pace = (time.monotonic() - began) / spent_s
            except (TrialBroken, readiness.NotReady, NegotiationFailed) as error:
                why = Reason.of(error.code, text=str(error))
                record = trial.broken(request, why, case=case.id, sequence=sequence)
                self._setups.discard(pair)
                pair, warm = None, False
                broken += 1
                if isinstance(error, NegotiationFailed) and error.final:
                    self._hopeless[case.pair] = str(error)
                # In virtual time what was not ready once never will be.
                for_good = self._beds.virtual_time and isinstance(error, readiness.NotReady)
                if broken > MAXIMUM_REBUILDS or for_good or case.pair in self._hopeless:
                    self._give_up(case, running, why)
                    return pair
            self._directory.append(record)
            running.add(record)
            self._observer.trial_done(record)
            if record.disturbed:
                time.sleep(min(HOST_PAUSE_S * 2**record.attempt, MAXIMUM_PAUSE_S))
            self._observer.time_left(self._time_left(running, case, number))
        self._finish(case, running)
        return pair

    def _set_up(self, case: Case) -> Setup:
        if why := self._hopeless.get(case.pair):
            raise NegotiationFailed(why)
        return self._setups.set_up(case)

    def _give_up(self, case: Case, running: Procedure, reason: Reason) -> None:
        """The pair keeps failing: what is left of the case is INVALID, and a replay says the same."""
        while (request := running.next()) is not None:
            record = trial.broken(request, reason, case=case.id, sequence=len(running.trials))
            self._directory.append(record)
            running.add(record)
            self._observer.trial_done(record)
        self._finish(case, running)

    def _finish(self, case: Case, running: Procedure) -> None:
        facts = CaseFacts(case.dut, self._encryption(case, running), self._case_warnings(case))
        results = running.results(facts)
        self._results[case.id] = results
        self._case_seconds.append(time.monotonic() - self._case_began)
        self._save_results()
        self._observer.case_done(results)

    def _maker(self, case: Case, setup: Setup, sequence: int) -> TrialMaker:
        """Return what makes the trials of the case's procedure."""

        def measured(request: Request, actions: Sequence[Action]) -> Trial:
            return trial.measure(
                setup,
                self._setups.traffic(case),
                request,
                OfCase(case.id, sequence, resolution_of(case), case.fragments),
                waits_of(case),
                actions=actions,
                on_progress=self._observer.trial_progress,
            )

        return TrialMaker(setup, measured)

    def _warm_up(self, case: Case, setup: Setup, running: Procedure) -> None:
        if case.settings.warm_up > 0:
            trial.warm_up(setup, self._setups.traffic(case), running.warm_up_fps, case.settings.warm_up)

    # -- what is known of a case ----------------------------------------------------------------

    def _limits(self, case: Case) -> Limits:
        return limits(case, self._directory.manifest.line_rate_bps, self._calibration_of(case))

    def _known(self, case: Case) -> Known:
        """What the run knows of a case before it begins."""
        found = [r for results in self._results.values() for r in results if isinstance(r, Outcome)]
        point = (case.dut, case.stack.shown, case.suite, case.ip_version, case.frame_size, case.direction)
        here = [
            o
            for o in found
            if (o.dut, o.stack, o.suite, o.ip_version, o.frame_size, o.direction) == point
            and o.repeat == case.repeat
        ]
        throughput = {o.loss_goal: o for o in here}
        base_loads = self._directory.manifest.base_loads.get(case.id, ())
        return Known(self._limits(case), throughput, self._plan.frame_sizes, self._hints(case), base_loads)

    def _hints(self, case: Case) -> list[float | None]:
        """Where the case's search begins; on disk before its first trial, so that a resumed one began there too."""
        recorded = self._directory.manifest.search_hints
        if case.id not in recorded and not self._directory.trials_of(case.id):
            before = [(other, self._results.get(other.id, [])) for other in self._cases]
            if found := hints(case, before):
                self._directory.update_manifest(search_hints={**recorded, case.id: found})
                return found
        return recorded.get(case.id, [])

    def _encryption(self, case: Case, running: Procedure) -> Encryption:
        return encryption_of(case, running.trials, external=self._plan.topology == "external")

    def _case_warnings(self, case: Case) -> list[Remark]:
        shared = self._directory.manifest.placement.get("shared", [])
        return [
            *(Remark.of(Code.OF_CASE, text=note) for note in case.notes),
            *(Remark.of(Code.STANDING_IN, text=note) for note in self._beds.notes(case)),
            *(Remark.of(Code.CPUS_SHARED, text=note) for note in shared),
        ]

    def _time_left(self, running: Procedure, case: Case, number: int) -> float:
        """A rough guess: this case's remainder, and the other cases as long as those before."""
        s = case.settings
        now = self._pace * running.remaining_s()
        before = self._case_seconds
        around = s.learning + s.residue + s.settle + OVERHEAD_S
        typical = sum(before) / len(before) if before else self._pace * (s.longest_s + _USUAL_TRIALS * around)
        return now + (len(self._cases) - number) * typical


_NOBODY = "02:00:00:00:ff:fe"  # a locally administered MAC that no DUT has


def waits_of(case: Case) -> Waits:
    """The waits around each trial that the plan asks for."""
    s = case.settings
    return Waits(learning_s=s.learning, residue_s=s.residue, settle_s=s.settle)


def resolution_of(case: Case) -> float:
    """How far the rate received may fall short of the load until it counts as stored, as a share of it."""
    return case.settings.resolution if isinstance(case.settings, Throughput) else _RESOLUTION


def encryption_of(case: Case, trials: Iterable[Trial], *, external: bool) -> Encryption:
    """`baseline`, `proven` or `not proven`, the latter two from the trials' own records."""
    if case.stack.stack == Plain.name and not external:
        return "baseline"
    trials = list(trials)
    counted = [t for t in trials if t.validity == "VALID" or t.disturbed]
    if any(t.violated for t in trials):
        return "not proven"
    return "proven" if counted and all(t.proof.get("proven") for t in counted) else "not proven"
