# SPDX-License-Identifier: Apache-2.0
"""What a search answers: one result per loss goal, whatever the search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from espbench.search.evidence import Entry
from espbench.terms import Status


@dataclass(frozen=True)
class GoalResult:
    """The answer for one goal; rates in frames/s.

    throughput_fps is None unless status is OK. lower_fps is the highest load that passed (any
    valid trial), upper_fps the lowest that missed; None = none. `trials` counts all trials of the
    search, since every goal is judged on each. final_trial_index is the place of the confirming
    trial in the order of `add`. at_maximum: the throughput is this or more. `words` is one sentence.
    """

    goal: float
    status: Status
    throughput_fps: float | None
    lower_fps: float | None
    upper_fps: float | None
    trials: int
    final_trial_index: int | None
    at_maximum: bool
    reasons: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    words: str = ""


def invalid_words(entries: Sequence[Entry], load: float) -> str:
    """Why a load has no valid trial: how many were made, and what spoilt them."""
    invalid = [e.seen for e in entries if e.load_fps == load and not e.seen.valid]
    reasons = dict.fromkeys(reason for seen in invalid for reason in seen.reasons)
    why = f": {'; '.join(reasons)}" if reasons else ""
    return f"{len(invalid)} trials at {load:,.0f} frames/s were INVALID{why}"
