#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests whether stalls move figures of trials that belong to no search: the frame loss test, and the ladder of a
comparison at fixed loads.

DUTs and noise are those of null_experiment.py: the noise disturbs a share of the trials, whatever the DUT loses, and
espbench's own code judges them. The means with noise are compared with those without it. A row is red (exit code 1) if
  * the mean of the highest load without loss moved by more than 1 %;
  * the mean loss at one of two loads is more than twice that without noise (0.01 points more are allowed in any case);
  * the ratio of two arms' throughputs, or one arm's, moved by more than half a step of the ladder, 2 %;
  * more than 5 % of the cases have no answer that they have without noise.

`--rule` judges the trials by another rule: `all` voids a trial only if all of its loss was in stalls, as an earlier
espbench did; `share` looks only at the share of the trial that stalls cover. With these two, rows must be red.

    python benchmarks/judgement/null_frame_loss.py [--cases 200] [--rate 0.3] [--rule half|all|share]
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from null_experiment import LIMITS, START_FPS, Cell, SimulatedCase

from espbench.plan.keys.fixed_loads import FixedLoads
from espbench.plan.keys.rfc2544_tests import FrameLoss
from espbench.procedures.paired_trials import ARMS, RUNGS, STEP, Arm, PairedLoads
from espbench.procedures.procedure import Known
from espbench.procedures.rfc2544.frame_loss import FrameLossCase
from espbench.quantities import Key
from espbench.sentences import Code
from espbench.terms import Trial
from support.simulated import procedures

STALLS = ("stalls", "sender stalls", "many pauses")
DUTS = ("hard limit", "fades", "hiccups")
PAIRS = (("hard limit", "hard limit"), ("hiccups", "hiccups"), ("hard limit", "hiccups"))
LITTLE_FPS, MUCH_FPS = 48_000, 80_000  # the loads whose loss is printed; LIMITS.maximum_fps is the higher one
LOAD_MAY_MOVE, LOSS_MAY_RISE, POINTS, LADDER_MAY_MOVE, MAY_LACK = 0.01, 2.0, 0.01, STEP / 2, 0.05
SETTINGS = FrameLoss.model_validate({"trial": "10s"})
Figures = Mapping[str, float]


def _valid(trial: Trial) -> Trial:
    return trial.model_copy(update={"validity": "VALID", "reasons": []})


def all_of_it(trial: Trial) -> Trial:
    """Judge a trial as an earlier espbench did: its loss voids it only if all of it was in stalls."""
    return trial if trial.host["lost_in_stalls"] >= trial.lost else share_alone(trial)


def share_alone(trial: Trial) -> Trial:
    """Judge a trial by the share that stalls cover alone, whatever it lost."""
    return _valid(trial) if [r.code for r in trial.reasons] == [Code.HOST_STALL_OF_LOSS] else trial


RULES: Mapping[str, Callable[[Trial], Trial]] = {
    "half": lambda trial: trial, "all": all_of_it, "share": share_alone,
}  # fmt: skip


@dataclass(frozen=True)
class Noise:
    """The noise of a row, the share of the trials that have it, and the rule that judges them."""

    name: str = "stalls"
    rate: float = 0.0
    rule: str = "half"

    def case(self, dut: str, seed: int) -> Callable[..., Trial]:
        """Return what makes a DUT's trials."""
        cell = Cell(procedures.case_of(SETTINGS, "frame_loss"), dut, self.name, self.rate)
        simulated = SimulatedCase(cell, seed)
        return lambda request, number: RULES[self.rule](simulated.trial(request, number))


def frame_loss(dut: str, noise: Noise, seed: int) -> Figures:
    """Return the figures of one frame loss test; those that it does not have are left out."""
    running = FrameLossCase(procedures.case_of(SETTINGS, "frame_loss"), Known(LIMITS, {}, procedures.SIZES))
    trial = noise.case(dut, seed)
    while (request := running.next()) is not None:
        running.add(trial(request, len(running.trials)))
    finding = procedures.answer(running)
    figures = {
        "void": sum(t.validity == "INVALID" for t in running.trials) / len(running.trials),
        "none": float(finding.status != "OK"),
    }
    figures |= {str(q.key): q.value for q in finding.quantities if q.value is not None}
    return figures | {
        f"loss at {point['intended_fps']:.0f}": point["frame_loss_pct"]
        for point in finding.curve
        if point["validity"] == "VALID"
    }


def ladder(duts: tuple[str, str], noise: Noise, seed: int) -> Figures:
    """Return each arm's throughput by the rungs that it passed, as its logarithm, and that of their ratio."""
    start: dict[Arm, float] = dict.fromkeys(ARMS, START_FPS)
    running = PairedLoads(
        FixedLoads(), start, maximum_fps=LIMITS.maximum_fps, goal=0.0, retries=3, seed=str(seed)
    )
    trials = {arm: noise.case(dut, 2 * seed + n) for n, (arm, dut) in enumerate(zip(ARMS, duts, strict=True))}
    made = 0
    while (ask := running.next()) is not None:
        running.add(trials[ask.arm](ask.request, made))
        made += 1
    figures = {"void": sum(running.void.values()) / made, "none": 0.0}
    for arm in ARMS:
        if found := [fps for of_round in _rounds(running) if (fps := _throughput(of_round, arm)) is not None]:
            figures[arm] = fmean(found)
    if len(figures) < 4:
        return figures | {"none": 1.0}
    return figures | {"ratio": figures["b"] - figures["a"]}


def _rounds(running: PairedLoads) -> list[list[dict[str, object]]]:
    rungs = [row for row in running.rows if row["rung"] is not None]
    return [[row for row in rungs if row["round"] == n] for n in range(1, running.settings.rounds + 1)]


def _throughput(rows: Sequence[Mapping[str, object]], arm: Arm) -> float | None:
    """Return the logarithm of an arm's throughput in a round (comparison/deciding/paired_ratios.py)."""
    if len(rows) < RUNGS - 1:
        return None
    of_arm: list[Mapping[str, float]] = [row[arm] for row in rows]  # type: ignore[misc]
    passed = sum(bool(one["met"]) for one in of_arm)
    if not 0 < passed < len(rows):
        return None
    middle = fmean(math.log(one["intended_fps"]) for one in of_arm)
    return middle + STEP * RUNGS * (passed / len(rows) - 0.5)


def means(each: Sequence[Figures]) -> Figures:
    """Return the mean of each figure, over the cases that have it."""
    names = dict.fromkeys(name for figures in each for name in figures)
    return {name: fmean(figures[name] for figures in each if name in figures) for name in names}


def problems(noisy: Figures, quiet: Figures) -> list[str]:
    """Return why a row is red."""
    reasons = []
    lossless = str(Key.LOSSLESS_LOAD)
    if lossless in noisy and abs(noisy[lossless] / quiet[lossless] - 1) > LOAD_MAY_MOVE:
        reasons.append("the load without loss moved")
    for load in (LITTLE_FPS, MUCH_FPS):
        name = f"loss at {load}"
        if name in noisy and noisy[name] > LOSS_MAY_RISE * quiet[name] + POINTS:
            reasons.append(f"the {name} is the host's")
    if any(abs(noisy[n] - quiet[n]) > LADDER_MAY_MOVE for n in (*ARMS, "ratio") if n in noisy):
        reasons.append("the ladder moved")
    if noisy.get("none", 0.0) > quiet.get("none", 0.0) + MAY_LACK:
        reasons.append("too many cases have no answer")
    return reasons


def row(what: str, noise: Noise, noisy: Figures, quiet: Figures) -> str:
    """Return a row of the table: the figures with noise, and by how much they moved."""
    lossless = str(Key.LOSSLESS_LOAD)
    cells = [what, f"{noise.name}, {100 * noise.rate:g} %" if noise.rate else "none"]
    if lossless in noisy:
        cells.append(f"{noisy[lossless]:,.0f} ({100 * (noisy[lossless] / quiet[lossless] - 1):+.2f} %)")
        losses = [noisy.get(f"loss at {load}") for load in (LITTLE_FPS, MUCH_FPS)]
        cells += ["–" if pct is None else f"{pct:.3f} %" for pct in losses]
    elif not {"a", "ratio"} <= noisy.keys():
        cells += ["–", "–", "–"]
    else:
        cells.append(f"{math.exp(noisy['a']):,.0f} ({100 * (noisy['a'] - quiet['a']):+.2f} %)")
        cells.append(f"{math.exp(noisy['ratio']):.3f} ({100 * (noisy['ratio'] - quiet['ratio']):+.2f} %)")
        cells.append("")
    cells += [f"{100 * noisy['void']:.0f} %", f"{100 * noisy['none']:.0f} %"]
    return f"| {' | '.join([*cells, ', '.join(problems(noisy, quiet))])} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row for each combination; return the exit code: 1 if one is red."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--rate", type=float, default=0.3, help="the share of trials with noise")
    parser.add_argument("--rule", choices=list(RULES), default="half")
    options = parser.parse_args(arguments)
    noises = [Noise(), *(Noise(name, options.rate, options.rule) for name in STALLS)]
    print("| test, DUT | noise | load without loss, or A's throughput | loss at 48,000, or B / A | loss at 80,000 "
          "| void | without an answer | red |\n|---|---|---|---|---|---|---|---|")  # fmt: skip
    red = False
    tests: list[tuple[str, Callable[[Noise, int], Figures]]] = [
        *((f"frame loss, {dut}", partial(frame_loss, dut)) for dut in DUTS),
        *((f"ladder, {a} and {b}", partial(ladder, (a, b))) for a, b in PAIRS),
    ]
    with ProcessPoolExecutor() as pool:
        for what, test in tests:
            quiet: Figures = {}
            for noise in noises:
                noisy = means([*pool.map(partial(test, noise), range(options.cases), chunksize=5)])
                quiet = quiet or noisy
                red = red or bool(problems(noisy, quiet))
                print(row(what, noise, noisy, quiet), flush=True)
    print("\nred: a figure moves with the noise" if red else "\nno figure moves with the noise")
    return int(red)


if __name__ == "__main__":
    sys.exit(main())
