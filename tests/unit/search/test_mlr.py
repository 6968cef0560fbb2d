# SPDX-License-Identifier: Apache-2.0
"""MLRsearch behind its adapter: against DUTs whose truth is known, against an adversary, and interrupted."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from espbench.plan.keys.search_choice import PRESETS, PresetName
from espbench.search import Judgement, Observation, TrialRequest, judge, mlr_library
from espbench.terms import WITH_FIGURE
from support.session.examples import examples
from support.simulated.duts import (
    Collapses,
    DeepQueue,
    DropsOneIn,
    Dut,
    HardLimit,
    Noisy,
    adversary,
    always_passes,
    an_mlr_search,
    disturbed,
    invalid,
    never_passes,
    run,
    seen,
    short,
    spoilt,
)

LIMITS = st.floats(min_value=11_000, max_value=99_000)
NAMES = st.sampled_from([*PRESETS])


@settings(deadline=None, max_examples=examples(60))
@given(preset=NAMES, limit=LIMITS, dut=st.sampled_from([HardLimit, Collapses, DeepQueue]))
def test_a_sharp_limit_is_found_within_the_resolution(
    preset: PresetName, limit: float, dut: Callable[[float], Dut]
) -> None:
    """The DUT may shed what it cannot forward, collapse, or only store it."""
    search = an_mlr_search(preset, (0.0,))
    log = run(search, dut(limit))
    (result,) = search.results()
    assert (result.status, result.throughput_fps) == ("OK", result.lower_fps)
    assert result.throughput_fps is not None
    assert result.final_trial_index is not None
    asked, observation = log[result.final_trial_index]
    # A load by which less than one whole frame is too many in a trial loses none.
    assert limit * 0.99 <= result.throughput_fps < limit + 1 / asked.duration_s
    assert result.upper_fps is not None
    assert result.upper_fps > limit * 0.99999
    assert (asked.phase, asked.load_fps) == ("final", result.lower_fps)
    assert judge(observation, 0.0) is Judgement.MET


def test_the_presets_are_those_of_the_draft() -> None:
    """The throughput gets as many final trials as the duration sum holds, or as few as decide it."""
    for preset, length, least in (("rfc2544", 60, 1), ("tst009", 60, 1), ("csit", 1, 10)):
        search = an_mlr_search(preset, (0.0,))  # type: ignore[arg-type]
        log = run(search, HardLimit(37_000))
        (result,) = search.results()
        finals = [asked for asked, _ in log if asked.load_fps == result.lower_fps and asked.phase == "final"]
        assert {asked.duration_s for asked in finals} == {length}
        assert least <= len(finals) <= PRESETS[preset].trials  # type: ignore[index]


def test_a_noisy_host_is_forgiven_by_the_presets_that_tolerate_a_bad_trial() -> None:
    """A burst of loss in three trials of ten: zero loss is found by tst009 more often, by csit nearly always."""
    forgiven = dict.fromkeys(PRESETS, 0)
    for preset in PRESETS:
        for seed in range(12):
            search = an_mlr_search(preset, (0.0,), resolution=0.02)
            run(search, Noisy(37_000, seed, bursts=0.3, invalid=0.0))
            forgiven[preset] += (search.results()[0].lower_fps or 0.0) > 36_000
    assert forgiven["rfc2544"] < forgiven["tst009"] < forgiven["csit"]
    assert forgiven["csit"] >= 11


@settings(deadline=None, max_examples=examples(25))
@given(preset=NAMES, seed=st.integers(0, 1000), cut=st.integers(0, 100))
def test_replaying_any_prefix_asks_for_the_same_next_trial(preset: PresetName, seed: int, cut: int) -> None:
    """The library holds no state that is not on record, and INVALID trials are part of it."""
    # A coarse resolution: a search with 10 trials shows it as one with 100 does.
    log = run(an_mlr_search(preset, resolution=0.05), Noisy(37_000, seed, bursts=0.3, invalid=0.2))
    cut %= len(log)
    resumed = an_mlr_search(preset, resolution=0.05)
    for _, observation in log[:cut]:
        resumed.add(observation)
    assert resumed.next() == log[cut][0]
    assert resumed.next() == log[cut][0]


@pytest.mark.slow
@given(data=st.data(), preset=NAMES)
@settings(max_examples=examples(25), deadline=None)
def test_any_sequence_of_observations_ends_and_is_reported_honestly(
    data: st.DataObject, preset: PresetName
) -> None:
    """A figure rests on a final trial at its load that met the goal; bounds never cross."""
    search = an_mlr_search(preset, minimum_fps=20_000, resolution=0.1)
    log = run(search, adversary(data), 5 * mlr_library.MOST_TRIALS)
    for result in search.results():
        if result.lower_fps is not None and result.upper_fps is not None:
            assert result.lower_fps < result.upper_fps
        assert (result.throughput_fps is not None) == (result.status in WITH_FIGURE)
        if result.status == "OK":
            assert result.final_trial_index is not None
            asked, observation = log[result.final_trial_index]
            assert (asked.phase, asked.load_fps) == ("final", result.lower_fps)
            assert judge(dataclasses.replace(observation, final=False), result.goal) is Judgement.MET
            assert result.throughput_fps is not None
            assert asked.load_fps * (1 - result.goal) * 0.99999 <= result.throughput_fps <= asked.load_fps
        else:
            assert result.reasons


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("counted", [True, False])
def test_a_maximum_that_cannot_be_judged_is_where_the_search_begins(
    preset: PresetName, *, counted: bool
) -> None:
    """Its trials are void each time, whether they counted right or not: the search goes on below, to an OK."""
    limit = HardLimit(37_000)

    def dut(asked: TrialRequest) -> Observation:
        if asked.load_fps < 100_000:
            return limit(asked)
        return spoilt(limit(asked)) if counted else invalid(asked)

    search = an_mlr_search(preset, (0.0,))
    log = run(search, dut)
    assert [asked.attempt for asked, _ in log[:5]] == [0, 1, 2, 3, 0]
    (result,) = search.results()
    assert result.status == "OK"
    assert result.throughput_fps is not None
    assert 36_600 <= result.throughput_fps <= 37_000


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("counted", [True, False])
def test_what_passed_below_loads_that_could_not_be_judged_is_a_bound(
    preset: PresetName, *, counted: bool
) -> None:
    """Beyond 50,000 no trial is valid, the DUT forwards all: what is known is reported, with the reason."""

    def dut(asked: TrialRequest) -> Observation:
        if asked.load_fps <= 50_000:
            return seen(asked, 0)
        # They lose so much that no majority of them passes.
        return spoilt(seen(asked, 100)) if counted else invalid(asked, "host starvation")

    search = an_mlr_search(preset, (0.0,))
    log = run(search, dut)
    (result,) = search.results()
    assert result.status == "LOWER_BOUND"
    assert result.final_trial_index is not None
    asked, what = log[result.final_trial_index]
    assert (asked.phase, asked.load_fps, what.valid) == ("final", result.throughput_fps, True)
    assert 49_000 <= asked.load_fps <= 50_000
    assert "host starvation" in result.reasons[0].text
    # Nobody has shown that it missed above.
    assert (result.lower_fps, result.upper_fps, result.void_finals) == (asked.load_fps, None, 0)


def test_a_host_that_is_never_quiet_leaves_the_highest_load_that_most_final_trials_passed() -> None:
    """The bound and its warning are as with bisection; it is never above the truth."""
    limit = HardLimit(37_000)
    for preset in ("rfc2544", "tst009"):
        search = an_mlr_search(preset, (0.0,))
        assert len(run(search, lambda asked: spoilt(limit(asked)))) < 30
        (result,) = search.results()
        assert (result.status, result.void_finals) == ("LOWER_BOUND", 3)
        assert result.throughput_fps is not None
        assert 36_600 <= result.throughput_fps <= 37_000
        assert "disturbed" in result.warnings[0].text


def test_disturbed_trials_that_mostly_missed_bound_nothing() -> None:
    """One of four disturbed final trials passes each time: luck is no bound."""
    answers = iter([0, 9, 9, 9] * 50)
    limit = HardLimit(50_000)

    def dut(asked: TrialRequest) -> Observation:
        return limit(asked) if asked.phase == "search" else spoilt(seen(asked, next(answers)))

    search = an_mlr_search("rfc2544", (0.0,))
    run(search, dut)
    (result,) = search.results()
    assert (result.status, result.throughput_fps) == ("INVALID", None)


@pytest.mark.parametrize("preset", ["rfc2544", "tst009"])
def test_a_minimum_that_could_not_be_offered_leaves_what_was_offered(preset: PresetName) -> None:
    """The tester offers 15,000 at most, 20,000 is the minimum, all of it passes: at least 15,000.

    To csit, which wants 11 trials of a second, four are too few for a bound.
    """
    search = an_mlr_search(preset, (0.0,), minimum_fps=20_000)
    run(search, lambda asked: short(asked, always_passes, 15_000 / asked.load_fps))
    (result,) = search.results()
    assert (result.status, result.throughput_fps) == ("LOWER_BOUND", 15_000)
    assert "only 15,000 frames/s were offered" in result.reasons[0].text
    assert result.warnings == []


@given(data=st.data(), preset=NAMES, seed=st.integers(0, 1000))
@settings(max_examples=examples(40), deadline=None)
def test_disturbance_never_lifts_a_figure(data: st.DataObject, preset: PresetName, seed: int) -> None:
    """Whatever trials of a hard limit are disturbed, short or broken: no figure above it, and the search ends."""
    search = an_mlr_search(preset)
    run(search, disturbed(data, seed, HardLimit(37_000)), mlr_library.MOST_TRIALS)
    for result in search.results():
        assert (result.throughput_fps or 0) <= 37_001


def test_an_invalid_trial_is_repeated_and_then_the_case_is_invalid() -> None:
    """Three repeats at the same load, numbered. Nothing below it is left to try, and nothing is known."""
    search = an_mlr_search("rfc2544")

    def dut(asked: TrialRequest) -> Observation:
        return invalid(asked, "host stall of 9 ms") if asked.load_fps < 50_000 else HardLimit(1)(asked)

    log = run(search, dut)
    assert [asked.attempt for asked, _ in log[-4:]] == [0, 1, 2, 3]
    assert len({asked.load_fps for asked, _ in log[-4:]}) == 1
    for result in search.results():
        assert result.status == "INVALID"
        assert "host stall of 9 ms" in result.reasons[0].text


def test_one_invalid_trial_changes_nothing_but_the_attempt() -> None:
    plain = run(an_mlr_search("csit"), HardLimit(37_000))
    failed = iter([True])
    limit = HardLimit(37_000)
    stalled = run(
        an_mlr_search("csit"), lambda asked: invalid(asked) if next(failed, False) else limit(asked)
    )
    assert [asked.attempt for asked, _ in stalled[:2]] == [0, 1]
    assert [asked.load_fps for asked, _ in stalled[1:]] == [asked.load_fps for asked, _ in plain]


def test_trials_too_short_for_a_goal_are_unresolvable_not_met() -> None:
    """A trial of 1 s at 37,000 frames/s cannot tell 0.001 % from nothing; zero loss has its answer."""
    search = an_mlr_search("csit")
    run(search, HardLimit(37_000))
    zero, small = search.results()
    assert (zero.status, small.status) == ("OK", "UNRESOLVABLE")
    assert "too few frames" in small.reasons[0].text


def test_a_goal_no_trial_can_judge_costs_none() -> None:
    """90,000 frames/s for 1 s are less than 1e-5 needs at any load."""
    search = an_mlr_search("csit", (1e-5,), maximum_fps=90_000)
    assert search.next() is None
    assert search.results()[0].status == "UNRESOLVABLE"


def test_a_faint_loss_at_any_load_is_no_zero_loss_throughput() -> None:
    """One frame in 200,000: the trials below it are too short to see it, so they show nothing."""
    search = an_mlr_search("rfc2544", (0.0,))
    run(search, DropsOneIn(200_000))
    assert search.results()[0].status == "UNRESOLVABLE"


def test_a_bound_that_rests_on_too_few_frames_leaves_a_lower_bound() -> None:
    """To the library 3 lost frames of 80,000 are more than 0.001 %; a DUT at 0.001 % loses as many by luck.

    What passed below it on enough frames is still known.
    """
    search = an_mlr_search("rfc2544", (1e-5,))

    def dut(asked: TrialRequest) -> Observation:
        return seen(asked, 3 if asked.load_fps > 30_000 else 0)

    log = run(search, dut)
    (result,) = search.results()
    upper = max(asked.load_fps for asked, _ in log if asked.load_fps == result.upper_fps)
    assert {
        judge(dataclasses.replace(what, final=False), 1e-5) for asked, what in log if asked.load_fps == upper
    } == {Judgement.UNDECIDED}
    assert (result.status, result.throughput_fps) == ("LOWER_BOUND", result.lower_fps)
    assert result.reasons[0].text.startswith("the bound of 30,")


def test_the_ends_of_the_range() -> None:
    """All passes: the maximum or more. Nothing does: below the minimum."""
    search = an_mlr_search("tst009")
    run(search, always_passes)
    assert {(r.status, r.throughput_fps, r.at_maximum) for r in search.results()} == {("OK", 100_000, True)}
    search = an_mlr_search("tst009")
    run(search, never_passes)
    assert {r.status for r in search.results()} == {"BELOW_MINIMUM"}


def test_the_ends_of_the_range_need_not_be_round() -> None:
    """The line rate is 1,488,095.238 frames/s: its pass is one at the maximum; a pass at the minimum is a pass."""
    ends = {"minimum_fps": 14_880.9438, "maximum_fps": 1_488_095.238}
    search = an_mlr_search("rfc2544", (0.0,), **ends)
    assert run(search, always_passes)[-1][0].load_fps == 1_488_095.238
    assert (search.results()[0].throughput_fps, search.results()[0].at_maximum) == (1_488_095.238, True)
    search = an_mlr_search("rfc2544", (0.0,), **ends)
    run(search, HardLimit(14_881))
    assert (search.results()[0].status, search.results()[0].throughput_fps) == ("OK", 14_880.9438)


@pytest.mark.parametrize("minimum", [100_000, 99_999, 99_000, 98_010, 95_000])
def test_a_narrow_range_ends(minimum: float) -> None:
    """The library alone does not end where the range is one width."""
    for dut, status in ((always_passes, "OK"), (never_passes, "BELOW_MINIMUM")):
        search = an_mlr_search("rfc2544", minimum_fps=minimum)
        run(search, dut)
        assert {result.status for result in search.results()} == {status}


def test_a_lowered_maximum_begins_the_search_anew() -> None:
    """The tester cannot offer more than 30,000: the answer is that much or more, and says so."""
    search = an_mlr_search("rfc2544", (0.0,))
    first = search.next()
    assert first is not None
    search.add(HardLimit(80_000)(first))
    search.limit(30_000)
    assert next(asked.load_fps for asked, _ in run(search, HardLimit(80_000))) == 30_000
    (result,) = search.results()
    assert (result.status, result.throughput_fps, result.at_maximum) == ("OK", 30_000, True)


def test_a_search_without_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mlr_library, "MOST_TRIALS", 5)
    search = an_mlr_search("csit", (0.0,))
    assert len(run(search, HardLimit(37_000))) == 5
    assert search.results()[0].status == "INVALID"


def test_an_observation_of_another_search_is_refused() -> None:
    search = an_mlr_search("rfc2544")
    with pytest.raises(ValueError, match="77000 came"):
        search.add(seen(TrialRequest(77_000, 2, "search", 0), 0))
    with pytest.raises(ValueError, match="not finished"):
        search.results()


def test_the_rest_of_the_traffic_is_estimated_and_ends_at_nothing() -> None:
    search = an_mlr_search("tst009")
    assert search.remaining_s() > 60
    run(search, HardLimit(37_000))
    assert search.remaining_s() == 0
