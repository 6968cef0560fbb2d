#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the cost and the errors of throughput searches on DUTs that are pure arithmetic, without traffic.

First, every search runs on a family of DUTs for both loss goals, each DUT with DRAWS random limits and noises: seconds
of traffic, number of trials, error of the answers. Then the default search runs over the frame sizes of RFC 2544, with
and without warm starts. Run it from anywhere: `python benchmarks/judgement/search_cost.py`.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from espbench.plan.keys.search_choice import PresetName
from espbench.procedures.rfc2544.warm_start import worth_a_hint
from espbench.search import GoalResult, Judgement, TrialRequest, judge
from espbench.search.frame_cost import predicted_fps
from support.simulated import duts

DRAWS = 20
GOALS = (0.0, 1e-5)
MAXIMUM = 1e9 / 8 / 84  # 64 B frames on 1 Gbit/s
RANGE = {"minimum_fps": MAXIMUM / 100, "maximum_fps": MAXIMUM, "resolution": 0.01}
LENGTHS = {"trial_s": 2.0, "final_trial_s": 60.0}

Truth = tuple[float | None, float | None]  # frames/s for each goal; None: no rate meets it
Family = dict[str, tuple[Callable[[float, int], duts.Dut], Callable[[float], Truth]]]
# Each entry: a function from a random limit (frames/s) and seed to a DUT, and one from the limit to the true answers.
FAMILY: Family = {
    "hard limit": (lambda limit, _: duts.HardLimit(limit), lambda limit: (limit, limit)),
    "collapses": (lambda limit, _: duts.Collapses(limit), lambda limit: (limit, limit)),
    "soft limit": (lambda limit, _: duts.SoftLimit(limit), lambda limit: (limit, 1.05 * limit)),
    "deep queue": (lambda limit, _: duts.DeepQueue(limit), lambda limit: (limit, limit)),
    "noise in 10 %": (duts.Noisy, lambda limit: (limit, limit)),
    "noise in 30 %": (lambda limit, seed: duts.Noisy(limit, seed, bursts=0.3), lambda limit: (limit, limit)),
    "1 in 200,000": (lambda limit, _: duts.DropsOneIn(200_000, limit), lambda limit: (None, limit)),
    "1 in 50,000": (lambda limit, _: duts.DropsOneIn(50_000, limit), lambda limit: (None, None)),
    "always passes": (lambda _, __: duts.always_passes, lambda _: (MAXIMUM, MAXIMUM)),
    "never passes": (lambda _, __: duts.never_passes, lambda _: (None, None)),
}
Answer = tuple[duts.Log, list[float | None]]


def textbook(dut: duts.Dut) -> Answer:
    """Search as RFC 2544 26.1 says: each goal by itself, every trial 60 s, halving the interval that is left."""
    log: duts.Log = []
    answers: list[float | None] = []
    for goal in GOALS:
        low, high, load = None, None, MAXIMUM
        for _ in range(100):
            asked = TrialRequest(load, LENGTHS["final_trial_s"], "final", 0)
            seen = dut(asked)
            log.append((asked, seen))
            if seen.valid and judge(seen, goal) is Judgement.MET:
                low = load
            elif seen.valid:
                high = load
            if high is None or (low or RANGE["minimum_fps"]) >= high * (1 - RANGE["resolution"]):
                break
            load = math.sqrt((low or RANGE["minimum_fps"]) * high) if seen.valid else load
        answers.append(low)
    return log, answers


def apart(dut: duts.Dut) -> Answer:
    """Make one of espbench's searches for each goal."""
    log: duts.Log = []
    results: list[GoalResult] = []
    for goal in GOALS:
        search = duts.a_search((goal,), **RANGE, **LENGTHS)
        log += duts.run(search, dut)
        results += search.results()
    return log, [result.throughput_fps for result in results]


def together(verified: int = 0) -> Callable[[duts.Dut], Answer]:
    """Return a method that searches both goals in one of espbench's searches; verified: its loss_verification."""

    def method(dut: duts.Dut) -> Answer:
        search = duts.a_search(GOALS, **RANGE, **LENGTHS, loss_verification=verified)
        log = duts.run(search, dut)
        return log, [result.throughput_fps for result in search.results()]

    return method


def mlr(preset: PresetName) -> Callable[[duts.Dut], Answer]:
    """Return a method that searches with the MLRsearch library, with this preset."""

    def method(dut: duts.Dut) -> Answer:
        search = duts.an_mlr_search(preset, GOALS, **RANGE)
        log = duts.run(search, dut)
        return log, [result.throughput_fps for result in search.results()]

    return method


METHODS: dict[str, Callable[[duts.Dut], Answer]] = {
    "textbook": textbook,
    "one by one": apart,
    "bisection": together(),
    "verified": together(verified=1),
    "mlr rfc2544": mlr("rfc2544"),
    "mlr tst009": mlr("tst009"),
    "mlr csit": mlr("csit"),
}


class Cost:
    """The cost and the errors of one method for one kind of DUT, over all draws."""

    def __init__(self) -> None:
        self.trials: list[int] = []
        self.seconds: list[float] = []
        self.errors: list[float] = []
        self.unanswered = self.invented = 0

    def add(self, log: duts.Log, answers: Sequence[float | None], truth: Truth) -> None:
        self.trials.append(len(log))
        self.seconds.append(sum(asked.duration_s for asked, _ in log))
        for answer, true in zip(answers, truth, strict=True):
            if answer is not None and true is not None:
                self.errors.append(answer / true - 1)
            self.unanswered += answer is None and true is not None
            self.invented += answer is not None and true is None

    @property
    def error(self) -> str:
        """The mean size of the errors and the worst one; the number of missing answers, and of false ones."""
        parts = []
        if self.errors:
            worst = max(self.errors, key=abs)
            parts.append(f"{statistics.mean(map(abs, self.errors)):.1%} {worst:+.1%}")
        parts += [f"{self.unanswered} none"] if self.unanswered else []
        parts += [f"{self.invented} FALSE"] if self.invented else []
        return ", ".join(parts) or "right"


def compare() -> None:
    """Print three tables: a row for each kind of DUT, a column for each method."""
    costs: dict[str, dict[str, Cost]] = {}
    for name, (make, truth) in FAMILY.items():
        for method, search in METHODS.items():
            cost = costs.setdefault(name, {}).setdefault(method, Cost())
            draw = random.Random(2544)
            for seed in range(DRAWS):
                limit = MAXIMUM * 10 ** draw.uniform(-1.3, -0.05)
                cost.add(*search(make(limit, seed)), truth(limit))
    for title, cell in (
        ("seconds of traffic", lambda cost: f"{statistics.mean(cost.seconds):,.0f}"),
        ("trials", lambda cost: f"{statistics.mean(cost.trials):.1f}"),
        (f"error: mean size, worst; of {len(GOALS) * DRAWS} answers", lambda cost: cost.error),
    ):
        wide = 12 if title.startswith(("seconds", "trials")) else 22
        print(f"\n{title}\n{'':15}" + "".join(f"{method:>{wide}}" for method in METHODS))
        for name, row in costs.items():
            print(f"{name:15}" + "".join(f"{cell(row[method]):>{wide}}" for method in METHODS))


def over_the_sizes() -> None:
    """Print the cost per frame size with and without warm starts, for gateways that deviate from the cost model."""
    print("\nper frame size, of 7: trials without warm starts → with, seconds likewise; answers that differ")
    misfits = (0.0, 0.02, 0.05, 0.1)
    print(f"{'':15}" + "".join(f"{f'±{misfit:.0%}':>30}" for misfit in misfits))
    for name in ("hard limit", "collapses", "soft limit", "deep queue", "noise in 10 %"):
        cells = []
        for misfit in misfits:
            cold, warm = (_sizes(FAMILY[name][0], misfit, hinted) for hinted in (False, True))
            changed = sum(a != b for a, b in zip(cold[2], warm[2], strict=True))
            cells.append(f"{cold[0]:.1f} → {warm[0]:.1f}, {cold[1]:.0f} → {warm[1]:.0f} s; {changed}")
        print(f"{name:15}" + "".join(f"{cell:>30}" for cell in cells))


def _sizes(
    make: Callable[[float, int], duts.Dut], misfit: float, hinted: bool
) -> tuple[float, float, list[float | None]]:
    """Return the mean trials and seconds for a frame size, and all answers."""
    sizes = (64, 128, 256, 512, 1024, 1280, 1518)
    draw = random.Random(2544)
    logs: list[duts.Log] = []
    answers: list[float | None] = []
    for seed in range(DRAWS):
        per_frame_s = 10 ** draw.uniform(-5.8, -4.5)
        per_byte_s = per_frame_s * draw.uniform(0, 10) / 700
        rates: dict[float, dict[float, float]] = {goal: {} for goal in GOALS}
        trials: list[int] = []
        for size in sizes:
            limit = 1 / ((per_frame_s + per_byte_s * size) * (1 + draw.uniform(-misfit, misfit)))
            line = 1e9 / 8 / (size + 20)
            bounds = {"minimum_fps": line / 100, "maximum_fps": line, "resolution": 0.01}
            worth = hinted and worth_a_hint(trials)
            hints = [predicted_fps(rates[goal], size) if worth else None for goal in GOALS]
            search = duts.a_search(GOALS, **bounds, **LENGTHS, hints_fps=hints)
            logs.append(duts.run(search, make(limit, seed)))
            trials.append(len(logs[-1]))
            for result in search.results():
                answers.append(result.throughput_fps)
                if result.status == "OK" and result.lower_fps and result.upper_fps:
                    rates[result.goal][size] = math.sqrt(result.lower_fps * result.upper_fps)
    return (
        statistics.mean(map(len, logs)),
        statistics.mean(sum(asked.duration_s for asked, _ in log) for log in logs),
        answers,
    )


def main() -> None:
    """Print the tables."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    print(
        "loss goals 0 and 0.001 %, 1 % to 100 % of 1,488,095 frames/s, resolution 1 %, trials 2 s, final 60 s;"
    )
    print(f"mean of {DRAWS} limits. verified: loss_verification 1. FALSE: a figure where there is none.")
    compare()
    over_the_sizes()


if __name__ == "__main__":
    main()
