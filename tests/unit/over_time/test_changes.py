# SPDX-License-Identifier: Apache-2.0
"""An exact series changes where its value does; a noisy one where three runs confirm it."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espbench.over_time import changes
from espbench.over_time.changes import LEAST, WINDOW, Jump, exact, noisy
from espbench.over_time.records import Point

scatter = pytest.mark.needs("jumpavg")


def points(*values: float | None) -> list[Point]:
    """A run for each value, of one repeat; None: INVALID."""
    return [
        Point(
            str(number), "", value, {} if value is None else {1: value}, "INVALID" if value is None else "OK"
        )
        for number, value in enumerate(values)
    ]


def level(fps: float, runs: int, seed: int = 1, spread: float = 0.01) -> list[float]:
    """Figures of that many runs that scatter around a level."""
    chance = random.Random(seed)
    return [fps * chance.gauss(1, spread) for _ in range(runs)]


@given(st.lists(st.sampled_from([1.0, 2.0, None])))
def test_an_exact_series_changes_exactly_where_its_figures_or_statuses_do(values: list[float | None]) -> None:
    """A figure is held against the last one, whatever came between; else a status against that of the run before."""
    jumps = exact(points(*values))
    figures = [number for number, value in enumerate(values) if value is not None]
    differ = [(a, b) for a, b in itertools.pairwise(figures) if values[a] != values[b]]
    assert [(jump.before, jump.at) for jump in jumps if None not in (jump.was, jump.now)] == differ
    changed = {at for _, at in differ}
    assert [(jump.before, jump.at) for jump in jumps if None in (jump.was, jump.now)] == [
        (n - 1, n)
        for n in range(1, len(values))
        if n not in changed and (values[n] is None) != (values[n - 1] is None)
    ]
    assert all((jump.was, jump.now) == (values[jump.before], values[jump.at]) for jump in jumps)


def test_a_run_without_a_figure_hides_no_loss() -> None:
    assert exact(points(100.0, None, None, 90.0)) == [Jump(0, 1, 100.0, None), Jump(0, 3, 100.0, 90.0)]
    assert exact(points(100.0, None, 100.0)) == [Jump(0, 1, 100.0, None), Jump(1, 2, None, 100.0)]


def test_the_least_difference_is_a_change_of_an_exact_series() -> None:
    """Virtual time repeats to the last digit."""
    assert exact(points(100.0, 100.0, 100.001)) == [Jump(1, 2, 100.0, 100.001)]


def test_repeats_are_held_against_those_of_their_number() -> None:
    """A median may be the same though the repeats are not; one repeat more is no change."""
    one = Point("a", "", 2.0, {1: 1.0, 2: 3.0}, "OK")
    assert exact([one, Point("b", "", 2.0, {1: 1.5, 2: 2.5}, "OK")])
    assert not exact([one, Point("b", "", 2.0, {1: 1.0, 2: 3.0, 3: 2.0}, "OK")])


@scatter
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("spread", [0.001, 0.03, 0.1])
def test_scatter_alone_is_no_change(seed: int, spread: float) -> None:
    assert noisy(points(*level(1e5, 40, seed, spread))) == []


@scatter
@pytest.mark.parametrize("at", [10, 40, WINDOW - 1, WINDOW, 70, 110])
def test_a_step_is_found_near_its_run_wherever_it_stands(at: int) -> None:
    """A step on the edge of a window is found too."""
    jumps = noisy(points(*level(1e5, at), *level(1.1e5, 130 - at, seed=2)))
    assert len(jumps) == 1
    assert abs(jumps[0].at - at) <= 1
    assert jumps[0].was == pytest.approx(1e5, rel=0.01)
    assert jumps[0].now == pytest.approx(1.1e5, rel=0.01)


@scatter
def test_what_is_found_does_not_move_when_runs_come_after_it() -> None:
    """Yesterday's finding would otherwise be another one today."""
    values = [*level(1e5, 30), *level(1.2e5, 30, 2), *level(0.9e5, 40, 3)]
    at_the_end = [jump.at for jump in noisy(points(*values))]
    assert len(at_the_end) == 2
    for runs in range(60, 100):
        assert noisy(points(*values[:runs]))[0].at == at_the_end[0]


@scatter
def test_windows_that_were_searched_are_not_searched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run more costs one window, and what is found is what a search from the beginning finds."""
    values = [*level(1e5, 70), *level(1.2e5, 71, 2)]
    searched = []
    in_window = changes._in_window

    def counted(window: Sequence[Sequence[float]]) -> list[int]:
        searched.append(len(window))
        return in_window(window)

    monkeypatch.setattr(changes, "_in_window", counted)
    windows: dict[str, list[int]] = {}
    noisy(points(*values[:-1]), windows)
    assert len(searched) > 3
    searched.clear()
    assert noisy(points(*values), windows) == noisy(points(*values))
    assert len(searched) == 1 + len(windows) - 1  # one, and all of the search from the beginning


@scatter
def test_fewer_than_three_runs_are_outliers() -> None:
    """Fewer runs count for nothing in the middle, nor at the end, where a further run may confirm them."""
    before, after = level(1e5, 12), level(1e5, 12, seed=3)
    for outliers in range(1, LEAST):
        assert noisy(points(*before, *[2e5] * outliers, *after)) == []
        assert noisy(points(*before, *[2e5] * outliers)) == []
    jumps = noisy(points(*before, *level(2e5, LEAST)))
    assert [jump.at for jump in jumps] == [12]
    # An outlier on the edge between two levels hides neither.
    assert [jump.at for jump in noisy(points(*before, 5e5, *level(2e5, 12, seed=4)))] == [13]


@scatter
def test_runs_without_a_figure_are_passed_over() -> None:
    """The run before the change is the last that had a figure."""
    jumps = noisy(points(*level(1e5, 12), None, None, *level(1.2e5, 12, seed=2)))
    assert [(jump.before, jump.at) for jump in jumps] == [(11, 14)]


FAILED = (Point("", "", None, {}, "OK, VIOLATED"), Point("", "", None, {}, "BELOW_MINIMUM"))


@scatter
@pytest.mark.parametrize("failed", FAILED)
def test_figures_that_end_or_begin_again_are_a_change(failed: Point) -> None:
    """Three failures are a level, as three figures are; a run that is INVALID says nothing for or against it."""
    before, after = points(*level(1e5, 6)), points(*level(1e5, 6, seed=2))
    failures = [failed, *points(None), *[failed] * (LEAST - 1)]
    end, begin = noisy([*before, *failures, *after])
    assert (end.before, end.at, end.now) == (5, 6, None)
    assert (begin.before, begin.at, begin.was) == (9, 10, None)
    assert end.was == pytest.approx(1e5, rel=0.01)
    assert begin.now == pytest.approx(1e5, rel=0.01)
    assert noisy([*before, *failures]) == [end]
    assert noisy([*before, *failures[:-1], *after]) == noisy([*before, *failures[:-1]]) == []
    assert noisy(failures) == []


@scatter
def test_a_new_level_after_failures_is_one_change() -> None:
    """It is held against the level before them, so that it is better or worse."""
    jumps = noisy([*points(*level(1e5, 12)), *[FAILED[0]] * LEAST, *points(*level(2e5, 12, seed=2))])
    assert [(jump.before, jump.at, jump.was is None, jump.now is None) for jump in jumps] == [
        (11, 12, False, True),
        (11, 15, False, False),
    ]


@scatter
@pytest.mark.parametrize("values", [[], [None], [5.0], [0.0] * 9, [5.0] * 9 + [None]])
def test_series_that_have_nothing_to_find(values: list[float | None]) -> None:
    assert noisy(points(*values)) == []
