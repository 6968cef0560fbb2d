# SPDX-License-Identifier: Apache-2.0
"""Builds real pairs of gateways with a plan's stack, one after another, attached to one generator."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from espbench.generators.native import NativeGenerator
from espbench.measure.inputs.setup import Request, Setup, Waits
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.proof import readiness
from espbench.measure.record import OfCase
from espbench.measure.trial import measure
from espbench.plan import Case, cases, load_plan
from espbench.platforms import placement
from espbench.runs.beds import Beds, choose
from espbench.runs.platform_kinds.shared.platform import Workspace
from espbench.terms import Trial
from espbench.this_machine.registry import Registry
from support.plans import pair_plan, write_plan

TRAFFIC = Traffic(((256, 1),), 4, "both-ways")
_WAITS = Waits(learning_s=0.0, residue_s=1.0, settle_s=0.0)


class Workshop:
    """Holds a registry and a generator for many tests; builds and removes their pairs."""

    def __init__(self, registry: Registry, folder: Path) -> None:
        self.registry = registry
        self.folder = folder
        self.placed = placement.choose()
        self.generator = NativeGenerator(registry, folder / "generator.log")

    @contextmanager
    def pair(self, stack: Any, suite: str, **plan: Any) -> Iterator[tuple[Setup, Case]]:
        """Build a pair with this stack (as a plan writes it) on it, neither blocking nor established."""
        written = write_plan(
            self.folder,
            pair_plan("uml")
            | {"name": "pair", "stacks": [stack], "suites": [suite], "frame_sizes": [256]}
            | plan,
        )  # fmt: skip
        checked = load_plan(written)
        (choice,) = choose(checked)
        case = next(case for case in cases(checked, choice.dut) if case.stack.kind != "plain")
        workspace = Workspace(self.registry, self.folder, self.placed)
        beds = Beds(checked, {choice.dut: choice.platform}, workspace)
        bed = beds.build(case)
        try:
            watched = sorted({c for cpus in self.placed.cpus.values() for c in cpus})
            self.generator.open(list(bed.ports.values()), watched)
            bed.attached(self.generator)
            hops = {name: port.next_hop_mac or "" for name, port in bed.ports.items()}
            yield Setup(bed, self.generator, beds.stack(bed, case), hops), case
        finally:
            bed.close()


@contextmanager
def workshop(folder: Path) -> Iterator[Workshop]:
    """Open a workshop; afterwards remove all of it, and let this process use all CPUs again."""
    allowed = os.sched_getaffinity(0)
    with Registry("t" + secrets.token_hex(3)) as registry:
        made = Workshop(registry, folder)
        placement.pin_controller(made.placed)
        try:
            yield made
        finally:
            os.sched_setaffinity(0, allowed)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    """Open a workshop for all tests of a file."""
    with workshop(tmp_path_factory.mktemp("shop")) as made:
        yield made


def established(setup: Setup, traffic: Traffic = TRAFFIC) -> dict[str, Any]:
    """Prove that the network works, cleartext is blocked, and the tunnel carries frames; return the Security Context.

    The Security Context must have no mismatches.
    """
    assert setup.stack is not None
    shown = readiness.establish(setup, traffic)
    assert shown["cleartext blocked, tunnel down"].startswith("0 of ")
    context = setup.stack.security_context()
    assert context.pop("mismatches") == []
    return context


def trial_of(
    setup: Setup,
    traffic: Traffic = TRAFFIC,
    fps: float = 400,
    seconds: float = 0.5,
    *,
    waits: Waits = _WAITS,
    attempts: int = 12,
) -> Trial:
    """Make a short trial, by default of 200 frames; repeat it if the host disturbed it, up to `attempts` times."""
    for _ in range(attempts):  # a busy machine disturbs trials at times, which is not tested here
        trial = measure(setup, traffic, Request(fps, seconds, "search"), OfCase("test", 0, 0.01), waits)
        if not trial.disturbed:
            break
    return trial
