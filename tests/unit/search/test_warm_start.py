# SPDX-License-Identifier: Apache-2.0
"""A guess at where a search begins, good or bad, costs or saves trials and never changes the answer."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from espbench.plan import Case, cases, load_plan
from espbench.procedures.rfc2544.warm_start import hints
from espbench.results import RunDirectory
from espbench.runs.book import Book
from espbench.search import GoalResult
from espbench.search.frame_cost import predicted_fps
from espbench.search.loads import Loads
from espbench.search.throughput import MAXIMUM_FINALS
from espbench.sentences import Code
from espbench.terms import Outcome, Remark
from support.plans import plan_text
from support.session.examples import examples
from support.simulated.duts import (
    Collapses,
    DeepQueue,
    Dut,
    HardLimit,
    Noisy,
    SoftLimit,
    a_search,
    adversary,
    always_passes,
    assert_honest,
    never_passes,
    run,
)
from support.synthetic.outcomes import outcome_of

SIZES = [64, 128, 256, 512, 1024, 1280, 1518]
HINTS = st.one_of(st.none(), st.floats(min_value=1, max_value=1e6))
Truth = Callable[[float], Dut]


@settings(deadline=None, max_examples=examples(100))
@given(
    limit=st.floats(min_value=900, max_value=101_000),
    dut=st.sampled_from([HardLimit, Collapses, DeepQueue, SoftLimit]),
    hinted=st.tuples(HINTS, HINTS),
    final_trial_s=st.sampled_from([2.0, 10.0, 60.0]),
    resolution=st.sampled_from([0.001, 0.01, 0.1]),
)
# Their loss crosses a goal so slowly that a fine search takes the most final trials there may be.
@example(limit=14240, dut=SoftLimit, hinted=(6048, None), final_trial_s=2, resolution=0.001)
@example(limit=14240, dut=SoftLimit, hinted=(11_807, 69_264), final_trial_s=10, resolution=0.001)
@example(limit=17391.897, dut=SoftLimit, hinted=(6048, 212_015), final_trial_s=10, resolution=0.001)
def test_no_hint_changes_an_answer(
    limit: float, dut: Truth, hinted: tuple[float | None, ...], final_trial_s: float, resolution: float
) -> None:
    """A DUT that is the same each time gets the same status and figure for every goal.

    Where one of them ran out of final trials its bound is below the other's answer, or at it.
    """
    settled: dict[str, Any] = {"final_trial_s": final_trial_s, "resolution": resolution}
    cold, warm = a_search(**settled), a_search(**settled, hints_fps=hinted)
    for search in (cold, warm):
        log = run(search, dut(limit))
        assert_honest(search.results(), log)
    for one, other in zip(cold.results(), warm.results(), strict=True):
        if not (ran_out(one) or ran_out(other)):
            assert (one.status, one.throughput_fps) == (other.status, other.throughput_fps)
        for bound, answer in ((one, other), (other, one)):
            if ran_out(bound) and not ran_out(answer):
                assert (bound.throughput_fps or 0) <= (answer.throughput_fps or math.inf)


def ran_out(result: GoalResult) -> bool:
    """Return whether the search ended for want of final trials, with a bound at best."""
    return any(reason.code == Code.FINALS_DISAGREE for reason in result.reasons)


def test_a_goal_that_has_its_answer_keeps_it_however_many_final_trials_another_takes() -> None:
    """Zero loss is settled after 25 final trials; the other goal takes all there may be."""
    search = a_search(final_trial_s=2, resolution=0.001)
    log = run(search, SoftLimit(14240))
    assert sum(asked.phase == "final" for asked, _ in log) == MAXIMUM_FINALS
    assert [(r.status, r.throughput_fps) for r in search.results()] == [("OK", 14827.7), ("OK", 15034.7)]


@settings(deadline=None, max_examples=examples(50))
@given(data=st.data(), hinted=st.tuples(HINTS, HINTS), verified=st.integers(0, 2))
def test_whatever_the_hint_and_the_dut_the_search_ends_honestly(
    data: st.DataObject, hinted: tuple[float | None, ...], verified: int
) -> None:
    search = a_search(hints_fps=hinted, loss_verification=verified)
    log = run(search, adversary(data), 600)
    if not verified:
        assert_honest(search.results(), log)


@settings(deadline=None, max_examples=examples(25))
@given(seed=st.integers(0, 1000), cut=st.integers(0, 60), hint=st.floats(2_000, 90_000))
def test_replaying_any_prefix_with_its_hint_goes_on_the_same(seed: int, cut: int, hint: float) -> None:
    def begun() -> Any:
        return a_search(hints_fps=(hint, hint), loss_verification=1)

    log = run(begun(), Noisy(37_000, seed, bursts=0.3, invalid=0.2))
    cut = min(cut, len(log) - 1)
    resumed = begun()
    for _, observation in log[:cut]:
        resumed.add(observation)
    assert resumed.next() == log[cut][0]


def test_a_good_hint_saves_trials_and_a_bad_one_costs_few() -> None:
    """The forwarding rate of a DUT that collapses says little: there a hint is worth most."""
    cold = len(run(a_search(), Collapses(37_000)))
    good = len(run(a_search(hints_fps=(37_100, 37_100)), Collapses(37_000)))
    assert good <= 5 < 2 * good < cold
    for hint in (1_500, 20_000, 60_000, 99_000):
        assert len(run(a_search(hints_fps=(hint, hint)), Collapses(37_000))) <= cold + 4
        assert len(run(a_search(hints_fps=(hint, hint)), HardLimit(37_000))) <= 8


def test_a_hint_at_the_ends_is_none() -> None:
    """The first trial is at the maximum, as without it."""
    for hint in (1e-3, 500, 1e9):
        assert run(a_search(hints_fps=(hint, hint)), always_passes)[0][0].load_fps == 100_000
    assert len(run(a_search(hints_fps=(50_000, None)), never_passes)) < 20


def test_loss_verification_forgives_what_does_not_come_again() -> None:
    """A burst in one trial of ten costs throughput without it, and seldom with it."""
    by_retries: dict[int, list[float]] = {0: [], 2: []}
    for verified, figures in by_retries.items():
        for seed in range(30):
            search = a_search((0.0,), loss_verification=verified)
            run(search, Noisy(37_000, seed, bursts=0.1))
            (result,) = search.results()
            figures.append(result.throughput_fps or 0.0)
            assert figures[-1] <= 37_000
    assert sum(figure < 36_000 for figure in by_retries[0]) > 3 * sum(
        figure < 36_000 for figure in by_retries[2]
    )
    assert min(by_retries[2]) > min(by_retries[0])


def test_a_figure_that_rests_on_loss_verification_says_so() -> None:
    """The final trial loses a frame once."""
    search = a_search((0.0,), loss_verification=1)
    limit, stalled = HardLimit(37_000), iter([True])

    def dut(asked: Any) -> Any:
        lost = asked.phase == "final" and next(stalled, False)
        return Noisy(37_000, 0, bursts=1.0, invalid=0.0)(asked) if lost else limit(asked)

    log = run(search, dut)
    (result,) = search.results()
    assert [asked.phase for asked, _ in log].count("final") == 2
    assert result.throughput_fps == log[-1][0].load_fps
    assert "loss verification: 1 of 3 trials at this load lost frames" in result.warnings[0].text


def test_a_clear_loss_needs_no_verification() -> None:
    """Losing half of everything is no stall."""
    assert len(run(a_search(loss_verification=3), never_passes)) == len(run(a_search(), never_passes))


@given(
    per_frame=st.floats(1e-8, 1e-3),
    per_byte=st.floats(0, 1e-6),
    sizes=st.lists(st.sampled_from(SIZES), min_size=2, unique=True),
)
def test_the_cost_of_a_frame_and_of_a_byte_are_found_again(
    per_frame: float, per_byte: float, sizes: list[int]
) -> None:
    rates = {float(size): 1 / (per_frame + per_byte * size) for size in sizes}
    for size in SIZES:
        assert predicted_fps(rates, size) == pytest.approx(1 / (per_frame + per_byte * size), rel=1e-3)


@given(rates=st.dictionaries(st.sampled_from(SIZES), st.floats(1, 1e8), min_size=2))
def test_a_guess_is_a_rate_whatever_was_measured(rates: dict[int, float]) -> None:
    """Larger frames at a higher rate, for example: no cost is below zero."""
    guess = predicted_fps({float(size): rate for size, rate in rates.items()}, 390)
    assert guess is not None
    assert 0 < guess < math.inf
    assert predicted_fps(dict([rates.popitem()]), 390) is None


@given(
    minimum=st.floats(0.1, 1e4), span=st.floats(1, 1e4), resolution=st.floats(1e-3, 0.5), at=st.floats(0, 1)
)
def test_neighbours_in_the_row_are_within_the_resolution(
    minimum: float, span: float, resolution: float, at: float
) -> None:
    """Every load between minimum and maximum has a neighbour below and one above."""
    maximum = minimum * span
    row = Loads(minimum, maximum, resolution)
    load = minimum + at * (maximum - minimum)
    low, high = row.down(load), row.up(load)
    assert minimum <= low <= load <= high <= maximum
    assert row.are_neighbours(low, high)
    assert high - low <= high * resolution
    row.end_at(load)
    assert row.place(maximum) == row.place(load) + (maximum > load)


PLAN = plan_text(
    name="t",
    frame_sizes="[64, 512, 1424]",
    directions="[one-way, both-ways]",
    repeat="2",
    tests="[{throughput: {}}]",
)


def planned(folder: Path, text: str = PLAN) -> list[Case]:
    file = folder / "plan.yaml"
    file.write_text(text)
    return cases(load_plan(file))


def measured(all_cases: list[Case], **changed: Any) -> list[tuple[Case, list[Outcome]]]:
    """Each case with figures that a frame's 10 µs and a byte's 10 ns make; xfrm is ten times slower."""
    done = []
    for case in all_cases:
        fps = 1e5 / (1 + case.mean_frame_size / 1000) / (10 if case.stack.kind == "xfrm" else 1)
        done.append((case, [outcome_of(case, goal, fps, **changed) for goal in (0.0, 1e-5)]))
    return done


def test_a_hint_comes_from_the_same_gateways_direction_and_repeat(tmp_path: Path) -> None:
    """There is no other hint: figures of another stack, direction or repeat say nothing here."""
    planned_cases = planned(tmp_path)
    done = measured(planned_cases)
    for case, _ in done:
        before = [(other, hint) for other, hint in done if other.mean_frame_size < case.mean_frame_size]
        expected = 1e5 / (1 + 1.424) / (10 if case.stack.kind == "xfrm" else 1)
        if case.frame_size == 1424:
            assert hints(case, before) == pytest.approx([expected, expected], rel=1e-4)
        else:
            assert hints(case, before) == []
    last = next(case for case in planned_cases if case.frame_size == 1424)
    others = [(other, hint) for other, hint in done if other.stack.kind == "xfrm" or other.repeat == 2]
    assert hints(last, others) == []


@pytest.mark.parametrize(
    "changed",
    [
        {"status": "BELOW_MINIMUM"},
        {"status": "LOWER_BOUND"},
        {"upper_fps": None},
        {"warnings": [Remark.of(Code.TESTER_LIMITED, ceiling_fps=1e5)]},
        {"trials": 6},
    ],
)
def test_no_hint_from_what_is_no_cost_of_the_dut_or_was_found_fast(
    tmp_path: Path, changed: dict[str, Any]
) -> None:
    """Bounds of the search or the tester; a DUT whose forwarding rate leads to its throughput at once."""
    planned_cases = planned(tmp_path)
    assert hints(planned_cases[2], measured(planned_cases[:2], **changed)) == []


@pytest.mark.parametrize("settings_text", ["{warm_start: false}", "{search: mlr}"])
def test_a_plan_may_do_without(tmp_path: Path, settings_text: str) -> None:
    planned_cases = planned(tmp_path, PLAN.replace("throughput: {}", f"throughput: {settings_text}"))
    assert hints(planned_cases[2], measured(planned_cases[:2])) == []


def test_a_resumed_case_begins_where_it_began(tmp_path: Path) -> None:
    """The hint in the manifest decides; a case that has trials and no hint there had none."""
    planned_cases = planned(tmp_path)
    case = planned_cases[2]

    resolved = load_plan(tmp_path / "plan.yaml")

    def asked(recorded: dict[str, list[float | None]], trials: int) -> tuple[Any, Any]:
        saved: dict[str, Any] = {}
        directory = SimpleNamespace(
            manifest=SimpleNamespace(
                machine_of_case={}, search_hints=recorded, line_rate_bps=1e9, calibration=[], base_loads={}
            ),
            trials_of=lambda _: [None] * trials,
            update_manifest=lambda **changes: saved.update(changes),
            save_results=lambda results: None,
        )
        book = Book(resolved, planned_cases, cast(RunDirectory, directory))
        for done, outcomes in measured(planned_cases[:2]):
            book.finish(done, [*outcomes])
        return book.known(case).hints_fps, saved.get("search_hints")

    fresh, saved = asked({}, 0)
    assert fresh == pytest.approx([41254, 41254], rel=1e-3)
    assert saved == {case.id: fresh}
    assert asked({case.id: [7.0, None]}, 0) == ([7.0, None], None)
    assert asked({case.id: [7.0, None]}, 3) == ([7.0, None], None)
    assert asked({}, 3) == ([], None)
