# SPDX-License-Identifier: Apache-2.0
"""One observation against one loss goal."""

from __future__ import annotations

import pytest

from espbench.search import Judgement, Observation, goal_name, judge
from espbench.search.goals import poisson_tail


def observed(
    frames: int, lost: int, *, directions: int = 1, valid: bool = True, sustained: bool = True
) -> Observation:
    """A trial at 1,000 frames/s."""
    return Observation(
        load_fps=1000.0,
        frames=frames,
        lost_frames=lost,
        frames_per_direction=frames // directions,
        duration_s=frames / 1000,
        final=True,
        valid=valid,
        sustained=sustained,
    )


@pytest.mark.parametrize(
    ("frames", "lost", "goal", "judgement"),
    [
        (500_000, 0, 0.0, Judgement.MET),
        (500_000, 1, 0.0, Judgement.MISSED),
        (100_000, 1, 1e-5, Judgement.MET),
        (100_000, 2, 1e-5, Judgement.MISSED),
        (99_999, 0, 1e-5, Judgement.MET_PROVISIONALLY),
        (50_000, 1, 1e-5, Judgement.UNDECIDED),
        (50_000, 3, 1e-5, Judgement.UNDECIDED),
        (50_000, 4, 1e-5, Judgement.MISSED),
        (0, 0, 0.0, Judgement.UNDECIDED),
        (0, 0, 1e-5, Judgement.UNDECIDED),
    ],
)
def test_a_goal_is_judged_by_the_frames_it_needs(
    frames: int, lost: int, goal: float, judgement: Judgement
) -> None:
    """With 1/goal frames the ratio decides, with fewer only what luck cannot explain."""
    assert judge(observed(frames, lost), goal) is judgement


def test_frames_are_needed_in_each_direction() -> None:
    """100,000 frames in two directions are 50,000 in each: too few for 1e-5."""
    assert judge(observed(100_000, 0, directions=2), 1e-5) is Judgement.MET_PROVISIONALLY
    assert judge(observed(200_000, 0, directions=2), 1e-5) is Judgement.MET


def test_an_invalid_trial_says_nothing_and_a_stored_load_misses_every_goal() -> None:
    """Without a lost frame, both still are not a pass."""
    assert judge(observed(500_000, 0, valid=False), 0.0) is Judgement.INVALID
    assert judge(observed(500_000, 0, sustained=False), 0.0) is Judgement.MISSED
    assert judge(observed(500_000, 0, sustained=False), 0.5) is Judgement.MISSED


def test_the_poisson_tail_is_a_probability() -> None:
    """Known values, and the ends."""
    assert poisson_tail(0, 3.0) == 1.0
    assert poisson_tail(1, 1.0) == pytest.approx(0.632121, abs=1e-6)
    assert poisson_tail(4, 0.5) == pytest.approx(0.001752, abs=1e-6)
    assert poisson_tail(10**9, 5.0) == 0.0


def test_goals_are_named_in_per_cent() -> None:
    """1e-5 is written as the report and the articles write it."""
    assert [goal_name(goal) for goal in (0.0, 1e-5, 0.01)] == ["zero-loss", "0.001 %", "1 %"]
