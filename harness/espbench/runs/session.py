# SPDX-License-Identifier: Apache-2.0
"""Makes a run, from the first calibration to the last outcome.

A pair of gateways is built for each stack and suite, and its cases are measured on it. Each record is written to disk
at once.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from espbench.generators.base import Generator, WirePath
from espbench.measure.inputs.setup import Setup
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.inputs.usual_speed import UsualSpeed
from espbench.plan.resolved.cases import Case
from espbench.plan.resolved.resolved_plan import ResolvedPlan
from espbench.platforms.base import PortName, Testbed
from espbench.procedures.procedure import OVERHEAD_S, CaseFacts
from espbench.runs.beds import Beds
from espbench.runs.book import Book
from espbench.runs.generator_ceiling import calibrate, choose_path
from espbench.runs.one_case import OneCase, TrialObserver, case_warnings, encryption_of
from espbench.runs.paired_run import PairedRun, RunParts, RunRecords, rivals
from espbench.runs.procedure_kinds import procedure_for
from espbench.runs.setups import Setups
from espbench.terms import Calibration, Encryption, Finding, Outcome, Remark, Trial, at_fixed_loads

# The estimate of the time left assumes this many trials for a case, until one case has been timed.
_USUAL_TRIALS = 9


class Observer(TrialObserver, Protocol):
    """Receives the progress of a run, such as the terminal."""

    def note(self, text: str) -> None: ...
    def case_started(self, case: Case, number: int, of: int, done_trials: int) -> None: ...
    def case_done(self, results: list[Outcome | Finding]) -> None: ...
    def time_left(self, seconds: float) -> None: ...


class Session:
    """One run over a list of cases, measured in the plan's order; call `run` once."""

    def __init__(
        self,
        resolved: ResolvedPlan,
        cases: Sequence[Case],
        directory: RunRecords,
        beds: Beds,
        new_generator: Callable[[], Generator],
        observer: Observer,
        only: Collection[str] | None = None,
    ) -> None:
        """only: the ids of the cases to measure; without it, all cases are measured."""
        self._resolved = resolved
        self._plan = resolved.plan
        self._listed = [case for case in cases if only is None or case.id in only]
        self._directory = directory
        self._beds = beds
        self._new_generator = new_generator
        self._book = Book(resolved, cases, directory, only)
        self._cases = self._book.cases
        self._usual_speed = UsualSpeed()
        searched = [case.id for case in self._cases]
        compared = [at_fixed_loads(case, arm) for case in searched for arm in ("a", "b")]
        earlier = (trial.host for name in [*searched, *compared] for trial in directory.trials_of(name))
        self._usual_speed.continue_after(earlier)
        self._setups = self._new_setups()
        self._observer = observer
        self._one_case = OneCase(self._setups, directory.append, observer, virtual_time=beds.virtual_time)
        self._case_seconds: list[float] = []

    def _new_setups(self) -> Setups:
        return Setups(
            self._resolved, self._cases, self._directory, self._beds, self._new_generator, self._usual_speed
        )

    def run(self) -> list[Outcome | Finding]:
        """Measure every case that is not complete; return the results in the plan's order."""
        self._calibrate()
        # If configurations are compared, each repeat has new gateways.
        fresh = self._plan.compare is not None
        own = self._beds.virtual_time
        for _, group in itertools.groupby(
            self._cases, key=lambda c: (c.repeat if fresh else 0, c.pair, c.id if own else "")
        ):
            self._run_group(list(group))
        compared = self._compare_at_fixed_loads()
        if own:
            self._book.arrange()
        return self._book.save(compared)

    def _compare_at_fixed_loads(self) -> list[Finding]:
        """Return the findings of the comparison at fixed loads; none in virtual time, where searches have no noise."""
        points = rivals(self._resolved, self._listed)
        if not points or self._beds.virtual_time:
            return []

        def new_setups() -> Setups:
            setups = self._new_setups()
            if self._setups.path:
                setups.path = self._setups.path
                setups.generator.take(self._setups.path)
            return setups

        parts = RunParts(
            self._plan,
            self._directory,
            self._beds,
            new_setups,
            self._observer,
            maximum_fps=lambda case: self._book.limits(case).maximum_fps,
            encryption=self._encryption,
            warnings=self._warnings,
        )
        return PairedRun(parts, points, self._book.outcomes()).run()

    # -- calibration --------------------------------------------------------------------------

    def _calibrate(self) -> None:
        """Measure the generator's ceiling once per run; a resumed run keeps its figures."""
        manifest = self._directory.manifest
        if self._beds.virtual_time:
            self._observer.note("virtual time: the generator's ceiling is the line rate")
            return
        if not self._cases:  # a driver-level test alone sends no frames
            return
        if manifest.calibration:
            self._setups.path = WirePath.of_record(manifest.calibration[0].path)
            if self._setups.path:
                self._setups.generator.take(self._setups.path)
            return
        wanted: dict[int | str, list[Traffic]] = {}
        for case in self._cases:
            variants = wanted.setdefault(case.frame_size, [])
            # The ceiling does not depend on how the flows are spread.
            traffic = replace(self._setups.traffic(case), tunnels=1, tunnel_bits=0)
            if traffic not in variants:
                variants.append(traffic)
        bed = self._beds.calibration_bed()
        if bed is not None:
            try:
                calibrations = self._calibrated(bed, wanted, returns=True)
            finally:
                bed.close()
        else:
            bed = self._beds.build(self._cases[0])
            try:
                calibrations = self._calibrated(bed, wanted, returns=False)
            finally:
                bed.close()
        self._directory.update_manifest(calibration=calibrations)

    def _calibrated(
        self, bed: Testbed, wanted: dict[int | str, list[Traffic]], *, returns: bool
    ) -> list[Calibration]:
        """Choose the generator's path to the wire, then measure its ceiling."""

        def attach() -> tuple[Testbed, dict[PortName, str]]:
            hops = self._setups.attach(bed, resolve=False).next_hops
            return bed, hops if returns else {"west": _NOBODY, "east": _NOBODY}

        self._setups.attach(bed)  # reports a next hop that does not answer, before traffic is sent
        traffics = [traffic for variants in wanted.values() for traffic in variants]
        self._setups.path = choose_path(
            self._setups.generator, attach, traffics, returns=returns, on_note=self._observer.note
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

    # -- a pair of gateways and its cases -------------------------------------------------------

    def _run_group(self, cases: list[Case]) -> None:
        pair: Setup | None = None
        try:
            for case in cases:
                pair = self._run_case(case, pair)
        except BaseException:
            if pair is not None:
                pair.bed.close()
            raise
        if pair is not None:
            # After the last case nothing would use a released bed.
            done = cases[-1] is self._cases[-1]
            (pair.bed.close if done else pair.bed.release)()

    def _run_case(self, case: Case, pair: Setup | None) -> Setup | None:
        running = procedure_for(case, self._book.known(case), self._directory.trials_of(case.id))
        number = self._book.number(case)
        began, on_disk = time.monotonic(), len(running.trials)
        self._observer.case_started(case, number, len(self._cases), on_disk)
        pair = self._one_case.measure(
            running, pair, lambda left_s: self._observer.time_left(self._time_left(left_s, case))
        )
        results = running.results(
            CaseFacts(case.dut, self._encryption(case, running.trials), self._warnings(case))
        )
        if not on_disk:  # else a part of the case was measured before, and its time is not known
            self._case_seconds.append(time.monotonic() - began)
        self._book.finish(case, results)
        self._observer.case_done(results)
        return pair

    def _encryption(self, case: Case, trials: Iterable[Trial]) -> Encryption:
        return encryption_of(case, trials, external=self._plan.is_external)

    def _warnings(self, case: Case) -> list[Remark]:
        shared = self._directory.manifest.placement.get("shared", [])
        return case_warnings(case, self._beds.notes(case), shared)

    def _time_left(self, now_s: float, case: Case) -> float:
        """Estimate the time left, s: this case's remainder, and for each other case the mean time of a case so far."""
        before = self._case_seconds
        typical = sum(before) / len(before) if before else self._one_case.pace * usual_s(case)
        return now_s + (len(self._cases) - self._book.number(case)) * typical


def usual_s(case: Case) -> float:
    """Estimate how long a case takes, before one has been timed, in seconds of the trials' own time."""
    s = case.settings
    return s.longest_s + _USUAL_TRIALS * (s.learning + s.residue + s.settle + OVERHEAD_S)


_NOBODY = "02:00:00:00:ff:fe"  # a locally administered MAC that no DUT has
