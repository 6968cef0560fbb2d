# SPDX-License-Identifier: Apache-2.0
"""Defines an emulated board: its hardware, the files that its kernel finds at boot, and QEMU's command line."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from espbench.platforms.chance import Chance
from espbench.platforms.virtual import images, virtual_guest
from espbench.platforms.virtual.parts.cpio import joined
from espbench.platforms.virtual.virtual_guest import Built, LinkEnd, Userland

# The kernel must trust the seed in the device tree, the guest's only source of random numbers. Otherwise a program that
# needs random numbers would wait seconds of virtual time for more entropy. Guests without programs need none.
_SEEDED = "random.trust_bootloader=on"
_KERNEL_WORDS = ("console=ttyS0", "control=ttyS1", "quiet", "panic=-1", "cryptomgr.notests=1")


@dataclass(frozen=True)
class Coalescing:
    """The limits at which both ports interrupt: a number of frames, or µs since the first frame; 0, 0: at each
    frame.
    """

    rx_frames: int = 0
    rx_us: int = 0
    tx_frames: int = 0
    tx_us: int = 0


@dataclass(frozen=True)
class Machine:
    """The emulated board.

    sec_costs is the option `costs` of the SEC's model; crypto: how ESP uses the SEC; empty: the kernel's default.
    bus_bytes_per_second: the rate of devices' transfers on the memory's bus; None: transfers take no time. images: the
    archives of programs besides its init (virtual/images.py), by name, in the order of unpacking. chance: the seed of
    its random numbers.
    """

    memory_mb: int
    ns_per_instruction: Fraction
    sec_version: str
    sec_clock_hz: int
    sec_costs: str
    crypto: str = ""
    coalescing: Coalescing = Coalescing()
    sec_at_once: int = 1
    bus_bytes_per_second: int | None = None
    images: tuple[str, ...] = ()
    chance: Chance = Chance()  # noqa: RUF009  (frozen)


def kernel_option(crypto: str) -> str:
    """Return the kernel's command-line option for a use of the SEC; the guest panics if it is not possible."""
    return f"espbench.crypto={crypto}"


def initramfs(built: Built, machine: Machine, userland: Userland | None, added: bytes = b"") -> bytes:
    """Return the guest's root: /init, the machine's programs, and the user's additions.

    Raise UsageError if its memory is too small.
    """
    whole = joined(built.initramfs.read_bytes(), *images.archives(userland, machine.images), added)
    images.need_room(whole, machine.memory_mb, machine.images)
    return whole


def programs(built: Built, machine: Machine, userland: Userland | None) -> list[bytes]:
    """Return the uncompressed archives of a machine's programs: that of its init, and those of its images."""
    return [gzip.decompress(built.initramfs.read_bytes()), *images.archives(userland, machine.images)]


def command(
    built: Built,
    root: Path,
    machine: Machine,
    ports: Sequence[LinkEnd],
    seed: int,
    console: Path,
    more: Sequence[str] = (),
) -> list[str]:
    """Return QEMU's command line; root is the file of initramfs(), seed is the guest's own.

    more are words that it does not see.
    """
    kernel_words = [*_KERNEL_WORDS]
    if machine.images:
        kernel_words.append(_SEEDED)
    if machine.crypto:
        kernel_words.append(kernel_option(machine.crypto))
    bus = machine.bus_bytes_per_second
    return [
        *_board(built, root, machine.memory_mb, kernel_words), *virtual_guest.lines(console),
        *virtual_guest.clock(machine.ns_per_instruction, seed),
        "-device",
        f"fsl-sec,version={machine.sec_version},clock={machine.sec_clock_hz},costs={machine.sec_costs}"
        + (f",at-once={machine.sec_at_once}" if machine.sec_at_once > 1 else ""),
        *(() if bus is None else ("-device", f"espbench-bus,bytes-per-second={bus}")),
        "-device", "espbench-idle", *virtual_guest.network(ports, "eTSEC"), *more,
    ]  # fmt: skip


def alone(built: Built, root: Path, memory_mb: int, ns_per_instruction: Fraction, console: Path) -> list[str]:
    """Return QEMU's command line for a board without ports and engine, whose answers come to QEMU's output.

    It answers the requests in its root (harness/emulator/init/PROTOCOL.md); the kernel's console is a file.
    """
    return [
        *_board(built, root, memory_mb, _KERNEL_WORDS),
        "-serial", f"file:{console}", "-serial", "stdio",
        *virtual_guest.clock(ns_per_instruction, 1), "-device", "espbench-idle",
    ]  # fmt: skip


def _board(built: Built, root: Path, memory_mb: int, kernel_words: Sequence[str]) -> list[str]:
    return [
        str(built.qemu), "-M", "ppce500", "-cpu", "e500v2_v30", "-m", str(memory_mb), "-nodefaults",
        "-display", "none", "-no-reboot", "-kernel", str(built.kernel), "-initrd", str(root),
        "-append", " ".join(kernel_words),
    ]  # fmt: skip
