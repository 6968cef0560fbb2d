# SPDX-License-Identifier: Apache-2.0
"""Gateways as x86-64 machines with Debian's own kernel, in virtual time (see `virtual.virtual_pair`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from espbench.platforms.addressing import PairAddressing
from espbench.platforms.base import EMULATOR, SIDES, Placement, Side
from espbench.platforms.link_errors import Errors
from espbench.platforms.virtual import images, profile_files, virtual_guest
from espbench.platforms.virtual.own.additions import Own, by_gateway
from espbench.platforms.virtual.own.own_files import OwnFiles
from espbench.platforms.virtual.parts.cpio import files_of
from espbench.platforms.virtual.virtual_guest import Built, LinkEnd, emulator_of
from espbench.platforms.virtual.virtual_pair import VirtualPairs, VirtualTestbed, facts_of
from espbench.platforms.x86 import own_daemon, own_kernel
from espbench.platforms.x86.own_daemon import OwnBuild, OwnDaemon
from espbench.platforms.x86.own_kernel import Kernel
from espbench.platforms.x86.x86_gateway import X86Gateway
from espbench.platforms.x86.x86_guest import Machine, command, initramfs, libraries_of_host, programs
from espbench.this_machine.registry import Registry

__all__ = ["Machine", "OwnBuild", "OwnDaemon", "QemuX86Platform"]


class QemuX86Platform:
    """Builds test beds of x86-64 machines. traffic returns the program that makes links, parts the guests' parts.

    errors: the errors on links; None: no errors. own: the user's kernels, modules and overlays, by gateway.
    """

    name = "qemu_x86"

    def __init__(
        self,
        dut: str,
        addressing: PairAddressing,
        traffic: Callable[[], Path],
        parts: Callable[[], Built],
        errors: Errors | None = None,
        own: Mapping[Side, Own] | None = None,
    ) -> None:
        self._errors = errors or Errors()
        self._pairs = VirtualPairs(self.name, dut, addressing, traffic, self._errors)
        self._parts = parts
        self._own = own or {}
        self._boots: dict[Machine, dict[Own, tuple[Kernel, Path]]] = {}

    def examine(self) -> None:
        """Raise UsageError if a gateway cannot use the user's kernels, modules or overlays."""
        built = self._parts()
        for own in dict.fromkeys(self._own.values()):
            own_kernel.read(own, built)

    def own_files(self) -> list[OwnFiles]:
        """Return the user's kernels, modules and overlays, packed for another machine, each path once."""
        files = {
            each.path: each for own in dict.fromkeys(self._own.values()) for each in own_kernel.files_of(own)
        }
        return [*files.values()]

    def pack(self, own: OwnBuild) -> OwnDaemon:
        """Return the archive of the user's daemon. Raise UsageError if one of its libraries does not exist."""
        return own_daemon.packed(own, self._parts())

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
        """Return a test bed with two machines, which wait for the generator.

        single: there is only Home, whose eth1 is at the east link. profile: the path of the files with counts of
        instructions, without the gateway's name; None: they are not counted. facts: those of the machine, for the
        Security Context. Raise MachineLacks if the parts are not built, UsageError if the memory is too small,
        EspbenchError, which quotes QEMU, if QEMU ends. What was made until then stays registered: leaving the
        registry's context undoes it.
        """
        built = self._parts()
        if machine not in self._boots:
            self._boots[machine] = _boots(
                registry.directory("boot"), built, machine, [self._own.get(side, Own()) for side in SIDES]
            )
        boots = self._boots[machine]

        def files() -> Iterable[tuple[str, bytes]]:
            return files_of(programs(built, machine))

        def start(side: Side, ends: tuple[LinkEnd, LinkEnd]) -> X86Gateway:
            kernel, root = boots[self._own.get(side, Own())]
            words = partial(
                command, built, kernel, root, machine, ends, virtual_guest.seed_of(machine.chance, side),
                more=virtual_guest.profile(profile, side),
            )  # fmt: skip
            guest = virtual_guest.start(registry, side, words, ends, logs)
            gateway = X86Gateway(side, guest, logs / f"{side}.log", machine, own_kernel=bool(kernel.data))
            gateway.profile = profile_files.of(profile, side, files, shell=bool(machine.images))
            return gateway

        bed = self._pairs.build(
            registry,
            placement,
            start,
            machine.ns_per_instruction,
            facts
            | facts_of(built, self._errors)
            | images.identified("x86-userland", built.userland, machine.images)
            | libraries_of_host(machine)
            | self._facts(boots),
            single=single,
            line_rate_bps=line_rate_bps,
            alike=None if profile else (machine, single, line_rate_bps),
        )
        bed.facts[EMULATOR] = emulator_of(built)
        bed.chance, bed.profiled = machine.chance, profile is not None
        of_user = {own.daemon: own.held for own in machine.own}
        bed.held = images.held(built.userland, machine.images, of_user) | of_user
        return bed

    def _facts(self, boots: Mapping[Own, tuple[Kernel, Path]]) -> dict[str, dict[Side, str]]:
        """Return the facts that identify the user's files (`kernel`, `modules`, `overlay`), each by gateway."""
        facts = by_gateway({side: boots[own][0].facts for side, own in self._own.items()})
        if self._own and all(own.kernel for own in self._own.values()):
            facts["x86-kernel"] = dict.fromkeys(self._own, "the profile's, not Debian's")
        return facts


def _boots(
    folder: Path, built: Built, machine: Machine, owns: Sequence[Own]
) -> dict[Own, tuple[Kernel, Path]]:
    """Write the files that the gateways boot into this folder, and return (kernel, initramfs) by the profile's paths.

    Gateways with the same kernel and modules share the files.
    """
    by_own: dict[Own, tuple[Kernel, Path]] = {}
    for own in dict.fromkeys(owns):
        kernel, root = own_kernel.read(own, built), folder / f"initramfs-{len(by_own)}.cpio"
        root.write_bytes(initramfs(built, machine, kernel))
        if kernel.image is None:
            image = folder / f"vmlinux-{len(by_own)}"
            image.write_bytes(kernel.data)
            kernel = replace(kernel, image=image)
        by_own[own] = kernel, root
    return by_own
