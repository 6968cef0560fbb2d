# SPDX-License-Identifier: Apache-2.0
"""One observation against one loss goal."""

from __future__ import annotations

import dataclasses
import itertools
import random
import re
from pathlib import Path

import pytest

from espbench.search import Judgement, Observation, judge
from espbench.search.evidence import MOST_FINALS_AT_A_LOAD
from espbench.search.goals import (
    ERROR,
    DirectionCount,
    frames_missing,
    frames_needed,
    joint_loss_bound,
    loss_bound,
    poisson_tail,
    weigh,
)
from espbench.sentences import goal_title


def observed(
    frames: int,
    lost: int,
    *,
    directions: int = 1,
    valid: bool = True,
    sustained: bool = True,
    final: bool = False,
) -> Observation:
    """A trial at 1,000 frames/s."""
    return Observation(
        load_fps=1000.0,
        frames=frames,
        lost_frames=lost,
        frames_per_direction=frames // directions,
        duration_s=frames / 1000,
        final=final,
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
    """The ratio decides if there are 1/goal frames; with fewer, only a loss that luck cannot explain does."""
    assert judge(observed(frames, lost), goal) is judgement


@pytest.mark.parametrize(
    ("frames", "lost", "judgement"),
    [
        (219_723, 0, Judgement.MET),
        (219_722, 0, Judgement.UNDECIDED),
        (219_723, 1, Judgement.UNDECIDED),
        (289_100, 1, Judgement.MET),
        (100_000, 1, Judgement.UNDECIDED),  # 41 % of DUTs that lose twice the goal would look so
        (100_000, 4, Judgement.UNDECIDED),
        (100_000, 5, Judgement.MISSED),
        (1_000, 4, Judgement.MISSED),
        (0, 0, Judgement.UNDECIDED),
    ],
)
def test_a_final_trial_is_weighed(frames: int, lost: int, judgement: Judgement) -> None:
    """Until it can be told whether the DUT loses the goal or twice as much."""
    assert judge(observed(frames, lost, final=True), 1e-5) is judgement


def chance_to_meet(ratio: float, tries: int = 2000) -> float:
    """Return the share of DUTs of this random loss that meet 0.001 %, in trials of 100,000 frames."""
    chance = random.Random(1)
    met = 0
    for _ in range(tries):
        counts: list[tuple[int, int]] = []
        while weigh(counts, 1e-5) is Judgement.UNDECIDED:
            lost, waited = 0, chance.expovariate(1)
            while waited < ratio * 100_000:
                lost, waited = lost + 1, waited + chance.expovariate(1)
            counts.append((100_000, lost))
        met += weigh(counts, 1e-5) is Judgement.MET
    return met / tries


def test_the_rule_errs_as_seldom_as_it_says() -> None:
    """A DUT at the goal meets it nine times of ten at least, one at twice the goal once in ten at most."""
    assert chance_to_meet(1e-5) >= 1 - ERROR
    assert chance_to_meet(2e-5) <= ERROR
    assert chance_to_meet(3e-5) <= 0.02


def test_one_direction_that_misses_is_a_miss() -> None:
    """Five frames lost in 100,000 of one direction, none in the other."""
    both = (DirectionCount(300_000, 0), DirectionCount(100_000, 5))
    seen = dataclasses.replace(observed(400_000, 5, final=True), directions=both)
    assert judge(seen, 1e-5) is Judgement.MISSED
    assert judge(dataclasses.replace(seen, directions=both[:1], lost_frames=0), 1e-5) is Judgement.MET


def test_loss_in_stalls_alone_says_nothing() -> None:
    """All of it: neither met nor missed. One frame beside the stalls misses zero loss."""
    in_stalls = dataclasses.replace(
        observed(500_000, 27, final=True), directions=(DirectionCount(500_000, 27, 27),)
    )
    assert judge(in_stalls, 0.0) is Judgement.DISTURBED
    assert judge(in_stalls, 1e-5) is Judgement.DISTURBED
    beside = dataclasses.replace(in_stalls, directions=(DirectionCount(500_000, 27, 26),))
    assert judge(beside, 0.0) is Judgement.MISSED


@pytest.mark.parametrize(
    ("frames", "lost", "bound"), [(300_000, 0, 0.9986e-5), (100_000, 1, 4.744e-5), (0, 0, None)]
)
def test_a_figure_has_a_bound_of_its_loss(frames: int, lost: int, bound: float | None) -> None:
    """Known values of the exact 95 % bound of a Poisson count: 2.996 for none, 4.744 for one."""
    assert loss_bound(frames, lost) == (None if bound is None else pytest.approx(bound, rel=1e-3))


def test_a_trial_that_had_to_be_the_same_adds_no_confidence() -> None:
    """Six times 100,000 frames of one trial are 100,000 frames; those of six trials are 600,000."""
    one = observed(100_000, 0, final=True)
    again = dataclasses.replace(one, same_each_time=True)
    assert joint_loss_bound([one] * 6) == loss_bound(600_000, 0)
    assert joint_loss_bound([again] * 6) == loss_bound(100_000, 0)
    another = dataclasses.replace(again, load_fps=again.load_fps * 0.99)
    assert joint_loss_bound([again, another, again]) == loss_bound(200_000, 0)


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
    assert [goal_title(goal) for goal in (0.0, 1e-5, 0.01)] == ["zero-loss", "0.001 %", "1 %"]


def characteristic(ratio: float, goal: float, frames: int) -> tuple[float, float, float]:
    """(chance to meet the goal, chance to stay undecided, mean frames) of a DUT of this loss; computed, not drawn."""
    mean = ratio * frames
    at_least = [poisson_tail(lost, mean) for lost in range(121)]
    often = [this - more for this, more in itertools.pairwise(at_least)]
    undecided, met, taken = {0: 1.0}, 0.0, 0.0
    for trials in range(1, MOST_FINALS_AT_A_LOAD + 1):
        taken += frames * sum(undecided.values())
        after: dict[int, float] = {}
        for before, chance in undecided.items():
            for lost, share in enumerate(often):
                after[before + lost] = after.get(before + lost, 0.0) + chance * share
        weights = {lost: weigh([(trials * frames, lost)], goal) for lost in after}
        met += sum(chance for lost, chance in after.items() if weights[lost] is Judgement.MET)
        undecided = {lost: chance for lost, chance in after.items() if weights[lost] is Judgement.UNDECIDED}
    return met, sum(undecided.values()), taken


def test_the_operating_characteristic_of_the_document_is_that_of_the_rule() -> None:
    """docs/search.md: a row for each loss of the DUT, drawn for 4,000 DUTs; in one trial the plain ratio decides."""
    text = (Path(__file__).parents[3] / "docs" / "search.md").read_text()
    rows = re.findall(
        r"^\| ([\d.]+) \| ([\d.]+) % \| ([\d.]+) % \| ([\d,]+) \| (\d+) % \|$", text, re.MULTILINE
    )
    assert len(rows) == 10
    for row in rows:
        times, met_pct, undecided_pct, frames, once_pct = (float(cell.replace(",", "")) for cell in row)
        met, undecided, taken = characteristic(times * 1e-5, 1e-5, 220_000)
        assert abs(100 * met - met_pct) < 2, row
        assert abs(100 * undecided - undecided_pct) < 2, row
        assert abs(taken / frames - 1) < 0.03, row
        assert abs(100 * (1 - poisson_tail(2, times)) - once_pct) < 1.6, row
    assert f"{frames_needed(1e-5):,} frames meet the goal" in text
    assert f"requires {frames_missing(0, 1, 1e-5) - frames_missing(0, 0, 1e-5):,.0f} more" in text
