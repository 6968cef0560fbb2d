# SPDX-License-Identifier: Apache-2.0
"""The search for a commit, on made-up histories of 1,024 commits."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from espbench.cli.bisect.bisect import as_markdown, search
from espbench.errors import UsageError
from espbench.gate.commits.bisecting import Answer, Bisection
from espbench.gate.commits.history import Step, open_history
from espbench.gate.commits.tree import Commit
from espbench.gate.verdict import Row

COMMITS = 1024


def bisected(costs: Sequence[float | None], near: float = 0.0) -> tuple[Answer, int]:
    """The answer, and how many steps were made for it; the commits that confirm an answer are no steps."""
    bad = len(costs) - 1
    bisection = Bisection(bad, {0: costs[0], bad: costs[bad]}, near)
    steps = confirming = 0
    while (place := bisection.next() or bisection.to_confirm()) is not None:
        is_step = bisection.next() is not None
        steps += is_step
        confirming += not is_step
        bisection.add(place, costs[place])
    assert confirming <= 3
    return bisection.answer(), steps


@pytest.mark.parametrize("seed", range(50))
def test_a_planted_regression_is_found_in_ten_steps(seed: int) -> None:
    """Among commits that move the cost by less than three instructions, up and down: 50 of 50."""
    chance = random.Random(seed)
    place, more = chance.randrange(1, COMMITS + 1), chance.choice([1.0, 7.0, 212.0, 5000.0])
    costs = [
        5000.0 + (more if i >= place else 0.0) + chance.uniform(-1, 1) * min(0.08 * more, 1.4)
        for i in range(COMMITS + 1)
    ]
    answer, steps = bisected(costs)
    assert steps <= 10
    assert (answer.first, answer.last) == (place, place)
    assert answer.single
    assert answer.cost == pytest.approx(more, rel=0.2)


@pytest.mark.parametrize("seed", range(20))
def test_two_commits_that_share_the_cost_are_no_single_one(seed: int) -> None:
    chance = random.Random(seed)
    first, second = sorted(chance.sample(range(1, COMMITS + 1), 2))
    costs = [5000.0 + 100.0 * (i >= first) + 100.0 * (i >= second) for i in range(COMMITS + 1)]
    answer, _ = bisected(costs)
    assert not answer.single
    assert answer.cost == pytest.approx(answer.whole / 2)


def test_a_cost_that_goes_up_and_down_is_no_single_commit() -> None:
    """Up by 200, down by 150, up by 50: three commits, of which none is the whole."""
    costs = [0.0] * 300 + [200.0] * 300 + [50.0] * 300 + [100.0] * 125
    answer, _ = bisected(costs)
    assert not answer.single
    assert "does not go up once" in answer.why


@pytest.mark.parametrize(("near", "is_single"), [(10.0, False), (189.0, False), (190.0, True)])
def test_a_second_regression_beyond_the_limit_is_no_part_of_the_first(near: float, is_single: bool) -> None:
    """Its 190 instructions are 16 % of the whole."""
    answer, _ = bisected([10_000.0] * 3 + [11_000.0] * 5 + [11_190.0] * 3, near)
    assert (answer.first, answer.cost, answer.whole) == (3, 1000.0, 1190.0)
    assert answer.single == is_single


def test_a_commit_that_was_undone_and_made_again_is_not_the_answer() -> None:
    """Place 5 is found first, but bad is dear because of place 9."""
    answer, _ = bisected([10_000.0] * 5 + [11_000.0] + [10_000.0] * 3 + [11_000.0] * 2)
    assert (answer.first, answer.last, answer.cost, answer.single) == (9, 9, 1000.0, False)
    assert "it had risen at place 5, and had fallen again at place 8" in answer.why


def test_if_the_commit_that_confirms_cannot_be_built_its_neighbour_does() -> None:
    costs = [None if place == 12 else 100.0 * (place >= 3 and place not in (11, 13)) for place in range(17)]
    answer, _ = bisected(costs)
    assert not answer.single


def test_the_answer_stands_if_no_commit_that_confirms_it_can_be_built() -> None:
    """Three of them are tried."""
    costs = [None if 8 < place < 16 else 100.0 * (place >= 3) for place in range(17)]
    answer, _ = bisected(costs)
    assert (answer.first, answer.single, answer.unconfirmed) == (3, True, 3)


@pytest.mark.parametrize("costs", [[0.0, 0.0, 0.0, 0.0, 100.0], [0.0, 0.0, 100.0, 100.0, 100.0, 100.0]])
def test_an_answer_that_is_confirmed_or_before_which_nothing_is_left_has_no_doubt(costs: list[float]) -> None:
    answer, _ = bisected(costs)
    assert (answer.single, answer.unconfirmed) == (True, 0)


def test_commits_that_cannot_be_built_are_gone_around() -> None:
    chance = random.Random(1)
    costs = [
        None if 0 < i < COMMITS and chance.random() < 0.3 and i not in (699, 700) else 1.0 * (i >= 700)
        for i in range(COMMITS + 1)
    ]
    answer, _ = bisected(costs)
    assert (answer.first, answer.last, answer.single) == (700, 700, True)


def test_where_the_commit_itself_cannot_be_built_the_span_is_told() -> None:
    costs = [None if i in (699, 700, 701) else 1.0 * (i >= 700) for i in range(COMMITS + 1)]
    answer, _ = bisected(costs)
    assert (answer.first, answer.last, answer.single) == (699, 702, False)
    assert "3 commits between could not be built" in answer.why


def test_bad_must_cost_more_than_good() -> None:
    with pytest.raises(ValueError, match="expected more"):
        Bisection(2, {0: 1.0, 2: 1.0})


# -- with its history on disk -------------------------------------------------------------------


SPAN = [Commit(f"{i:040x}", f"commit {i}") for i in range(65)]
ASKED = {"good": SPAN[0].name, "bad": SPAN[-1].name}


def row(now: float) -> Row:
    return Row(
        "the case",
        0.0,
        1.0,
        "instructions",
        "home",
        5000.0,
        5000.0,
        5000.0,
        1,
        now,
        now - 5000,
        "0",
        0,
        "regressed",
    )


def cost_of(place: int, asked: list[Commit], patience: int = 1000) -> Callable[[Commit], Step]:
    """5,000 before the place and 5,212 from it on; interrupted after so many commits."""

    def measured(commit: Commit) -> Step:
        if len(asked) == patience:
            raise KeyboardInterrupt
        asked.append(commit)
        return Step(commit.name, 5212.0 if SPAN.index(commit) >= place else 5000.0)

    return measured


def test_an_interrupted_bisection_goes_on(tmp_path: Path) -> None:
    """No commit is measured twice, and the answer is the one it would have been."""
    path = tmp_path / "bisect.json"
    before: list[Commit] = []
    with pytest.raises(KeyboardInterrupt):
        search(
            SPAN, open_history(path, ASKED), cost_of(40, before, patience=3), lambda a, b: row(5212.0), print
        )
    after: list[Commit] = []
    history = open_history(path, ASKED)

    def never(good: Commit, bad: Commit) -> Row:
        raise AssertionError("good and bad were measured before")

    answer = search(SPAN, history, cost_of(40, after), never, print)
    assert answer is not None
    assert (answer.first, answer.single, answer.cost) == (40, True, 212.0)
    assert len(before) + len(after) <= 6 + 1
    assert not set(before) & set(after)
    assert f"{SPAN[40]} costs +212.000 instructions per frame, of +212.000 in all" in as_markdown(
        SPAN, answer, history
    )


def test_where_bad_is_not_worse_there_is_nothing_to_look_for(tmp_path: Path) -> None:
    history = open_history(tmp_path / "bisect.json", ASKED)
    assert search(SPAN, history, cost_of(40, []), lambda a, b: None, print) is None


def test_a_history_of_something_else_is_not_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "bisect.json"
    open_history(path, ASKED).save()
    with pytest.raises(UsageError, match="a bisection of something else"):
        open_history(path, {**ASKED, "bad": "another"})
    path.write_text("{")
    with pytest.raises(UsageError, match="damaged"):
        open_history(path, ASKED)
