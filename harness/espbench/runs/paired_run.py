# SPDX-License-Identifier: Apache-2.0
"""Measures a comparison at fixed loads: builds two arms' gateways for each round, and makes their trials in turns.

If memory allows, both arms' gateways run at the same time, each with its own generator. Otherwise the gateways of one
arm are closed before those of the other arm are built.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from espbench.errors import EspbenchError
from espbench.measure import trial, unmeasured
from espbench.measure.inputs.setup import Request, Setup, TrialBroken, Waits
from espbench.measure.proof import readiness
from espbench.measure.record import OfCase
from espbench.plan.keys.fixed_loads import FixedLoads
from espbench.plan.keys.model import Plan, Throughput
from espbench.plan.resolved.arms import arms
from espbench.plan.resolved.cases import Case
from espbench.plan.resolved.resolved_plan import ResolvedPlan
from espbench.procedures.paired_trials import ARMS, Arm, Ask, PairedLoads, bounds, other
from espbench.procedures.procedure import identity
from espbench.runs.book import Records
from espbench.runs.setups import Notebook, Setups
from espbench.sentences import Code
from espbench.stacks.daemons.daemon import NegotiationFailed
from espbench.terms import (
    PAIRED,
    Encryption,
    Finding,
    Outcome,
    Reason,
    Remark,
    Statement,
    Trial,
    at_fixed_loads,
)

# The time that a trial takes in addition to its duration, s: learning frames, counters, late frames. It is used only to
# estimate the time left.
OVERHEAD_S = 0.4
# If more trials than this fail in one round, the round's other trials are not made.
MAXIMUM_REBUILDS = 2
# The pause after a trial that the host disturbed, s.
HOST_PAUSE_S = 0.5
_FAILURES = (TrialBroken, readiness.NotReady, NegotiationFailed)


class RunRecords(Records, Notebook, Protocol):
    """The records of a run to which trials are added; `append` returns when the trial is on disk."""

    def append(self, trial: Trial) -> None: ...


class Observer(Protocol):
    """Gets the news of a comparison, such as the terminal."""

    def note(self, text: str) -> None: ...
    def trial_started(
        self, request: Request, bounds: list[tuple[float, float | None, float | None]]
    ) -> None: ...
    def trial_progress(self, event: dict[str, Any]) -> None: ...
    def trial_done(self, record: Trial) -> None: ...
    def case_done(self, results: list[Outcome | Finding]) -> None: ...
    def time_left(self, seconds: float) -> None: ...


class Room(Protocol):
    """The part of the test beds that says whether two pairs of gateways can run at the same time."""

    def apart(self, cases: Sequence[Case]) -> str:
        """Say why the gateways of these cases cannot run at the same time; empty if they can."""


@dataclass(frozen=True)
class Rivals:
    """One point of a comparison: the reference's case (a) and another arm's (b), both of the first repeat."""

    a: Case
    b: Case

    @property
    def id(self) -> str:
        return at_fixed_loads(self.b.id)

    def case(self, arm: Arm) -> Case:
        return self.a if arm == "a" else self.b

    def trials_id(self, arm: Arm) -> str:
        """Return the case name under which the arm's trials are recorded."""
        return at_fixed_loads(self.b.id, arm)


@dataclass(frozen=True)
class RunParts:
    """The parts of a run that its comparisons at fixed loads use.

    maximum_fps: returns the highest load of a case, frames/s. encryption: returns what a case's trials prove.
    """

    plan: Plan
    directory: RunRecords
    room: Room
    new_setups: Callable[[], Setups]
    observer: Observer
    maximum_fps: Callable[[Case], float]
    encryption: Callable[[Case, Iterable[Trial]], Encryption]
    warnings: Callable[[Case], list[Remark]]


def rivals(resolved: ResolvedPlan, cases: Sequence[Case]) -> list[Rivals]:
    """Return every point at which an arm can be compared with the reference.

    The order is the one in which gateways are built least often.
    """
    plan = resolved.plan
    if plan.fixed_loads is None or plan.compare is None:
        return []
    names = arms(resolved)
    reference = plan.compare.reference or names[0]
    by = plan.compare.by

    def point(case: Case) -> tuple[Any, ...]:
        fixed = {"stack": case.stack.shown, "suite": case.suite, "dut": case.dut}
        fixed.pop({"version": "stack", "kernel": "dut"}.get(by, by))
        return (case.test, case.frame_size, case.direction, case.ip_version, *fixed.values())

    first = [c for c in cases if c.repeat == 1 and isinstance(c.settings, Throughput)]
    by_point = {point(c): c for c in first if name_of(c, by) == reference}
    made = [
        Rivals(by_point[point(c)], c)
        for c in first
        if name_of(c, by) in names and name_of(c, by) != reference and point(c) in by_point
    ]
    order = list(dict.fromkeys((r.a.pair, r.b.pair) for r in made))
    return sorted(made, key=lambda r: order.index((r.a.pair, r.b.pair)))


class PairedRun:
    """All comparisons at fixed loads of one run; call `run` once, after its searches."""

    def __init__(self, parts: RunParts, points: Sequence[Rivals], outcomes: Sequence[Outcome]) -> None:
        assert parts.plan.fixed_loads is not None
        self._parts = parts
        self._points = points
        self._outcomes = outcomes
        self._settings: FixedLoads = parts.plan.fixed_loads
        self._running: dict[str, PairedLoads] = {}
        self._makers: dict[Arm, Setups] = {}
        self._standing: dict[Arm, Setup] = {}
        # The failures of an arm's gateways, or their cleartext, that showed when the other arm's trial was to be made.
        self._failed: dict[tuple[str, Arm], EspbenchError] = {}
        self._together = True

    def run(self) -> list[Finding]:
        """Make the missing trials, and return one finding for each point."""
        self._together = self._stand_together()
        findings: dict[str, Finding] = {}
        for point in self._points:
            running = self._begin(point)
            if running is None:
                findings[point.id] = self._nothing(point, Reason.of(Code.NO_BOUNDS))
                self._parts.observer.case_done([findings[point.id]])
            else:
                self._running[point.id] = running
        groups: dict[tuple[Any, ...], list[Rivals]] = {}
        for point in self._points:
            if point.id in self._running:
                groups.setdefault((point.a.pair, point.b.pair), []).append(point)
        try:
            for group in groups.values():
                self._group(group)
                for point in group:
                    findings[point.id] = self._finding(point)
                    self._parts.observer.case_done([findings[point.id]])
        finally:
            self._close()
            for maker in self._makers.values():
                maker.generator.close()
        return [findings[point.id] for point in self._points]

    def _stand_together(self) -> bool:
        """Return whether both arms' gateways run at the same time.

        This is decided once and kept in the manifest, because the order of the trials depends on it.
        """
        manifest = self._parts.directory.manifest
        if "together" not in manifest.compare:
            why = next((facts for p in self._points if (facts := self._parts.room.apart([p.a, p.b]))), "")
            compare = {**manifest.compare, "together": not why}
            self._parts.directory.update_manifest(compare=compare | ({"apart because": why} if why else {}))
            if why:
                self._parts.observer.note(f"fixed loads: one arm's gateways after the other's: {why}")
        return bool(self._parts.directory.manifest.compare["together"])

    def _begin(self, point: Rivals) -> PairedLoads | None:
        throughput = point.a.settings
        assert isinstance(throughput, Throughput)
        goal = throughput.loss_goals[0]
        earlier = {
            arm: [o for o in self._outcomes if o.loss_goal == goal and _is_of(o, point.case(arm))]
            for arm in ARMS
        }
        known = bounds(earlier)
        if known is None:
            return None
        plan = self._parts.plan
        assert plan.compare is not None
        return PairedLoads(
            self._settings,
            known,
            maximum_fps=min(self._parts.maximum_fps(point.case(arm)) for arm in ARMS),
            goal=goal,
            retries=throughput.retries,
            seed=f"{plan.compare.seed} {point.id}",
            together=self._together,
            trials={arm: self._parts.directory.trials_of(point.trials_id(arm)) for arm in ARMS},
        )

    def _group(self, points: Sequence[Rivals]) -> None:
        """Run round after round; in each, new gateways serve all points of the two arms."""
        for number in range(1, self._settings.rounds + 1):
            self._close()
            broken = 0
            for point in points:
                running = self._running[point.id]
                while (ask := running.next()) is not None and ask.round == number:
                    record, why = self._made(point, ask, hopeless=broken > MAXIMUM_REBUILDS)
                    broken += bool(why)
                    self._parts.directory.append(record)
                    running.add(record)
                    self._parts.observer.trial_done(record)
                    if not why and any(reason.of_host for reason in record.reasons):
                        time.sleep(HOST_PAUSE_S)
                    left = sum(self._running[p.id].left for p in self._points if p.id in self._running)
                    self._parts.observer.time_left(left * (self._settings.trial + OVERHEAD_S))

    def _made(self, point: Rivals, ask: Ask, *, hopeless: bool) -> tuple[Trial, str]:
        """Return the trial's record, and why the trial could not be made; empty if it was made."""
        case, name = point.case(ask.arm), point.trials_id(ask.arm)
        sequence = len(self._running[point.id].trials[ask.arm])
        self._parts.observer.trial_started(ask.request, [])
        try:
            if hopeless:
                raise TrialBroken("the gateways of this round failed again and again")
            setup = self._setup(point, ask.arm)
            traffic = self._makers[ask.arm].traffic(case)
            s = case.settings
            assert isinstance(s, Throughput)
            record = trial.measure(
                setup,
                traffic,
                ask.request,
                OfCase(name, sequence, s.resolution, case.fragments),
                Waits(learning_s=s.learning, residue_s=s.residue, settle_s=s.settle),
                on_progress=self._parts.observer.trial_progress,
            )
        except _FAILURES as error:
            why = Reason.of(error.code, text=str(error))
            leak = isinstance(error, readiness.InClear)
            record = trial.broken(ask.request, why, case=name, sequence=sequence, leak=leak)
            if ask.arm in self._makers:
                self._makers[ask.arm].discard(self._standing.pop(ask.arm, None))
            return record, str(error)
        return record.model_copy(update={"measured": {**record.measured, "compared": ask.place}}), ""

    def _setup(self, point: Rivals, arm: Arm) -> Setup:
        """Return the arm's gateways, built and warmed up if needed.

        If both pairs may run at the same time, the other arm's gateways are built too.
        """
        if failure := self._failed.pop((point.id, arm), None):
            raise failure
        wanted = self._running[point.id].set_up_order if self._together else (arm,)
        if not self._together and other(arm) in self._standing:
            self._close()
        for each in wanted:
            if each in self._standing or (point.id, each) in self._failed:
                continue
            try:
                self._stand(point, each)
            except _FAILURES as failure:
                if each == arm:
                    raise
                # The trial to be made is of the other arm: this is raised at the failing arm's next trial.
                self._failed[point.id, each] = failure
        return self._standing[arm]

    def _stand(self, point: Rivals, arm: Arm) -> None:
        """Build and warm up the gateways of an arm. If that fails, close them, so that no trial meets cold ones."""
        maker = self._makers.get(arm)
        if maker is None:
            maker = self._makers[arm] = self._parts.new_setups()
        case = point.case(arm)
        self._standing[arm] = setup = maker.set_up(case)
        if case.settings.warm_up > 0:
            load = 0.5 * self._running[point.id].slower_fps
            try:
                unmeasured.warm_up(
                    setup, maker.traffic(case), load, case.settings.warm_up, fragments=case.fragments
                )
            except EspbenchError:
                maker.discard(self._standing.pop(arm))
                raise

    def _close(self) -> None:
        for setup in self._standing.values():
            setup.bed.close()
        self._standing = {}

    def _finding(self, point: Rivals) -> Finding:
        running = self._running[point.id]
        proofs = [self._parts.encryption(point.case(arm), running.trials[arm]) for arm in ARMS]
        return running.finding(
            self._identity(point),
            self._names(point),
            "not proven" if "not proven" in proofs else proofs[1],
            list(dict.fromkeys([*self._parts.warnings(point.a), *self._parts.warnings(point.b)])),
        )

    def _nothing(self, point: Rivals, why: Reason) -> Finding:
        facts = Statement.of(Code.NOT_COMPARED, why=why)
        return Finding(
            **self._identity(point), status="INVALID", load_fps=None, quantities=[], trials=0, rfc2544=False,
            encryption="not proven", words=facts.text, answer=facts, reasons=[why],
        )  # fmt: skip

    def _identity(self, point: Rivals) -> Mapping[str, Any]:
        return identity(point.b, point.b.dut) | {"case": point.id, "test": PAIRED}

    def _names(self, point: Rivals) -> dict[Arm, str]:
        """Return the arms' names as the comparison shows them."""
        assert self._parts.plan.compare is not None
        return {arm: name_of(point.case(arm), self._parts.plan.compare.by) for arm in ARMS}


def name_of(case: Case, by: str) -> str:
    """Return the name of the case's arm; by: the compared property (the plan's compare.by)."""
    return case.suite if by == "suite" else case.dut if by in ("dut", "kernel") else case.stack.shown


def _is_of(outcome: Outcome, case: Case) -> bool:
    point = (
        case.test,
        case.dut,
        case.stack.shown,
        case.suite,
        case.ip_version,
        case.frame_size,
        case.direction,
    )
    o = outcome
    return (o.test, o.dut, o.stack, o.suite, o.ip_version, o.frame_size, o.direction) == point
