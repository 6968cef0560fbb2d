# SPDX-License-Identifier: Apache-2.0
"""A queue is not throughput: stored rates are told from forwarded ones, stalls from both."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espbench.generators.base import LossEpisode, Offered, Slice, Stall
from espbench.measure.inputs.setup import Request
from espbench.measure.validity.backlog import judge
from espbench.measure.validity.standing_still import StandingStill, standing_still
from espbench.search.goals import DirectionCount, Judgement, Observation, judge_counts
from espbench.sentences import Code

PARTS = 20


def slices(duration_s: float, latency_us: list[float]) -> list[Slice]:
    step = duration_s / len(latency_us)
    return [Slice(t_s=n * step, rx_frames=100, min_us=us, mean_us=us + 5) for n, us in enumerate(latency_us)]


@given(excess=st.floats(0.02, 0.5), duration=st.floats(0.5, 60), base=st.floats(5, 5000))
def test_a_filling_queue_is_not_sustained(excess: float, duration: float, base: float) -> None:
    """Offered 2 % and more above what is forwarded, at a resolution of 1 %: never sustained."""
    growth_us = excess / (1 - excess) * duration * 1e6
    verdict = judge(slices(duration, [base + growth_us * n / PARTS for n in range(PARTS)]), duration, 0.01)
    assert not verdict.sustained
    assert abs(verdict.excess - excess) < 0.1 * excess


@pytest.mark.parametrize(("flows", "sustained"), [(4, False), (1, True)])
def test_one_of_several_queues_that_fills_is_seen_in_the_mean(flows: int, sustained: bool) -> None:
    """Half of the frames wait in a queue that stores 20 % of them; the others are as fast as ever."""
    growth_us = 0.2 / (1 - 0.2) * 10 * 1e6
    parts = [
        part.model_copy(update={"min_us": 50.0, "mean_us": 50 + 0.5 * growth_us * n / PARTS})
        for n, part in enumerate(slices(10.0, [50.0] * PARTS))
    ]
    verdict = judge(parts, 10.0, 0.01, flows=flows)
    assert verdict.sustained == sustained
    assert verdict.excess == pytest.approx(0.11 if flows > 1 else 0, abs=0.01)


@given(base=st.floats(5, 5000), jitter=st.lists(st.floats(0, 300), min_size=PARTS, max_size=PARTS))
def test_a_steady_queue_is_sustained(base: float, jitter: list[float]) -> None:
    """Latency that does not grow, however high: the DUT forwards what it is offered."""
    assert judge(slices(10.0, [base + j for j in jitter]), 10.0, 0.01).sustained


@given(hit=st.integers(0, PARTS - 1), length=st.integers(1, 5), stall_us=st.floats(1e3, 5e5))
def test_a_stall_in_a_quarter_of_the_trial_is_not_a_backlog(hit: int, length: int, stall_us: float) -> None:
    """The host stood still for some parts of the trial: the median slope does not move."""
    latency = [50.0] * PARTS
    for n in range(hit, min(PARTS, hit + length)):
        latency[n] += stall_us
    assert judge(slices(10.0, latency), 10.0, 0.01).sustained


def test_growth_below_half_the_resolution_is_tolerated() -> None:
    """The search cannot resolve so little growth, so it is not held against the DUT."""
    verdict = judge(slices(10.0, [n / PARTS * 10 * 0.004 * 1e6 for n in range(PARTS)]), 10.0, 0.01)
    assert verdict.sustained
    assert verdict.growth_ms > 30


def test_a_trial_without_frames_has_no_backlog() -> None:
    """Nothing arrived: that is loss, not storing."""
    assert judge([], 1.0, 0.01).sustained


def trial_of(
    latency_us: list[float], *stalls: tuple[float, float], lost_at_s: float | None = None
) -> Offered:
    """A trial of 2 s; stalls of a CPU: when they began, s, and how long they lasted, ms. lost_at_s: of 7 frames."""
    lost_ns = [int(lost_at_s * 1e9)] if lost_at_s is not None else []
    host_stalls = [Stall(cpu=1, at_ns=int(at_s * 1e9), ms=ms) for at_s, ms in stalls]
    stream = SimpleNamespace(
        slices=slices(2.0, latency_us), tx_stalls=[], tx_stalls_more=0, tx_stalls_more_ms=0.0, tx_frames=4000,
        loss_episodes_more=0,
        rx_frames=4000, lost=0,
        loss_episodes=[LossEpisode(from_ns=at, to_ns=at, frames=7) for at in lost_ns],
    )  # fmt: skip
    trial: dict[str, Any] = {
        "streams": [stream], "stalls_watched": True, "host_stalls": host_stalls, "host_stalls_more": 0,
        "host_stalls_more_ms": 0.0, "host_stall_ms_total": {}, "start_ns": 0, "duration_s": 2.0,
    }  # fmt: skip
    return cast(Offered, SimpleNamespace(**trial))


def still(offered: Offered, *, outage: bool = False) -> StandingStill:
    verdict = judge(offered.streams[0].slices, 2.0, 0.01)
    return standing_still(Request(2000.0, 2.0, "final"), offered, {}, None, [verdict], 0.01, outage=outage)


def explained(offered: Offered) -> bool:
    """Return whether stalls explain the trial's backlog, which there must be."""
    assert not judge(offered.streams[0].slices, 2.0, 0.01).sustained
    return still(offered).explains_backlog


GROWS = [50 + 2_000.0 * n for n in range(PARTS)]  # 2 ms in each part of 100 ms: 2 % of the load is stored


def test_a_stall_elsewhere_does_not_excuse_a_queue_that_always_grows() -> None:
    """40 ms of growth all over the trial, and two stalls of 30 ms in two of its parts: the DUT is overloaded."""
    assert not explained(trial_of(GROWS, (0.25, 30.0), (1.25, 30.0)))


def test_a_queue_that_grew_in_stalls_alone_is_theirs() -> None:
    """It stays where each of three stalls of 13 ms left it, between them nothing grows."""
    latency = [50.0 + 13_000 * (n > 4) + 13_000 * (n > 9) + 13_000 * (n > 14) for n in range(PARTS)]
    assert explained(trial_of(latency, (0.45, 13.0), (0.95, 13.0), (1.45, 13.0)))


def test_a_queue_that_grew_by_more_than_its_stalls_is_the_duts() -> None:
    """Three stalls of 3 ms cannot fill a queue of 39 ms."""
    latency = [50.0 + 13_000 * (n > 4) + 13_000 * (n > 9) + 13_000 * (n > 14) for n in range(PARTS)]
    assert not explained(trial_of(latency, (0.45, 3.0), (0.95, 3.0), (1.45, 3.0)))


def test_stalls_that_an_unreliable_watcher_saw_excuse_nothing() -> None:
    """Without SCHED_FIFO it had to wait for its CPU itself: neither a backlog nor a loss is the host's for that."""
    latency = [50.0 + 13_000 * (n > 4) + 13_000 * (n > 9) + 13_000 * (n > 14) for n in range(PARTS)]
    trial = trial_of(latency, (0.45, 13.0), (0.95, 13.0), (1.45, 13.0), lost_at_s=0.455)
    assert (explained(trial), still(trial).lost) == (True, [7])
    trial.stalls_watched = False
    assert (explained(trial), still(trial).lost) == (False, [0])


@given(
    excess=st.floats(0.02, 0.5),
    stalls=st.lists(st.tuples(st.floats(0, 1.9), st.floats(3, 40)), max_size=3),
)
def test_stalls_in_few_parts_never_excuse_an_overload(
    excess: float, stalls: list[tuple[float, float]]
) -> None:
    """Wherever they lie, and however long they are."""
    growth_us = excess / (1 - excess) * 2.0 * 1e6
    latency = [50 + growth_us * n / PARTS for n in range(PARTS)]
    assert not explained(trial_of(latency, *stalls))


@pytest.mark.parametrize("goal", [0.0, 1e-5])
@pytest.mark.parametrize("final", [True, False])
def test_a_backlog_that_is_excused_is_no_pass(goal: float, *, final: bool) -> None:
    """The trial says nothing, and is made again: the excuse can void it, never accept it."""
    seen = Observation(
        load_fps=1e5, frames=10**6, lost_frames=0, frames_per_direction=10**6, duration_s=10.0, final=final,
        sustained=False, backlog_excused=True,
    )  # fmt: skip
    assert judge_counts(seen, goal) is Judgement.DISTURBED


@pytest.mark.parametrize("goal", [0.0, 1e-5])
@pytest.mark.parametrize("final", [True, False])
@pytest.mark.parametrize(("in_stalls", "judgement"), [(0, Judgement.MISSED), (3000, Judgement.DISTURBED)])
def test_a_backlog_that_is_excused_excuses_no_loss(
    goal: float, *, final: bool, in_stalls: int, judgement: Judgement
) -> None:
    """Only losses in stalls are the host's."""
    seen = Observation(
        load_fps=1e5, frames=10**5, lost_frames=3000, frames_per_direction=10**5, duration_s=1.0, final=final,
        sustained=False, backlog_excused=True, directions=(DirectionCount(10**5, 3000, in_stalls),),
    )  # fmt: skip
    assert judge_counts(seen, goal) is judgement


@pytest.mark.parametrize("watched", [True, False])
def test_stalls_of_a_watcher_without_priority_do_not_void_an_outage(watched: bool) -> None:
    """They may be the watcher's own waits, so they say nothing about the outage's length."""
    offered = trial_of([50.0] * PARTS, (1.0, 500.0))
    stream = offered.streams[0]
    stream.first_lost_ns, stream.last_lost_ns = int(1e9), int(1.5e9)
    offered.stalls_watched = watched
    verdict = still(offered, outage=True)
    assert (Code.HOST_STALL_IN_OUTAGE in [reason.code for reason in verdict.reasons]) == watched
