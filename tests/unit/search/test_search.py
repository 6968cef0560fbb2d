# SPDX-License-Identifier: Apache-2.0
"""The throughput search against DUTs whose truth is known, and against an adversary."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from espbench.search import Observation, ThroughputSearch, TrialRequest
from espbench.search.goals import DirectionCount
from espbench.search.loads import Loads
from support.session.examples import examples
from support.simulated.duts import (
    Collapses,
    DeepQueue,
    DropsOneIn,
    Dut,
    HardLimit,
    Noisy,
    NotMonotone,
    RandomlyDrops,
    SoftLimit,
    a_search,
    adversary,
    always_passes,
    assert_honest,
    disturbed,
    invalid,
    never_passes,
    results_of,
    run,
    seen,
    short,
    spoilt,
)

LIMITS = st.floats(min_value=11_000, max_value=99_000)
MOST_TRIALS = 400
FAMILY: dict[str, Callable[[], Dut]] = {
    "hard limit": lambda: HardLimit(37_000),
    "collapses": lambda: Collapses(37_000),
    "soft limit": lambda: SoftLimit(37_000),
    "not monotone": lambda: NotMonotone(60_000, (30_000, 40_000)),
    "noisy": lambda: Noisy(37_000, seed=1),
    "deep queue": lambda: DeepQueue(37_000),
    "never passes": lambda: never_passes,
    "always passes": lambda: always_passes,
}


@settings(deadline=None)
@given(limit=LIMITS, dut=st.sampled_from([HardLimit, Collapses, DeepQueue]))
def test_a_sharp_limit_is_found_within_the_resolution(limit: float, dut: Callable[[float], Dut]) -> None:
    """Both goals, whether the DUT sheds, collapses or only stores what it cannot forward."""
    for result in results_of(dut(limit)):
        assert result.status == "OK"
        assert result.throughput_fps is not None
        assert limit * 0.99 <= result.throughput_fps <= limit * 1.00002


@settings(deadline=None)
@given(start=LIMITS)
def test_a_soft_limit_gives_more_throughput_to_the_larger_goal(start: float) -> None:
    """Throughput never falls as the goal grows."""
    results = results_of(SoftLimit(start), (0.0, 1e-5, 1e-3))
    assert [result.status for result in results] == ["OK"] * 3
    rates = [result.throughput_fps or 0 for result in results]
    assert rates == sorted(rates)
    assert rates[0] >= start * 0.97


@pytest.mark.parametrize("name", FAMILY)
def test_every_dut_gets_an_honest_result(name: str) -> None:
    """Whatever the DUT does, OK is backed by its final trial."""
    search = a_search()
    log = run(search, FAMILY[name](), MOST_TRIALS)
    assert_honest(search.results(), log)


@settings(deadline=None)
@given(seed=st.integers(0, 10_000))
def test_a_noisy_dut_never_gets_more_than_its_limit(seed: int) -> None:
    """Bursts of loss and INVALID trials may cost throughput, they never invent any."""
    search = a_search()
    log = run(search, Noisy(37_000, seed), MOST_TRIALS)
    assert_honest(search.results(), log)
    assert all((result.throughput_fps or 0) <= 37_001 for result in search.results())


def test_a_dut_that_passes_everything_is_confirmed_at_the_maximum() -> None:
    """One search trial and one final: the throughput is at least the maximum."""
    for result in results_of(always_passes):
        assert (result.status, result.throughput_fps, result.at_maximum) == ("OK", 100_000, True)
        assert result.trials == 2
        assert "or more" in result.words


def test_a_dut_that_never_passes_is_below_the_minimum() -> None:
    """No figure, and the reason names the minimum."""
    for result in results_of(never_passes):
        assert (result.status, result.upper_fps) == ("BELOW_MINIMUM", 1_000)
        assert "1,000 frames/s" in result.reasons[0].text


def test_one_frame_in_200_000_fails_zero_loss_and_passes_a_thousandth_of_a_per_cent() -> None:
    """Short loss-free trials do not make a throughput; the report says so in these words."""
    zero, small = results_of(DropsOneIn(200_000, limit_fps=95_000))
    assert zero.status in ("BELOW_MINIMUM", "UNRESOLVABLE")
    assert "zero-loss fails at every rate with enough frames" in zero.words
    share = re.search(r"about 1 frame in ([0-9,]+), whatever the rate", zero.words)
    assert share
    assert int(share[1].replace(",", "")) == pytest.approx(200_000, rel=0.15)
    assert small.status == "OK"
    assert small.words.startswith("0.001 % passes: 9")


def test_one_frame_in_50_000_fails_both_goals() -> None:
    """A fiftieth of a thousandth is more than either goal allows, at any rate."""
    zero, small = results_of(DropsOneIn(50_000))
    assert {zero.status, small.status} <= {"BELOW_MINIMUM", "UNRESOLVABLE"}
    assert "zero-loss fails at every rate with enough frames" in zero.words
    assert "0.001 % fails at every rate with enough frames" in small.words


@given(
    every=st.integers(20_000, 400_000),
    limit=st.floats(50_000, 200_000),
    final_trial_s=st.sampled_from([4.0, 10.0, 60.0]),
)
@settings(max_examples=examples(200), deadline=None)
def test_a_constant_loss_ratio_never_has_a_zero_loss_throughput(
    every: int, limit: float, final_trial_s: float
) -> None:
    """Whatever the ratio and the lengths, as long as a final trial near the limit must see the loss."""
    assume(min(limit, 100_000) * 0.97 * final_trial_s >= every)
    zero = results_of(DropsOneIn(every, limit), (0.0,), final_trial_s=final_trial_s)[0]
    assert zero.status in ("BELOW_MINIMUM", "UNRESOLVABLE")


def test_random_loss_at_a_constant_ratio_seldom_looks_like_a_throughput() -> None:
    """The rule of three is 95 % sure at each load, and several loads are looked at."""
    passed = sum(results_of(RandomlyDrops(5e-6, seed), (0.0,))[0].status == "OK" for seed in range(60))
    assert passed <= 15


def test_too_few_frames_for_a_goal_are_unresolvable_not_met() -> None:
    """700 frames/s in six trials of 50 s are less than 1e-5 needs; zero loss has its answer."""
    zero, small = results_of(HardLimit(700), minimum_fps=500)
    assert zero.status == "OK"
    assert small.status == "UNRESOLVABLE"
    assert "too few frames" in small.reasons[0].text


def test_a_final_trial_is_lengthened_to_hold_the_frames_of_a_goal() -> None:
    """5,000 frames/s need 44 s for 1e-5, not the 10 s of the plan: it is given them, and both goals are met."""
    search = a_search((0.0, 1e-5))
    log = run(search, HardLimit(5_000))
    assert [result.status for result in search.results()] == ["OK", "OK"]
    finals = [asked for asked, _ in log if asked.phase == "final"]
    assert all(44 <= asked.duration_s < 45 for asked in finals)
    assert any(asked.load_fps * asked.duration_s >= 219_722 for asked in finals)


def test_zero_loss_alone_lengthens_nothing() -> None:
    """Without a goal above zero a final trial is as long as the plan says."""
    search = a_search((0.0,))
    assert {asked.duration_s for asked, _ in run(search, HardLimit(5_000)) if asked.phase == "final"} == {10}


def test_a_lowered_maximum_bounds_what_is_found() -> None:
    """The tester cannot offer more than 30,000: the answer is that much or more, and says so."""
    search = a_search((0.0,))
    search.limit(30_000)
    run(search, HardLimit(80_000))
    (result,) = search.results()
    assert (result.status, result.throughput_fps, result.at_maximum) == ("OK", 30_000, True)


def test_trials_too_short_at_any_rate_ask_for_no_trial() -> None:
    """100,000 frames/s for six times five times 0.05 s cannot resolve 1e-5: said without a frame sent."""
    search = a_search((1e-5,), trial_s=0.05, final_trial_s=0.05)
    assert search.next() is None
    assert search.results()[0].status == "UNRESOLVABLE"


def test_a_pass_above_a_failure_is_warned_of_and_not_reported() -> None:
    """The reported throughput is below every rate that missed."""
    search = a_search((0.0,), hints_fps=(35_000,))
    dut = NotMonotone(60_000, (30_000, 40_000))
    log = run(search, dut)
    result = search.results()[0]
    assert result.throughput_fps is not None
    assert 29_500 <= result.throughput_fps <= 30_000
    assert_honest([result], log)


def test_a_pass_above_a_failure_on_enough_frames_is_a_warning() -> None:
    """100,000 frames/s passed; the verification of another DUT state missed below."""
    search = a_search((0.0, 1e-5))
    answers = iter([0, 8, 200_000, 200_000])
    log = run(search, lambda asked: seen(asked, next(answers, 0)))
    assert_honest(search.results(), log)
    small = search.results()[1]
    assert "not monotone: 100,000 frames/s passed" in small.warnings[0].text


def test_an_invalid_trial_is_repeated_and_then_the_case_is_invalid() -> None:
    """Three repeats at the same load, numbered; bounds and reasons are kept."""
    search = a_search()

    def dut(asked: TrialRequest) -> Observation:
        return invalid(asked, "host stall of 9 ms") if asked.load_fps < 50_000 else HardLimit(1)(asked)

    log = run(search, dut)
    first = [asked for asked, _ in log if asked.load_fps < 50_000][:4]
    assert [asked.attempt for asked in first] == [0, 1, 2, 3]
    assert len({asked.load_fps for asked in first}) == 1
    for result in search.results():
        assert result.status == "INVALID"
        assert "host stall of 9 ms" in result.reasons[0].text
        assert result.upper_fps == 100_000


def test_one_invalid_trial_changes_nothing_but_the_attempt() -> None:
    """The search goes on as if it had not been."""
    plain = run(a_search(), HardLimit(37_000))
    failed = iter([True])
    limit = HardLimit(37_000)
    stalled = run(a_search(), lambda asked: invalid(asked) if next(failed, False) else limit(asked))
    assert [asked.attempt for asked, _ in stalled[:2]] == [0, 1]
    assert [asked.load_fps for asked, _ in stalled[1:]] == [asked.load_fps for asked, _ in plain]


@given(data=st.data())
@settings(max_examples=examples(150), deadline=None)
def test_any_sequence_of_observations_ends_and_is_reported_honestly(data: st.DataObject) -> None:
    """No answer of a DUT makes the search endless or dishonest, and bounds never cross."""
    search = a_search()
    log = run(search, adversary(data), MOST_TRIALS)
    assert_honest(search.results(), log)
    for result in search.results():
        if result.lower_fps is not None and result.upper_fps is not None:
            assert result.lower_fps < result.upper_fps


@settings(deadline=None)
@given(seed=st.integers(0, 1000), cut=st.integers(0, 60))
def test_replaying_any_prefix_asks_for_the_same_next_trial(seed: int, cut: int) -> None:
    """So a resumed run goes on as the interrupted one would have."""
    log = run(a_search(), Noisy(37_000, seed, bursts=0.3, invalid=0.2))
    cut = min(cut, len(log) - 1)
    resumed = a_search()
    for _, observation in log[:cut]:
        resumed.add(observation)
    assert resumed.next() == log[cut][0]
    assert resumed.next() == log[cut][0]


def test_goals_searched_together_cost_fewer_trials_than_one_by_one() -> None:
    """Every DUT of the family shows it."""
    for name, dut in FAMILY.items():
        together = len(run(a_search((0.0, 1e-5)), dut()))
        apart = sum(len(run(a_search((goal,)), dut())) for goal in (0.0, 1e-5))
        assert together < apart, name


def test_the_rest_of_the_traffic_is_estimated_and_ends_at_nothing() -> None:
    """The progress line counts to zero."""
    search = a_search()
    assert search.remaining_s() > 10
    trials = search.remaining_s(1.0) - search.remaining_s()
    assert 5 < trials < 20, "each trial has its waits once, however long it is"
    run(search, HardLimit(37_000))
    assert search.remaining_s() == 0


def test_an_observation_of_another_search_is_refused() -> None:
    """A resumed run whose plan changed must not go on with wrong trials."""
    search = a_search()
    stranger = TrialRequest(77_000, 2, "search", 0)
    with pytest.raises(ValueError, match="77000 came"):
        search.add(seen(stranger, 0))
    with pytest.raises(ValueError, match="not finished"):
        search.results()
    run(search, always_passes)
    with pytest.raises(ValueError, match="no trial was asked for"):
        search.add(seen(stranger, 0))


@pytest.mark.parametrize(
    "wrong",
    [
        {"minimum_fps": 0},
        {"minimum_fps": 200_000},
        {"resolution": 0},
        {"trial_s": 20},
        {"retries": -1},
        {"directions": 3},
    ],
)
def test_arguments_that_make_no_search_are_refused(wrong: dict[str, float]) -> None:
    """At once, not after an hour of trials."""
    with pytest.raises(ValueError, match="expected"):
        a_search((0.0,), **wrong)


def test_loss_goals_must_be_different_ratios() -> None:
    """An empty list, a percentage above one, or a goal twice is a mistake."""
    for goals in ((), (1.5,), (0.0, 0.0)):
        with pytest.raises(ValueError, match="loss goals"):
            a_search(goals)


def test_both_directions_need_twice_the_frames() -> None:
    """Loads sum both directions, so the floor of a goal doubles."""
    one: ThroughputSearch = a_search((1e-5,), directions=1)
    run(one, HardLimit(1_200))
    assert one.results()[0].status == "OK"
    both = a_search((1e-5,), directions=2)
    limit = HardLimit(1_200)
    run(both, lambda asked: dataclasses.replace(limit(asked), frames_per_direction=limit(asked).frames // 2))
    assert both.results()[0].status == "UNRESOLVABLE"


def test_a_load_that_could_not_be_judged_leaves_a_lower_bound() -> None:
    """Final trials from 30,000 to 40,000 are disturbed: those that passed are a bound, with the reason."""
    limit = HardLimit(37_000)

    def dut(asked: TrialRequest) -> Observation:
        honest = limit(asked)
        return spoilt(honest) if 30_000 < asked.load_fps < 40_000 and asked.phase == "final" else honest

    search = a_search((0.0,))
    log = run(search, dut)
    (result,) = search.results()
    assert result.status == "LOWER_BOUND"
    assert result.throughput_fps is not None
    assert 36_600 <= result.throughput_fps <= 37_000
    assert "host starvation" in result.reasons[0].text
    assert result.void_finals == 4
    assert_honest([result], log)


@pytest.mark.parametrize("truth", [37_000, 14_000])
def test_where_every_final_trial_is_disturbed_the_highest_that_passed_is_the_bound(truth: int) -> None:
    """A busy machine still gets an answer, never above the truth; at 14,000 no single trial has frames for 0.001 %."""
    limit = HardLimit(truth)
    search = a_search(final_trial_s=2)  # of at most 10 s
    run(search, lambda asked: spoilt(limit(asked)))
    for result in search.results():
        assert result.status == "LOWER_BOUND"
        assert result.throughput_fps is not None
        assert 0.8 * truth <= result.throughput_fps <= truth + 1


def test_a_host_that_is_never_quiet_is_waited_for_once() -> None:
    """After a load that was tried in vain the next are tried less, until the host lets a trial through."""
    limit = HardLimit(37_000)
    search = a_search((0.0,), retries=6)
    log = [asked for asked, _ in run(search, lambda asked: spoilt(limit(asked)))]
    tries = Counter((asked.load_fps, asked.phase) for asked in log)
    first = log[0].load_fps, log[0].phase
    assert tries[first] == 7
    assert {n for of, n in tries.items() if of != first and of[1] == "search"} == {2}
    assert {n for of, n in tries.items() if of[1] == "final"} == {4}
    (result,) = search.results()
    assert result.status == "LOWER_BOUND"


def test_disturbed_trials_that_mostly_missed_bound_nothing() -> None:
    """One of four disturbed final trials passes each time: luck is no bound."""
    answers = iter([0, 9, 9, 9] * 50)
    limit = HardLimit(50_000)

    def dut(asked: TrialRequest) -> Observation:
        return limit(asked) if asked.phase == "search" else spoilt(seen(asked, next(answers)))

    search = a_search((0.0,))
    run(search, dut)
    (result,) = search.results()
    assert (result.status, result.throughput_fps) == ("INVALID", None)


@pytest.mark.parametrize("passes", [True, False])
def test_a_disturbed_final_trial_is_repeated_whether_it_passed_or_missed(passes: bool) -> None:
    """One rule for passes and misses: the same number of attempts at the same load."""
    limit = HardLimit(37_000)
    finals = 0

    def dut(asked: TrialRequest) -> Observation:
        nonlocal finals
        if asked.phase == "search":
            return limit(asked)
        finals += 1
        return spoilt(seen(asked, 0 if passes else 5)) if finals <= 2 else limit(asked)

    search = a_search((0.0,))
    log = [asked for asked, _ in run(search, dut) if asked.phase == "final"]
    assert [asked.attempt for asked in log] == [0, 1, 2]
    assert len({asked.load_fps for asked in log}) == 1
    assert search.results()[0].status == "OK"
    assert search.results()[0].void_finals == 2


def test_what_was_offered_is_the_load() -> None:
    """The tester offers 60,000 at most, where more is asked for: the search begins there and finds 37,000."""
    limit = HardLimit(37_000)

    def dut(asked: TrialRequest) -> Observation:
        offered = dataclasses.replace(asked, load_fps=min(asked.load_fps, 60_000))
        return dataclasses.replace(limit(offered), load_fps=asked.load_fps, offered_fps=offered.load_fps)

    search = a_search((0.0,))
    log = run(search, dut)
    (result,) = search.results()
    assert result.status == "OK"
    assert result.upper_fps == pytest.approx(37_000, rel=0.011)
    assert result.throughput_fps == pytest.approx(37_000, rel=0.011)
    assert sum(asked.load_fps > 61_000 for asked, _ in log) == 1


@pytest.mark.parametrize("goals", [(0.0,), (0.0, 1e-5)])
@pytest.mark.parametrize("share", [1.011, 1.05, 1.3])
def test_a_tester_that_always_offers_more_than_asked_ends_in_a_bound(
    goals: tuple[float, ...], share: float
) -> None:
    """A miss at more than the load is none at the load: it is repeated as often as others are, and not for ever."""
    limit = HardLimit(37_000)

    def dut(asked: TrialRequest) -> Observation:
        return short(asked, limit, share)

    search = a_search(goals)
    assert len(run(search, dut)) < 40
    for result in search.results():
        assert result.status == "LOWER_BOUND"
        assert result.throughput_fps is not None
        assert 0.97 * 37_000 <= share * result.throughput_fps <= 37_000
        assert "more was offered" in result.reasons[0].text


def test_a_final_trial_short_of_its_load_confirms_what_it_offered() -> None:
    """Each trial above 20,000 is offered 3 % less: repeated, then reported at what was offered, as a bound."""
    limit = HardLimit(37_000)

    def dut(asked: TrialRequest) -> Observation:
        share = 0.97 if asked.load_fps > 20_000 and asked.phase == "final" else 1.0
        return short(asked, limit, share)

    search = a_search((0.0,))
    run(search, dut)
    (result,) = search.results()
    assert result.throughput_fps is not None
    assert result.throughput_fps <= 37_000
    assert result.throughput_fps >= 0.95 * 37_000
    assert result.status == "LOWER_BOUND"
    assert "less was offered" in result.reasons[0].text


def test_final_trials_short_of_their_load_that_lost_a_frame_leave_a_bound() -> None:
    """One lost frame of 230,000 decides nothing for 0.001 %, and not at the load that was asked for: it is repeated."""
    limit, first = HardLimit(37_000), iter([True])

    def dut(asked: TrialRequest) -> Observation:
        if asked.phase == "search" or asked.load_fps > 37_000:
            return limit(asked)
        if next(first, False):  # from here on no short trial has passed at the loads that are tried
            return seen(asked, 100)
        return dataclasses.replace(seen(asked, 1), offered_fps=0.97 * asked.load_fps)

    search = a_search((1e-5,), final_trial_s=5)
    assert len(run(search, dut)) < 30
    (result,) = search.results()
    assert result.status == "LOWER_BOUND"
    assert result.throughput_fps == pytest.approx(0.97 * 36_274, rel=0.02)
    assert "less was offered" in result.reasons[0].text


def test_a_final_trial_that_passes_above_a_lowered_maximum_is_an_answer() -> None:
    """The maximum was void as a search trial, then a generator that fell short lowered it; asked again it passes."""
    trials = iter(range(1000))

    def dut(asked: TrialRequest) -> Observation:
        return invalid(asked) if next(trials) == 0 else seen(asked, 0)

    search = a_search((0.0,), retries=0)
    while (asked := search.next()) is not None:
        search.add(dut(asked))
        if asked.phase == "final" and asked.load_fps < 100_000:
            search.limit(0.99 * asked.load_fps)
    (result,) = search.results()
    assert (result.status, result.throughput_fps, result.at_maximum) == ("OK", 100_000, True)


def test_loss_only_in_stalls_is_neither_a_pass_nor_a_miss() -> None:
    """The first final trial lost 7 frames, all in a stall: it is made again, and the clean one counts."""
    limit = HardLimit(37_000)
    first = iter([True])

    def dut(asked: TrialRequest) -> Observation:
        if asked.phase == "final" and next(first, False):
            lossy = seen(asked, 7)
            counts = (DirectionCount(lossy.frames, 7, excused=7),)
            return dataclasses.replace(lossy, directions=counts)
        return limit(asked)

    search = a_search((0.0,))
    finals = [asked for asked, _ in run(search, dut) if asked.phase == "final"]
    assert [asked.attempt for asked in finals] == [0, 1]
    (result,) = search.results()
    assert (result.status, result.void_finals) == ("OK", 1)


def test_each_direction_is_judged_by_itself() -> None:
    """One direction loses three times the goal, the other nothing: together they would be near enough."""

    def dut(asked: TrialRequest) -> Observation:
        honest = seen(asked, 3e-5 * asked.load_fps * asked.duration_s / 2, directions=2)
        half = honest.frames // 2
        counts = (DirectionCount(half, honest.lost_frames), DirectionCount(half, 0))
        return dataclasses.replace(honest, directions=counts)

    search = a_search((1e-5,), directions=2)
    run(search, dut)
    assert search.results()[0].throughput_fps is None


@given(data=st.data(), seed=st.integers(0, 1000))
@settings(max_examples=examples(60), deadline=None)
def test_disturbance_never_lifts_a_figure(data: st.DataObject, seed: int) -> None:
    """Whatever trials of a hard limit are disturbed, short or broken: no figure above it, and the search ends."""
    search = a_search()
    run(search, disturbed(data, seed, HardLimit(37_000)), MOST_TRIALS)
    for result in search.results():
        assert (result.throughput_fps or 0) <= 37_001


def test_final_trials_that_cannot_be_had_at_one_load_do_not_end_the_search() -> None:
    """The load passed in a short trial; its final trials lost frames and were all disturbed: it goes on below."""
    limit = HardLimit(37_000)

    def dut(asked: TrialRequest) -> Observation:
        if asked.phase == "final" and asked.load_fps > 36_500:
            return spoilt(seen(asked, 9))
        return limit(asked)

    search = a_search((0.0,))
    run(search, dut)
    (result,) = search.results()
    assert result.status == "LOWER_BOUND"
    assert result.throughput_fps is not None
    assert 35_500 <= result.throughput_fps <= 36_500


@pytest.mark.parametrize("counted", [True, False])
def test_a_maximum_that_cannot_be_judged_is_where_the_search_begins(*, counted: bool) -> None:
    """Four void trials at the maximum, of which the DUT lost 80 %: the search goes on below, and ends with an OK."""
    limit = HardLimit(20_000)

    def dut(asked: TrialRequest) -> Observation:
        if asked.load_fps < 100_000:
            return limit(asked)
        return spoilt(limit(asked)) if counted else invalid(asked)

    search = a_search()
    log = run(search, dut)
    assert [asked.attempt for asked, _ in log[:5]] == [0, 1, 2, 3, 0]
    for result in search.results():
        assert result.status == "OK"
        assert result.throughput_fps == pytest.approx(20_000, rel=0.011)


@pytest.mark.parametrize("most", [19_900, 15_000, 9_000])
def test_a_minimum_that_could_not_be_offered_leaves_what_was_offered(most: int) -> None:
    """The tester offers less than the minimum, all of it passes: at least that, to the resolution."""

    def dut(asked: TrialRequest) -> Observation:
        offered = dataclasses.replace(asked, load_fps=min(asked.load_fps, most))
        return dataclasses.replace(seen(offered, 0), load_fps=asked.load_fps, offered_fps=offered.load_fps)

    search = a_search(minimum_fps=20_200)
    assert len(run(search, dut)) <= 40
    for result in search.results():
        assert result.status == "LOWER_BOUND"
        assert result.throughput_fps is not None
        assert 0.98 * most <= result.throughput_fps <= most
        assert "less was offered" in result.reasons[0].text


def test_a_minimum_that_missed_at_less_than_it_is_no_bound() -> None:
    """Offered 15,000 instead of 20,000, the DUT loses frames: it would have lost them at 20,000."""

    def dut(asked: TrialRequest) -> Observation:
        offered = dataclasses.replace(asked, load_fps=min(asked.load_fps, 15_000))
        return dataclasses.replace(seen(offered, 99), load_fps=asked.load_fps, offered_fps=offered.load_fps)

    search = a_search((0.0,), minimum_fps=20_000)
    run(search, dut)
    assert [(r.status, r.throughput_fps) for r in search.results()] == [("BELOW_MINIMUM", None)]


def test_loads_that_cannot_be_judged_do_not_keep_what_passed_below_from_its_final_trial() -> None:
    """Beyond 50,000 the generator dies, four loads long: the highest that short trials passed is confirmed, a bound."""

    def dut(asked: TrialRequest) -> Observation:
        return invalid(asked, "generator died") if asked.load_fps > 50_000 else seen(asked, 0)

    search = a_search()
    log = run(search, dut)
    for result in search.results():
        assert result.status == "LOWER_BOUND"
        assert result.throughput_fps is not None
        assert 49_000 <= result.throughput_fps <= 50_000
        assert "generator died" in result.reasons[0].text
    assert_honest(search.results(), log)


def test_the_row_goes_on_below_the_minimum_for_what_could_not_be_offered() -> None:
    """Trials that offered about the same are of one load, at or below what each offered."""
    row = Loads(1000, 100_000, 0.01)
    assert row.at_or_below(50_000) == row.down(50_000)
    assert row.at_or_below(1000) == 1000
    for load in (999.9, 991.0, 500.0, 3.0):
        assert 0.989 * load <= row.at_or_below(load) <= load
    assert row.at_or_below(985) == row.at_or_below(982)
