# SPDX-License-Identifier: Apache-2.0
"""Tests with all searches: for which load a trial is evidence, its excuses, what is beside a figure."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from espbench.search import MlrSearch, Observation, ThroughputSearch, TrialRequest
from espbench.search.goals import DirectionCount, loss_bound
from espbench.search.loads import Loads
from support.session.examples import examples
from support.simulated.duts import (
    HardLimit,
    RandomlyDrops,
    SoftLimit,
    a_search,
    always_passes,
    an_mlr_search,
    invalid,
    run,
    seen,
    short,
    spoilt,
)

TRUTH = 50_000.0


def rfc2544(goals: tuple[float, ...], **changed: Any) -> MlrSearch:
    return an_mlr_search("rfc2544", goals, **changed)


def bisection(goals: tuple[float, ...], **changed: Any) -> ThroughputSearch:
    return a_search(goals, final_trial_s=60, **changed)


SEARCHES = pytest.mark.parametrize("search_of", [bisection, rfc2544])
SearchOf = Callable[..., ThroughputSearch | MlrSearch]


def in_stalls(asked: TrialRequest, lost: int) -> Observation:
    """A trial that lost frames only while the host stood still."""
    lossy = seen(asked, lost)
    return dataclasses.replace(lossy, directions=(DirectionCount(lossy.frames, lost, excused=lost),))


def loses_little_above(asked: TrialRequest) -> Observation:
    """Good to 50,000 frames/s, then 1.5 times the goal of 0.001 %."""
    return seen(asked, 1.5e-5 * asked.load_fps * asked.duration_s if asked.load_fps > TRUTH else 0)


# -- for which load a trial is evidence -----------------------------------------------------------


@SEARCHES
@pytest.mark.parametrize("goal", [0.0, 1e-5])
@pytest.mark.parametrize("share", [1.02, 1.05, 1.3])
def test_what_was_lost_at_more_than_the_load_is_not_held_against_it(
    search_of: SearchOf, share: float, goal: float
) -> None:
    """The tester always offers more than it is asked for: no load above what passes can be judged, so nothing is OK."""
    search = search_of((goal,), maximum_fps=90_000)
    run(search, lambda asked: short(asked, loses_little_above, share))
    (result,) = search.results()
    assert result.status in ("LOWER_BOUND", "INVALID")
    assert "more was offered" in result.reasons[0].text
    # A pass above the limit of the DUT was not seen, nor a miss below it.
    assert (result.throughput_fps or 0) * share <= TRUTH * 1.01
    assert result.upper_fps is None or result.upper_fps >= TRUTH


@pytest.mark.parametrize(
    ("highest", "upper"), [(None, 100_000), (100_000, 100_000), (94_800, 95_099.9), (93_000, 93_212.8)]
)
def test_a_miss_is_evidence_for_the_highest_rate_that_the_dut_may_have_seen(
    highest: float | None, upper: float
) -> None:
    """The mean was 93,000. Where nothing else is known, a part of the frames may have come as fast as intended."""
    search = a_search((0.0,))
    asked = search.next()
    assert asked is not None
    search.add(dataclasses.replace(seen(asked, 99), offered_fps=93_000, highest_fps=highest))
    assert search.bounds(0.0)[1] == pytest.approx(upper, rel=1e-3)


def test_a_final_trial_that_offered_less_and_missed_does_not_lower_the_upper_bound() -> None:
    """Asked for 49,519, it offered 48,281 in the mean and lost frames at the rate in between: that was more."""
    first = iter([True])
    limit = HardLimit(49_000)

    def dut(asked: TrialRequest) -> Observation:
        if asked.phase == "search":
            return HardLimit(50_000)(asked)
        if asked.load_fps > 49_000 and next(first, False):
            lossy = seen(asked, 60)
            return dataclasses.replace(lossy, offered_fps=0.975 * asked.load_fps, highest_fps=asked.load_fps)
        return limit(asked)

    search = a_search((1e-5,))
    run(search, dut)
    (result,) = search.results()
    assert result.status == "OK"
    assert result.upper_fps is not None
    assert result.upper_fps >= 49_000
    assert result.throughput_fps is not None
    assert result.throughput_fps >= 0.99 * 49_000


def test_a_miss_beyond_the_maximum_is_a_miss_of_no_load() -> None:
    """The row ends there; its last load did not miss."""
    row = Loads(1000, 100_000, 0.01)
    assert row.at_or_above(100_000) == 100_000
    assert row.at_or_above(100_001) == float("inf")
    search = a_search((0.0,))
    limit, trials = HardLimit(102_000), iter(range(1000))
    run(search, lambda asked: short(asked, limit, 1.05 if next(trials) == 0 else 1.0))
    (result,) = search.results()
    assert (result.status, result.throughput_fps, result.upper_fps) == ("OK", 100_000, None)


# -- what says nothing ----------------------------------------------------------------------------


def test_frames_that_say_nothing_do_not_fill_up_those_that_zero_loss_needs() -> None:
    """Each trial above the limit loses a frame: below it, 200,000 frames must show that none is lost.

    The first final trial is clean; in the next two, frames were lost in stalls, and nobody knows by whom.
    """
    finals = iter(range(100))

    def dut(asked: TrialRequest) -> Observation:
        if asked.phase == "final" and next(finals) in (1, 2):
            return in_stalls(asked, 5)
        return seen(asked, asked.load_fps > 20_000)

    search = a_search((0.0,), trial_s=1, final_trial_s=1)  # a final trial has at most 100,000 frames
    log = run(search, dut)
    (result,) = search.results()
    assert (result.status, result.void_finals) == ("OK", 2)
    at_figure = [what for asked, what in log if asked.load_fps == result.throughput_fps]
    assert sum(what.frames for what in at_figure if what.lost_frames == 0) >= 200_000


@SEARCHES
def test_each_direction_has_to_meet_the_goal(search_of: SearchOf) -> None:
    """West loses 1.6 times 0.001 %, east nothing: together they would meet it, at any load."""

    def dut(asked: TrialRequest) -> Observation:
        half = round(asked.load_fps * asked.duration_s / 2)
        lost = round(1.6e-5 * half)
        both = seen(asked, lost, directions=2)
        counts = (DirectionCount(half, lost), DirectionCount(half, 0))
        return dataclasses.replace(both, directions=counts)

    search = search_of((1e-5,), directions=2, minimum_fps=20_000)
    run(search, dut)
    (result,) = search.results()
    assert (result.status, result.throughput_fps) == ("BELOW_MINIMUM", None)


# -- how often a load is excused ------------------------------------------------------------------


class SeldomValid:
    """Has a hard limit; one in `every` of its final trials is valid, with too few frames for 0.001 %."""

    def __init__(self, every: int) -> None:
        self._every, self._finals = every, 0

    def __call__(self, asked: TrialRequest) -> Observation:
        honest = HardLimit(TRUTH)(asked)
        if asked.phase == "search":
            return honest
        self._finals += 1
        if self._finals % self._every:
            return spoilt(honest)
        return dataclasses.replace(honest, frames=40_000, frames_per_direction=40_000, lost_frames=0)


@pytest.mark.parametrize("retries", [0, 1, 3, 5])
@pytest.mark.parametrize("every", [2, 3, 4, 6])
@pytest.mark.parametrize("goals", [(1e-5,), (0.0, 1e-5)])
def test_final_trials_at_a_load_are_void_so_often_at_most(
    goals: tuple[float, ...], every: int, retries: int
) -> None:
    """`retries` void trials are repeated, and then the load is given up, whatever valid ones came between."""
    search = a_search(goals, retries=retries)
    log = run(search, SeldomValid(every))
    void = Counter(asked.load_fps for asked, what in log if what.final and not what.valid)
    assert max(void.values()) <= retries + 1


@given(
    seed=st.integers(0, 10_000),
    retries=st.integers(0, 4),
    goals=st.sampled_from([(0.0,), (1e-5,), (0.0, 1e-5)]),
)
@settings(deadline=None, max_examples=examples(60))
def test_no_mixture_of_trials_gets_a_load_more_excuses(
    seed: int, retries: int, goals: tuple[float, ...]
) -> None:
    """Trials are INVALID, disturbed, with loss in stalls, short, too fast or too small, in any order."""
    chance = random.Random(seed)
    limit = HardLimit(TRUTH)

    def dut(asked: TrialRequest) -> Observation:
        honest = limit(asked)
        few = dataclasses.replace(honest, frames=40_000, frames_per_direction=40_000, lost_frames=0)
        kinds = [invalid(asked), spoilt(honest), in_stalls(asked, 5), short(asked, limit, 0.9), few, honest]
        return chance.choice([*kinds, short(asked, limit, 1.1)])

    search = a_search(goals, retries=retries)
    log = run(search, dut)
    void = Counter(asked.load_fps for asked, what in log if what.final and not what.valid)
    assert max(void.values(), default=0) <= retries + 1


@pytest.mark.parametrize("retries", [0, 1, 3])
@pytest.mark.parametrize("preset", ["rfc2544", "tst009", "csit"])
def test_mlrsearch_excuses_a_load_no_more_often(preset: Any, retries: int) -> None:
    """A load that takes many trials has `retries` excuses for all of them, not for each."""
    finals = iter(range(10_000))
    limit = HardLimit(TRUTH)

    def dut(asked: TrialRequest) -> Observation:
        honest = limit(asked)
        return spoilt(honest) if asked.phase == "final" and next(finals) % 2 else honest

    search = an_mlr_search(preset, (0.0,), retries=retries)
    log = run(search, dut)
    void = Counter(asked.load_fps for asked, what in log if what.final and not what.valid)
    assert max(void.values(), default=0) <= retries + 1


# -- what stands beside a figure ------------------------------------------------------------------


@SEARCHES
def test_void_trials_are_counted_beside_a_figure_that_was_offered_short(search_of: SearchOf) -> None:
    """Three void final trials and one that is valid and short: all were asked for at one load, and offered the same."""
    limit = HardLimit(TRUTH)
    at_load: Counter[float] = Counter()

    def dut(asked: TrialRequest) -> Observation:
        if asked.phase == "search":
            return limit(asked)
        at_load[asked.load_fps] += 1
        offered = short(asked, limit, 0.97)
        return offered if at_load[asked.load_fps] == 4 else spoilt(offered)

    search = search_of((0.0,))
    run(search, dut)
    (result,) = search.results()
    assert result.status == "LOWER_BOUND"
    assert result.void_finals == 3


@SEARCHES
@pytest.mark.parametrize("goal", [0.0, 1e-5])
def test_a_figure_has_a_bound_of_its_loss(search_of: SearchOf, goal: float) -> None:
    """The bound is the loss ratio that its final trials exclude with 95 % confidence."""
    search = search_of((goal,))
    log = run(search, HardLimit(TRUTH))
    (result,) = search.results()
    assert (result.status, result.final_trial_index is None) == ("OK", False)
    finals = [what for asked, what in log if what.final and asked.load_fps == result.throughput_fps]
    lost = sum(what.lost_frames for what in finals)
    assert result.loss_bound == loss_bound(sum(what.frames for what in finals), lost)


@SEARCHES
def test_a_bound_that_rests_on_disturbed_trials_has_one_too(search_of: SearchOf) -> None:
    """The bound is of all trials of that load whose counts are right, not only of those that passed."""
    limit, at_load = HardLimit(TRUTH), Counter[float]()

    def dut(asked: TrialRequest) -> Observation:
        honest = spoilt(limit(asked))
        if asked.phase == "search" or honest.lost_frames:
            return honest
        at_load[asked.load_fps] += 1
        return dataclasses.replace(honest, lost_frames=9) if at_load[asked.load_fps] == 1 else honest

    search = search_of((0.0,))
    log = run(search, dut)
    (result,) = search.results()
    assert result.status == "LOWER_BOUND"
    finals = [what for asked, what in log if what.final and asked.load_fps == result.throughput_fps]
    assert result.loss_bound == loss_bound(sum(what.frames for what in finals), 9)


def figures_of_a_dut_that_always_loses_a_little(search_of: SearchOf, cases: int, void: float) -> int:
    """Return how many of these cases have a figure for zero loss, if this share of the trials is void.

    The DUT loses 2 of 100,000 frames, and 5 % above 5,000 frames/s: only chance makes a trial lossless.
    """
    figures = 0
    for seed in range(cases):
        dut, noise = RandomlyDrops(2e-5, seed), random.Random(f"{seed} noise")

        def trial(asked: TrialRequest, dut: RandomlyDrops = dut, noise: random.Random = noise) -> Observation:
            overload = asked.load_fps > 5_000
            made = seen(asked, 0.05 * asked.load_fps * asked.duration_s) if overload else dut(asked)
            return invalid(asked) if noise.random() < void else made

        search = search_of((0.0,), minimum_fps=100, maximum_fps=10_000, trial_s=2, final_trial_s=10)
        run(search, trial)
        figures += search.results()[0].throughput_fps is not None
    return figures


def test_a_short_trial_that_lost_a_frame_is_no_faint_loss_of_valid_ones() -> None:
    """All final trials at the maximum are void; the first one below offered too little and lost a frame."""
    below: list[float] = []

    def dut(asked: TrialRequest) -> Observation:
        if asked.phase == "search":
            return seen(asked, 0)
        if asked.load_fps >= 100_000:
            return invalid(asked)
        below.append(asked.load_fps)
        return short(asked, lambda trial: seen(trial, 1), 0.98) if len(below) == 1 else seen(asked, 0)

    search = rfc2544((0.0, 1e-5))
    run(search, dut)
    assert search.results()[0].status in ("LOWER_BOUND", "INVALID")


@pytest.mark.parametrize(("search_of", "cases", "more"), [(a_search, 100, 12), (rfc2544, 16, 0)])
def test_void_trials_make_no_bound_of_a_lucky_pass(search_of: SearchOf, cases: int, more: int) -> None:
    """A bound of zero loss needs as many frames as a figure that is OK.

    If it did not, there would be 19 more of 100 by the one search, and 1 more of 16 by the other, which takes longer.
    """
    quiet = figures_of_a_dut_that_always_loses_a_little(search_of, cases, 0.0)
    assert figures_of_a_dut_that_always_loses_a_little(search_of, cases, 0.6) <= quiet + more


@pytest.mark.parametrize("counted", [True, False])
@SEARCHES
def test_a_case_of_which_only_the_maximum_is_void_has_a_bound(search_of: SearchOf, *, counted: bool) -> None:
    """The DUT passes all below it."""

    def dut(asked: TrialRequest) -> Observation:
        if asked.load_fps < 100_000:
            return always_passes(asked)
        return spoilt(seen(asked, 9)) if counted else invalid(asked)

    search = search_of((0.0,))
    run(search, dut)
    (result,) = search.results()
    assert result.status == "LOWER_BOUND"
    assert result.throughput_fps is not None
    assert result.throughput_fps >= 97_000


# -- few lost frames ------------------------------------------------------------------------------


def drops(ratio: Callable[[float], float], seed: int) -> Callable[[TrialRequest], Observation]:
    """A DUT that loses each frame with a probability that depends on the load."""
    chance = random.Random(seed)

    def dut(asked: TrialRequest) -> Observation:
        loss = ratio(asked.load_fps)
        if loss > 0.01:
            return seen(asked, loss * asked.load_fps * asked.duration_s)
        return RandomlyDrops(loss, chance.randrange(1 << 30))(asked)

    return dut


@pytest.mark.parametrize("goals", [(0.0,), (0.0, 1e-5)])
def test_a_frame_lost_in_a_final_trial_leaves_a_figure_below(goals: tuple[float, ...]) -> None:
    """The DUT loses 2 of 10^6 frames from 40,000 to 41,000 frames/s, and those above 41,000."""
    for seed in range(30):
        search = a_search(goals, maximum_fps=80_000)
        run(
            search,
            drops(lambda load: 0 if load <= 40_000 else 2e-6 if load <= 41_000 else 1 - 41_000 / load, seed),
        )
        result = search.results()[0]
        assert result.status == "OK"
        assert result.throughput_fps is not None
        assert 0.98 * 40_000 < result.throughput_fps < 41_000


@pytest.mark.parametrize("limit", [60_000, 100_000])
def test_a_short_trial_that_lost_two_frames_does_not_limit_a_figure(limit: int) -> None:
    """The DUT loses half of the goal up to its limit, and forwards less than a third above it.

    Of 100,000 frames, such a DUT loses two or more in 9 % of the trials.
    """
    for seed in range(30):
        search = a_search((1e-5,), maximum_fps=8 * limit)
        run(search, drops(lambda load: 5e-6 if load <= limit else 0.7, seed))
        (result,) = search.results()
        assert result.status == "OK"
        assert result.throughput_fps is not None
        assert 0.98 * limit < result.throughput_fps <= limit


def test_a_repetition_of_virtual_time_is_no_further_evidence_of_zero_loss() -> None:
    """The DUT loses each 60,000th frame: five equal trials of 59,900 frames do not show that it loses none."""

    def dut(asked: TrialRequest) -> Observation:
        lost = round(asked.load_fps * asked.duration_s) // 60_000
        return dataclasses.replace(seen(asked, lost), same_each_time=True)

    search = a_search((0.0,), minimum_fps=2_000)
    run(search, dut)
    (result,) = search.results()
    assert result.throughput_fps is None
    assert result.status in ("UNRESOLVABLE", "BELOW_MINIMUM")


def test_virtual_time_finds_a_loss_that_begins_softly() -> None:
    """One trial may have the length of several, since repetitions show nothing."""
    begins = SoftLimit(30_000)
    search = a_search((0.0, 1e-5))
    run(search, lambda asked: dataclasses.replace(begins(asked), same_each_time=True))
    zero, little = search.results()
    assert (zero.status, little.status) == ("OK", "OK")
    assert zero.throughput_fps is not None
    assert little.throughput_fps is not None
    assert 0.98 * 30_000 < zero.throughput_fps < little.throughput_fps < 1.07 * 30_000
