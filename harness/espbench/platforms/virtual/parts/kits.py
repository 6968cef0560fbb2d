# SPDX-License-Identifier: Apache-2.0
"""Defines the kinds of guests that are built: PowerQUICC boards and x86-64 machines, with additional programs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from espbench.platforms.virtual.parts import (
    guest,
    kernel,
    packages,
    qemu,
    recipe,
    strongswan,
    tools,
    userland,
    x86_kernel,
)
from espbench.platforms.virtual.parts.build import GuestKit, Kit, ProgramsKit
from espbench.platforms.virtual.parts.recipe import (
    E500_STRONGSWAN,
    GUEST,
    KERNEL,
    QEMU,
    X86_GUEST,
    X86_KERNEL,
    X86_QEMU,
    X86_USERLAND,
)
from espbench.platforms.virtual.parts.tools import CROSS, Runner


def _kernel(work: Path, runner: Runner) -> Mapping[str, Path]:
    return kernel.build(work, recipe.used()["linux"], runner)


def _qemu(work: Path, runner: Runner) -> Mapping[str, Path]:
    return qemu.build(work, recipe.used()["qemu"], runner, qemu.PPCE500)


def _x86_qemu(work: Path, runner: Runner) -> Mapping[str, Path]:
    """Return QEMU for a PC, and the two firmware files with which it starts a kernel."""
    made = dict(qemu.build(work, recipe.used()["qemu"], runner, qemu.X86))
    firmware = work / "firmware"
    for name, file in (("qemu-data", "qemu/pvh.bin"), ("seabios", "seabios/bios-256k.bin")):
        packages.unpack(recipe.used_packages()[name], firmware, runner)
        made[Path(file).name] = firmware / "usr/share" / file
    return made


E500_KIT = GuestKit(
    name="e500",
    built="the e500 guests",
    guest=GUEST,
    kernel=KERNEL,
    qemu=QEMU,
    steps={GUEST.name: guest.build, KERNEL.name: _kernel, QEMU.name: _qemu},
)
E500_STRONGSWAN_KIT = ProgramsKit(
    name="e500-strongswan",
    built="strongSwan's programs for emulated boards",
    programs=E500_STRONGSWAN,
    steps={E500_STRONGSWAN.name: strongswan.build},
    without=("bc", "ninja", "meson", *tools.LIBRARIES),
)
X86_KIT = GuestKit(
    name="x86",
    built="the x86 guests",
    guest=X86_GUEST,
    kernel=X86_KERNEL,
    qemu=X86_QEMU,
    userland=X86_USERLAND,
    steps={
        X86_GUEST.name: guest.build_x86,
        X86_KERNEL.name: x86_kernel.build,
        X86_USERLAND.name: userland.build,
        X86_QEMU.name: _x86_qemu,
    },
    without=(
        f"{CROSS}gcc", "/usr/powerpc-linux-gnu/include/stdio.h", "flex", "bison", "bc", "nettle", "gmp",
    ),
    processor="x86_64",
)  # fmt: skip
KITS: tuple[Kit[Any], ...] = (E500_KIT, X86_KIT, E500_STRONGSWAN_KIT)
