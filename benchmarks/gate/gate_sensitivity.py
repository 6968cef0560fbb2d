#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how small a regression `espbench check` finds on emulated boards, and how often it gives false alarms.

Two kernels are built that differ only in `nop` instructions in the encryption path (`esp_output`): none, and one. Each
goes into a cache of its own, where the check finds it like any kernel.

* **Planted**: one more instruction for each frame that Home encrypts, at 20 points (two ways to drive the engine, ten
  frame sizes), in one direction, so that each frame passes `esp_output` exactly once. A point counts as found if Home's
  figure is above the base with `--limit instructions=0`.
* **A against A**: the kernel without a planted instruction, compared with its own base; half of the checks run beside
  busy loops on every CPU. In addition, the recorded final trials of all these runs are compared with each other, each
  pair in both orders.

Predicted before the first run: all 20 points are found; the change at Home is between 0.9 and 1.1 instructions at 18 or
more of the 20 (a batch of frames may move), and at Office nearer to 0 than to 1; there are 0 false alarms in at least
1,000 comparisons, of which a quarter or more are fresh. **Wrong**: 18 of 20 were found, 9 of them within 10 % of 1, and
Office moved by up to 2.5. The base had been measured only at the throughputs, where a gateway is busy all the time, and
the cost of a frame depends on its queues. Since then a base has trials at half of each throughput too, and instructions
are compared there. The prediction for the next run was the same. Result: 20 of 20 were found, 16 of them within 10 %
of 1; Office moved by 0.12, and at one point by -119, because the additional instruction moved its interrupts. So the
prediction of the sizes was wrong again.

It takes about half an hour: `python benchmarks/gate/gate_sensitivity.py [--checks N]`. Needs `espbench build
e500` and its requirements, but neither root nor a network. `--same-only` builds no kernel, and makes only A against A
with the kernel of `espbench build e500`. With `--keep`, checks that are in the folder already are not made again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import planted_kernel
from busy import busy_loops
from kept_folder import kept_folder, parser_with_keep

from espbench.gate import baseline_file
from espbench.gate.from_check import measurements
from espbench.gate.judging import Measured, judge
from espbench.gate.limits import Limit, Quantity
from espbench.paths import cache_dir
from espbench.results import RunDirectory

SIZES = (64, 128, 256, 390, 512, 640, 768, 1024, 1280, 1424)
PLAN = f"""
name: sensitivity
topology: gateway-to-gateway
dut: mpc8548e
stacks: [plain, {{stack: xfrm, label: async, crypto: async}}, {{stack: xfrm, label: software, crypto: software}}]
suites: [aes128-sha1]
frame_sizes: [{", ".join(map(str, SIZES))}]
tests:
  - throughput: {{loss_goals: [0], trial: 20ms, final_trial: 40ms, resolution: 10%, maximum: 200000fps, settle: 0,
      residue: 10ms, warm_up: 10ms, learning: 10ms}}
"""
NO_LIMIT: dict[Quantity, Limit] = {"instructions": Limit(), "throughput": Limit(share=0.02)}


def main() -> None:
    """Build both kernels, make the checks, and print the results."""
    parser = parser_with_keep(__doc__, "kernels and runs")
    parser.add_argument("--checks", type=int, default=8, help="how many fresh checks of A against A")
    parser.add_argument("--same-only", action="store_true", help="only A against A; no kernel is built")
    asked = parser.parse_args()
    with kept_folder(asked.keep) as folder:
        measure(folder, asked.checks, same_only=asked.same_only)


def measure(folder: Path, checks: int, *, same_only: bool) -> None:
    """Build the kernels, measure their bases and run the checks, all in this folder."""
    caches = [cache_dir().parent] if same_only else [kernel_with(folder, nops) for nops in (0, 1)]
    plan = folder / "plan.yaml"
    plan.write_text(PLAN, encoding="utf-8")
    since = time.monotonic()
    kept = [*(folder / "base").glob("*/results.csv")]
    run = (
        kept[0].parent if kept else espbench(caches[0], "run", plan, "--out", folder / "base", "--no-report")
    )
    base = folder / "baseline.json"
    if not base.exists():
        espbench(caches[0], "baseline", run, "--out", base, "--runs", folder / "checks")
    print(f"base: {time.monotonic() - since:.0f} s", flush=True)
    for cache in caches[1:]:
        planted(check(folder, cache, base, "planted", "--allow-different", "kernel"))
    same(folder, caches[0], base, checks)


def same(folder: Path, cache: Path, base: Path, checks: int) -> None:
    """Check what made the base against it, every second time beside busy loops, and print what is not the same."""
    runs, figures, alarms = [], 0, 0
    for number in range(checks):
        busy = number % 2 == 1
        with busy_loops(wanted=busy):
            verdict = check(folder, cache, base, f"same-{number}")
        worse = [row for row in verdict["rows"] if row["word"] != "same"]
        figures, alarms = figures + len(verdict["rows"]), alarms + len(worse)
        runs.append(RunDirectory.open(Path(verdict["run"])))
        how = "beside busy loops" if busy else "alone"
        print(f"A against A, {how}: {len(worse)} of {len(verdict['rows'])} not the same", flush=True)
    recorded, of_recorded = recorded_pairs(base, runs)
    print(f"false alarms: {alarms} of {figures} fresh figures, {of_recorded} of {recorded} recorded ones")


def planted(verdict: dict[str, Any]) -> None:
    """Print the change that one planted instruction makes at each point."""
    rows = [
        row for row in verdict["rows"] if row["quantity"] == "instructions" and "plain" not in row["case"]
    ]
    home, office = ([row for row in rows if row["side"] == side] for side in ("home", "office"))
    for row in home:
        print(f"  {row['case']}: {row['base']:,.3f} {row['change']:+.3f} {row['word']}")
    regressed = sum(row["word"] == "regressed" for row in home)
    exact = sum(0.9 <= row["change"] <= 1.1 for row in home)
    print(
        f"one instruction planted: found at {regressed} of {len(home)} points, {exact} of them within 10 % of 1"
    )
    print(
        f"Office: between {min(r['change'] for r in office):+.3f} and {max(r['change'] for r in office):+.3f}"
    )
    plain = [row for row in verdict["rows"] if "plain" in row["case"] and row["word"] != "same"]
    print(f"plain, which does not pass there: {len(plain)} figures not the same")


def recorded_pairs(base: Path, runs: list[RunDirectory]) -> tuple[int, int]:
    """Compare every recorded check with every other; return the numbers of figures, and of those not the same."""
    as_base = baseline_file.read(base)
    measured = [measurements(run, as_base)[0] for run in runs]
    figures = alarms = 0
    for one, other in permutations(measured, 2):
        cases = {}
        for point, case in as_base.cases.items():
            samples = [
                replace(s, instructions=one[point, s.repeat, s.goal, s.load_fps].instructions)
                for s in case.samples
            ]
            cases[point] = replace(case, samples=samples)
        typed: dict[tuple[Any, int, float, float], Measured] = dict(other)
        rows = judge(replace(as_base, cases=cases), typed, NO_LIMIT)
        figures, alarms = figures + len(rows), alarms + sum(row.word != "same" for row in rows)
    return figures, alarms


def check(folder: Path, cache: Path, base: Path, name: str, *options: str) -> dict[str, Any]:
    """Return the verdict of a check with a limit of 0 instructions; make the check unless its file is there."""
    file = folder / f"{name}.json"
    if file.exists():
        kept: dict[str, Any] = json.loads(file.read_text())
        return kept
    arguments = [
        "check",
        folder / "plan.yaml",
        "--against",
        base,
        "--limit",
        "instructions=0",
        "--json",
        file,
    ]
    espbench(cache, *arguments, "--out", folder / "checks", *options, codes=(0, 5))
    verdict: dict[str, Any] = json.loads(file.read_text())
    assert not verdict["problems"], verdict["problems"]
    return verdict


def espbench(cache: Path, *arguments: object, codes: tuple[int, ...] = (0,)) -> Path:
    """Run an espbench command with this cache; return the folder of the file that it prints last."""
    argv = [sys.executable, "-m", "espbench", *map(str, arguments)]
    environment = os.environ | {"XDG_CACHE_HOME": str(cache)}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in codes:
        raise SystemExit(f"{' '.join(argv)} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return Path(done.stdout.strip().splitlines()[-1]).parent


def kernel_with(folder: Path, nops: int) -> Path:
    """Return a cache with a kernel that executes `nops` more instructions for each frame that it encrypts."""
    cache = folder / f"cache-{nops}"
    if not cache.exists():
        tree = planted_kernel.tree(folder / "kernel")
        text = planted_kernel.planted(planted_kernel.original(tree), nops)
        planted_kernel.install(planted_kernel.built(tree, text), cache)
    return cache


if __name__ == "__main__":
    main()
