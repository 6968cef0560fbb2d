# SPDX-License-Identifier: Apache-2.0
"""Defines an x86-64 machine: its hardware, the files that its kernel finds at boot, and QEMU's command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from espbench.platforms.chance import Chance
from espbench.platforms.virtual import images, virtual_guest
from espbench.platforms.virtual.own import additions
from espbench.platforms.virtual.parts.cpio import joined
from espbench.platforms.virtual.virtual_guest import Built, LinkEnd
from espbench.platforms.x86.own_daemon import OwnDaemon
from espbench.platforms.x86.own_kernel import PORTS, Kernel
from espbench.terms import LIBRARIES_OF_HOST

# The kernel trusts the TSC, is not relocated, and does not test timers or ciphers at boot.
_KERNEL_WORDS = (
    "console=ttyS0", "control=ttyS1", "quiet", "panic=-1", "tsc=reliable", "no_timer_check", "nokaslr",
    "random.trust_cpu=on", "cryptomgr.notests=1",
)  # fmt: skip
_BOARD = "q35,smm=off,sata=off,smbus=off,vmport=off,hpet=off,usb=off"
_DRIVER = f"{PORTS}.ko"
# Features of the CPU's model that this QEMU does not have; it would warn about each.
_NOT_EMULATED = "-pcid,-x2apic,-tsc-deadline,-invpcid"
# The module of TUN devices, and the image whose daemon may do ESP itself over one.
_TUN, _TUN_USER = "tun.ko", "strongswan"
# The highest CPUID leaf: the one with the clocks' rates (harness/emulator/qemu/x86).
_CPUID_LEVEL = 0x15


@dataclass(frozen=True)
class Machine:
    """The emulated machine.

    cpu is one of QEMU's named models, with added and removed features. Rings are in frames. interrupts is the driver's
    InterruptThrottleRate: 3 is adaptive, from 100 on it is the greatest number of interrupts per second. images: the
    archives of programs besides its init (parts/userland.py), by name, in the order of unpacking; own: those of their
    daemons that the user built. chance: the seed of its random numbers.
    """

    memory_mb: int
    ns_per_instruction: Fraction
    cpu: str
    receive_ring: int
    transmit_ring: int
    interrupts: int
    images: tuple[str, ...] = ()
    own: tuple[OwnDaemon, ...] = ()
    chance: Chance = Chance()  # noqa: RUF009  (frozen)


def initramfs(built: Built, machine: Machine, kernel: Kernel) -> bytes:
    """Return the guest's root: /init, the kernel's modules with the order of loading, the machine's programs, and last
    the user's overlay.

    Raise UsageError if the machine has too little memory for it.
    """
    needed_here = [file for file in kernel.order if file != _TUN or _TUN_USER in machine.images]
    order = additions.order_of([_line(file, machine, kernel) for file in needed_here])
    init, *others = programs(built, machine)
    whole = joined(init, kernel.modules, order, *others, kernel.overlay)
    images.need_room(whole, machine.memory_mb, machine.images)
    return whole


def programs(built: Built, machine: Machine) -> list[bytes]:
    """Return the archives of a machine's programs: that of its init, and those of its images."""
    own = {daemon.daemon: daemon.data for daemon in machine.own}
    return [built.initramfs.read_bytes(), *images.archives(built.userland, machine.images, own)]


def libraries_of_host(machine: Machine) -> dict[str, str]:
    """Return the libraries of this machine that the user's daemons need, as a fact about the guest; empty if none.

    The stack reports the daemons themselves.
    """
    of_host = ", ".join(daemon.libraries for daemon in machine.own if daemon.libraries)
    return {LIBRARIES_OF_HOST: of_host} if of_host else {}


def command(
    built: Built,
    kernel: Kernel,
    root: Path,
    machine: Machine,
    ports: Sequence[LinkEnd],
    seed: int,
    console: Path,
    more: Sequence[str] = (),
) -> list[str]:
    """Return QEMU's command line; kernel.image must be a file, and root is the file with the result of initramfs()."""
    # A built-in driver gets its parameters on the kernel's command line, a module when it is loaded.
    words = [
        *_KERNEL_WORDS,
        *([] if _DRIVER in kernel.order else [f"{PORTS}.{_parameters(_DRIVER, machine)}"]),
    ]
    return [
        str(built.qemu), "-L", str(built.qemu.parent), "-M", _BOARD, "-cpu",
        f"{machine.cpu},level={_CPUID_LEVEL},{_NOT_EMULATED}", "-smp", "1",
        "-m", str(machine.memory_mb), "-nodefaults", "-display", "none", "-vga", "none", "-no-reboot",
        "-global", "apic-common.vapic=off", "-kernel", str(kernel.image), "-initrd", str(root),
        "-append", " ".join(words), *virtual_guest.lines(console),
        *virtual_guest.clock(machine.ns_per_instruction, seed), "-device", "espbench-idle-port",
        "-device", "espbench-power-port", *virtual_guest.network(ports, "e1000e,romfile="), *more,
    ]  # fmt: skip


def _line(file: str, machine: Machine, kernel: Kernel) -> str:
    """Return the line for a module in the order of loading."""
    mark = additions.OPTIONAL if file in kernel.optional else ""
    return f"{mark}{file} {_parameters(file, machine)}".strip()


def _parameters(file: str, machine: Machine) -> str:
    """Return the parameters with which a module is loaded, equal for both ports; empty if it has none."""
    return f"InterruptThrottleRate={machine.interrupts},{machine.interrupts}" if file == _DRIVER else ""
