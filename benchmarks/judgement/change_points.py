#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how often `espbench history` finds a step in a noisy series, and how often it takes mere scatter for a step.

.venv/bin/python benchmarks/judgement/change_points.py
"""

from __future__ import annotations

import argparse
import random

from espbench.over_time.changes import noisy
from espbench.over_time.records import Point

SERIES = 100


def figures(chance: random.Random, runs: int, spread: float, step: float) -> list[Point]:
    """Return runs with one repeat, scattered around 100,000 frames/s; in the second half, `step` times as high."""
    values = [1e5 * (step if n >= runs // 2 else 1) * chance.gauss(1, spread) for n in range(runs)]
    return [Point(str(number), "", value, {1: value}, "OK") for number, value in enumerate(values)]


def main() -> None:
    """Print both tables."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    print(f"of {SERIES} series each\n\nscatter  runs  a change in")
    for spread in (0.01, 0.03, 0.1):
        for runs in (6, 12, 30, 100):
            changes = [noisy(figures(random.Random(seed), runs, spread, 1.0)) for seed in range(SERIES)]
            print(f"{spread:7.0%}  {runs:4}  {sum(map(bool, changes)):4}")
    print("\nscatter   step  runs  found  at its run or beside it")
    for spread, step in ((0.01, 1.03), (0.01, 1.05), (0.03, 1.1), (0.1, 1.3)):
        for runs in (6, 12, 30, 120):
            changes = [noisy(figures(random.Random(seed), runs, spread, step)) for seed in range(SERIES)]
            one = [jumps[0].at for jumps in changes if len(jumps) == 1]
            near = sum(abs(at - runs // 2) <= 1 for at in one)
            print(f"{spread:7.0%}  {step - 1:5.0%}  {runs:4}  {len(one):5}  {near:4}")


if __name__ == "__main__":
    main()
