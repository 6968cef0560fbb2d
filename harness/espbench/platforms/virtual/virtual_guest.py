# SPDX-License-Identifier: Apache-2.0
"""Starts a guest in virtual time: a QEMU with two Ethernet ports on links, a control line, and a console in a log."""

from __future__ import annotations

import mmap
import struct
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from espbench.errors import EspbenchError
from espbench.platforms.chance import Chance
from espbench.platforms.gateway import LAST_WORDS_BYTES
from espbench.this_machine.registry import Registry

PANIC = "Kernel panic"
# QEMU prints this warning about each hub. It has no meaning here: the other end of the hub is a link.
_NO_NEWS = "is not connected to host network"
# The number of polls until QEMU must have attached its links, and the time between two polls, s: QEMU loads a kernel of
# a few MB first. Polls are counted instead of time, so that a time in which the whole host stands still does not count.
_LOOKS, _POLL_S = 6000, 0.01
# Offsets in a link's file (harness/emulator/LINK.md): the area of each end, the state in this area, and its value for
# an end that is in use.
_END_AT, _STATE_AT, _ATTACHED = (128, 256), 84, 1


@dataclass(frozen=True)
class Userland:
    """The programs that a guest may run besides its init: a folder of archives, and the SHA-256 of each file there."""

    folder: Path
    products: Mapping[str, str]


@dataclass(frozen=True)
class Built:
    """The parts of a guest, as parts.build makes them; manifests, by the part's name, of those that every guest has.

    qemu_made_of: the key of QEMU's inputs.
    """

    kernel: Path
    initramfs: Path
    qemu: Path
    manifests: Mapping[str, Mapping[str, Any]]
    userland: Userland | None = None
    qemu_made_of: str = ""


def parts_of(built: Built) -> dict[str, str]:
    """Return what identifies each part of a guest: the digests of its files, but of QEMU the key of its inputs.

    QEMU is compiled on this machine: another compiler makes other bytes of the same program (decision 0064).
    """
    return {
        part: ", ".join(
            f"{name} made of {built.qemu_made_of}" if name == built.qemu.name else f"{name} {_shown(digest)}"
            for name, digest in manifest["products"].items()
        )
        for part, manifest in built.manifests.items()
    }


def emulator_of(built: Built) -> dict[str, str]:
    """Return the digest of QEMU's program as this machine compiled it: it is recorded, but no figure depends on it."""
    return {
        name: _shown(digest)
        for manifest in built.manifests.values()
        for name, digest in manifest["products"].items()
        if name == built.qemu.name
    }


def _shown(digest: str) -> str:
    return f"sha256 {digest[:16]}"


@dataclass(frozen=True)
class LinkEnd:
    """The end of a link at a guest's port: the link's file, the number of the end (0 or 1), and the port's MAC."""

    path: Path
    end: int
    mac: str


@dataclass
class Guest:
    """A running guest. Its process forks copies of itself, which end with it.

    The guests of all cases of a run write into the same two logs (console, QEMU's output). began: the positions in
    these logs, bytes, at which this guest's part begins.
    """

    name: str
    process: subprocess.Popen[bytes]
    console: Path
    log: Path
    began: tuple[int, int] = (0, 0)

    def alive(self) -> bool:
        """Return whether the guest's process runs, and neither the guest nor a copy of it has panicked."""
        return self.process.poll() is None and PANIC not in _since(self.console, self.began[0])

    def from_now(self) -> Guest:
        """Return the same guest, whose part of the logs begins here."""
        return replace(self, began=(_size(self.console), _size(self.log)))

    def last_words(self) -> str:
        """Return the end of the guest's console and of QEMU's output."""
        console = _since(self.console, self.began[0])[-LAST_WORDS_BYTES:]
        said = [line for line in _since(self.log, self.began[1]).splitlines() if _NO_NEWS not in line]
        return "\n".join(text for text in (console.strip(), *said[-5:]) if text)


def start(
    registry: Registry,
    name: str,
    command: Callable[[Path], list[str]],
    ports: Sequence[LinkEnd],
    logs: Path,
) -> Guest:
    """Start a guest; it boots when the other ends of its links let virtual time pass.

    command returns QEMU's command line for the console's file. Raise EspbenchError, with QEMU's output, if QEMU ends
    or does not attach its links.
    """
    console, log = logs / f"{name}-console.log", logs / f"{name}-qemu.log"
    began = _size(console), _size(log)
    with log.open("ab") as errors:
        process = registry.spawn(
            command(console),
            f"qemu {name}",
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=errors,
            grace_s=0,
        )
    guest = Guest(name, process, console, log, began)
    looks = 0
    while not all(_attached(port) for port in ports):
        looks += 1
        if process.poll() is not None or looks > _LOOKS:
            said = guest.last_words() or f"exit code {process.poll()}"
            raise EspbenchError(f"gateway {name}: QEMU did not come to its links: {said}")
        time.sleep(_POLL_S)
    return guest


def clock(ns_per_instruction: Fraction, seed: int) -> list[str]:
    """Return QEMU's options that make a guest independent of the host's time and random numbers (LINK.md)."""
    ns = ns_per_instruction
    rate = "" if ns == 1 else f",ns={ns.numerator}/{ns.denominator}"
    return ["-icount", f"shift=0,sleep=off{rate}", "-seed", str(seed), "-rtc", "base=2026-01-01,clock=vm"]


def seed_of(chance: Chance, side: str) -> int:
    """Return the seed of a gateway's guest. Each gateway has its own, so that the two have different keys and cookies.

    Only for the default chance both have the same seed, because they had it before plans had seeds.
    """
    return chance.number(f"guest {side}", 1)


def profile(path: Path | None, side: str) -> list[str]:
    """Return QEMU's options to count a guest's instructions by address (harness/emulator/qemu/profile.c).

    Without a path there are none.
    """
    return ["-device", f"espbench-profile,path={quoted(path)}-{side}.txt"] if path else []


def lines(console: Path) -> list[str]:
    """Return QEMU's options for the two serial lines: the kernel's console, into a log, and the control line."""
    return [
        "-chardev", f"file,id=console,path={quoted(console)},append=on", "-serial", "chardev:console",
        "-chardev", "esplink,id=control", "-serial", "chardev:control",
    ]  # fmt: skip


def network(ports: Sequence[LinkEnd], device: str) -> list[str]:
    """Return QEMU's options for the ports, each a device of this kind; the control line uses the first port's link."""
    words = []
    for number, port in enumerate(ports):
        steering = ",console=control" if number == 0 else ""
        words += [
            "-netdev", f"hubport,id=port{number},hubid={number}",
            "-device", f"{device},netdev=port{number},mac={port.mac}",
            "-netdev", f"hubport,id=link{number},hubid={number}",
            "-device", f"esplink,netdev=link{number},path={quoted(port.path)},end={port.end}{steering}",
        ]  # fmt: skip
    return words


def quoted(path: Path) -> str:
    """Return a path as the value of an option: QEMU splits options at commas, so each comma is doubled."""
    return str(path.absolute()).replace(",", ",,")


def _size(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


def _since(log: Path, began: int) -> str:
    if not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(began)
        return file.read().decode(errors="replace")


def _attached(port: LinkEnd) -> bool:
    """Return whether a program is attached to this end of the link."""
    with port.path.open("rb") as file, mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ) as memory:
        state: int = struct.unpack_from("=I", memory, _END_AT[port.end] + _STATE_AT)[0]
    return state == _ATTACHED
