# SPDX-License-Identifier: Apache-2.0
"""What a search answers: one result per loss goal, whatever the search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from espbench.search.evidence import Entry, GivenUp
from espbench.search.goals import Judgement, judge
from espbench.terms import Status

_REASONS_TOLD = 2  # of a load that could not be judged; the trials' records have them all


@dataclass(frozen=True)
class GoalResult:
    """The answer for one goal; rates in frames/s.

    throughput_fps is None unless status is OK, or LOWER_BOUND, where it is the bound. lower_fps is the highest
    load that passed (any valid trial), upper_fps the lowest that missed; None = none. `trials` counts all trials
    of the search, since every goal is judged on each. final_trial_index is the place of the confirming trial in
    the order of `add`. at_maximum: the throughput is this or more. `words` is one sentence.
    void_finals counts the INVALID final trials at the throughput; loss_bound is the loss ratio that the valid ones
    exclude with 95 % confidence.
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
    void_finals: int = 0
    loss_bound: float | None = None


def invalid_words(entries: Sequence[Entry], load: float) -> str:
    """Why a load has no valid trial: how many were made, and what spoilt them."""
    invalid = [e.seen for e in entries if e.load_fps == load and not e.seen.valid]
    reasons = dict.fromkeys(reason for seen in invalid for reason in seen.reasons)
    why = f": {'; '.join(reasons)}" if reasons else ""
    return f"{len(invalid)} trials at {load:,.0f} frames/s were INVALID{why}"


def given_up_words(given_up: GivenUp, goal: float) -> str:
    """Why a load could not be judged: how many trials were made, and what was wrong with them."""
    reasons: dict[str, None] = {}
    for entry in given_up.entries:
        if not entry.seen.valid:
            reasons |= dict.fromkeys(entry.seen.reasons)
        elif entry.fell_short:
            reasons["less was offered than was asked for"] = None
        elif judge(entry.seen, goal) is Judgement.DISTURBED:
            reasons["frames were lost only while the host or the sender stood still"] = None
    told = list(reasons)[:_REASONS_TOLD] + (["and more of the kind"] if len(reasons) > _REASONS_TOLD else [])
    why = f": {'; '.join(told)}" if told else ""
    return f"{len(given_up.entries)} trials at {given_up.load_fps:,.0f} frames/s could not be judged{why}"
