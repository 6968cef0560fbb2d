#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares instructions per frame in virtual time with microseconds per frame of User-Mode Linux on this machine.

Virtual time has no caches, no branch prediction and no width of SIMD. The question is whether instructions rank stacks,
suites and frame sizes in the same order as the CPU time of a real processor. Each case is measured at the same load,
which all gateways can carry: with User-Mode Linux on this machine, and with emulated x86-64 machines, once with a
processor that has AES instructions (the profile virt-x86), and once without, as kernels of User-Mode Linux use none.

Prints a row for each case, with the mean of both gateways, and the rank correlation (Spearman) of the columns. Needs
root for User-Mode Linux, and `espbench build x86`; it takes about 15 minutes, during 5 of which the machine must be
quiet. Runs are kept in a folder, and finished ones are not made again.

    .venv/bin/python benchmarks/emulated_duts/instructions_and_time.py [--state FOLDER] [--only uml aes no-aes]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

import espbench

CLONE = Path(__file__).resolve().parents[2]
# The CPU has neither SSSE3 nor AES nor AVX, so all ciphers run as C code, except 3DES, which has an assembler version
# for any x86-64.
PLAIN_PROCESSOR = """\
name: no-aes
description: virt-x86 with a processor without instructions for AES
platform: qemu_x86
line_rate: 1Gbps
mtu: 1500
memory: 256M
machine: {cpu: Opteron_G1, ns_per_instruction: 1, rings: {receive: 256, transmit: 256}, interrupts: adaptive}
"""
PLAN = """\
name: {name}
topology: gateway-to-gateway
dut: {dut}
stacks: [plain, "null", xfrm]
suites: [null-sha1, 3des-sha1, aes128-sha1, aes128gcm16, chacha20poly1305]
frame_sizes: [64, 512, 1424]
directions: [one-way]
tests:
  - throughput:
      loss_goals: [0]
      minimum: 1000fps
      maximum: 3000fps
      trial: {trial}
      final_trial: {final}
      resolution: 5%
      settle: 0
      residue: {residue}
      warm_up: {residue}
      learning: 20ms
"""
SETTINGS = {
    "uml": {"dut": "uml", "trial": "500ms", "final": "3s", "residue": "200ms"},
    "aes": {"dut": "virt-x86", "trial": "20ms", "final": "100ms", "residue": "10ms"},
    "no-aes": {"dut": "no-aes.yaml", "trial": "20ms", "final": "100ms", "residue": "10ms"},
}
CASE = ["stack", "suite", "frame_size"]
TITLES = {
    "uml": "UML, µs/frame",
    "aes": "with AES instructions, instructions/frame",
    "no-aes": "without, instructions/frame",
}


def main() -> None:
    """Make the missing runs, and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--state", type=Path, default=CLONE / "runs" / "instructions-and-time")
    parser.add_argument("--only", nargs="+", choices=list(SETTINGS), default=list(SETTINGS))
    asked = parser.parse_args()
    table = pd.concat([column(name, asked.state / name) for name in asked.only], axis=1)
    print(table.to_string(float_format=lambda value: f"{value:,.1f}"), "\n")
    print("rank correlation (Spearman), over all rows, and over those of one frame size:\n")
    print(correlation(table), "\n")
    for size in sorted(set(table.index.get_level_values("frame_size"))):
        rows = table[table.index.get_level_values("frame_size") == size]
        print(f"{size} B", correlation(rows), sep="\n", end="\n\n")


def column(name: str, folder: Path) -> pd.Series:
    """Return the cost of a frame by stack, suite and size, the mean of both gateways; in µs, or instructions."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "no-aes.yaml").write_text(PLAIN_PROCESSOR)
    plan = folder / "plan.yaml"
    plan.write_text(PLAN.format(name=name, **SETTINGS[name]))
    finished = sorted(folder.glob("*/results.csv"))
    run = espbench.load(finished[-1].parent) if finished else espbench.Plan(plan).run(folder, wait=True)
    results = run.results.set_index(CASE)
    if set(results["status"]) != {"OK"} or set(results["throughput_fps"]) != {3000.0}:
        print(f"{run.path}: not every case carried the load:\n{results[['status', 'throughput_fps']]}")
    unit = "cpu_{}_us_per_frame" if name == "uml" else "instructions_{}_per_frame"
    both = results[[unit.format("home"), unit.format("office")]]
    return both.mean(axis=1).rename(TITLES[name])


def correlation(table: pd.DataFrame) -> str:
    """Return Spearman's rank correlation as text, computed from ranks, because pandas needs SciPy for it."""
    return table.rank().corr().to_string(float_format=lambda value: f"{value:.3f}")


if __name__ == "__main__":
    main()
