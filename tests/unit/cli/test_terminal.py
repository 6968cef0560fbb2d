# SPDX-License-Identifier: Apache-2.0
"""Tests of the lines that a run prints in the terminal."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from espbench.cli.progress import TerminalObserver
from espbench.measure import trial
from espbench.measure.inputs.setup import Request
from espbench.terms import DirectionReading, Reason, Trial
from support.simulated import comparisons


def broken(reason: str, sequence: int) -> Trial:
    return trial.broken(
        Request(1000.0, 1.0, "search"), Reason.of_text(reason), case="0001", sequence=sequence
    )


def test_a_gateways_last_words_are_told_once() -> None:
    """All of them, where the first trial failed; each later one says that it was the same."""
    said = io.StringIO()
    observer = TerminalObserver(Console(file=said, width=200, soft_wrap=True), None)
    panic = "gateway home died; its last words:\nOops [1]\nKernel panic - not syncing"
    for sequence, reason in enumerate([panic, panic, "host stalled", panic.replace("home", "office")]):
        observer.trial_done(broken(reason, sequence))
    assert [line.rpartition("INVALID")[2].strip() for line in said.getvalue().splitlines()] == [
        "gateway home died; its last words:", "Oops [1]", "Kernel panic - not syncing",
        "gateway home died; its last words: as above",
        "host stalled",
        "gateway office died; its last words:", "Oops [1]", "Kernel panic - not syncing",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("counted", "expected"),
    [
        ((None, None), "zero-loss: 62,001 fps, 31.7 Mbps"),
        ((16168.2, None), "zero-loss: instructions/frame home 16,168  62,001 fps, 31.7 Mbps"),
        (
            (16168.2, 14772.0),
            "zero-loss: instructions/frame home 16,168, office 14,772  62,001 fps, 31.7 Mbps",
        ),
    ],
)
def test_in_virtual_time_instructions_per_frame_stand_first(
    counted: tuple[float | None, float | None], expected: str
) -> None:
    """Each gateway of which they are known has a figure."""
    said = io.StringIO()
    home, office = counted
    outcome = comparisons.made(
        "xfrm", 64, 1, 62_001.0, throughput_mbps=31.74,
        instructions_home_per_frame=home, instructions_office_per_frame=office,
    )  # fmt: skip
    TerminalObserver(Console(file=said, width=200, soft_wrap=True), None).case_done([outcome])
    assert said.getvalue().strip() == f"OK {expected}"


@pytest.mark.parametrize(
    ("lost", "in_stalls", "changes", "no_miss"),
    [
        ([5], [5], {}, True),
        ([5], [4], {}, False),
        ([0], [0], {}, False),
        ([5, 0], [0, 5], {}, False),  # each direction has its own stalls
        ([5, 1], [5, 3], {}, True),
        ([0], [0], {"sustained": False, "backlog_in_stalls": True}, True),
        ([0], [0], {"sustained": False, "backlog_in_stalls": False}, False),
        ([5], [0], {"sustained": False, "backlog_in_stalls": True}, False),
        ([5], [5], {"validity": "INVALID"}, False),  # INVALID says it already
        ([5], [5], {"phase": "measure"}, False),  # an outage is measured, and nothing is repeated
    ],
)
def test_a_trial_that_is_no_miss_says_so(
    lost: list[int], in_stalls: list[int], changes: dict[str, Any], no_miss: bool
) -> None:
    """Otherwise such a trial, and then a pass at the same load, look like luck."""
    ways = ("west-east", "east-west")
    each = {
        way: DirectionReading(
            intended_fps=500.0, offered_fps=500.0, tx_frames=500, rx_frames=500 - n, lost=n, duplicated=0,
            reordered=0, corrupted=0,
        )
        for way, n in zip(ways, lost, strict=False)
    }  # fmt: skip
    host = {"lost_in_stalls_by_direction": in_stalls, "backlog_in_stalls": changes.get("backlog_in_stalls")}
    record = broken("stored", 0).model_copy(
        update={"validity": "VALID", "host": host, "per_direction": each, "lost": sum(lost)} | changes
    )
    said = io.StringIO()
    TerminalObserver(Console(file=said, width=200, soft_wrap=True), None).trial_done(record)
    assert ("no miss" in said.getvalue()) is no_miss
    assert record.only_in_stalls is no_miss


def test_a_trial_without_a_reason_is_told_as_such() -> None:
    """A daemon's program that was killed has no last words; the run goes on."""
    said = io.StringIO()
    observer = TerminalObserver(Console(file=said, width=200, soft_wrap=True), None)
    observer.trial_done(broken("", 0))
    observer.trial_done(broken("", 1).model_copy(update={"reasons": []}))
    assert [line.split("INVALID ")[1] for line in said.getvalue().splitlines()] == ["no reason given"] * 2
