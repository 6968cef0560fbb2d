# SPDX-License-Identifier: Apache-2.0
"""Throughputs that contradict each other are marked, in the files of results too, and no others are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from espbench.results import RunDirectory
from espbench.results.contradictions import Marking, marked
from espbench.results.outcome_files import json_text
from espbench.sentences import Code
from espbench.terms import Outcome, Remark
from support.synthetic import run as synthetic_run

POINT = ("3des-sha1", 512, 0.0)


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return synthetic_run.build(tmp_path)


@pytest.fixture
def outcomes(run: RunDirectory) -> list[Outcome]:
    return [o.model_copy(update={"warnings": []}) for o in run.outcomes()]


def with_ratio(outcomes: list[Outcome], ratio: float, plain_status: str = "OK") -> list[Outcome]:
    """Let the figure at POINT be this many times that of plain."""
    (plain,) = (o for o in outcomes if (o.stack, *point(o)[1:]) == ("plain", *POINT[1:]))
    assert plain.throughput_fps
    changes: dict[int, dict[str, Any]] = {
        id(plain): {"status": plain_status},
        **{id(o): {"throughput_fps": ratio * plain.throughput_fps} for o in outcomes if point(o) == POINT},
    }
    return [o.model_copy(update=changes.get(id(o), {})) for o in outcomes]


def point(outcome: Outcome) -> tuple[str, int | str, float]:
    return outcome.suite, outcome.frame_size, outcome.loss_goal


def told(outcomes: list[Outcome]) -> dict[tuple[str, int | str, float], list[Remark]]:
    return {point(o): o.warnings for o in marked(outcomes) if o.warnings}


def codes(outcomes: list[Outcome]) -> set[str]:
    return {remark.code for remarks in told(outcomes).values() for remark in remarks}


def test_figures_that_fit_each_other_have_no_remark(outcomes: list[Outcome]) -> None:
    assert told(outcomes) == {}
    assert Code.FASTER_THAN_PLAIN not in codes(with_ratio(outcomes, 1.01))


def test_esp_above_plain_is_marked(outcomes: list[Outcome]) -> None:
    remarks = told(with_ratio(outcomes, 1.053))
    (remark,) = (r for r in remarks[POINT] if r.code == Code.FASTER_THAN_PLAIN)
    assert "faster than plain: 5.3 % above the throughput without IPsec" in remark.text


def test_a_lower_bound_of_plain_contradicts_nothing(outcomes: list[Outcome]) -> None:
    assert Code.FASTER_THAN_PLAIN not in codes(with_ratio(outcomes, 1.5, "LOWER_BOUND"))


def test_a_plain_figure_that_slow_cpus_lowered_contradicts(outcomes: list[Outcome]) -> None:
    """A neighbour that slows plain down is what the remark is for."""
    slow = Remark.of(Code.SLOW_LOSSES, pct=20.0, fps=40_000.0)
    slowed = [
        o.model_copy(update={"warnings": [slow] if o.stack == "plain" else []})
        for o in with_ratio(outcomes, 1.3)
    ]
    assert Code.FASTER_THAN_PLAIN in codes(slowed)


def test_a_result_without_a_figure_has_no_remark(outcomes: list[Outcome]) -> None:
    fast = with_ratio(outcomes, 1.3)
    first = next(o for o in fast if point(o) == POINT)
    void = first.model_copy(update={"repeat": 2, "status": "INVALID", "throughput_fps": None})
    assert [o.repeat for o in marked([*fast, void]) if point(o) == POINT and o.warnings] == [1]


def test_saving_again_makes_no_new_copies(outcomes: list[Outcome]) -> None:
    """A run saves all its results after each case."""
    marking, doubted = Marking(), with_ratio(outcomes, 1.3)
    first = marking(doubted)
    assert any(copy is not one for copy, one in zip(first, doubted, strict=True))
    assert all(again is copy for again, copy in zip(marking(doubted), first, strict=True))
    equal = with_ratio(outcomes, 1.0)
    assert [one.warnings for one in marking(equal)] == [one.warnings for one in marked(equal)]


@pytest.mark.parametrize(
    ("status", "missed_fps", "is_told"),
    [
        ("OK", 33_471.0, True),  # 1424 B frames of the same series met the goal at 37,986 frames/s
        ("OK", 37_500.0, False),  # within what luck can do
        ("OK", None, False),
        ("LOWER_BOUND", 33_471.0, False),
    ],
)
def test_a_size_that_missed_where_a_larger_one_passed_is_marked(
    outcomes: list[Outcome], status: str, missed_fps: float | None, is_told: bool
) -> None:
    """These are figures of 27 November 2026, when a neighbour slowed the machine in three trials."""
    series = [o for o in outcomes if (o.suite, o.loss_goal) == (POINT[0], 0.0)]
    changes: dict[int | str, dict[str, Any]] = {
        512: {"status": status, "throughput_fps": 31_782.0, "upper_fps": missed_fps},
        1424: {"status": "OK", "throughput_fps": 37_986.0, "upper_fps": 39_885.0},
    }
    pair = [o.model_copy(update=changes[o.frame_size]) for o in series if o.frame_size in changes]
    remarks = told(pair)
    if not is_told:
        assert remarks == {}
        return
    ((where, (remark,)),) = remarks.items()
    assert (where, remark.code) == (POINT, Code.SLOWER_THAN_LARGER)
    assert "this size missed the goal at 33,471 frames/s, and those of 1424 B met it at 37,986" in remark.text


def test_results_of_an_earlier_espbench_have_the_remarks_too(
    run: RunDirectory, outcomes: list[Outcome]
) -> None:
    (run.path / "results.json").write_text(json_text(with_ratio(outcomes, 1.053)))
    assert [r.code for o in run.outcomes() if point(o) == POINT for r in o.warnings] == [
        Code.FASTER_THAN_PLAIN
    ]


def test_saved_results_have_the_remarks_once(run: RunDirectory, outcomes: list[Outcome]) -> None:
    """They are in results.csv, and a figure that no longer contradicts another loses its remark."""
    run.save_results(with_ratio(outcomes, 1.053))
    run.save_results(run.results())
    saved = {point(o): [r.code for r in o.warnings] for o in run.outcomes()}
    assert saved[POINT].count(Code.FASTER_THAN_PLAIN) == 1
    assert "faster than plain: 5.3 %" in (run.path / "results.csv").read_text()
    changed = with_ratio(run.outcomes(), 0.9)
    run.save_results(changed)
    assert "faster than plain" not in (run.path / "results.csv").read_text()
