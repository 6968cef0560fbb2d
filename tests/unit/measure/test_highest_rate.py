# SPDX-License-Identifier: Apache-2.0
"""The highest rate at which the DUT may have seen the frames: never below the truth, never above what was intended."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espbench.measure.highest_rate import highest_fps
from espbench.measure.inputs.setup import Request
from support.simulated import senders
from support.simulated.queue import QueueDut

LOAD = 1000.0
REQUEST = Request(LOAD, 10.0, "search")


def highest(phases: list[senders.Phase], still: float = 0.0, **changes: Any) -> float:
    """Return the bound for 10,000 frames that left like this instead of in 10 s."""
    stream = senders.stream(0, 10_000, phases, **changes)
    return highest_fps(stream, senders.offered(REQUEST, [stream]), LOAD, still)


def late(p50_s: float, max_s: float) -> dict[str, float]:
    return {"p50": 1e6 * p50_s, "p99": 1e6 * max_s, "max": 1e6 * max_s}


def test_a_steadily_slow_sender_offered_its_mean() -> None:
    """8 frames left instead of 10 all the time, so lateness in the middle is half of that at the end."""
    slow = [senders.Phase(0.0, 12.5, 800.0)]
    assert highest(slow) == pytest.approx(800)
    assert highest(slow, lateness_us=late(1.25, 2.5)) == pytest.approx(800)


@pytest.mark.parametrize("p50_s", [0.0, 2.5])
def test_a_sender_that_was_slow_for_a_half_offered_the_full_rate_in_the_other(p50_s: float) -> None:
    """No stall says so; the lateness does."""
    halves = [senders.Phase(0.0, 5.0, 1000.0), senders.Phase(5.0, 12.5, 5000 / 7.5)]
    assert highest(halves, lateness_us=late(p50_s, 2.5)) == pytest.approx(1000)


def test_frames_that_left_beside_stalls_left_faster() -> None:
    """Nothing is known of a tenth of the time: all frames may have left in the rest."""
    assert highest([senders.Phase(0.0, 12.5, 800.0)], still=0.1) == pytest.approx(800 / 0.9)
    assert highest([senders.Phase(0.0, 10.5, 10_000 / 10.5)], still=0.1) == LOAD


def test_where_not_all_stalls_are_listed_only_the_intention_bounds_the_rate() -> None:
    assert highest([senders.Phase(0.0, 12.5, 800.0)], tx_stalls_more=1) == LOAD


def test_more_than_intended_counts_as_it_was() -> None:
    """11,000 frames were sent instead of 10,000 in 10 s; they left in the last 9 s."""
    assert highest([senders.Phase(1.0, 10.0, 11_000 / 9)]) == pytest.approx(11_000 / 9)


def test_frames_that_left_before_sending_ended_early_left_at_the_intended_rate() -> None:
    """The memory for encrypted packets was full after half of the frames; the trial took 10 s all the same."""
    half = [senders.Phase(0.0, 5.0, 1000.0)]
    assert highest(half, duration_s=10.0) == pytest.approx(LOAD, rel=1e-3)


@given(
    share=st.floats(0.05, 0.95),
    slow_fps=st.floats(500, 1000),
    first=st.booleans(),
)
def test_the_bound_is_between_the_mean_and_the_intention(share: float, slow_fps: float, first: bool) -> None:
    """It is so whatever part of the frames left more slowly, at the beginning or at the end."""
    slow_s, fast_s = 10_000 * share / slow_fps, 10_000 * (1 - share) / LOAD
    rates = [(slow_s, slow_fps), (fast_s, LOAD)] if first else [(fast_s, LOAD), (slow_s, slow_fps)]
    (one_s, one_fps), (_, other_fps) = rates
    phases = [senders.Phase(0.0, one_s, one_fps), senders.Phase(one_s, slow_s + fast_s, other_fps)]
    bound = highest(phases)
    assert 10_000 / (slow_s + fast_s) <= bound * 1.0001
    assert bound <= LOAD * 1.0001


@pytest.mark.parametrize(("offered", "bound"), [(700.0, LOAD), (1100.0, 1100.0)])
def test_records_of_before_it_was_kept_have_the_intention(offered: float, bound: float) -> None:
    """They have the offered load if that is more."""
    trial = QueueDut(rate_fps=1e9, buffer=1).trial(REQUEST, "c", 0)
    reading = trial.per_direction["west-east"].model_copy(update={"offered_fps": offered})
    old = trial.model_copy(update={"offered_fps": offered, "per_direction": {"west-east": reading}})
    assert old.highest_fps == bound


@given(west=st.integers(1, 10**9), east=st.integers(1, 10**9), took_s=st.floats(0.1, 1000.0))
def test_a_pass_is_evidence_for_what_each_direction_carried(west: int, east: int, took_s: float) -> None:
    """If both sent the same, this is exactly the offered load, so that no figure of such a trial moves."""
    one = QueueDut(rate_fps=1e9, buffer=1).trial(REQUEST, "c", 0)
    (reading,) = one.per_direction.values()
    ways = {
        way: reading.model_copy(update={"tx_frames": n})
        for way, n in (("west-east", west), ("east-west", east))
    }
    sums = {"tx_frames": west + east, "offered_fps": round((west + east) / took_s, 3)}
    trial = one.model_copy(update=sums | {"per_direction": ways})
    assert trial.even_frames == 2 * min(west, east)
    assert trial.even_fps == pytest.approx(2 * min(west, east) / took_s, abs=1e-3)
    if west == east:
        assert trial.even_fps == trial.offered_fps


@pytest.mark.parametrize("kept", [True, False])
def test_a_pass_in_one_direction_is_evidence_for_the_offered_load(kept: bool) -> None:
    """The same holds in records that have no directions."""
    trial = QueueDut(rate_fps=1e9, buffer=1).trial(REQUEST, "c", 0)
    old = trial.model_copy(update={"offered_fps": 700.123} | ({} if kept else {"per_direction": {}}))
    assert (old.even_fps, old.even_frames) == (700.123, old.tx_frames)
