#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does noise of the host move a figure? Simulated DUTs of known loss, and noise that is independent of them.

The noise only disturbs: it takes no frame, and whether it comes does not depend on what the DUT did. So the reported
throughput must be the same with and without it. Trials are arithmetic, but all that judges them is the product's:
stalls and starvation are laid beside the losses, the trial's record is made, the search decides.

Red (exit 1) if in any cell the mean of the figures that are OK is off by more than 1 %, or if the mean of all figures,
lower bounds too, is above the one without noise by more than that, or their median by more than the resolution.
`--excuse-failures` judges as espbench did before: of disturbed trials those that passed stand; it must turn red.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from espbench.generators.base import Generator, LossEpisode, Offered, PortCounts, Stall, StreamCounts
from espbench.measure.inputs.setup import Request, Setup
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.record import OfCase, Seen, record
from espbench.plan import Case, cases, load_plan
from espbench.platforms import placement
from espbench.platforms.base import Testbed
from espbench.procedures.limits import Limits
from espbench.procedures.rfc2544.throughput import ThroughputCase
from espbench.terms import WITH_FIGURE, Latency, Outcome, Trial

PLAN = """\
name: "null"
topology: gateway-to-gateway
dut: uml
stacks: [plain]
frame_sizes: [512]
tests: [{throughput: {loss_goals: [0, 0.001%], trial: TRIAL, final_trial: FINAL_TRIAL, resolution: 2%}}]
"""
RESOLUTION = 0.02
LIMITS = Limits(10_000.0, 80_000.0, 80_000.0, None)
START_FPS = 40_000.0
RATES = (0.1, 0.3, 1.0)
MEAN_MAY_MOVE = 0.01

Ratio = Callable[[float], float]


def hard(load: float) -> float:
    """All above 40,000 frames/s is lost."""
    return max(0.0, 1 - START_FPS / load)


def fades(load: float) -> float:
    """Return the loss of a DUT at this load.

    Above 40,000 frames/s, loss rises a hundredfold with each tenth of the load. There, luck decides whether a
    trial passes.
    """
    over = load / START_FPS - 1
    return 0.0 if over < 0 else min(1.0, 1e-6 * 100 ** (10 * over))


def lossy(load: float) -> float:
    """Half of the goal of 0.001 % at any load, and all above 40,000 frames/s."""
    return 5e-6 + hard(load)


DUTS: dict[str, Ratio] = {"hard limit": hard, "fades": fades, "half the goal": lossy}


@dataclass
class Noise:
    """The disturbances of a share of the trials: starvation, stalls, or steal."""

    kind: str
    rate: float

    def of(self, chance: random.Random, duration_s: float) -> tuple[dict[str, Any], list[Stall]]:
        """The host's record of a trial, and its stalls; times from its start."""
        if chance.random() >= self.rate:
            return {}, []
        if self.kind == "starvation":
            return {"starved_pct": chance.uniform(1, 15)}, []
        if self.kind == "steal":
            return {"steal_pct": {"0": chance.uniform(1, 15)}}, []
        share = chance.uniform(0.005, 0.3)
        stalls = []
        while share > 0:
            length = min(share, chance.uniform(0.002, 0.02))
            share -= length
            at_ns = int(chance.uniform(0, 1 - length) * duration_s * 1e9)
            stalls.append(Stall(at_ns=at_ns, ms=length * duration_s * 500, cpu=1))
        return {}, stalls


def poisson(chance: random.Random, mean: float) -> int:
    """A Poisson variable; of a large mean its normal approximation."""
    if mean > 500:
        return max(0, round(chance.gauss(mean, math.sqrt(mean))))
    count, waited = 0, chance.expovariate(1)
    while waited < mean:
        count, waited = count + 1, waited + chance.expovariate(1)
    return count


class Bed(Testbed):
    """Nothing between two ports that do not exist."""

    def close(self) -> None: ...


BENCH = Setup(Bed("netns", "", {}, {}, placement.choose(allowed={0, 1}), {}), cast(Generator, None), None, {})
TRAFFIC = Traffic(((512, 1),), 4, "one-way")


def trial(
    asked: Request, case: Case, sequence: int, dut: Ratio, noise: Noise, chance: random.Random
) -> Trial:
    """Make espbench's record of a trial of this DUT on a host with this noise."""
    frames = round(asked.load_fps * asked.duration_s)
    lost = min(frames, poisson(chance, dut(asked.load_fps) * frames))
    length_ns = int(asked.duration_s * 1e9)
    # Loss as overload makes it lasts the whole trial; single frames have each their time.
    times = sorted(chance.randrange(length_ns) for _ in range(min(lost, 200)))
    episodes = [LossEpisode(from_ns=at, to_ns=at, frames=1) for at in times]
    if lost > len(times):
        episodes = [LossEpisode(from_ns=0, to_ns=length_ns, frames=lost)]
    host, stalls = noise.of(chance, asked.duration_s)
    stream = StreamCounts.model_validate(
        {
            "id": 0, "from": "west", "to": "east", "intended_frames": frames, "tx_frames": frames, "unsent": 0,
            "rx_frames": frames - lost, "lost": lost, "duplicated": 0, "reordered": 0, "corrupted": 0,
            "rx_after_stop": 0, "drain_s": 0.0, "latency_us": Latency(), "loss_episodes": episodes,
        }
    )  # fmt: skip
    offered = Offered(
        start_ns=0, last_tx_ns=length_ns, duration_s=asked.duration_s, intended_duration_s=asked.duration_s,
        streams=[stream], ports=[PortCounts(name=name, rx_overrun=0, foreign=0) for name in ("west", "east")],
        host_stalls=stalls,
    )  # fmt: skip
    return record(BENCH, TRAFFIC, asked, OfCase(case.id, sequence, RESOLUTION), Seen(offered, {}, {}, host))


def excuse_failures(made: Trial) -> Trial:
    """The rule of before: of disturbed trials those that passed stand."""
    if made.disturbed and made.tx_frames == made.rx_frames:
        return made.model_copy(update={"validity": "VALID", "reasons": [], "host": {}})
    return made


def outcomes(case: Case, dut: Ratio, noise: Noise, seed: int, *, old: bool) -> list[Outcome]:
    """One case, searched to its end."""
    chance = random.Random(seed)
    running = ThroughputCase(case, LIMITS, [512])
    while (asked := running.next()) is not None:
        made = trial(asked, case, len(running.trials), dut, noise, chance)
        running.add(excuse_failures(made) if old else made)
    return running.outcomes("simulated", "baseline")


def cells(options: argparse.Namespace) -> Iterator[tuple[str, Noise]]:
    for dut in DUTS:
        yield dut, Noise("none", 0.0)
        for kind in ("starvation", "stalls", "steal"):
            for rate in RATES:
                yield dut, Noise(kind, rate)


def of_dut(case: Case, dut: str, noise: Noise, old: bool, seed: int) -> list[Outcome]:
    """The outcomes of one case, in a process of its own."""
    return list(outcomes(case, DUTS[dut], noise, seed, old=old))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trial", default="2s")
    parser.add_argument("--final-trial", default="10s", help="1s: several are needed to tell about 0.001 %%")
    parser.add_argument("--cases", type=int, default=1000, help="of a cell")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--excuse-failures", action="store_true", help="judge as espbench did before: must turn red"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="espbench-null-") as folder:
        file = Path(folder) / "plan.yaml"
        file.write_text(PLAN.replace("FINAL_TRIAL", options.final_trial).replace("TRIAL", options.trial))
        case = cases(load_plan(file))[0]
    print("| DUT | noise | goal | mean, frames/s | against none | median | OK | at least | none | |")
    print("|---|---|---|---:|---:|---:|---:|---:|---:|---|")
    quiet: dict[tuple[str, float], tuple[float, float, bool]] = {}
    red = False
    seeds = [options.seed * 1_000_003 + number for number in range(options.cases)]
    for dut, noise in cells(options):
        by_goal: dict[float, list[Outcome]] = {}
        of_seed = partial(of_dut, case, dut, noise, options.excuse_failures)
        with ProcessPoolExecutor() as pool:
            for results in pool.map(of_seed, seeds, chunksize=10):
                for outcome in results:
                    by_goal.setdefault(outcome.loss_goal, []).append(outcome)
        for goal, of_goal in by_goal.items():
            figures = [o.throughput_fps for o in of_goal if o.throughput_fps is not None]
            sure = [o.throughput_fps for o in of_goal if o.status == "OK" and o.throughput_fps is not None]
            bounds = sum(o.status == "LOWER_BOUND" for o in of_goal)
            ok = sum(o.status == "OK" for o in of_goal) / len(of_goal)
            none = sum(o.status not in WITH_FIGURE for o in of_goal) / len(of_goal)
            mean = statistics.mean(sure) if sure else 0.0
            mean_of_all = statistics.mean(figures) if figures else 0.0
            median = statistics.median(figures) if figures else 0.0
            base = quiet.setdefault((dut, goal), (mean, median, 2 * len(sure) > len(of_goal)))
            off = mean / base[0] - 1 if base[0] else 0.0
            above = median > base[1] * (1 + RESOLUTION) or mean_of_all > base[0] * (1 + MEAN_MAY_MOVE)
            # A DUT that has no throughput for a goal gets a figure by luck now and then: that has no mean to move.
            bad = base[2] and 4 * len(sure) > len(of_goal) and (abs(off) > MEAN_MAY_MOVE or above)
            red = red or bad
            what = noise.kind if not noise.rate else f"{noise.kind}, {100 * noise.rate:.0f} %"
            print(
                f"| {dut} | {what} | {100 * goal:g} % | {mean:,.0f} | {100 * off:+.2f} % | {median:,.0f} "
                f"| {100 * ok:.1f} % | {100 * bounds / len(of_goal):.1f} % "
                f"| {100 * none:.1f} % | {'**red**' if bad else ''} |",
                flush=True,
            )
    print("\nred: a figure moves with the noise" if red else "\nno figure moves with the noise")
    return int(red)


if __name__ == "__main__":
    sys.exit(main())
