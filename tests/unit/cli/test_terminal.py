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
from espbench.terms import Reason, Trial
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
    ("changes", "in_stalls", "judges"),
    [
        ({"lost": 5}, {"lost_in_stalls": 5}, False),
        ({"lost": 5}, {"lost_in_stalls": 4}, True),
        ({"lost": 0}, {"lost_in_stalls": 0}, True),
        ({"sustained": False}, {"backlog_in_stalls": True}, False),
        ({"sustained": False}, {"backlog_in_stalls": False}, True),
        ({"sustained": False, "lost": 5}, {"backlog_in_stalls": True, "lost_in_stalls": 0}, True),
        ({"validity": "INVALID", "lost": 5}, {"lost_in_stalls": 5}, True),  # INVALID says it already
    ],
)
def test_a_trial_that_judges_nothing_says_so(
    changes: dict[str, Any], in_stalls: dict[str, Any], judges: bool
) -> None:
    """Otherwise a miss, and then a pass at the same load, look like luck."""
    said = io.StringIO()
    record = broken("stored", 0).model_copy(update={"validity": "VALID", "host": in_stalls, **changes})
    TerminalObserver(Console(file=said, width=200, soft_wrap=True), None).trial_done(record)
    assert ("judges nothing" in said.getvalue()) is not judges
    assert record.only_in_stalls is not judges


def test_a_trial_without_a_reason_is_told_as_such() -> None:
    """A daemon's program that was killed has no last words; the run goes on."""
    said = io.StringIO()
    observer = TerminalObserver(Console(file=said, width=200, soft_wrap=True), None)
    observer.trial_done(broken("", 0))
    observer.trial_done(broken("", 1).model_copy(update={"reasons": []}))
    assert [line.split("INVALID ")[1] for line in said.getvalue().splitlines()] == ["no reason given"] * 2
