#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what the throughput search costs: trials, seconds of traffic, error, for simulated DUTs.

Each DUT is searched for both loss goals at once and goal by goal; pure arithmetic, no traffic.
Run it from anywhere: `python benchmarks/search_cost.py [final trial, s]`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "unit"))

import simulated_duts as duts

GOALS = (0.0, 1e-5)
FAMILY: dict[str, tuple[Callable[[], duts.Dut], float | None]] = {  # DUT, its zero-loss truth in frames/s
    "hard limit": (lambda: duts.HardLimit(37_000), 37_000),
    "collapses": (lambda: duts.Collapses(37_000), 37_000),
    "soft limit": (lambda: duts.SoftLimit(37_000), 37_000),
    "deep queue": (lambda: duts.DeepQueue(37_000), 37_000),
    "noisy": (lambda: duts.Noisy(37_000, seed=1), 37_000),
    "not monotone": (lambda: duts.NotMonotone(60_000, (30_000, 40_000)), 60_000),
    "one in 200,000": (lambda: duts.DropsOneIn(200_000), None),
    "one in 50,000": (lambda: duts.DropsOneIn(50_000), None),
    "always passes": (lambda: duts.always_passes, 100_000),
    "never passes": (lambda: duts.never_passes, None),
}


def cost(goals: tuple[float, ...], dut: duts.Dut, final_s: float) -> tuple[int, float, str, float | None]:
    """Trials, seconds of traffic, statuses, and throughput at the first goal."""
    search = duts.a_search(goals, final_trial_s=final_s)
    log = duts.run(search, dut)
    results = search.results()
    statuses = ", ".join(result.status for result in results)
    return len(log), sum(asked.duration_s for asked, _ in log), statuses, results[0].throughput_fps


def main() -> None:
    """Print the table."""
    final_s = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    print(f"goals 0 and 0.001 %, 1,000 to 100,000 frames/s, resolution 1 %, trials 2 s, final {final_s:g} s")
    print(f"{'DUT':15} {'trials':>6} {'s':>6}   {'one by one':>10} {'s':>6}   {'error':>7}   statuses")
    for name, (make, truth) in FAMILY.items():
        trials, seconds, statuses, throughput = cost(GOALS, make(), final_s)
        apart = [cost((goal,), make(), final_s) for goal in GOALS]
        error = f"{throughput / truth - 1:+.2%}" if throughput and truth else "–"
        alone = f"{sum(one[0] for one in apart):10} {sum(one[1] for one in apart):6.0f}"
        print(f"{name:15} {trials:6} {seconds:6.0f}   {alone}   {error:>7}   {statuses}")


if __name__ == "__main__":
    main()
