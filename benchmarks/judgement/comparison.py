#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints how often a comparison is right, for equal configurations and for configurations that differ.

Each comparison is complete: real searches on simulated DUTs at six frame sizes and two loss goals, whose outcomes go
through the real comparison. Then the same is done for comparisons at fixed loads, on simulated hosts that drift, stall
and disturb (for real hosts see ab_comparison.py). Run it from anywhere:

    python benchmarks/judgement/comparison.py [comparisons]

The exit code is 1 if a goal is missed by more than chance. Goals: at most 5 % of the comparisons of equal arms claim a
difference. With both arms' gateways up together, on a quiet or a shared host, 19 of 20 points at fixed loads show a
difference of 5 % in the CPU time per frame, and the median half width of equal arms is at most 3 %.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from shares import surely_above, surely_below, wilson

from support.simulated import comparisons as sim
from support.simulated import pairs

NOISES, RESOLUTIONS, REPEATS = (0.0, 0.01, 0.03, 0.1), (0.01, 0.05), (3, 5)
DIFFERENT = {"A faster", "B faster", "B costs less", "B costs more"}  # the words that claim a difference
RATIOS = (1.02, 1.05, 1.1, 1.15, 1.2)
RIGHT, FALSE_CLAIMS, FOUND, CPU_HALF = 0.95, 0.05, 19 / 20, 0.03
HOSTS = {"quiet": pairs.QUIET, "shared": pairs.SHARED, "busy": pairs.BUSY, "neighbour": pairs.NEIGHBOUR}
FORMS = {
    "3 %, 15 % at 64 B": {"uneven": 5.0},
    "3 %, not in turns": {"interleaved": False},
    "3 %, three arms": {"arms": "ABC"},
    "3 %, at minimum": {"edge": "minimum"},
    "3 %, at limit": {"edge": "maximum"},
}


def equal_arms(setting: sim.Setting, times: int, chance: random.Random) -> tuple[int, float]:
    """Compare equal configurations; return the number of comparisons that claim no difference, and the share of points
    with a verdict.
    """
    right, judged = 0, []
    for _ in range(times):
        comparison = sim.compared(setting, chance)
        right += sim.is_none_shown(comparison)
        judged += [v.word != "no verdict" for v in sim.verdicts_of(comparison)]
    return right, sum(judged) / len(judged)


def power(setting: sim.Setting, times: int, chance: random.Random) -> tuple[float, float]:
    """Return the shares of verdicts `B faster` and `A faster`, if B is faster in truth."""
    words = [v.word for _ in range(times) for v in sim.verdicts_of(sim.compared(setting, chance))]
    return words.count("B faster") / len(words), words.count("A faster") / len(words)


@dataclass(frozen=True)
class FixedLoads:
    """The counts of comparisons at fixed loads on one host. cost: the true cost of B, as a multiple of A's.

    together: both arms' gateways are up at the same time. claimed: comparisons that claim a difference. found: points
    that show B's higher cost. cpu_half: the median half width of the intervals of CPU per frame.
    """

    host: str
    together: bool
    cost: float
    comparisons: int
    claimed: int
    points: int
    found: int
    cpu_half: float

    @property
    def name(self) -> str:
        """The row's name."""
        return f"{self.host}, {'together' if self.together else 'one after the other'}, {self.cost:g}"

    def missed(self, rows: int) -> list[str]:
        """Return the goals that are missed, in words; rows: the number of rows in which claims are counted."""
        equal, judged = self.cost == 1, self.together and self.host not in ("busy", "neighbour")
        missed = []
        if equal and surely_above(self.claimed, self.comparisons, FALSE_CLAIMS, rows):
            missed.append(f"{self.claimed} of {self.comparisons} claim a difference that is not there")
        if judged and not equal and surely_below(self.found, self.points, FOUND):
            missed.append(f"{self.found} of {self.points} points find that B costs more")
        if judged and equal and self.cpu_half > CPU_HALF:
            missed.append(f"the half width of CPU per frame is {self.cpu_half:.1%}")
        return [f"{self.name}: {goal}" for goal in missed]


def at_fixed_loads(times: int, chance: random.Random) -> list[str]:
    """Print the same table for comparisons at fixed loads; return the goals that are missed.

    They have three frame sizes, two arms, and hosts of four kinds.
    """
    print(f"\nAt the same loads: 3 frame sizes, {times} comparisons a row; half widths are medians")
    columns = ["claims", "CPU found", "rate found", "CPU half", "rate half", "no rate"]
    print(_row("host, gateways, true cost of B", columns))
    missed = []
    for (name, host), together, cost in product(HOSTS.items(), (True, False), (1.0, 1.05)):
        findings = [pairs.compared(host, cost, chance, together=together) for _ in range(times)]
        points = [v for verdicts in findings for v in verdicts]
        claimed = [any(v.cpu_word in DIFFERENT or v.word in DIFFERENT for v in of) for of in findings]
        result = FixedLoads(
            name, together, cost, times, sum(claimed), len(points),
            found=sum(v.cpu_word == "B costs more" for v in points),
            cpu_half=median(math.sqrt(v.cpu.high / v.cpu.low) - 1 for v in points if v.cpu),
        )  # fmt: skip
        cells = [
            f"{result.claimed / times:.0%}" if cost == 1 else "",
            f"{result.found / len(points):.0%}" if cost > 1 else "",
            f"{sum(v.word == 'A faster' for v in points) / len(points):.0%}" if cost > 1 else "",
            f"{result.cpu_half:.2%}",
            f"{median(math.sqrt(t.high / t.low) - 1 for v in points if (t := v.throughput)):.2%}",
            f"{sum(v.throughput is None for v in points) / len(points):.0%}",
        ]
        print(_row(result.name, cells))
        if cost == 1:
            low, high = wilson(result.claimed, times)
            print(f"{'':42}  claims of a difference that is not there: [{low:.1%}, {high:.1%}]")
        missed += result.missed(2 * len(HOSTS))
    return missed


def missed_by_searches(right: int, of: int, lowest: int, times: int) -> list[str]:
    """Return the goals that comparisons of equal configurations by searches miss: in all, and in the worst cell."""
    missed = []
    if surely_below(right, of, RIGHT):
        missed.append(f"equal configurations: only {right} of {of} show no difference")
    if surely_below(lowest, times, RIGHT, max(1, of // max(1, times))):
        missed.append(f"equal configurations, one cell: only {lowest} of {times} show no difference")
    return missed


def main() -> int:
    """Print the tables; return the exit code: 1 if a goal is missed."""
    times = asked_comparisons()
    began, chance = time.monotonic(), random.Random(2544)
    print(
        f"{len(sim.SIZES)} frame sizes, {len(sim.GOALS)} loss goals, {times} comparisons a figure, seed 2544"
    )
    print("\nEqual configurations: comparisons that show no difference anywhere (wanted: 95 % or more);")
    print("in brackets the share of points that had figures enough for a verdict, where not all had")
    print(_row("noise", [f"{n:.0%}" for n in NOISES] + list(FORMS)))
    worst = total = 0
    lowest = times
    for resolution, repeats in product(RESOLUTIONS, REPEATS):
        usual = sim.Setting(noise=0.03, resolution=resolution, repeats=repeats)
        settings = [replace(usual, noise=n) for n in NOISES]
        settings += [replace(usual, **form) for form in FORMS.values()]  # type: ignore[arg-type]
        cells = []
        for setting in settings:
            right, judged = equal_arms(setting, times, chance)
            lowest, worst, total = min(lowest, right), worst + right, total + times
            cells.append(f"{right / times:.1%}" + (f" ({judged:.0%})" if judged < 1 else ""))
        print(_row(f"{repeats} repeats, resolution {resolution:.0%}", cells))
    few = max(times // 10, 1)
    print(f"\nB really is faster: verdicts that show it ({few} comparisons a figure)")
    print(_row("true ratio", [f"{ratio:g}" for ratio in RATIOS]))
    for resolution, noise, repeats in product(RESOLUTIONS, (0.01, 0.03), REPEATS):
        shown = []
        for ratio in RATIOS:
            setting = sim.Setting(ratio=ratio, noise=noise, resolution=resolution, repeats=repeats)
            right_share, wrong = power(setting, few, chance)
            shown.append(f"{right_share:.0%}" + (f" ({wrong:.1%} wrong)" if wrong else ""))
        print(_row(f"{repeats} repeats, resolution {resolution:.0%}, noise {noise:.0%}", shown))
    print(f"\nTwo equal configurations on a machine that slows by 10 % over the run ({few} comparisons)")
    for interleaved in (True, False):
        setting = sim.Setting(drift=0.1, noise=0.01, interleaved=interleaved)
        right, _ = equal_arms(setting, few, chance)
        print(
            _row("interleaved, paired" if interleaved else "all of A, then all of B", [f"{right / few:.1%}"])
        )
    for what, right, of in (
        ("of all", worst, total),
        (f"the lowest of {total // times} cells", lowest, times),
    ):
        low, high = wilson(right, of)
        print(
            f"\nequal configurations, {what}: {right} of {of}, {right / of:.1%} [{low:.1%}, {high:.1%}]",
            end="",
        )
    print()
    missed = missed_by_searches(worst, total, lowest, times) + at_fixed_loads(times, chance)
    print(f"\ntook {time.monotonic() - began:.0f} s")
    print("\n".join(f"missed: {goal}" for goal in missed))
    return int(bool(missed))


def _row(name: str, cells: Iterable[str]) -> str:
    return f"{name:42}" + "".join(f"{cell:>19}" if len(cell) > 9 else f"{cell:>13}" for cell in cells)


def asked_comparisons() -> int:
    """Return the number of comparisons for each figure, from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "comparisons",
        nargs="?",
        type=int,
        default=60,
        help="comparisons of each figure (default: %(default)s)",
    )
    times: int = parser.parse_args().comparisons
    return times


if __name__ == "__main__":
    sys.exit(main())
