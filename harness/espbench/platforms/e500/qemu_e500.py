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
from espbench.platforms.virtual.parts.cpio import files_of
from espbench.platforms.virtual.virtual_guest import Built, LinkEnd, Userland
from espbench.platforms.virtual.virtual_pair import VirtualPairs, VirtualTestbed, facts_of
from espbench.this_machine.registry import Registry

__all__ = ["Coalescing", "Machine", "QemuE500Platform"]

# The name in the Security Context of the part that programs are from.
PROGRAMS = "e500-strongswan"


class QemuE500Platform:
    """Builds pairs of one board. traffic finds the program that makes links, parts what a board is made of.

    programs: finds those that some boards run beside their init. errors: what goes wrong on links; None: nothing. own:
    the kernels that are the user's, by gateway.
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
        """Start both boards; they wait for the generator. single: Home alone, whose eth1 is at the east link.

        MachineLacks when they, or their programs, are not built, UsageError where the memory has no room;
        EspbenchError quotes QEMU when it ends. What was made until then stays registered: leaving the registry
        undoes it. profile: where instructions are counted into, without the gateway's name. facts: of the board,
        for the Security Context.
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
        """Return what identifies the user's kernels, by gateway; nothing where all boot espbench's."""
        kernels = {side: own_kernel.identified(kernel) for side, kernel in self._own.items()}
        return {"kernel": kernels} if kernels else {}
