#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests whether noise of the host moves a figure, with simulated DUTs of known loss, and noise independent of them.

The noise does not depend on the DUT, so the reported throughput must be the same with and without it. Trials are pure
arithmetic, but espbench's own code judges them: it compares stalls and starvation with the losses, makes the trial's
record, and searches. The noise disturbs the gateways (starvation, stalls, steal, slow CPUs) or the load: senders make
a few long pauses, or more pauses than their lists hold, or are too slow for their rate.

The cases of a cell have the same random losses as those without noise: the n-th undisturbed trial at a load loses the
same frames. So chance moves the means of the cells much less than the noise is allowed to.

A cell is red (exit code 1), in comparison with the same cell without noise, if
  * more than 5 % of the cases have lost their figure;
  * the mean of the figures that are OK moved by more than 1 %;
  * the mean of all figures, including lower bounds, is higher by more than 1 %;
  * the median or the 95th percentile of all figures is higher by more than the resolution;
  * figures are higher than all figures without noise by more than the resolution: a single one for a DUT with a sharp
    limit, more than 0.5 % of the cases for another DUT;
  * a figure of a DUT with a sharp limit is OK, and lower than all figures without noise by more than the resolution.
A cell without noise is red if the throughput of its DUT is known and the mean is off by more than two resolutions.
A DUT that meets a goal only by chance has no mean. Its cell is red if noise gives it a figure significantly more often.
The shares of OK, of lower bounds, and of cases without a figure are printed.

`--excuse-failures` judges as an earlier espbench did: disturbed trials that passed count. With it, cells must be red;
`--must-be-red` inverts the exit code: 0 if a cell is red. A crash or a wrong option is a failure in both cases.

    python benchmarks/judgement/null_experiment.py [--cases 1000] [--dut NAME …] [--noise NAME …] [--rates 0.1 0.3]
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple, cast

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from shares import wilson

from espbench.generators.base import Generator
from espbench.measure.inputs.setup import Request, Setup
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.record import OfCase, Seen, record
from espbench.measure.trial import leeway
from espbench.plan import Case, cases, load_plan
from espbench.plan.keys.model import Throughput
from espbench.platforms import placement
from espbench.platforms.base import Testbed
from espbench.procedures.limits import Limits
from espbench.procedures.rfc2544.throughput import ThroughputCase
from espbench.terms import WITH_FIGURE, Outcome, Trial, loaded_directions
from support.simulated import noisy_host
from support.simulated.noisy_host import Dut

PLAN = """\
name: "null"
topology: gateway-to-gateway
dut: uml
stacks: [plain]
frame_sizes: [512]
directions: [DIRECTION]
tests: [{throughput: {loss_goals: [GOALS], trial: TRIAL, final_trial: FINAL_TRIAL, resolution: 2%}}]
"""
RESOLUTION = 0.02
LIMITS = Limits(10_000.0, 80_000.0, 80_000.0, None)
START_FPS = 40_000.0
RATES = (0.1, 0.3)
MEAN_MAY_MOVE = 0.01
# This share of the figures of a DUT without a sharp limit may by chance be above all figures without noise.
MAY_BE_CHANCE = 0.005
MAY_BE_WITHOUT = 0.05  # the share of the cases that noise may leave without a figure
HICCUP_FRAMES = 50
COLUMNS = (
    "DUT, directions, final trials", "noise", "goal", "mean, frames/s", "against none", "median", "OK", "at least",
    "none",
)  # fmt: skip
# Here the goal of 1 % is missed, downwards (docs/search.md). A trial that offered too little is made again, but if it
# lost frames, it stays a miss. So there are more trials in which a DUT can lose by chance, and the figure of a DUT
# without a sharp limit may fall, but never rise.
LOWERS = ("slow sender",)
# Loads in a record are rounded to six digits.
ROUNDING = 1e-4


def _hard(load: float) -> float:
    return max(0.0, 1 - START_FPS / load) if load > 0 else 0.0


def _fades(load: float) -> float:
    """Return a loss ratio that rises a hundredfold with each 10 % of load above 40,000 frames/s: chance decides."""
    over = load / START_FPS - 1
    return 0.0 if over < 0 else min(1.0, 1e-6 * 100 ** (10 * over))


def _hiccups(load: float) -> float:
    """Return the loss ratio of a DUT that at times loses 50 frames at once.

    At 40,000 frames/s it does so every 50 s, and ten times as often with each 30 % more load. A trial sees such a loss
    or none, so that chance decides over a wide range of loads.
    """
    times_a_second = 0.02 * 10 ** ((load / START_FPS - 1) / 0.3)
    return min(1.0, HICCUP_FRAMES * times_a_second / load) if load > 0 else 0.0


def _collapses(load: float) -> float:
    """Return the loss ratio of a DUT that loses half of 0.001 %, and forwards less than a third when overloaded.

    The search comes from far below. A short trial that lost a frame or two by chance must not limit the figure there.
    """
    return 5e-6 if load <= START_FPS else 0.7


DUTS: dict[str, Dut] = {
    "hard limit": Dut(_hard, sharp=True),
    "stores": Dut(lambda _: 0.0, stores_above=START_FPS, sharp=True),
    "fades": Dut(_fades),
    "hiccups": Dut(_hiccups, together=HICCUP_FRAMES),
    "half the goal": Dut(lambda load: 5e-6 + _hard(load)),
    "collapses": Dut(_collapses),
}
# These DUTs forward so much while they lose no more than 0.001 %, frames/s. Their figures must be near it.
KNOWN = dict.fromkeys(("hard limit", "stores", "half the goal", "collapses"), START_FPS)
NOISES: dict[str, noisy_host.Kind] = {
    "starvation": noisy_host.starvation,
    "switches": noisy_host.switches,
    "steal": noisy_host.steal,
    "stalls": noisy_host.stalls,
    "sender stalls": noisy_host.pauses,
    "many pauses": noisy_host.many_pauses,
    "slow sender": noisy_host.shortfall,
    "slow CPUs": noisy_host.slow_cpus,
}


class Set(NamedTuple):
    """The cells of one plan: its direction, its possible DUTs and noises, and the duration of its final trials."""

    direction: str
    duts: Collection[str] = DUTS
    noises: Collection[str] = NOISES
    final_trial: str = "10s"
    goals: str = "0, 0.001%"


SETS = (
    Set("one-way", noises=[name for name in NOISES if name != "switches"]),
    # The limit of starvation is applied to what is left without the switches to idle CPUs, which depends on the load.
    Set("one-way", ("hiccups",), ("switches",)),
    # Here one of the two senders is disturbed.
    Set(
        "both-ways", ("hard limit", "hiccups"), ("starvation", "sender stalls", "many pauses", "slow sender")
    ),
    # Final trials are as long as RFC 2544 24 asks for; in them, the lists of pauses overflow.
    Set("one-way", ("hard limit", "fades"), ("starvation", "many pauses", "sender stalls"), "60s"),
    # Nothing but the loss above asks for long final trials if zero loss is the only goal.
    Set("one-way", ("hard limit", "fades"), ("starvation", "stalls"), goals="0"),
)


class Bed(Testbed):
    """A test bed without gateways and ports."""

    def close(self) -> None: ...


@cache
def _bench() -> Setup:
    bed = Bed("netns", "", {}, {}, placement.choose(allowed={0, 1}), {})
    return Setup(bed, cast(Generator, None), None, {})


@dataclass(frozen=True)
class Cell:
    """One combination of plan, DUT and noise. rate: the share of the trials that have the noise.

    old: judge as an earlier espbench did (--excuse-failures).
    """

    case: Case
    dut: str
    noise: str = "none"
    rate: float = 0.0
    old: bool = False

    @property
    def words(self) -> str:
        """The DUT, the direction, the duration of final trials and whether there is one loss goal, as text."""
        settings = self.case.settings
        assert isinstance(settings, Throughput)
        alone = "" if len(settings.loss_goals) > 1 else ", one goal"
        return f"{self.dut}, {self.case.direction}, {settings.final_trial:g} s{alone}"


class SimulatedCase:
    """One case, searched to its end. The noise and each trial's losses have separate random numbers."""

    def __init__(self, cell: Cell, seed: int) -> None:
        self._cell, self._seed = cell, seed
        self._noise = random.Random(f"{seed} noise")
        self._trials_at: dict[tuple[float, float, bool], int] = {}

    def outcomes(self) -> list[Outcome]:
        """Return one outcome for each loss goal."""
        running = ThroughputCase(self._cell.case, LIMITS, [512])
        while (asked := running.next()) is not None:
            made = self.trial(asked, len(running.trials))
            running.add(excuse_failures(made) if self._cell.old else made)
        return running.outcomes("simulated", "baseline")

    def trial(self, asked: Request, sequence: int) -> Trial:
        """Make espbench's record of a trial."""
        cell = self._cell
        disturbed = self._noise.random() < cell.rate
        noise = NOISES[cell.noise](self._noise, asked.duration_s) if disturbed else noisy_host.QUIET
        directions = loaded_directions(cell.case.direction)
        offered = noisy_host.offer(
            asked, DUTS[cell.dut], noise, self._luck(asked, disturbed), directions, leeway(asked, RESOLUTION)
        )
        return record(
            _bench(),
            Traffic(((512, 1),), 4, cell.case.direction),
            asked,
            OfCase(cell.case.id, sequence, RESOLUTION),
            Seen(offered, {}, {}, noise.host_record(asked.duration_s, asked.load_fps)),
        )

    def _luck(self, asked: Request, disturbed: bool) -> random.Random:
        """Return the random numbers for the losses of the n-th trial of its kind (load, duration, disturbed or not).

        Those of undisturbed trials are the same in every cell.
        """
        key = (asked.load_fps, asked.duration_s, disturbed)
        number = self._trials_at[key] = self._trials_at.get(key, 0) + 1
        return random.Random(f"{self._seed} {key} {number}")


def excuse_failures(made: Trial) -> Trial:
    """Judge a trial as an earlier espbench did: a disturbed trial without loss is VALID."""
    if made.disturbed and made.tx_frames == made.rx_frames:
        return made.model_copy(update={"validity": "VALID", "reasons": [], "host": {}})
    return made


def of_seed(cell: Cell, seed: int) -> list[Outcome]:
    """Return the outcomes of one case; called in a process of its own."""
    return SimulatedCase(cell, seed).outcomes()


@dataclass(frozen=True)
class Figures:
    """The figures of a cell for one goal, frames/s.

    ok: those with the status OK. every: all, including lower bounds. cases: the number of cases.
    """

    ok: tuple[float, ...]
    every: tuple[float, ...]
    cases: int

    @classmethod
    def of(cls, outcomes: Sequence[Outcome]) -> Figures:
        """Return the figures of these outcomes."""
        known = [o for o in outcomes if o.status in WITH_FIGURE and o.throughput_fps is not None]
        fps = [cast(float, o.throughput_fps) for o in known]
        ok = [fps for fps, o in zip(fps, known, strict=True) if o.status == "OK"]
        return cls(tuple(ok), tuple(fps), len(outcomes))

    @property
    def by_luck(self) -> bool:
        """True if at most half of the cases have a figure that is OK: then they have it by chance."""
        return 2 * len(self.ok) <= self.cases

    @property
    def high(self) -> float:
        """The 95th percentile of all figures."""
        return sorted(self.every)[int(0.95 * (len(self.every) - 1))]


def problems(figures: Figures, quiet: Figures, *, sharp: bool, may_fall: bool = False) -> list[str]:
    """Return the reasons why a cell is red, compared with the cell without noise (quiet).

    may_fall: this noise may lower the mean.
    """
    if quiet.by_luck:
        most = wilson(len(quiet.every), quiet.cases)[1]
        least = wilson(len(figures.every), figures.cases)[0]
        return ["more cases have a figure"] if least > most else []
    if len(quiet.every) - len(figures.every) > MAY_BE_WITHOUT * figures.cases:
        return [f"{figures.cases - len(figures.every)} cases have no figure"]
    reasons = []
    moved = statistics.mean(figures.ok) / statistics.mean(quiet.ok) - 1 if figures.ok else 0.0
    if moved > MEAN_MAY_MOVE or (moved < -MEAN_MAY_MOVE and not may_fall):
        reasons.append("the mean moved")
    if statistics.mean(figures.every) > (1 + MEAN_MAY_MOVE) * statistics.mean(quiet.every):
        reasons.append("the mean with bounds is above")
    if _is_above(statistics.median(figures.every), statistics.median(quiet.every)):
        reasons.append("the median is above")
    if _is_above(figures.high, quiet.high):
        reasons.append("the 95th percentile is above")
    highest = max(quiet.every)
    above = sum(_is_above(fps, highest) for fps in figures.every)
    if above > (0 if sharp else MAY_BE_CHANCE * figures.cases):
        reasons.append(f"{above} above every figure without noise")
    below = sum(_is_above(min(quiet.ok), fps) for fps in figures.ok)
    if sharp and below:
        reasons.append(f"{below} that are OK below every figure without noise")
    return reasons


def _is_above(fps: float, reference: float) -> bool:
    """Return whether a rate is above another by more than the resolution; one step of the search is not enough."""
    return fps * (1 - RESOLUTION) > reference * (1 + ROUNDING)


def row(cell: Cell, goal: float, figures: Figures, quiet: Figures) -> tuple[str, bool]:
    """Return a row of the table, and whether its cell is red."""
    sharp = DUTS[cell.dut].sharp
    reasons = problems(figures, quiet, sharp=sharp, may_fall=not sharp and cell.noise in LOWERS)
    mean = statistics.mean(figures.ok) if figures.ok else 0.0
    if goal and not cell.rate and cell.dut in KNOWN and abs(mean / KNOWN[cell.dut] - 1) > 2 * RESOLUTION:
        reasons.append("the mean is not the truth")
    moved = 100 * (mean / statistics.mean(quiet.ok) - 1) if figures.ok and quiet.ok else 0.0
    cells = [
        cell.words,
        f"{cell.noise}, {100 * cell.rate:g} %" if cell.rate else "none",
        f"{100 * goal:g} %",
        f"{mean:,.0f}",
        "by luck" if quiet.by_luck else f"{moved:+.2f} %",
        f"{statistics.median(figures.every) if figures.every else 0.0:,.0f}",
        f"{100 * len(figures.ok) / figures.cases:.1f} %",
        f"{100 * (len(figures.every) - len(figures.ok)) / figures.cases:.1f} %",
        f"{100 * (figures.cases - len(figures.every)) / figures.cases:.1f} %",
        f"**red**: {', '.join(reasons)}" if reasons else "",
    ]
    return f"| {' | '.join(cells)} |", bool(reasons)


def plan_case(
    direction: str = "one-way", trial: str = "2s", final_trial: str = "10s", goals: str = "0, 0.001%"
) -> Case:
    """Return the case that is searched."""
    text = PLAN.replace("FINAL_TRIAL", final_trial).replace("TRIAL", trial)
    with tempfile.TemporaryDirectory(prefix="espbench-null-") as folder:
        file = Path(folder) / "plan.yaml"
        file.write_text(text.replace("DIRECTION", direction).replace("GOALS", goals))
        return cases(load_plan(file))[0]


def cells(options: argparse.Namespace) -> Iterator[Cell]:
    """Yield the cells that the options ask for; each DUT's cell without noise comes first, and only once."""
    begun: set[str] = set()
    for one in SETS:
        noises = [name for name in options.noise if name in one.noises]
        case = plan_case(one.direction, options.trial, options.final_trial or one.final_trial, one.goals)
        for dut in [name for name in options.dut if name in one.duts and noises]:
            quiet = Cell(case, dut)
            if quiet.words not in begun:
                yield quiet
            begun.add(quiet.words)
            for noise in noises:
                for rate in options.rates:
                    yield Cell(case, dut, noise, rate, old=options.excuse_failures)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row for each cell and goal; return the exit code: 1 if a cell is red (with --must-be-red: if none is)."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trial", default="2s")
    parser.add_argument(
        "--final-trial",
        help="duration of final trials; with 1s, 0.001 %% needs several of them (default: 10s and 60s)",
    )
    parser.add_argument("--cases", type=int, default=1000, help="number of cases in a cell")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dut", nargs="+", choices=list(DUTS), default=list(DUTS))
    parser.add_argument("--noise", nargs="+", choices=list(NOISES), default=list(NOISES))
    parser.add_argument(
        "--rates", nargs="+", type=float, default=RATES, help="the share of trials with noise"
    )
    parser.add_argument("--excuse-failures", action="store_true", help="judge as an earlier espbench did")
    parser.add_argument(
        "--must-be-red", action="store_true", help="exit with 0 if a cell is red, with 1 if none is"
    )
    options = parser.parse_args(arguments)
    asked = list(cells(options))
    if not asked:
        parser.error(
            f"none of {', '.join(options.noise)} disturbs {', '.join(options.dut)}: nothing would be shown"
        )
    print(f"| {' | '.join(COLUMNS)} | |")
    print(f"|---|---|---|{'---:|' * (len(COLUMNS) - 3)}---|")
    quiet: dict[tuple[str, float], Figures] = {}
    red = False
    seeds = [options.seed * 1_000_003 + number for number in range(options.cases)]
    with ProcessPoolExecutor() as pool:
        for cell in asked:
            by_goal: dict[float, list[Outcome]] = {}
            for results in pool.map(partial(of_seed, cell), seeds, chunksize=10):
                for outcome in results:
                    by_goal.setdefault(outcome.loss_goal, []).append(outcome)
            for goal, outcomes in by_goal.items():
                figures = Figures.of(outcomes)
                without = quiet.setdefault((cell.words, goal), figures)
                text, is_red = row(cell, goal, figures, without)
                red = red or is_red
                print(text, flush=True)
    print("\nred: a figure moves with the noise" if red else "\nno figure moves with the noise")
    return int(red != options.must_be_red)


if __name__ == "__main__":
    sys.exit(main())
