# SPDX-License-Identifier: Apache-2.0
"""One emulated board: QEMU with two Ethernet ports on links in virtual time, a SEC, and a console in a log."""

from __future__ import annotations

import mmap
import struct
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from espbench.e500.build import Built
from espbench.errors import EspbenchError
from espbench.platforms.gateway import tail
from espbench.platforms.registry import Registry

PANIC = "Kernel panic"
# Until QEMU has opened its links: it loads a kernel of a few MB first.
ATTACH_TIMEOUT_S = 60.0
_POLL_S = 0.01
# dut-profiles/e500/LINK.md: what an end tells, and where in that its state is.
_END_AT, _STATE_AT, _ATTACHED = (128, 256), 84, 1


@dataclass(frozen=True)
class LinkEnd:
    """The end of a link that a port of a guest has."""

    path: Path
    end: int
    mac: str


@dataclass(frozen=True)
class Machine:
    """What is emulated: costs is the SEC's as its model takes them; crypto empty: the kernel's own default."""

    memory_mb: int
    ns_per_instruction: Fraction
    sec_version: str
    sec_clock_hz: int
    sec_costs: str
    crypto: str = ""


@dataclass
class Guest:
    """A running board. Its process forks copies of itself, which end with it."""

    name: str
    process: subprocess.Popen[bytes]
    console: Path
    log: Path
    console_began: int = 0

    def alive(self) -> bool:
        """Neither the board itself nor a copy of it has ended or panicked."""
        return self.process.poll() is None and PANIC not in self._said()

    def last_words(self) -> str:
        """The end of its console, and of what QEMU said."""
        return "\n".join(text for text in (self._said()[-2000:].strip(), tail(self.log).strip()) if text)

    def _said(self) -> str:
        """What its console has had since it was started: a run appends the guests of its cases."""
        if not self.console.exists():
            return ""
        with self.console.open("rb") as console:
            console.seek(self.console_began)
            return console.read().decode(errors="replace")


def start(
    registry: Registry,
    name: str,
    built: Built,
    machine: Machine,
    ports: Sequence[LinkEnd],
    logs: Path,
) -> Guest:
    """Start a board; it boots once the other ends of its links let virtual time pass.

    ports: eth0, eth1 of the guest; over the first one's link its control line goes. EspbenchError, with what
    QEMU said, when it ends at once.
    """
    console, log = logs / f"{name}-console.log", logs / f"{name}-qemu.log"
    began = console.stat().st_size if console.exists() else 0
    with log.open("ab") as errors:
        process = registry.spawn(
            command(built, machine, ports, console), f"qemu {name}", stdin=subprocess.DEVNULL, stdout=errors,
            stderr=errors, grace_s=0,
        )  # fmt: skip
    guest = Guest(name, process, console, log, began)
    deadline = time.monotonic() + ATTACH_TIMEOUT_S
    while not all(_attached(port) for port in ports):
        if process.poll() is not None or time.monotonic() > deadline:
            said = tail(log).strip() or f"exit code {process.poll()}"
            raise EspbenchError(f"gateway {name}: QEMU did not come to its links: {said}")
        time.sleep(_POLL_S)
    return guest


def command(built: Built, machine: Machine, ports: Sequence[LinkEnd], console: Path) -> list[str]:
    """QEMU's command line. Whatever could tell the guest the host's time or chance is fixed (LINK.md)."""
    kernel_words = ["console=ttyS0", "control=ttyS1", "quiet", "panic=-1", "cryptomgr.notests=1"]
    if machine.crypto:
        kernel_words.append(f"espbench.crypto={machine.crypto}")
    ns = machine.ns_per_instruction
    rate = "" if ns == 1 else f",ns={ns.numerator}/{ns.denominator}"
    networks = []
    for number, port in enumerate(ports):
        steering = ",console=control" if number == 0 else ""
        networks += [
            "-netdev", f"hubport,id=port{number},hubid={number}",
            "-device", f"eTSEC,netdev=port{number},mac={port.mac}",
            "-netdev", f"hubport,id=link{number},hubid={number}",
            "-device", f"esplink,netdev=link{number},path={_quoted(port.path)},end={port.end}{steering}",
        ]  # fmt: skip
    return [
        str(built.qemu), "-M", "ppce500", "-cpu", "e500v2_v30", "-m", str(machine.memory_mb), "-nodefaults",
        "-display", "none", "-no-reboot", "-kernel", str(built.kernel), "-initrd", str(built.initramfs),
        "-append", " ".join(kernel_words),
        "-chardev", f"file,id=console,path={_quoted(console)},append=on", "-serial", "chardev:console",
        "-chardev", "esplink,id=control", "-serial", "chardev:control",
        "-icount", f"shift=0,sleep=off{rate}", "-seed", "1", "-rtc", "base=2026-01-01,clock=vm",
        "-device",
        f"fsl-sec,version={machine.sec_version},clock={machine.sec_clock_hz},costs={machine.sec_costs}",
        "-device", "espbench-idle", *networks,
    ]  # fmt: skip


def _quoted(path: Path) -> str:
    """QEMU splits options at commas."""
    return str(path.absolute()).replace(",", ",,")


def _attached(port: LinkEnd) -> bool:
    """Whether somebody is at this end of the link."""
    with port.path.open("rb") as file, mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ) as memory:
        state: int = struct.unpack_from("=I", memory, _END_AT[port.end] + _STATE_AT)[0]
    return state == _ATTACHED
