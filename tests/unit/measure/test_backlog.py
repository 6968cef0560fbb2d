# SPDX-License-Identifier: Apache-2.0
"""A queue is not throughput: stored rates are told from forwarded ones, stalls from both."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from espbench.generators.base import Slice
from espbench.measure.validity.backlog import judge

PARTS = 20


def slices(duration_s: float, latency_us: list[float]) -> list[Slice]:
    step = duration_s / len(latency_us)
    return [Slice(t_s=n * step, rx_frames=100, min_us=us, mean_us=us + 5) for n, us in enumerate(latency_us)]


@given(excess=st.floats(0.02, 0.5), duration=st.floats(0.5, 60), base=st.floats(5, 5000))
def test_a_filling_queue_is_not_sustained(excess: float, duration: float, base: float) -> None:
    """Offered 2 % and more above what is forwarded, at a resolution of 1 %: never sustained."""
    growth_us = excess / (1 - excess) * duration * 1e6
    found = judge(slices(duration, [base + growth_us * n / PARTS for n in range(PARTS)]), duration, 0.01)
    assert not found.sustained
    assert abs(found.excess - excess) < 0.1 * excess


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
    """What the search cannot resolve is not held against the DUT."""
    found = judge(slices(10.0, [n / PARTS * 10 * 0.004 * 1e6 for n in range(PARTS)]), 10.0, 0.01)
    assert found.sustained
    assert found.growth_ms > 30


def test_a_trial_without_frames_has_no_backlog() -> None:
    """Nothing arrived: that is loss, not storing."""
    assert judge([], 1.0, 0.01).sustained
