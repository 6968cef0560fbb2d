# SPDX-License-Identifier: Apache-2.0
"""Gateways that are x86-64 machines in virtual time, with Debian's own kernel (`platform: qemu_x86`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from espbench.generators import native
from espbench.plan import Case, Profile, ResolvedPlan, cases
from espbench.plan.duts.machines import ADAPTING, Machine
from espbench.plan.keys.ipsec_tests import PublicKey, SetUpRate
from espbench.plan.keys.stack_choice import StackChoice
from espbench.platforms.base import HeldDaemon, Readiness, Testbed
from espbench.platforms.chance import Chance
from espbench.platforms.virtual import virtual_pair
from espbench.platforms.virtual.own.own_files import OwnFiles
from espbench.platforms.virtual.parts.build import Kit
from espbench.platforms.virtual.parts.kits import X86_KIT
from espbench.platforms.x86 import own_daemon, qemu_x86
from espbench.runs.platform_kinds.shared import stack_files
from espbench.runs.platform_kinds.shared.from_profile import FromProfile
from espbench.runs.platform_kinds.shared.platform import OnNote, Workspace, demand
from espbench.stacks.daemons.builds import Build


def readiness() -> list[Readiness]:
    """List what x86-64 machines need on this machine: their kit."""
    return [X86_KIT.readiness()]


class Machines(FromProfile):
    """Gateways that are x86-64 machines in virtual time, with Debian's own kernel."""

    name = "qemu_x86"
    virtual_time = True

    def __init__(self, resolved: ResolvedPlan, profile: Profile | None) -> None:
        super().__init__(resolved, profile)
        self._builder = qemu_x86.QemuX86Platform(
            self._profile.name, self._addressing, native.binary, X86_KIT.require, self._errors,
            self._own_paths(),
        )  # fmt: skip
        self._images = x86_images(cases(resolved))
        self._own_daemons: dict[str, qemu_x86.OwnDaemon] = {}  # by `_name_of`
        self._copies: Mapping[str, Path] = {}

    @property
    def kits(self) -> list[Kit[Any]]:
        """List the kit of which the guests are built."""
        return [X86_KIT]

    def require(self, on_note: OnNote) -> None:
        """Require the kit of the guests; UsageError if a guest cannot run the user's kernel, modules or daemons."""
        demand([X86_KIT.readiness()])
        self._builder.examine()
        for stack in self._plan.stacks:
            self._own(stack)

    def own_files(self) -> list[OwnFiles]:
        """Pack the user's kernels, modules and daemons for workers on other machines."""
        for stack in self._plan.stacks:
            self._own(stack)
        daemons = [own_daemon.files_of(name, daemon) for name, daemon in self._own_daemons.items()]
        return [*self._builder.own_files(), *daemons]

    def use_copies(self, copies: Mapping[str, Path]) -> None:
        """Use copies of the user's daemons; those of kernels and modules are in the profile."""
        self._copies = copies

    def build(self, case: Case, workspace: Workspace) -> Testbed:
        w, machine = workspace, self._profile.machine
        assert machine is not None
        return self._named(
            self._builder.build(
                w.registry, w.logs, w.placement,
                _machine(
                    self._profile.memory, machine, self._images[case.stack.shown], self._chance(case),
                    self._own(case.stack),
                ),
                _facts_of(machine), single=self._single, line_rate_bps=self.line_rate_bps,
                profile=w.profile(case),
            )
        )  # fmt: skip

    def _own(self, choice: StackChoice) -> tuple[qemu_x86.OwnDaemon, ...]:
        """Return the user's own daemons that a stack names, packed or read once for all cases."""
        if choice.prefix is None:
            return ()
        names = {daemon: _name_of(choice.prefix, daemon) for daemon in choice.daemons}
        for daemon, name in names.items():
            if name not in self._own_daemons and name in self._copies:
                self._own_daemons[name] = own_daemon.copy_of(daemon, self._copies[name])
        if not self._own_daemons.keys() >= {*names.values()}:
            for daemon, build in stack_files.own_in_root(choice, self._resolved.path).items():
                self._own_daemons[names[daemon]] = self._builder.pack(_own_build(daemon, build))
        return tuple(self._own_daemons[name] for name in names.values())

    def calibration_bed(self, workspace: Workspace) -> Testbed | None:
        return None  # the generator's ceiling in virtual time is the line rate

    def memory_mb(self) -> float:
        """Return the memory of a test bed, MiB. Each guest counts three times: booted, with its stack, in a trial."""
        return 3 * (1 if self._single else 2) * self._profile.memory

    def links_mb(self) -> float:
        return virtual_pair.links_mb(single=self._single, kept=True)


def _name_of(prefix: str, daemon: str) -> str:
    """Return a name for the daemon in the folder that a plan names, which is the same on all machines."""
    return f"{prefix} ({daemon})"


def _own_build(daemon: str, build: Build) -> qemu_x86.OwnBuild:
    held = HeldDaemon(build.programs, own_name=build.name, own_details=build.details)
    return qemu_x86.OwnBuild(daemon, build.folder if build.image else Path("/"), build.base, held)


def _machine(
    memory_mb: int,
    machine: Machine,
    images: tuple[str, ...],
    chance: Chance,
    own: tuple[qemu_x86.OwnDaemon, ...],
) -> qemu_x86.Machine:
    return qemu_x86.Machine(
        memory_mb=memory_mb,
        ns_per_instruction=machine.ns_per_instruction,
        cpu=machine.cpu,
        receive_ring=machine.rings.receive,
        transmit_ring=machine.rings.transmit,
        interrupts=machine.interrupts,
        images=images,
        own=own,
        chance=chance,
    )


def x86_images(cases: Iterable[Case]) -> dict[str, tuple[str, ...]]:
    """Return the userland parts of each stack's guests, by the stack's name, for all cases of a plan.

    They are the same in each case of a stack, so that all its cases have one configuration: if one test runs the
    program openssl, the guests of the other tests have it too.
    """
    of_stack: dict[str, tuple[str, ...]] = {}
    for case in cases:
        images = of_stack.get(case.stack.shown, stack_files.userland_of(case.stack))
        of_stack[case.stack.shown] = (
            tuple(dict.fromkeys(("base", *images, "openssl"))) if _runs_openssl(case) else images
        )
    return of_stack


def _runs_openssl(case: Case) -> bool:
    settings = case.settings
    return isinstance(settings, PublicKey) or (isinstance(settings, SetUpRate) and settings.public_key)


def _facts_of(machine: Machine) -> dict[str, str]:
    """Return the emulated machine's properties, for the Security Context."""
    adapting = machine.interrupts == ADAPTING
    return {
        "cpu": machine.cpu,
        "time per instruction": f"{machine.ns_per_instruction} ns, whichever it is",
        "ports": f"e1000e, rings of {machine.rings.receive} (receive) and {machine.rings.transmit} (transmit) frames",
        "interrupts": "as the driver adapts them" if adapting else f"at most {machine.interrupts} a second",
    }
