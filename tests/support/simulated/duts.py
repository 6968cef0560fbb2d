# SPDX-License-Identifier: Apache-2.0
"""DUTs that exist only as arithmetic: what each would show of a trial, exactly and repeatably."""

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
from espbench.search.goals import judge_counts, weigh_finals
from espbench.terms import WITH_FIGURE, Reason

Dut = Callable[[TrialRequest], Observation]


def seen(asked: TrialRequest, lost: float, *, sustained: bool = True, directions: int = 1) -> Observation:
    """The observation of a trial that ran as asked and lost so many frames."""
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
    """Forwards up to `limit_fps`, loses all above."""

    limit_fps: float

    def __call__(self, asked: TrialRequest) -> Observation:
        return seen(asked, max(asked.load_fps - self.limit_fps, 0) * asked.duration_s)


@dataclass
class Collapses:
    """Forwards up to `limit_fps`; above it spends its time on interrupts and forwards ever less."""

    limit_fps: float

    def __call__(self, asked: TrialRequest) -> Observation:
        if asked.load_fps <= self.limit_fps:
            return seen(asked, 0)
        forwarded = self.limit_fps * (self.limit_fps / asked.load_fps) ** 2
        return seen(asked, (asked.load_fps - forwarded) * asked.duration_s)


@dataclass
class SoftLimit:
    """A DUT whose loss rises a hundredfold for each further tenth of the load, from `start_fps` on."""

    start_fps: float

    def ratio(self, load_fps: float) -> float:
        over = load_fps / self.start_fps - 1
        return 0.0 if over < 0 else float(min(1e-6 * 100 ** min(over * 10, 3), 1.0))

    def __call__(self, asked: TrialRequest) -> Observation:
        return seen(asked, self.ratio(asked.load_fps) * asked.load_fps * asked.duration_s)


class Noisy:
    """A hard limit; now and then a burst of loss below it, now and then an INVALID trial."""

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
    """Forwards up to `limit_fps`, save between `hole` (from, to), where it loses one frame in a hundred."""

    limit_fps: float
    hole: tuple[float, float]

    def __call__(self, asked: TrialRequest) -> Observation:
        if self.hole[0] <= asked.load_fps <= self.hole[1]:
            return seen(asked, asked.load_fps * asked.duration_s / 100)
        return HardLimit(self.limit_fps)(asked)


class DropsOneIn:
    """Drops exactly one frame in `every`, whatever the load; it goes on counting between trials."""

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
    """Loses each frame with the same small chance, whatever the load."""

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
    """Forwards `limit_fps` and stores what comes faster: it loses nothing, it only delays."""

    limit_fps: float

    def __call__(self, asked: TrialRequest) -> Observation:
        return seen(asked, 0, sustained=asked.load_fps <= self.limit_fps)


def never_passes(asked: TrialRequest) -> Observation:
    """Loses half of everything."""
    return seen(asked, asked.load_fps * asked.duration_s / 2)


def always_passes(asked: TrialRequest) -> Observation:
    """Loses nothing at any load."""
    return seen(asked, 0)


def invalid(asked: TrialRequest, why: str = "host stall") -> Observation:
    """A trial that may not be trusted."""
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
    """The same, but the host disturbed it: its counts are right, and it proves nothing."""
    return dataclasses.replace(
        observation,
        valid=False,
        counted=True,
        reasons=tuple(map(Reason.of_text, reasons or ("host starvation",))),
    )


def short(asked: TrialRequest, dut: Dut, share: float) -> Observation:
    """Return what the DUT shows if the tester offers only a share of what it was asked for."""
    offered = dataclasses.replace(asked, load_fps=share * asked.load_fps)
    return dataclasses.replace(dut(offered), load_fps=asked.load_fps, offered_fps=offered.load_fps)


def disturbed(data: st.DataObject, seed: int, dut: Dut) -> Dut:
    """The DUT, whose trials are disturbed, short, broken or clean as hypothesis likes."""
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
    """A DUT that answers each trial as hypothesis likes."""

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
    """The search of a plausible plan; keyword arguments replace its parameters."""
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
    """The same with MLRsearch and one of its presets, as a plan that says no more gets it."""
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
    """Run the search against the DUT to its end; fails if it takes more than `limit` trials."""
    log: Log = []
    while (asked := search.next()) is not None:
        assert len(log) < limit, "the search does not end"
        observation = dut(asked)
        search.add(observation)
        log.append((asked, observation))
    return log


def results_of(dut: Dut, goals: tuple[float, ...] = (0.0, 1e-5), **changed: float) -> list[GoalResult]:
    """The results of a whole search against the DUT."""
    search = a_search(goals, **changed)
    run(search, dut)
    return search.results()


def assert_honest(results: list[GoalResult], log: Log) -> None:
    """Check that each figure stands on final trials that meet its goal.

    They were made at that very load and meet it together; OK takes valid ones; none at or below that load missed it.
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
                assert judge(what, result.goal) is not Judgement.MISSED
