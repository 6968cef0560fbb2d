# SPDX-License-Identifier: Apache-2.0
"""Gateways as emulated PowerQUICC boards in virtual time (see `virtual.virtual_pair`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from espbench.platforms.addressing import PairAddressing
from espbench.platforms.base import EMULATOR, SIDES, Placement, Side
from espbench.platforms.e500 import own_kernel
from espbench.platforms.e500.e500_gateway import E500Gateway
from espbench.platforms.e500.e500_guest import Coalescing, Machine, command, initramfs, programs
from espbench.platforms.e500.own_kernel import Additions
from espbench.platforms.link_errors import Errors
from espbench.platforms.virtual import images, profile_files, virtual_guest
from espbench.platforms.virtual.own.additions import Own, by_gateway
from espbench.platforms.virtual.own.own_files import OwnFiles
from espbench.platforms.virtual.parts.cpio import files_of
from espbench.platforms.virtual.virtual_guest import Built, LinkEnd, Userland, emulator_of
from espbench.platforms.virtual.virtual_pair import VirtualPairs, VirtualTestbed, facts_of
from espbench.this_machine.registry import Registry

__all__ = ["Coalescing", "Machine", "QemuE500Platform"]

# The name in the Security Context of the part with the boards' programs.
PROGRAMS = "e500-strongswan"


class QemuE500Platform:
    """Builds test beds of boards. traffic returns the program that makes links, parts the boards' parts.

    programs returns the programs that some boards run besides their init. errors: the errors on links; None: no errors.
    own: the user's kernels, modules and overlays, by gateway.
    """

    name = "qemu_e500"

    def __init__(
        self,
        dut: str,
        addressing: PairAddressing,
        traffic: Callable[[], Path],
        parts: Callable[[], Built],
        programs: Callable[[], Userland],
        errors: Errors | None = None,
        own: Mapping[Side, Own] | None = None,
    ) -> None:
        self._errors = errors or Errors()
        self._pairs = VirtualPairs(self.name, dut, addressing, traffic, self._errors)
        self._parts = parts
        self._programs = programs
        self._own = own or {}

    def examine(self) -> None:
        """Raise UsageError if a board cannot use the user's kernels, modules or overlays."""
        for own in dict.fromkeys(self._own.values()):
            own_kernel.read(own)

    def own_files(self) -> list[OwnFiles]:
        """Return the user's kernels, modules and overlays, packed for another machine, each path once."""
        owns = dict.fromkeys(self._own.values())
        return [*{each.path: each for own in owns for each in own_kernel.files_of(own)}.values()]

    def build(
        self,
        registry: Registry,
        logs: Path,
        placement: Placement,
        machine: Machine,
        facts: dict[str, Any],
        *,
        single: bool = False,
        line_rate_bps: float = 1e9,
        profile: Path | None = None,
    ) -> VirtualTestbed:
        """Return a test bed with two boards, which wait for the generator.

        single: there is only Home, whose eth1 is at the east link. profile: the path of the files with counts of
        instructions, without the gateway's name; None: they are not counted. facts: those of the board, for the
        Security Context. Raise MachineLacks if the parts or programs are not built, UsageError if the memory is too
        small, EspbenchError, which quotes QEMU, if QEMU ends. What was made until then stays registered: leaving the
        registry's context undoes it.
        """
        built = self._parts()
        userland = self._programs() if machine.images else None

        def files() -> Iterable[tuple[str, bytes]]:
            return files_of(programs(built, machine, userland))

        added = {own: own_kernel.read(own) for own in dict.fromkeys(self._of(side) for side in SIDES)}
        roots = _roots(registry, built, machine, userland, added)

        def start(side: Side, ends: tuple[LinkEnd, LinkEnd]) -> E500Gateway:
            own = self._of(side)
            booted = replace(built, kernel=own.kernel or built.kernel)
            words = partial(
                command, booted, roots[own], machine, ends, virtual_guest.seed_of(machine.chance, side),
                more=virtual_guest.profile(profile, side),
            )  # fmt: skip
            guest = virtual_guest.start(registry, side, words, ends, logs)
            gateway = E500Gateway(side, guest, logs / f"{side}.log", machine.coalescing)
            gateway.profile = profile_files.of(profile, side, files, shell=bool(machine.images))
            return gateway

        bed = self._pairs.build(
            registry,
            placement,
            start,
            machine.ns_per_instruction,
            facts
            | facts_of(built, self._errors)
            | images.identified(PROGRAMS, userland, machine.images)
            | by_gateway({side: added[own].facts for side, own in self._own.items()}),
            single=single,
            line_rate_bps=line_rate_bps,
        )
        bed.facts[EMULATOR] = emulator_of(built)
        bed.chance = machine.chance
        bed.profiled = profile is not None
        bed.held = images.held(userland, machine.images)
        return bed

    def _of(self, side: Side) -> Own:
        return self._own.get(side, Own())


def _roots(
    registry: Registry,
    built: Built,
    machine: Machine,
    userland: Userland | None,
    added: Mapping[Own, Additions],
) -> dict[Own, Path]:
    """Return the file with the root of each kind of gateway: the built file if nothing is added to any."""
    if not machine.images and not any(each.root for each in added.values()):
        return dict.fromkeys(added, built.initramfs)
    folder = registry.directory("boot")
    roots: dict[Own, Path] = {}
    for own, additions in added.items():
        roots[own] = folder / f"initramfs-{len(roots)}.cpio"
        roots[own].write_bytes(initramfs(built, machine, userland, additions.root))
    return roots
