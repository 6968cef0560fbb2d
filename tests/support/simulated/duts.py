# SPDX-License-Identifier: Apache-2.0
"""Simulates DUTs by arithmetic: each is a function from a trial to an observation, exact and repeatable."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from espbench.plan.keys.search_choice import PRESETS, PresetName
from espbench.search import (
    GoalResult,
    Judgement,
    MlrSearch,
    Observation,
    ThroughputSearch,
    TrialRequest,
    judge,
)
from espbench.search.arguments import SearchSpec
from espbench.search.goals import is_sure, judge_counts, weigh_finals
from espbench.terms import WITH_FIGURE, Reason

Dut = Callable[[TrialRequest], Observation]


def seen(asked: TrialRequest, lost: float, *, sustained: bool = True, directions: int = 1) -> Observation:
    """Return the observation of a trial that offered its load and lost this many frames."""
    frames = round(asked.load_fps * asked.duration_s)
    whole = min(max(int(lost), 0), frames)
    return Observation(
        load_fps=asked.load_fps,
        frames=frames,
        lost_frames=whole,
        frames_per_direction=frames // directions,
        duration_s=asked.duration_s,
        final=asked.phase == "final",
        sustained=sustained,
        forwarding_fps=(frames - whole) / asked.duration_s,
    )


@dataclass
class HardLimit:
    """A DUT that forwards up to `limit_fps`, and loses all frames above."""

    limit_fps: float

    def __call__(self, asked: TrialRequest) -> Observation:
        return seen(asked, max(asked.load_fps - self.limit_fps, 0) * asked.duration_s)


@dataclass
class Collapses:
    """A DUT that forwards up to `limit_fps`; above that, it forwards the less the higher the load (interrupts)."""

    limit_fps: float

    def __call__(self, asked: TrialRequest) -> Observation:
        if asked.load_fps <= self.limit_fps:
            return seen(asked, 0)
        forwarded = self.limit_fps * (self.limit_fps / asked.load_fps) ** 2
        return seen(asked, (asked.load_fps - forwarded) * asked.duration_s)


@dataclass
class SoftLimit:
    """A DUT whose loss ratio rises a hundredfold with each 10 % of load above `start_fps`."""

    start_fps: float

    def ratio(self, load_fps: float) -> float:
        over = load_fps / self.start_fps - 1
        return 0.0 if over < 0 else float(min(1e-6 * 100 ** min(over * 10, 3), 1.0))

    def __call__(self, asked: TrialRequest) -> Observation:
        return seen(asked, self.ratio(asked.load_fps) * asked.load_fps * asked.duration_s)


class Noisy:
    """A DUT with a hard limit, with random bursts of loss below it, and with random INVALID trials."""

    def __init__(self, limit_fps: float, seed: int, bursts: float = 0.1, invalid: float = 0.1) -> None:
        self._ideal = HardLimit(limit_fps)
        self._random = random.Random(seed)
        self._bursts = bursts
        self._invalid = invalid

    def __call__(self, asked: TrialRequest) -> Observation:
        ideal = self._ideal(asked)
        if self._random.random() < self._invalid:
            return invalid(asked, "host stall of 9 ms")
        if self._random.random() < self._bursts:
            return seen(asked, ideal.lost_frames + self._random.randint(1, 60))
        return ideal


@dataclass
class NotMonotone:
    """A DUT that forwards up to `limit_fps`, except inside `hole` (from, to), where it loses one frame in a hundred."""

    limit_fps: float
    hole: tuple[float, float]

    def __call__(self, asked: TrialRequest) -> Observation:
        if self.hole[0] <= asked.load_fps <= self.hole[1]:
            return seen(asked, asked.load_fps * asked.duration_s / 100)
        return HardLimit(self.limit_fps)(asked)


class DropsOneIn:
    """A DUT that drops exactly one frame in `every`, at any load; its count continues between trials."""

    def __init__(self, every: int, limit_fps: float = float("inf")) -> None:
        self._every = every
        self._limit_fps = limit_fps
        self._count = 0

    def __call__(self, asked: TrialRequest) -> Observation:
        before = self._count // self._every
        self._count += round(asked.load_fps * asked.duration_s)
        over = max(asked.load_fps - self._limit_fps, 0) * asked.duration_s
        return seen(asked, self._count // self._every - before + over)


class RandomlyDrops:
    """A DUT that loses each frame with the same small probability, at any load."""

    def __init__(self, ratio: float, seed: int) -> None:
        self._ratio = ratio
        self._random = random.Random(seed)

    def __call__(self, asked: TrialRequest) -> Observation:
        mean = self._ratio * asked.load_fps * asked.duration_s
        lost, waited = 0, self._random.expovariate(1)
        while waited < mean:
            lost, waited = lost + 1, waited + self._random.expovariate(1)
        return seen(asked, lost)


@dataclass
class DeepQueue:
    """A DUT that forwards `limit_fps`, and stores the frames above that: it loses nothing, but delays frames."""

    limit_fps: float

    def __call__(self, asked: TrialRequest) -> Observation:
        return seen(asked, 0, sustained=asked.load_fps <= self.limit_fps)


def never_passes(asked: TrialRequest) -> Observation:
    """Lose half of the frames at any load."""
    return seen(asked, asked.load_fps * asked.duration_s / 2)


def always_passes(asked: TrialRequest) -> Observation:
    """Lose nothing at any load."""
    return seen(asked, 0)


def invalid(asked: TrialRequest, why: str = "host stall") -> Observation:
    """Return the observation of an INVALID trial without counts."""
    return Observation(
        load_fps=asked.load_fps,
        frames=0,
        lost_frames=0,
        frames_per_direction=0,
        duration_s=asked.duration_s,
        final=asked.phase == "final",
        valid=False,
        reasons=(Reason.of_text(why),),
    )


def spoilt(observation: Observation, *reasons: str) -> Observation:
    """Return the same observation, but disturbed by the host: its counts are right, but it proves nothing."""
    return dataclasses.replace(
        observation,
        valid=False,
        counted=True,
        reasons=tuple(map(Reason.of_text, reasons or ("host starvation",))),
    )


def short(asked: TrialRequest, dut: Dut, share: float) -> Observation:
    """Return the DUT's observation if the tester offers only a share of the intended load."""
    offered = dataclasses.replace(asked, load_fps=share * asked.load_fps)
    return dataclasses.replace(dut(offered), load_fps=asked.load_fps, offered_fps=offered.load_fps)


def disturbed(data: st.DataObject, seed: int, dut: Dut) -> Dut:
    """Return the DUT with trials that are disturbed, short, broken or clean, as Hypothesis chooses."""
    chance = random.Random(seed)
    kinds = data.draw(st.lists(st.sampled_from(["void", "short", "broken", "clean"]), min_size=1, max_size=4))

    def shown(asked: TrialRequest) -> Observation:
        kind = chance.choice(kinds)
        if kind == "broken":
            return invalid(asked)
        honest = short(asked, dut, 0.9 if kind == "short" else 1.0)
        return spoilt(honest) if kind == "void" else honest

    return shown


def adversary(data: st.DataObject) -> Dut:
    """Return a DUT that answers each trial as Hypothesis chooses."""

    def dut(asked: TrialRequest) -> Observation:
        kinds = ["clean", "clean", "one", "some", "all", "stored", "invalid", "short"]
        kind = data.draw(st.sampled_from(kinds))
        if kind == "invalid":
            return invalid(asked)
        lost = {"one": 1, "some": data.draw(st.integers(2, 50)), "all": 10**9}.get(kind, 0)
        observation = seen(asked, lost, sustained=kind != "stored")
        if kind == "short":
            return dataclasses.replace(observation, frames=9, frames_per_direction=9)
        return observation

    return dut


def a_search(goals: tuple[float, ...] = (0.0, 1e-5), **changed: Any) -> ThroughputSearch:
    """Return the search of a typical plan; keyword arguments replace its parameters."""
    parameters: dict[str, Any] = {
        "minimum_fps": 1_000,
        "maximum_fps": 100_000,
        "resolution": 0.01,
        "trial_s": 2,
        "final_trial_s": 10,
        **changed,
    }
    beside = {name: parameters.pop(name) for name in ("hints_fps", "loss_verification") if name in parameters}
    return ThroughputSearch(SearchSpec(goals, **parameters), **beside)


def an_mlr_search(preset: PresetName, goals: tuple[float, ...] = (0.0, 1e-5), **changed: Any) -> MlrSearch:
    """Return the same search with MLRsearch and one of its presets, as in a plan that states no more."""
    asked = PRESETS[preset]
    parameters: dict[str, Any] = {
        "minimum_fps": 1_000,
        "maximum_fps": 100_000,
        "resolution": 0.01,
        "trial_s": min(2.0, asked.final_trial_s),
        "final_trial_s": asked.final_trial_s,
        **changed,
    }
    return MlrSearch(
        SearchSpec(goals, **parameters),
        duration_sum_s=asked.trials * asked.final_trial_s,
        exceed_ratio=asked.exceed_ratio,
    )


Log = list[tuple[TrialRequest, Observation]]


def run(search: ThroughputSearch | MlrSearch, dut: Dut, limit: int = 1000) -> Log:
    """Run the search on the DUT to its end, and return its trials; AssertionError if there are more than `limit`."""
    log: Log = []
    while (asked := search.next()) is not None:
        assert len(log) < limit, "the search does not end"
        observation = dut(asked)
        search.add(observation)
        log.append((asked, observation))
    return log


def results_of(dut: Dut, goals: tuple[float, ...] = (0.0, 1e-5), **changed: float) -> list[GoalResult]:
    """Return the results of a whole search on the DUT."""
    search = a_search(goals, **changed)
    run(search, dut)
    return search.results()


def assert_honest(results: list[GoalResult], log: Log) -> None:
    """Check that each figure is supported by final trials that meet its goal.

    They were made at exactly that load, and meet the goal together; for OK they must be valid. No trial at or below
    that load missed the goal, but for short trials that lost a frame or two too many, which may be chance.
    """
    for result in results:
        if result.status not in WITH_FIGURE:
            assert result.throughput_fps is None
            assert result.final_trial_index is None
            assert result.reasons
            continue
        assert result.final_trial_index is not None
        asked, observation = log[result.final_trial_index]
        assert asked.load_fps == result.throughput_fps
        assert asked.phase == "final"
        assert observation.final
        finals = [
            what
            for other, what in log
            if other.load_fps == asked.load_fps and what.final and what.valid == observation.valid
        ]
        if result.goal == 0:
            assert judge_counts(observation, 0) is Judgement.MET
        else:
            assert weigh_finals(finals, result.goal) is Judgement.MET
        assert observation.valid or result.status == "LOWER_BOUND"
        for other, what in log:
            if other.load_fps <= asked.load_fps:
                missed = judge(what, result.goal) is Judgement.MISSED
                assert not (missed and is_sure(what, result.goal))
