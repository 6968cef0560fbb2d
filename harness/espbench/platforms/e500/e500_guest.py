# SPDX-License-Identifier: Apache-2.0
"""One emulated board: what is in it, and QEMU's command line for it."""

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

# The seed in the device tree is all the chance that there is: a program that wants random numbers shall not wait, for
# seconds of virtual time, until the kernel has found more. Guests without programs want none.
_SEEDED = "random.trust_bootloader=on"
_KERNEL_WORDS = ("console=ttyS0", "control=ttyS1", "quiet", "panic=-1", "cryptomgr.notests=1")


@dataclass(frozen=True)
class Coalescing:
    """The limits at which both ports interrupt: frames, or µs since the first one; 0 and 0: each frame interrupts."""

    rx_frames: int = 0
    rx_us: int = 0
    tx_frames: int = 0
    tx_us: int = 0


@dataclass(frozen=True)
class Machine:
    """Says what is emulated: costs is the SEC's as its model takes them; crypto empty: the kernel's own default.

    bus_bytes_per_second: what the memory's bus moves for devices; None: it takes no time.
    images: what it runs beside its init, by the names of the archives (virtual/images.py), in the order of laying.
    chance: what its random numbers are drawn from.
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
    """Return the word of the kernel's command line that asks for a behaviour; the guest panics if it cannot be had."""
    return f"espbench.crypto={crypto}"


def initramfs(built: Built, machine: Machine, userland: Userland | None) -> bytes:
    """Return the guest's root: /init, and the programs that are asked for. UsageError if its memory has no room."""
    whole = joined(built.initramfs.read_bytes(), *images.archives(userland, machine.images))
    images.need_room(whole, machine.memory_mb, machine.images)
    return whole


def programs(built: Built, machine: Machine, userland: Userland | None) -> list[bytes]:
    """Return the archives of its programs, none compressed: that of its init, and those that are asked for."""
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
