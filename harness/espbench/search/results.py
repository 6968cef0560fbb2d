# SPDX-License-Identifier: Apache-2.0
"""Defines the answer of a search, the same for all searches: one result per loss goal."""

from __future__ import annotations

from dataclasses import dataclass, field

from espbench.search.evidence import GivenUp
from espbench.search.goals import Judgement, judge
from espbench.sentences import Code
from espbench.terms import Reason, Remark, Statement, Status

_REASONS_TOLD = 2  # reasons named for a load that could not be judged; the trials' records have all of them


@dataclass(frozen=True)
class GoalResult:
    """The answer for one loss goal; rates in frames/s.

    throughput_fps is None unless status is OK, or LOWER_BOUND, where it is the bound. lower_fps is the highest load
    that passed in a valid trial, upper_fps the lowest that missed; None = none. `trials` counts all trials of the
    search, since each is judged against every goal. final_trial_index is the index of the final trial that confirms
    the figure, in the order of `add`. at_maximum: the figure is the maximum load, so the throughput may be higher.
    `answer` is the whole answer in one sentence. void_finals counts the final trials, at the throughput or at the
    load of the confirming trial, that say nothing: INVALID ones, and those whose loss lay in stalls. loss_bound is
    the loss ratio that the trials behind the figure exclude with 95 % confidence. missing has the indexes of the
    trials for which upper_fps counts as missed, in the order of `add`.
    """

    goal: float
    status: Status
    throughput_fps: float | None
    lower_fps: float | None
    upper_fps: float | None
    trials: int
    final_trial_index: int | None
    at_maximum: bool
    reasons: list[Reason] = field(default_factory=list)
    warnings: list[Remark] = field(default_factory=list)
    answer: Statement | None = None
    void_finals: int = 0
    loss_bound: float | None = None
    missing: tuple[int, ...] = ()

    @property
    def words(self) -> str:
        """The answer as text."""
        return str(self.answer or "")


def why_given_up(given_up: GivenUp, goal: float) -> Reason:
    """Return why a load could not be judged: how many trials were made, and what was wrong with them."""
    reasons: dict[Reason, None] = {}
    for entry in given_up.entries:
        if not entry.seen.valid:
            reasons |= dict.fromkeys(entry.seen.reasons)
        elif entry.fell_short:
            reasons[Reason.of(Code.OFFERED_LESS)] = None
        elif judge(entry.seen, goal) is Judgement.DISTURBED:
            reasons[Reason.of(Code.LOST_IN_STALLS)] = None
        elif entry.went_beyond:
            reasons[Reason.of(Code.OFFERED_MORE)] = None
    why = list(reasons)[:_REASONS_TOLD]
    if len(reasons) > _REASONS_TOLD:
        why.append(Reason.of(Code.AND_MORE))
    return Reason.of(Code.GIVEN_UP, trials=len(given_up.entries), fps=given_up.load_fps, why=why)
