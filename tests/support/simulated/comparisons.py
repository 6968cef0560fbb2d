# SPDX-License-Identifier: Apache-2.0
"""Simulates whole runs of several arms: real searches on simulated, noisy DUTs."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, Literal

from espbench.comparison.build import of
from espbench.comparison.sorting.model import Comparison, PointVerdict
from espbench.comparison.sorting.samples import Run
from espbench.results import FORMAT
from espbench.search import GoalResult, Observation, TrialRequest
from espbench.sentences import Code
from espbench.terms import CaseEntry, Manifest, Outcome, Remark, layer2_mbps
from support.simulated import duts

SIZES = (64, 128, 256, 512, 1024, 1424)
GOALS = (0.0, 1e-5)
WOBBLE = 0.002  # the relative change of a limit from trial to trial within a search
EDGE = 0.05  # the largest relative distance of a true rate from an edge of the search
_EDGES = {"": (1000, 150_000), "minimum": (20_000, 150_000), "maximum": (1000, 60_000)}
STEP = 2e-4  # limits are rounded to steps of this relative size, much finer than any resolution
SPREAD = (0.99, 1.0, 1.01, 1.004, 0.996)  # the relative figures of five repeats
CAPPED: dict[str, Any] = {"warnings": [Remark.of(Code.TESTER_LIMITED, ceiling_fps=1e5)]}


@dataclass(frozen=True)
class Setting:
    """The truth of two arms and the way they are measured.

    noise: the relative standard deviation between measurements. drift: the relative loss of speed over the run.
    """

    ratio: float = 1.0  # B / A in truth, at every size
    noise: float = 0.03
    resolution: float = 0.01
    repeats: int = 5
    sizes: Sequence[int] = SIZES
    goals: tuple[float, ...] = GOALS
    drift: float = 0.0
    interleaved: bool = True
    uneven: float = 1.0  # noise at the smallest size, as a multiple of the others'
    arms: str = "AB"  # a letter each; all but B are equal to A
    edge: Literal["", "minimum", "maximum"] = ""  # of the search: where every second size has its true rate


def a_run(setting: Setting, chance: random.Random) -> Run:
    """Return one simulated run, ready to be compared by stack."""
    turns = list(product(range(1, setting.repeats + 1), setting.sizes, setting.arms))
    if setting.interleaved:
        turns = [
            turn
            for repeat, size in product(range(1, setting.repeats + 1), setting.sizes)
            for turn in [(repeat, size, arm) for arm in chance.sample(setting.arms, len(setting.arms))]
        ]
    else:
        turns.sort(key=lambda turn: turn[2])
    base = {size: chance.uniform(0.9, 1.1) * 60e3 / (1 + size / 1000) for size in setting.sizes}
    minimum, maximum = _EDGES[setting.edge]
    if setting.edge:
        edge = minimum if setting.edge == "minimum" else maximum
        base |= {size: edge * chance.uniform(1 - EDGE, 1 + EDGE) for size in setting.sizes[::2]}
    outcomes = []
    for position, (repeat, size, arm) in enumerate(turns):
        noise = setting.noise * (setting.uneven if size == min(setting.sizes) else 1)
        limit = base[size] * (setting.ratio if arm == "B" else 1) * (1 + noise * chance.gauss(0, 1))
        limit *= 1 - setting.drift * position / len(turns)
        step = round(math.log(max(limit, 1500)) / STEP)
        results = searched(step, setting.goals, setting.resolution, minimum, maximum)
        outcomes += [an_outcome(result, arm, size, repeat) for result in results]
    return run_of(outcomes, {"by": "stack", "seed": 1} if setting.interleaved else None)


@cache
def searched(
    step: int, goals: tuple[float, ...], resolution: float, minimum_fps: float, maximum_fps: float
) -> list[GoalResult]:
    """Return the results of the real search on a DUT of exp(STEP · step) frames/s; cached for thousands of calls."""
    dut = Wobbling(math.exp(STEP * step), WOBBLE, random.Random(step))
    return duts.results_of(
        dut, goals, resolution=resolution, minimum_fps=minimum_fps, maximum_fps=maximum_fps
    )


class Wobbling:
    """A DUT with a hard limit that differs slightly in each trial."""

    def __init__(self, limit_fps: float, noise: float, chance: random.Random) -> None:
        self._limit_fps, self._noise, self._chance = limit_fps, noise, chance

    def __call__(self, asked: TrialRequest) -> Observation:
        return duts.HardLimit(self._limit_fps * (1 + self._noise * self._chance.gauss(0, 1)))(asked)


def an_outcome(result: GoalResult, stack: str, size: int, repeat: int) -> Outcome:
    """Return a search's result as an outcome of a run directory."""
    fps = result.throughput_fps
    return Outcome(
        case=f"{stack}-{size}-r{repeat}", test="throughput", dut="simulated", stack=stack, suite="aes128gcm16",
        ip_version=4, frame_size=size, direction="one-way", loss_goal=result.goal, status=result.status,
        throughput_fps=fps, throughput_mbps=layer2_mbps(fps, size) if fps else None, line_rate_pct=None,
        trials=result.trials, final_trial_s=60.0, rfc2544=False, cpu_home_pct=None, cpu_office_pct=None,
        repeat=repeat, encryption="proven", lower_fps=result.lower_fps, upper_fps=result.upper_fps,
        final_trial=result.final_trial_index,
        warnings=[Remark.of(Code.AT_MAXIMUM, fps=fps)] if result.at_maximum else [],
    )  # fmt: skip


def run_of(outcomes: list[Outcome], compare: dict[str, object] | None, name: str = "run") -> Run:
    """Return outcomes as a run; compare: the manifest's `compare`."""
    manifest = Manifest(
        format=FORMAT, espbench="0", name=name, started="", platform="simulated", platform_reason="",
        topology="gateway-to-gateway", line_rate_bps=1e9,
        cases=[
            CaseEntry(
                case=o.case, test=o.test, dut=o.dut, stack=o.stack, suite=o.suite, ip_version=o.ip_version,
                frame_size=o.frame_size, direction=o.direction, repeat=o.repeat,
            )
            for o in outcomes
        ],
    )  # fmt: skip
    return Run(name, manifest.model_copy(update={"compare": compare or {}}), outcomes)


def compared(setting: Setting, chance: random.Random) -> Comparison:
    """Return one whole simulated comparison with the reference A."""
    return of([a_run(setting, chance)], by="stack", reference="A")


def verdicts_of(comparison: Comparison) -> list[PointVerdict]:
    """Return all verdicts of a comparison."""
    return [point for panel in comparison.panels for pair in panel.pairs for point in pair.points]


def is_none_shown(comparison: Comparison) -> bool:
    """Return whether a comparison claims no difference at all."""
    return all(point.word in ("no difference shown", "no verdict") for point in verdicts_of(comparison))


def made(stack: str, size: int | str, repeat: int, fps: float | None, **changed: Any) -> Outcome:
    """Return one invented outcome with a resolution of 1 %; fps None: BELOW_MINIMUM; changed: other fields."""
    values: dict[str, Any] = {
        "case": f"{stack}-{size}-r{repeat}", "test": "throughput", "dut": "simulated", "stack": stack,
        "suite": "none" if stack == "plain" else "aes128gcm16", "ip_version": 4, "frame_size": size,
        "direction": "one-way", "loss_goal": 0.0, "status": "OK" if fps else "BELOW_MINIMUM",
        "throughput_fps": fps, "throughput_mbps": fps * 1e-3 if fps else None, "line_rate_pct": None, "trials": 9,
        "final_trial_s": 60.0, "final_trial": 8, "rfc2544": False, "cpu_home_pct": None, "cpu_office_pct": None,
        "repeat": repeat, "encryption": "baseline" if stack == "plain" else "proven", "lower_fps": fps,
        "upper_fps": fps * 1.01 if fps else 1000.0,
    }  # fmt: skip
    return Outcome(**{**values, **changed})


def repeats(stack: str, size: int | str, fps: float | None, n: int = 5, **changed: Any) -> list[Outcome]:
    """Return the outcomes of an arm's n repeats at one point, with about 1 % of noise; fps None: BELOW_MINIMUM."""
    return [
        made(stack, size, r + 1, fps * SPREAD[r] if fps else None, case=f"{stack}-{size}-r{r + 1}", **changed)
        for r in range(n)
    ]


def by_stack(*arms: Iterable[Outcome], reference: str = "a") -> Comparison:
    """Return the comparison by stack of one interleaved run with the outcomes of these arms."""
    return of([run_of([o for arm in arms for o in arm], {"by": "stack"})], reference=reference)


def only(comparison: Comparison) -> PointVerdict:
    """Return the only verdict of a comparison."""
    (verdict,) = verdicts_of(comparison)
    return verdict
