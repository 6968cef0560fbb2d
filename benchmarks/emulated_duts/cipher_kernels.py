# SPDX-License-Identifier: Apache-2.0
"""Measures NPCryptBench's kernels on this machine's CPU, an emulated board and network processors, in cycles per byte.

    .venv/bin/python benchmarks/emulated_duts/cipher_kernels.py

All run the same C, compiled by gcc -O2; every byte of output is compared. Levels 2 and 3 make no sense on this machine,
which has caches and does not wait for single memory references; so it runs levels 0 and 1. Here, cycles are the CPU
time of the fastest of 25 series, times the clock in /proc/cpuinfo; they are rough if the CPU changes its clock. The
other columns are in virtual time: the board's cycles (espbench build e500) are the time of its instructions, times its
core's clock.
"""

from __future__ import annotations

import argparse
import re
import secrets
import subprocess
from pathlib import Path

from espbench.npcrypt import board, hosted
from espbench.npcrypt.ciphers import KERNELS
from espbench.npcrypt.ciphers.kernel import Kernel
from espbench.npcrypt.compilers import Compilation
from espbench.npcrypt.measure import Configuration, Programs, measure
from espbench.npcrypt.processes import Processes
from espbench.plan import load_profile
from espbench.plan.keys.kernel_test import Level
from espbench.platforms.virtual.parts.kits import E500_KIT
from espbench.this_machine.registry import Registry

DATA_BYTES = 2048
LEVELS: tuple[Level, ...] = (0, 1)
PROCESSORS = ("mpc8548e", "ixp1200", "ixp2400", "ixp2800")


def main() -> None:
    """Print the table."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    clock_hz = clock()
    print(f"this machine: {clock_hz / 1e6:.0f} MHz by /proc/cpuinfo\n")
    processors = [dut for dut in PROCESSORS if is_ready(dut)]
    head = [f"here, level {n}" for n in LEVELS] + [f"{dut}, level {n}" for dut in processors for n in LEVELS]
    print("cycles a byte ".ljust(14) + "".join(title.rjust(18) for title in head))
    with Registry(secrets.token_hex(3)) as registry:
        programs = Programs(registry.directory("kernels"), Processes(registry))
        for kernel in KERNELS.values():
            cells = [ns_per_byte(kernel, level, programs.folder) * clock_hz / 1e9 for level in LEVELS]
            cells += [on(dut, kernel, level, programs) for dut in processors for level in LEVELS]
            print(kernel.shown.ljust(14) + "".join(f"{cell:18.1f}" for cell in cells))


def is_ready(dut: str) -> bool:
    """Return whether a processor can be emulated here; if not, print what is missing."""
    if load_profile(dut).board is None:
        return True
    lacks = [r for r in (E500_KIT.readiness(), board.readiness()) if not r.ready]
    for lack in lacks:
        print(f"no column of {dut}: {lack.missing}\n  {lack.install}")
    return not lacks


def clock() -> float:
    """Return the clock of this machine's CPU, Hz."""
    match = re.search(r"cpu MHz\s*: ([\d.]+)", Path("/proc/cpuinfo").read_text(encoding="ascii"))
    assert match is not None, "/proc/cpuinfo tells no clock"
    return float(match[1]) * 1e6


def ns_per_byte(kernel: Kernel, level: Level, folder: Path) -> float:
    """Compile a kernel for this machine, compare its output, and return the CPU time per byte, ns."""
    program = hosted.compiled(kernel, level, "O2", DATA_BYTES, folder / f"here-{kernel.name}-{level}")
    printed = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout
    return hosted.ns_per_call(kernel, printed, DATA_BYTES, "this machine") / DATA_BYTES


def on(dut: str, kernel: Kernel, level: Level, programs: Programs) -> float:
    """Return the cycles per byte on the core of a board, or on one thread of a network processor."""
    profile = load_profile(dut)
    compilation = Compilation(level, "gcc", "O2")
    c = Configuration(dut, kernel.name, compilation, 1, 1, DATA_BYTES, 0.0, 0.0)  # type: ignore[arg-type]
    if profile.processor is not None:
        return measure(c, profile.processor, programs).cycles_per_byte
    folder = programs.folder / f"{dut}-{kernel.name}-{level}"
    return board.measure(c, profile, E500_KIT.require(), folder, programs.processes).cycles_per_byte


if __name__ == "__main__":
    main()
