# SPDX-License-Identifier: Apache-2.0
"""Tests of the lines that a run prints in the terminal."""

from __future__ import annotations

import io

from rich.console import Console

from espbench.cli.progress import TerminalObserver
from espbench.measure import trial
from espbench.measure.inputs.setup import Request
from espbench.terms import Reason, Trial


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


def test_a_trial_without_a_reason_is_told_as_such() -> None:
    """A daemon's program that was killed has no last words; the run goes on."""
    said = io.StringIO()
    observer = TerminalObserver(Console(file=said, width=200, soft_wrap=True), None)
    observer.trial_done(broken("", 0))
    observer.trial_done(broken("", 1).model_copy(update={"reasons": []}))
    assert [line.split("INVALID ")[1] for line in said.getvalue().splitlines()] == ["no reason given"] * 2
