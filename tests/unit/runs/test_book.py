# SPDX-License-Identifier: Apache-2.0
"""A case's knowledge of others depends on the plan alone, not on what happens to be finished."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, cast

import pytest

from espbench.plan import Case, ResolvedPlan, cases, load_plan
from espbench.results import RunDirectory
from espbench.runs.book import Book
from espbench.terms import Finding, Outcome
from support.plans import plan_text
from support.synthetic.outcomes import outcome_of
from support.synthetic.run import manifest

PLAN = plan_text(
    name="t",
    frame_sizes="[64, 512, 1424]",
    directions="[one-way, both-ways]",
    repeat="2",
    tests="[{throughput: {}}, {latency: {}}]",
)


@pytest.fixture
def resolved(tmp_path: Path) -> ResolvedPlan:
    file = tmp_path / "plan.yaml"
    file.write_text(PLAN)
    return load_plan(file)


def book_of(resolved: ResolvedPlan, folder: Path) -> tuple[Book, list[Case]]:
    listed = cases(resolved)
    made = manifest([case.entry() for case in listed], "t")
    directory = RunDirectory.create(folder, "t", made.model_copy(update={"calibration": []}), resolved.text)
    return Book(resolved, listed, directory), listed


def outcome(case: Case, goal: float) -> Outcome:
    """Return an outcome whose throughput follows from 10 µs a frame and 10 ns a byte."""
    return outcome_of(case, goal, 1e5 / (1 + case.mean_frame_size / 1000))


def results(case: Case) -> list[Outcome | Finding]:
    return [outcome(case, goal) for goal in (0.0, 1e-5)] if case.test == "throughput" else []


def test_a_case_begins_with_the_sizes_before_it_and_a_test_with_its_throughput(
    resolved: ResolvedPlan, tmp_path: Path
) -> None:
    """Cases it knows have the same gateways, direction and repeat."""
    book, listed = book_of(resolved, tmp_path)
    for case in listed:
        alike = [
            other
            for other in listed
            if other.test == "throughput"
            and other.pair == case.pair
            and other.direction == case.direction
            and other.repeat == case.repeat
        ]
        if case.test == "throughput":
            expected = alike[: alike.index(case)]
            if len(expected) == 1:
                expected = []  # nobody can tell from one size what the next one costs
        else:
            expected = [other for other in alike if other.frame_size == case.frame_size]
        assert [other.id for other in book.needs(case)] == [other.id for other in expected]


def test_whatever_is_finished_meanwhile_a_case_knows_the_same(resolved: ResolvedPlan, tmp_path: Path) -> None:
    """The order does not matter, as long as what a case begins with comes before it."""
    book, listed = book_of(resolved, tmp_path / "in order")
    expected = {}
    for case in listed:
        expected[case.id] = book.known(case)
        book.finish(case, results(case))
    assert any(known.hints_fps for known in expected.values())
    assert any(known.throughput for known in expected.values())
    rng = random.Random(7)
    book, listed = book_of(resolved, tmp_path / "in another")
    left = list(listed)
    while left:
        ready = [case for case in left if all(book.has(other) for other in book.needs(case))]
        case = rng.choice(ready)
        assert book.known(case) == expected[case.id]
        book.finish(case, results(case))
        left.remove(case)


def test_what_came_in_any_order_is_put_into_that_of_measuring(resolved: ResolvedPlan, tmp_path: Path) -> None:
    """The tables of the manifest; the trials are the log's to arrange."""
    book, listed = book_of(resolved, tmp_path)
    directory = book._directory
    backwards = {case.id: f"context of {case.stack.shown}" for case in reversed(listed)}
    directory.update_manifest(
        context_of_case=backwards,
        contexts=cast(dict[str, dict[str, Any]], {name: {"of": name} for name in backwards.values()}),
        search_hints={case.id: [1.0] for case in reversed(listed)},
    )
    book.arrange()
    arranged = directory.manifest
    assert list(arranged.context_of_case) == [case.id for case in listed]
    assert list(arranged.contexts) == ["context of plain", "context of xfrm"]
    assert list(arranged.search_hints) == [case.id for case in listed]
