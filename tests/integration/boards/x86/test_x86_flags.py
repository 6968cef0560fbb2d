# SPDX-License-Identifier: Apache-2.0
"""QEMU as espbench builds it leaves the right flags: Debian's does not, and a guest's kernel crashed of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from espbench.platforms.virtual.parts.kits import X86_KIT
from support.virtual.virtual_runs import build

pytestmark = [pytest.mark.virtual_time, pytest.mark.boards, pytest.mark.needs("gcc")]

PROGRAM = Path(__file__).parents[3] / "support" / "virtual" / "x86_flags.S"


@pytest.fixture(scope="module")
def qemu() -> Path:
    """Build the guests in the user's cache; the first test that needs them does it. Return their QEMU."""
    build("x86")
    built = X86_KIT.find()
    assert built is not None
    return built.qemu


def test_comparing_and_exchanging_leaves_every_flag_but_zf(qemu: Path, tmp_path: Path) -> None:
    """An interrupt behind it stores EFLAGS, and loads them again: TF, DF or NT in there damage the guest."""
    kernel = tmp_path / "flags"
    options = "-nostdlib -static -no-pie -Wl,-Ttext=0x100000,--build-id=none,-z,noexecstack,-e,start32"
    subprocess.run(["gcc", *options.split(), "-o", str(kernel), str(PROGRAM)], check=True)
    machine = "-M q35,smm=off,sata=off,smbus=off,vmport=off,hpet=off,usb=off -cpu Haswell-noTSX -m 16"
    machine += " -nodefaults -display none -vga none -no-reboot -serial stdio"
    machine += " -global apic-common.vapic=off -icount shift=0,sleep=off"
    done = subprocess.run(
        [str(qemu), "-L", str(qemu.parent), *machine.split(), "-kernel", str(kernel)],
        capture_output=True, text=True, check=True, timeout=900,
    )  # fmt: skip
    pf, zf, always = 0x04, 0x40, 0x02
    assert [int(line, 16) for line in done.stdout.split()] == [always | pf | zf, always | pf]
