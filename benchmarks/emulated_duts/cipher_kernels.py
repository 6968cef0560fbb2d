# SPDX-License-Identifier: Apache-2.0
"""The kernels of NPCryptBench on this machine's own CPU, beside one thread of each network processor: cycles a byte.

    .venv/bin/python benchmarks/emulated_duts/cipher_kernels.py

The same C, compiled by gcc -O2; every byte of output is compared. This machine has caches, and no reference is
awaited by name, so levels 2 and 3 say nothing of it: it runs levels 0 and 1. Cycles are the CPU time of the fastest
of 25 series, times the clock that /proc/cpuinfo tells; a CPU that changes its clock makes them rough.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from pathlib import Path

from espbench.npcrypt.ciphers import KERNELS
from espbench.npcrypt.ciphers.kernel import Kernel
from espbench.npcrypt.compilers import Compilation
from espbench.npcrypt.measure import Configuration, Programs, measure
from espbench.npcrypt.proof import check, data_of, expected_of
from espbench.paths import data_dir
from espbench.plan import load_profile
from espbench.plan.keys.kernel_test import Level

DATA_BYTES = 2048
LEVELS: tuple[Level, ...] = (0, 1)
PROCESSORS = ("ixp1200", "ixp2400", "ixp2800")


def main() -> None:
    """Print the table."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    clock_hz = clock()
    print(f"this machine: {clock_hz / 1e6:.0f} MHz by /proc/cpuinfo\n")
    head = [f"here, level {n}" for n in LEVELS] + [f"{dut}, level {n}" for dut in PROCESSORS for n in LEVELS]
    print("cycles a byte ".ljust(14) + "".join(title.rjust(18) for title in head))
    with tempfile.TemporaryDirectory() as folder:
        programs = Programs(Path(folder))
        for kernel in KERNELS.values():
            cells = [ns_per_byte(kernel, level, Path(folder)) * clock_hz / 1e9 for level in LEVELS]
            cells += [on(dut, kernel, level, programs) for dut in PROCESSORS for level in LEVELS]
            print(kernel.shown.ljust(14) + "".join(f"{cell:18.1f}" for cell in cells))


def clock() -> float:
    """The clock of the CPU, Hz."""
    match = re.search(r"cpu MHz\s*: ([\d.]+)", Path("/proc/cpuinfo").read_text(encoding="ascii"))
    assert match is not None, "/proc/cpuinfo tells no clock"
    return float(match[1]) * 1e6


def ns_per_byte(kernel: Kernel, level: Level, folder: Path) -> float:
    """Compile for this machine, compare the output, and return the CPU time of a byte."""
    sources = data_dir("network_processor") / "kernels"
    command = [
        "gcc",
        "-std=gnu11",
        "-O2",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-DLOCAL_MEMORY",
        f"-DLEVEL={level}",
    ]
    code, program = folder / "kernel.o", folder / "here"
    subprocess.run([*command, "-c", str(sources / kernel.source), "-o", str(code)], check=True)
    symbols = subprocess.run(["nm", str(code)], capture_output=True, text=True, check=True).stdout.split()
    (folder / "data.h").write_text(header(kernel, set(symbols)), encoding="ascii")
    subprocess.run(
        [*command, f"-I{folder}", f"-I{sources}", str(sources / "here.c"), str(code), "-o", str(program)],
        check=True,
    )
    output, times = subprocess.run(
        [str(program)], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    got = kernel.bytes([int(word) for word in output.split()])
    check(kernel, got, expected_of(kernel.name, 0, DATA_BYTES), "on this machine")
    ns, calls = map(int, times.split())
    return ns / calls / DATA_BYTES


def header(kernel: Kernel, symbols: set[str]) -> str:
    """The tables that a level has, and the data, as C."""

    def words(values: list[int]) -> str:
        return "{" + ", ".join(f"{value}u" for value in values) + "}"

    tables = {name: values for name, values in kernel.tables(kernel.key).items() if name in symbols}
    declared = "".join(f"extern uint32_t {name}[{len(values)}];\n" for name, values in tables.items())
    copied = "".join(
        f"    memcpy({name}, (const uint32_t[]){words(values)}, sizeof({name}));\n"
        for name, values in tables.items()
    )
    data = kernel.words(data_of(kernel.name, 0, DATA_BYTES))
    return (
        f"#include <stdint.h>\n{declared}#define DATA_WORDS {len(data)}\n"
        f"#define OUTPUT_WORDS {kernel.output_bytes(DATA_BYTES) // 4}\n"
        f"static const uint32_t data[DATA_WORDS] = {words(data)};\n"
        f"static void set_tables(void)\n{{\n{copied}}}\n"
    )


def on(dut: str, kernel: Kernel, level: Level, programs: Programs) -> float:
    """Cycles a byte on one thread of a network processor."""
    processor = load_profile(dut).processor
    assert processor is not None
    compilation = Compilation(level, "gcc", "O2")
    c = Configuration(dut, kernel.name, compilation, 1, 1, DATA_BYTES, 0.0, 0.0)  # type: ignore[arg-type]
    return measure(c, processor, programs).cycles_per_byte


if __name__ == "__main__":
    main()
