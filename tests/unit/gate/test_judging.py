# SPDX-License-Identifier: Apache-2.0
"""Known numbers of instructions are judged as the same, moved or regressed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espbench.gate import from_check
from espbench.gate.base import Base, BaseCase, Point, Sample
from espbench.gate.from_run import base_of
from espbench.gate.judging import Measured, judge
from espbench.gate.limits import DEFAULTS, Limit, Quantity
from espbench.gate.verdict import Row
from support.synthetic.gate import LOAD_FPS, World

Limits = Mapping[Quantity, Limit]
POINT = Point("board", "xfrm", "aes128gcm16", 4, 64, "one-way", "throughput")
NO_LIMIT: Limits = {"instructions": Limit(), "throughput": Limit(share=0.02)}


def rows(before: World, after: World, tmp_path: Path, limits: Limits = NO_LIMIT) -> list[Row]:
    """A world held against another, through the files of their runs."""
    base = base_of(before.run(tmp_path / "base"))
    loads = from_check.base_loads(base, after.entries, limits)
    measured, problems = from_check.measurements(after.check(tmp_path / "check", loads), base)
    assert problems == []
    return judge(base, measured, limits)


def test_a_world_held_against_itself_is_the_same(tmp_path: Path) -> None:
    """Four cases of two gateways and a throughput each."""
    judged = rows(World(), World(), tmp_path)
    assert [row.word for row in judged] == ["same"] * 12


def test_one_instruction_more_is_found_and_is_one(tmp_path: Path) -> None:
    dearer = World(cost=lambda entry: 5000.0 if entry.stack == "plain" else 12001.0)
    judged = [row for row in rows(World(), dearer, tmp_path) if row.word != "same"]
    assert {(row.word, row.change, row.side) for row in judged} == {
        ("regressed", 1.0, "home"),
        ("regressed", 1.0, "office"),
    }
    assert len(judged) == 4


def test_two_instructions_in_the_whole_trial_are_no_difference() -> None:
    """They are those of reading the clock: here 400 frames, so 0.005 of a frame; three are a difference."""
    sample = Sample(1, 0.0, 4_000.0, 0.1, {"home": 12_000.0}, met=True, share=0.1)
    base = Base("made up", {}, {POINT: BaseCase(POINT, [sample], "run", "now", {})})
    for more, word in ((0.005, "same"), (-0.005, "same"), (0.008, "regressed"), (-0.008, "improved")):
        now = Measured({"home": 12_000 + more}, met=True, floor_met=None)
        row, _ = judge(base, {(POINT, 1, 0.0, 4_000.0): now}, NO_LIMIT)
        assert (row.word, row.change) == (word, more)


def test_within_the_limit_it_moved(tmp_path: Path) -> None:
    """The limit of 0.1 % is 12 of 12,000 instructions."""
    for more, word in ((12.0, "moved"), (12.001, "regressed"), (-12.0, "moved"), (-13.0, "improved")):
        after = World(stacks=("xfrm",), sizes=(64,), cost=lambda entry, more=more: 12000.0 + more)  # type: ignore[misc]
        before = World(stacks=("xfrm",), sizes=(64,))
        judged = rows(before, after, tmp_path / str(more), DEFAULTS)
        assert [row.word for row in judged] == [word, word, "same"]


def test_less_throughput_is_found_by_one_trial_more(tmp_path: Path) -> None:
    """2 % below the base's throughput it meets the goal, or it does not."""
    for capacity, word in ((1.0, "same"), (0.99, "moved"), (0.98, "moved"), (0.97, "regressed")):
        after = World(capacity_fps=capacity * LOAD_FPS)
        judged = rows(World(), after, tmp_path / str(capacity))
        assert {row.word for row in judged if row.quantity == "throughput"} == {word}


def test_a_trial_that_missed_in_the_base_judges_no_throughput(tmp_path: Path) -> None:
    """An MLRsearch allows some of its trials to miss."""
    base = base_of(World().run(tmp_path))
    missed = {
        p: replace(c, samples=[replace(s, met=False) for s in c.samples]) for p, c in base.cases.items()
    }
    judged = judge(
        replace(base, cases=missed),
        {(p, 1, 0.0, LOAD_FPS): Measured({}, False, None) for p in missed},
        NO_LIMIT,
    )
    assert {row.word for row in judged} == {"not judged"}


@pytest.mark.parametrize(
    ("was", "now", "word"),
    [
        ([True, True], [True, True], "same"),
        ([True, True], [True, False], "regressed"),
        ([False, True], [False, True], "same"),
        ([False, True], [True, False], "regressed"),
        ([False, False], [False, False], "not judged"),
    ],
)
def test_a_loss_at_a_tenth_of_the_throughput_that_the_base_did_not_have(
    was: list[bool], now: list[bool], word: str
) -> None:
    """No limit allows it; the loads at the throughput are as before."""
    low, full = LOAD_FPS / 10, LOAD_FPS
    samples = [
        Sample(repeat, 0.0, load, 0.1, {"home": 12_000.0}, met=met or load == full, share=load / full)
        for repeat, met in enumerate(was, start=1)
        for load in (full, low)
    ]
    base = Base("made up", {}, {POINT: BaseCase(POINT, samples, "run", "now", {})})
    measured = {
        (POINT, repeat, 0.0, load): Measured(
            {"home": 12_000.0}, met or load == full, None, 0.0 if met else 0.1
        )
        for repeat, met in enumerate(now, start=1)
        for load in (full, low)
    }
    rows = {row.quantity: row for row in judge(base, measured, DEFAULTS)}
    assert (rows["instructions"].word, rows["throughput"].word) == ("same", "same")
    assert (rows["frame loss"].word, rows["frame loss"].load_fps) == (word, low)
    if word == "regressed":
        assert rows["frame loss"].why == "it misses 0 % at 4,000 frames/s, which the base met"


def judged(band: list[float], figures: list[float], limit: Limit) -> Row:
    samples = [Sample(i, 0.0, 1e5, 1.0, {"home": x}, met=True) for i, x in enumerate(band)]
    base = Base("", {}, {POINT: BaseCase(POINT, samples, "", "", {})})
    measured = {
        (POINT, i, 0.0, 1e5): Measured({"home": x}, met=True, floor_met=None) for i, x in enumerate(figures)
    }
    row, _ = judge(base, measured, {"instructions": limit, "throughput": Limit()})
    return row


@pytest.mark.parametrize(
    ("figures", "word"),
    [
        ([102.0] * 5, "same"),
        ([104.0] * 5, "same"),
        ([104.5] * 5, "moved"),
        ([106.0] * 5, "regressed"),
        ([99.5] * 5, "moved"),
        ([98.0] * 5, "improved"),
        ([100.0, 100.0, 103.0, 200.0, 200.0], "same"),
    ],
)
def test_against_a_band_of_five_seeds(figures: list[float], word: str) -> None:
    """The median of the new ones, beside the least and the greatest of the base's."""
    row = judged([100.0, 101.0, 102.0, 103.0, 104.0], figures, Limit(number=1.0))
    assert (row.word, row.low, row.high, row.base) == (word, 100.0, 104.0, 102.0)


@pytest.mark.parametrize(
    ("now", "word"),
    [(100.0, "same"), (104.0, "same"), (105.0, "moved"), (105.5, "regressed"), (98.5, "improved")],
)
def test_the_first_repeat_alone_is_held_against_the_whole_band(now: float, word: str) -> None:
    row = judged([100.0, 101.0, 102.0, 103.0, 104.0], [now], Limit(number=1.0))
    assert (row.word, row.low, row.high, row.base, row.repeats) == (word, 100.0, 104.0, 102.0, 5)
    assert row.now == now


costs = st.floats(min_value=1, max_value=1e6).map(lambda x: round(x, 3))


@given(st.lists(costs, min_size=1, max_size=5), st.floats(0, 0.5), st.floats(0, 100))
def test_what_is_equal_is_never_worse(band: list[float], share: float, number: float) -> None:
    assert judged(band, band, Limit(share, number)).word == "same"


@given(costs, st.floats(0.001, 1e4).map(lambda x: round(x, 3)), st.floats(0, 100).map(lambda x: round(x, 3)))
def test_one_repeat_is_judged_by_the_limit_alone(base: float, more: float, number: float) -> None:
    """A band without a width: what is more is `moved` up to the limit, and then `regressed`."""
    row = judged([base], [round(base + more, 3)], Limit(number=number))
    assert row.word == ("regressed" if more > number else "moved")
