# SPDX-License-Identifier: Apache-2.0
"""Gateways as emulated PowerQUICC boards in virtual time (see `virtual.virtual_pair`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from espbench.platforms.addressing import PairAddressing
from espbench.platforms.base import Placement, Side
from espbench.platforms.e500 import own_kernel
from espbench.platforms.e500.e500_gateway import E500Gateway
from espbench.platforms.e500.e500_guest import Coalescing, Machine, command, initramfs, programs
from espbench.platforms.link_errors import Errors
from espbench.platforms.virtual import images, profile_files, virtual_guest
from espbench.platforms.virtual.parts import own_files
from espbench.platforms.virtual.parts.cpio import files_of
from espbench.platforms.virtual.parts.own_files import OwnFiles
from espbench.platforms.virtual.virtual_guest import Built, LinkEnd, Userland
from espbench.platforms.virtual.virtual_pair import VirtualPairs, VirtualTestbed, facts_of
from espbench.this_machine.registry import Registry

__all__ = ["Coalescing", "Machine", "QemuE500Platform"]

# The name in the Security Context of the part with the boards' programs.
PROGRAMS = "e500-strongswan"


class QemuE500Platform:
    """Builds test beds of boards. traffic returns the program that makes links, parts the boards' parts.

    programs returns the programs that some boards run besides their init. errors: the errors on links; None: no errors.
    own: the user's kernels, by gateway.
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
        own: Mapping[Side, Path] | None = None,
    ) -> None:
        self._errors = errors or Errors()
        self._pairs = VirtualPairs(self.name, dut, addressing, traffic, self._errors)
        self._parts = parts
        self._programs = programs
        self._own = own or {}

    def examine(self) -> None:
        """Raise UsageError if a board cannot boot the user's kernel."""
        for kernel in self._own.values():
            own_kernel.identified(kernel)

    def own_files(self) -> list[OwnFiles]:
        """Return the user's kernels, packed for another machine, each path once."""
        kernels = dict.fromkeys(self._own.values())
        return [own_files.packed(str(kernel), kernel.name, {"": kernel.read_bytes()}) for kernel in kernels]

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

        root = built.initramfs
        if machine.images:
            root = registry.directory("boot") / "initramfs.cpio"
            root.write_bytes(initramfs(built, machine, userland))

        def start(side: Side, ends: tuple[LinkEnd, LinkEnd]) -> E500Gateway:
            booted = replace(built, kernel=self._own.get(side, built.kernel))
            words = partial(
                command, booted, root, machine, ends, virtual_guest.seed_of(machine.chance, side),
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
            | self._kernels(),
            single=single,
            line_rate_bps=line_rate_bps,
        )
        bed.chance = machine.chance
        bed.profiled = profile is not None
        bed.held = images.held(userland, machine.images)
        return bed

    def _kernels(self) -> dict[str, Any]:
        """Return the facts that identify the user's kernels, by gateway; empty if all gateways boot espbench's."""
        kernels = {side: own_kernel.identified(kernel) for side, kernel in self._own.items()}
        return {"kernel": kernels} if kernels else {}
