#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints how often a comparison is right: of two equal configurations, and of two that differ.

Each comparison is a whole one: real searches against simulated DUTs at six sizes and two loss goals, their
outcomes through the real comparison. Run it from anywhere: `python benchmarks/comparison.py [comparisons]`.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "unit"))

import simulated_comparisons as sim

NOISES, RESOLUTIONS, REPEATS = (0.0, 0.01, 0.03, 0.1), (0.01, 0.05), (3, 5)
RATIOS = (1.02, 1.05, 1.1, 1.15, 1.2)


def equal_arms(setting: sim.Setting, times: int, chance: random.Random) -> float:
    """The share of comparisons of two equal configurations in which no verdict at all claims a difference."""
    return sum(sim.is_none_shown(sim.compared(setting, chance)) for _ in range(times)) / times


def power(setting: sim.Setting, times: int, chance: random.Random) -> tuple[float, float]:
    """The shares of verdicts that say B faster, and that say A faster, where B is."""
    words = [v.word for _ in range(times) for v in sim.verdicts_of(sim.compared(setting, chance))]
    return words.count("B faster") / len(words), words.count("A faster") / len(words)


def main() -> None:
    """Print the tables."""
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    began, chance = time.monotonic(), random.Random(2544)
    print(
        f"{len(sim.SIZES)} frame sizes, {len(sim.GOALS)} loss goals, {times} comparisons a figure, seed 2544"
    )
    print("\nTwo equal configurations: comparisons that show no difference anywhere (wanted: 95 % or more)")
    print(_row("noise", [f"{n:.0%}" for n in NOISES] + ["3 %, 15 % at 64 B", "3 %, not in turns"]))
    worst = 1.0
    for resolution, repeats in product(RESOLUTIONS, REPEATS):
        settings = [sim.Setting(noise=n, resolution=resolution, repeats=repeats) for n in NOISES]
        usual = sim.Setting(noise=0.03, resolution=resolution, repeats=repeats)
        settings += [replace(usual, uneven=5), replace(usual, interleaved=False)]
        rates = [equal_arms(setting, times, chance) for setting in settings]
        worst = min(worst, *rates)
        print(_row(f"{repeats} repeats, resolution {resolution:.0%}", [f"{rate:.1%}" for rate in rates]))
    few = max(times // 10, 1)
    print(f"\nB really is faster: verdicts that show it ({few} comparisons a figure)")
    print(_row("true ratio", [f"{ratio:g}" for ratio in RATIOS]))
    for resolution, noise, repeats in product(RESOLUTIONS, (0.01, 0.03), REPEATS):
        shown = []
        for ratio in RATIOS:
            setting = sim.Setting(ratio=ratio, noise=noise, resolution=resolution, repeats=repeats)
            right, wrong = power(setting, few, chance)
            shown.append(f"{right:.0%}" + (f" ({wrong:.1%} wrong)" if wrong else ""))
        print(_row(f"{repeats} repeats, resolution {resolution:.0%}, noise {noise:.0%}", shown))
    print(f"\nTwo equal configurations on a machine that slows by 10 % over the run ({few} comparisons)")
    for interleaved in (True, False):
        setting = sim.Setting(drift=0.1, noise=0.01, interleaved=interleaved)
        rate = equal_arms(setting, few, chance)
        print(_row("interleaved, paired" if interleaved else "all of A, then all of B", [f"{rate:.1%}"]))
    print(f"\nlowest rate of equal configurations: {worst:.1%}; took {time.monotonic() - began:.0f} s")


def _row(name: str, cells: Iterable[str]) -> str:
    return f"{name:42}" + "".join(f"{cell:>19}" if len(cell) > 9 else f"{cell:>10}" for cell in cells)


if __name__ == "__main__":
    main()
