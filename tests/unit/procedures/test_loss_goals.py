# SPDX-License-Identifier: Apache-2.0
"""A loss goal holds for each direction by itself, whoever asks whether a record meets it."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from espbench.plan.keys.model import Throughput
from espbench.procedures.rfc2544.base_loads import BaseLoadsCase
from espbench.procedures.rfc2544.throughput import observation
from espbench.search import Judgement, judge
from espbench.terms import BaseLoad, DirectionReading, Trial
from support.simulated.procedures import case_of, known

FRAMES = 1_000_000  # of a direction
GOAL = 1e-5  # ten of them


def trial(*lost: int, frames: int = FRAMES, sustained: bool = True, load_fps: float = 1000.0) -> Trial:
    """A trial whose directions lost so many frames each."""
    readings = {
        name: DirectionReading(
            intended_fps=load_fps, offered_fps=load_fps, tx_frames=frames, rx_frames=frames - n, lost=n,
            duplicated=0, reordered=0, corrupted=0,
        )
        for name, n in zip(("west-east", "east-west"), lost, strict=False)
    }  # fmt: skip
    tx, gone = len(lost) * frames, sum(lost)
    return Trial(
        case="c", sequence=0, phase="measure", intended_fps=load_fps, offered_fps=load_fps, duration_s=1.0,
        intended_duration_s=1.0, tx_frames=tx, rx_frames=tx - gone, lost=gone, duplicated=0, reordered=0,
        corrupted=0, frame_loss_ratio=gone / tx, sustained=sustained, validity="VALID", per_direction=readings,
    )  # fmt: skip


def test_one_direction_over_the_goal_misses_it_though_the_sum_is_under_it() -> None:
    uneven = trial(12, 0)
    assert uneven.frame_loss_ratio < GOAL
    assert not uneven.meets(GOAL)
    assert judge(observation(uneven), GOAL) is Judgement.MISSED


def test_a_goal_is_met_by_the_frame() -> None:
    assert trial(10, 10).meets(GOAL)
    assert not trial(10, 11).meets(GOAL)
    assert not trial(0, 1).meets(0.0)
    assert not trial(0, 0, sustained=False).meets(GOAL)


def test_a_record_without_directions_is_judged_by_its_sums() -> None:
    assert trial(10).model_copy(update={"per_direction": {}}).meets(GOAL)
    assert not trial(11).model_copy(update={"per_direction": {}}).meets(GOAL)


def test_a_load_of_a_base_is_missed_where_one_direction_misses_it() -> None:
    """Then the floor of the load is tried next."""
    base = BaseLoad(goal=GOAL, load_fps=1000.0, duration_s=1.0, floor_fps=900.0)
    at_base = replace(known(40_000.0), base_loads=[base])
    procedure = BaseLoadsCase(case_of(Throughput(), "throughput"), at_base, [trial(12, 0)])
    request = procedure.next()
    assert request is not None
    assert request.load_fps == 900.0


@given(lost=st.tuples(st.integers(0, 30), st.integers(0, 30)), sustained=st.booleans())
def test_the_search_and_the_record_say_the_same_where_frames_are_enough(
    lost: tuple[int, int], sustained: bool
) -> None:
    made = trial(*lost, sustained=sustained)
    for goal in (0.0, 1e-6, GOAL):
        assert (judge(observation(made), goal) is Judgement.MET) == made.meets(goal)
