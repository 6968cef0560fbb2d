# SPDX-License-Identifier: Apache-2.0
"""The overhead of a suite, and its point in the chart, rest on all repeats or say on which ones."""

from __future__ import annotations

from typing import Any

import pytest

from espbench.reporting.findings.finding_words import Names
from espbench.reporting.one_run.answer import Cell, answers
from espbench.reporting.one_run.overhead import overhead
from espbench.reporting.parts.figures import BASELINE, Group, colours, groups_of, panel
from espbench.reporting.parts.notes import Notes
from espbench.terms import Outcome
from support.simulated.procedures import outcome


def repeats(stack: str, fps: float, statuses: list[str]) -> list[Outcome]:
    """One outcome for each status: the same figure, or none."""
    suite = "none" if stack == "plain" else "aes128-sha1"
    return [
        outcome(fps if status == "OK" else None, status).model_copy(
            update={"stack": stack, "suite": suite, "repeat": number}
        )
        for number, status in enumerate(statuses, start=1)
    ]


def group(own: list[str], plain: list[str]) -> Group:
    """The group of a suite that reached 0.9 of plain, with the statuses of the repeats."""
    outcomes = [*repeats("plain", 50_000.0, plain), *repeats("xfrm", 45_000.0, own)]
    return next(g for g in groups_of(outcomes) if g.stack == "xfrm")


ALL = ["OK"] * 3
BELOW = ["OK", "BELOW_MINIMUM", "BELOW_MINIMUM"]
VOID = ["OK", "INVALID", "UNRESOLVABLE"]


@pytest.mark.parametrize(
    ("own", "plain", "but"),
    [
        (ALL, ALL, None),
        (VOID, ALL, "the suite: 1 of 3 repeats"),
        (ALL, VOID, "plain: 1 of 3 repeats"),
        (VOID, VOID, "the suite: 1 of 3 repeats; plain: 1 of 3 repeats"),
    ],
)
def test_a_ratio_names_the_repeats_that_it_lacks(own: list[str], plain: list[str], but: str | None) -> None:
    (row,) = overhead(group(own, plain)).rows
    assert row[3] == "0.900 ×"
    assert row[6:] == ([] if but is None else [but])


@pytest.mark.parametrize(("own", "plain"), [(BELOW, ALL), (ALL, BELOW)], ids=["the suite", "plain"])
def test_a_repeat_below_the_minimum_leaves_no_ratio(own: list[str], plain: list[str]) -> None:
    """The median of the others would be too high."""
    assert overhead(group(own, plain)).rows == []


def test_a_repeat_below_the_minimum_leaves_no_point_in_the_chart() -> None:
    """Its mark is at the foot of the chart."""
    drawn: dict[str, Any] = panel(group(BELOW, ALL), "fps", 1e9, colours(["aes128-sha1"]), legend=False)
    assert {row["series"] for row in drawn["datasets"]["points"]} == {BASELINE}
    assert [row["status"] for row in drawn["datasets"]["marks"]] == ["BELOW_MINIMUM"] * 2


def cell(statuses: list[str]) -> Cell:
    """The report's answer for a suite whose repeats have these statuses."""
    mine = repeats("xfrm", 45_000.0, statuses)
    (table,) = answers(groups_of(mine), Notes([], mine), Names())
    return table.rows[0].cells[0]


def test_the_answer_has_no_figure_of_the_lucky_repeat_alone() -> None:
    """A repeat below the minimum is the slowest; the report's first table says that status instead."""
    assert (cell(BELOW).fps, cell(BELOW).status) == ("", "BELOW_MINIMUM")
    assert (cell(VOID).fps, cell(VOID).valid_of) == ("45,000", "1 of 3")
    assert cell(ALL).fps == "45,000"
