# SPDX-License-Identifier: Apache-2.0
"""Turns a plan into test beds: chooses the platform of each device under test, its CPUs and its stack."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Any, TypeVar

from espbench.errors import MachineLacks
from espbench.measure import machine
from espbench.plan import Case, Profile, ResolvedPlan, cases, load_topology
from espbench.plan.keys.model import SINGLE
from espbench.plan.resolved.frame_sizes import USUAL_MTU
from espbench.platforms import capture, placement
from espbench.platforms.base import Placement, Testbed
from espbench.platforms.virtual import virtual_pair
from espbench.runs import stack_kinds
from espbench.runs.automatic import Automatic, automatic
from espbench.runs.platform_kinds.external import External
from espbench.runs.platform_kinds.shared import stack_files
from espbench.runs.platform_kinds.shared.platform import OnNote, Platform, Workspace
from espbench.runs.platform_kinds.table import PLATFORMS
from espbench.stacks.base import Stack, Tunnel, split

_Made = TypeVar("_Made", bound=Testbed | None)
_SPARE_MB = 512  # MiB of memory, left for the tester and other programs


@dataclass(frozen=True)
class Choice:
    """The choice for one device under test of a plan: its name in results, its platform, its profile, and why.

    Boxes that espbench did not build have neither a profile nor a reason. instead: another remedy for the user if this
    machine lacks something for this choice; empty if there is none.
    """

    dut: str
    platform: Platform
    profile: Profile | None = None
    reason: str = ""
    instead: str = ""

    @property
    def mtu(self) -> int:
        """The MTU of the device's links, bytes."""
        return self.profile.mtu if self.profile else USUAL_MTU


def choose(resolved: ResolvedPlan, *, virtual_time: bool = True) -> list[Choice]:
    """Choose a platform for each of the plan's devices under test, in its order.

    virtual_time: whether `auto` may choose gateways in virtual time. UsageError if the plan has something that the
    gateways chosen by `auto` cannot do.
    """
    if resolved.plan.topology == External.name:
        return [Choice(resolved.plan.duts[0], External(resolved))]
    return [_choice(resolved, dut, profile, virtual_time) for dut, profile in resolved.duts]


def _choice(resolved: ResolvedPlan, dut: str, profile: Profile | None, virtual_time: bool) -> Choice:
    if profile is None:
        chosen = automatic(resolved, virtual_time=virtual_time)
    else:
        chosen = Automatic(profile, f"the plan asks for {dut}")
    made = PLATFORMS[chosen.profile.platform].make(resolved, chosen.profile)
    return Choice(chosen.profile.name, made, chosen.profile, chosen.reason, chosen.instead)


def cases_of(resolved: ResolvedPlan, choices: Sequence[Choice]) -> list[Case]:
    """List the plan's cases on the chosen devices; the smallest MTU of these decides which frames are fragmented."""
    return cases(resolved, [choice.dut for choice in choices], mtu=min(choice.mtu for choice in choices))


def profiles_of(choices: Sequence[Choice]) -> list[Profile]:
    """List the profiles of the chosen devices; boxes that espbench did not build have none."""
    return [choice.profile for choice in choices if choice.profile is not None]


def place(resolved: ResolvedPlan, choices: Sequence[Choice]) -> Placement:
    """Assign CPUs to the gateways and the tester, and keep this process off the gateways' CPUs.

    CPU time of this process on a gateway's CPU would be counted as the gateway's. UsageError if there are too few CPUs
    for the plan.
    """
    if virtual(choices):
        return virtual_pair.placement()
    here = any(choice.platform.takes_cpus for choice in choices)
    gateways = (1 if resolved.plan.topology == SINGLE else 2) if here else 0
    placed = placement.choose(gateways=gateways, senders=resolved.plan.generator.senders)
    placement.pin_controller(placed)
    return placed


def virtual(choices: Sequence[Choice]) -> bool:
    """Return whether all choices are in virtual time, where other programs on the CPUs change no result."""
    return all(choice.platform.virtual_time for choice in choices)


def require(resolved: ResolvedPlan, choices: Sequence[Choice], on_note: OnNote) -> None:
    """Raise MachineLacks if the machine cannot carry the plan's platforms and stacks, before anything is made.

    Daemons are searched for and their packages are fetched here, so that a run that has begun cannot fail because they
    are missing. Guests in virtual time do not need this: they are built with their daemons. UsageError if there is no
    daemon below the plan's prefix.
    """
    for choice in choices:
        try:
            choice.platform.require(on_note)
        except MachineLacks as error:
            if choice.instead:
                error.add_note(f"  or: {choice.instead}")
            raise
    if resolved.plan.topology != External.name and not virtual(choices):
        for stack in resolved.plan.stacks:
            stack_files.builds_of(stack, resolved.path, on_note)


class Beds:
    """Builds the test beds of a run, each on the platform of its case's device, and puts their stacks on them."""

    def __init__(
        self,
        resolved: ResolvedPlan,
        platforms: Mapping[str, Platform],
        workspace: Workspace,
        on_note: OnNote = lambda text: None,
    ) -> None:
        """platforms: by the devices' names in results; all have the same kind and line rate."""
        self._resolved = resolved
        self._topology = load_topology(resolved.plan.topology)
        self._platforms = platforms
        self._first = next(iter(platforms.values()))
        self._workspace = workspace
        self._on_note = on_note

    @property
    def virtual_time(self) -> bool:
        """True if the test beds are in virtual time (see Platform)."""
        return self._first.virtual_time

    @property
    def profiled(self) -> bool:
        """True if the gateways' instructions are counted by address (see Workspace)."""
        return self._workspace.profiled

    def notes(self, case: Case) -> list[str]:
        """List the remarks that apply to every figure of the case."""
        return self._platforms[case.dut].notes()

    def apart(self, cases: Sequence[Case]) -> str:
        """Say why the gateways of these cases cannot run at the same time; empty if they can."""
        return no_room([self._platforms[case.dut].memory_mb() for case in cases])

    def build(self, case: Case) -> Testbed:
        """Build a new test bed with its routes, without a stack; if that fails, undo at once what was made."""
        return self._whole(lambda: self._platforms[case.dut].build(case, self._workspace))

    def calibration_bed(self) -> Testbed | None:
        """Connect the tester's ports (the same for all devices) without a DUT; None if the platform cannot do that."""
        return self._whole(lambda: self._first.calibration_bed(self._workspace))

    def capturing(self, bed: Testbed, file: Path) -> AbstractContextManager[None]:
        """Write the frames that cross the middle link to a pcap file while the context lasts."""
        return capture.capturing(self._workspace.registry, bed, file)

    def stack(self, bed: Testbed, case: Case) -> Stack | None:
        """Return the case's stack on a test bed, not yet blocking or established; None for boxes not built by espbench.

        The files of its daemons are laid over the gateways' root file systems.
        """
        if not bed.gateways:
            return None
        return stack_kinds.on_bed(bed, self._tunnel(case), case, self._resolved.path, self._on_note)

    def inspect(self, bed: Testbed, case: Case) -> tuple[dict[str, Any], list[str]]:
        """Ask gateways whose stack is up; return facts for the Security Context, and the mismatches with the plan."""
        return self._platforms[case.dut].inspect(bed, case)

    def tunnel_bits(self, case: Case) -> int:
        """Return the prefix length of the subnet behind each of the case's tunnels; 0 if there is only one tunnel."""
        if case.stack.tunnels == 1:
            return 0
        return ip_network(self._tunnel(case).pairs[0][0]).prefixlen

    def _tunnel(self, case: Case) -> Tunnel:
        addresses = self._topology.addresses(case.ip_version)
        return Tunnel(
            ip_version=case.ip_version,
            home=addresses.home_wan.partition("/")[0],
            office=addresses.office_wan.partition("/")[0],
            west=addresses.west,
            east=addresses.east,
            pairs=split(addresses.west, addresses.east, case.stack.tunnels),
        )

    def _whole(self, build: Callable[[], _Made]) -> _Made:
        registry = self._workspace.registry
        before = len(registry.entries)
        try:
            return build()
        except BaseException:
            registry.undo(registry.entries[before:])
            raise


def no_room(needs_mb: Sequence[float], free_mb: float | None = None) -> str:
    """Say why pairs of gateways that need this much memory each cannot run at the same time; empty if they can.

    needs_mb, free_mb: MiB. free_mb: the free memory; without it, this machine's.
    """
    if math.inf in needs_mb:
        return "the gateways are boxes of which there is one pair"
    free = machine.free_memory_mb() if free_mb is None else free_mb
    needed = sum(needs_mb) + _SPARE_MB
    if needed <= free:
        return ""
    return f"together they need {needed:,.0f} MiB of memory, {free:,.0f} MiB are free"
