# SPDX-License-Identifier: Apache-2.0
"""Splits a run in real time into shares, and measures one on this machine: cases that are compared stay together."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass

from espbench.generators import choose as generators
from espbench.generators.base import Generator
from espbench.plan.keys.model import Plan
from espbench.plan.resolved.cases import Case
from espbench.runs import parts
from espbench.runs.beds import Beds, Choice, place, require
from espbench.runs.platform_kinds.shared import users_files
from espbench.runs.platform_kinds.shared.platform import Workspace
from espbench.runs.session import Session
from espbench.runs.workers.driver import Driver, ShareRecords
from espbench.runs.workers.messages import RunFacts, ShareTask
from espbench.this_machine import machine_lock
from espbench.this_machine.machine_lock import Holder
from espbench.this_machine.registry import Registry


@dataclass(frozen=True)
class Share:
    """Cases that are measured on one machine: their ids, in the plan's order."""

    name: str
    cases: tuple[str, ...]


def shares(plan: Plan, cases: Sequence[Case]) -> list[Share]:
    """Split a plan's cases into shares, in the plan's order.

    All stacks, suites, frame sizes and tests of one device, direction and IP version are one share, because reports
    show them in one table or curve. Devices are in one share if the plan compares them. Repeats are in one share too,
    for the median of a figure; the fixed loads of a comparison also depend on all repeats. But in a comparison by
    searches alone, each repeat is a share, because its ratios are computed within one repeat.
    """
    by = plan.compare.by if plan.compare is not None else ""
    together = by in ("dut", "kernel")
    apart = plan.compare is not None and plan.fixed_loads is None
    groups: dict[str, list[str]] = {}
    for case in cases:
        words = [
            *([] if together else [case.dut]),
            case.direction,
            f"IPv{case.ip_version}",
            *([f"repeat {case.repeat}"] if apart else []),
        ]
        groups.setdefault(", ".join(words), []).append(case.id)
    return [Share(name, tuple(ids)) for name, ids in groups.items()]


# -- code that runs in the workers -----------------------------------------------------------------


def measure_share(task: ShareTask, registry: Registry, driver: Driver) -> None:
    """Measure the missing trials of a share.

    MachineLacks if this machine cannot carry the plan's platforms, or if its copies of the user's files differ from
    those of the machine where the run was started. Afterwards this process is bound to the tester's
    CPUs, so it must do no other share.
    """
    facts: RunFacts = pickle.loads(task.run)
    users_files.demand_same(facts.own)
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
