# SPDX-License-Identifier: Apache-2.0
"""Measures a share of a run in real time on this machine, while no other measurement uses its CPUs."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence

from espbench.generators import choose as generators
from espbench.generators.base import Generator
from espbench.plan import Case
from espbench.runs import parts
from espbench.runs.beds import Beds, Choice, place, require
from espbench.runs.platform_kinds.shared.platform import Workspace
from espbench.runs.session import Session
from espbench.runs.workers.driver import Driver
from espbench.runs.workers.messages import ObserverCall, ResultsMade, RunFacts, ShareTask
from espbench.terms import Finding, Outcome, Trial
from espbench.this_machine import machine_lock
from espbench.this_machine.machine_lock import Holder
from espbench.this_machine.registry import Registry


class ShareRecords(Driver):
    """A share's view of the run directory: the trials on disk, and the driver, which gets the new ones."""

    def __init__(self, driver: Driver, trials: Mapping[str, list[Trial]]) -> None:
        """trials: the trials on disk, by case; this object keeps a copy and adds new ones to it."""
        super().__init__(driver.connection, driver.logs)
        self.manifest = driver.manifest
        self._trials = {case: list(of_case) for case, of_case in trials.items()}

    def trials_of(self, case: str) -> list[Trial]:
        """Return the trials of one case, in order."""
        return list(self._trials.get(case, []))

    def append(self, trial: Trial) -> None:
        """Have the driver put a trial on disk; return when it is there."""
        super().append(trial)
        self._trials.setdefault(trial.case, []).append(trial)

    def save_results(self, results: Sequence[Outcome | Finding]) -> None:
        """Have the driver put the results of the share so far on disk."""
        counts = {case: len(of_case) for case, of_case in self._trials.items()}
        self.tell(ResultsMade(list(results), counts))

    def arrange(self, cases: Sequence[str]) -> None:
        """Do nothing: the driver arranges the trials of all shares at the end of the run."""

    def case_started(self, case: Case, number: int, of: int, done_trials: int) -> None:
        self.tell(ObserverCall("case_started", (case, number, of, done_trials)))

    def case_done(self, results: list[Outcome | Finding]) -> None:
        self.tell(ObserverCall("case_done", (results,)))


def measure_share(task: ShareTask, registry: Registry, driver: Driver) -> None:
    """Measure the missing trials of a share.

    MachineLacks if this machine cannot carry the plan's platforms. Afterwards this process is bound to the tester's
    CPUs, so it must do no other share.
    """
    facts: RunFacts = pickle.loads(task.run)
    records = ShareRecords(driver, task.trials)
    platforms = parts.platforms_of(facts.resolved, facts.devices)
    choices = [Choice(name, platforms[name], profile) for name, profile in facts.devices]
    require(facts.resolved, choices, driver.note)
    asked = facts.resolved.plan.generator
    generators.require(asked.name, asked.settings)
    with machine_lock.held(wait=True, on_wait=_Waiting(driver).name_holders):
        workspace = Workspace(registry, driver.logs, place(facts.resolved, choices))
        beds = Beds(facts.resolved, platforms, workspace, driver.note)

        def new_generator() -> Generator:
            return parts.new_generator(facts.resolved, registry, driver.logs)

        Session(facts.resolved, facts.cases, records, beds, new_generator, records, task.cases).run()


class _Waiting:
    """Reports for which other measurements this machine waits, again only when they change."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._named: list[Holder] | None = None

    def name_holders(self, holders: list[Holder]) -> None:
        """Note which measurements use the machine's CPUs, if they are not those noted before."""
        if holders != self._named:
            self._named = holders
            words = "; ".join(map(str, holders)) or "a process that cannot be seen from there"
            self._driver.note(f"waits until no other measurement uses the machine's CPUs; now it is {words}")
