# SPDX-License-Identifier: Apache-2.0
"""A test as a series of trials: the next trial follows from the answers of the earlier ones.

An INVALID trial is repeated, as often as the plan allows. If it is INVALID even then, its point has no answer,
and most tests then have no answer either.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from espbench.measure.inputs.setup import Request
from espbench.plan.resolved.cases import Case
from espbench.procedures.procedure import OVERHEAD_S, CaseFacts, Known, TrialMaker, identity
from espbench.sentences import Code
from espbench.terms import Deviation, Finding, Outcome, Quantity, Reason, Remark, Statement, Status, Trial


class Series(ABC):
    """Base of the tests that are not a search over loss goals."""

    # True if the test goes on when a point could not be measured.
    gaps_allowed = False

    def __init__(self, case: Case, known: Known, trials: Sequence[Trial] = ()) -> None:
        self.case = case
        self.known = known
        self.trials: list[Trial] = []
        # The last trial of each point: VALID, or INVALID after all repeats.
        self.answers: list[Trial] = []
        self._attempt = 0
        for trial in trials:
            self.add(trial)

    @property
    def warm_up_fps(self) -> float:
        return self.known.limits.minimum_fps

    @property
    def refused(self) -> Trial | None:
        """The trial that ended the series: INVALID after all repeats, or with frames in clear."""
        if self.violation is not None:
            return self.violation
        if self.gaps_allowed:
            return None
        return next((trial for trial in self.answers if trial.validity == "INVALID"), None)

    @property
    def violation(self) -> Trial | None:
        """The trial in which frames crossed without encryption: it ends the case."""
        return next((trial for trial in self.trials if trial.violated), None)

    def next(self) -> Request | None:
        if self.unfit() or self.refused is not None:
            return None
        wanted = self.wanted()
        return None if wanted is None else replace(wanted, attempt=self._attempt)

    def measure(self, request: Request, maker: TrialMaker) -> Trial:
        return maker.trial(request, ())

    def add(self, trial: Trial) -> None:
        self.trials.append(trial)
        if trial.validity == "INVALID" and self._attempt < self.case.settings.retries:
            self._attempt += 1
            return
        self._attempt = 0
        self.answers.append(trial)

    def brackets(self) -> list[tuple[float, float | None, float | None]]:
        return []

    def remaining_s(self, *, waits: bool = True) -> float:
        s = self.case.settings
        around = s.learning + s.residue + s.settle + OVERHEAD_S if waits else 0.0
        return max(0, self.expected_trials() - len(self.answers)) * (s.longest_s + around)

    def results(self, facts: CaseFacts) -> list[Outcome | Finding]:
        invalid = [*dict.fromkeys(reason for t in self.trials[-1:] for reason in t.reasons)]
        if why := self.unfit():
            words = Statement.of(Code.NOT_MEASURED, why=why)
            return [self._finding(facts, "INVALID", reasons=[why], words=words)]
        if (violation := self.violation) is not None:
            words = Statement.of(Code.VIOLATED, trial=violation.sequence)
            return [self._finding(facts, "VIOLATED", reasons=violation.problems, words=words)]
        if self.refused is not None:
            words = Statement.of(Code.INVALID, trials=len(self.trials))
            return [self._finding(facts, "INVALID", reasons=invalid, words=words)]
        return [self._finding(facts, **self.answer())]

    def _finding(
        self,
        facts: CaseFacts,
        status: Status,
        *,
        words: Statement,
        quantities: Sequence[Quantity] = (),
        reasons: Sequence[Reason] = (),
        curve: Sequence[dict[str, Any]] = (),
        load_fps: float | None = None,
        warnings: Sequence[Remark] = (),
    ) -> Finding:
        deviations = self.deviations()
        of_trials = [remark for trial in self.answers for remark in trial.warnings]
        return Finding(
            **identity(self.case, facts.dut),
            status=status,
            load_fps=load_fps,
            quantities=list(quantities),
            curve=list(curve),
            trials=len(self.trials),
            rfc2544=status == "OK" and not deviations and self.case.settings.of_rfc2544,
            encryption=facts.encryption,
            words=words.text,
            answer=words,
            reasons=list(reasons),
            warnings=[*dict.fromkeys([*facts.warnings, *warnings, *of_trials])],
            rfc2544_deviations=deviations,
        )

    def unfit(self) -> Reason | None:
        """Return why this case cannot be measured at all; None if it can."""
        return None

    @abstractmethod
    def wanted(self) -> Request | None:
        """Return the next trial after these answers; None if there are enough."""

    @abstractmethod
    def answer(self) -> dict[str, Any]:
        """Return status, words, quantities and the like, as arguments for `_finding`. It is called when every point
        has an answer.
        """

    @abstractmethod
    def expected_trials(self) -> int:
        """Return the number of trials in the whole series, as far as it is known."""

    @abstractmethod
    def deviations(self) -> list[Deviation]:
        """Return the clauses of the standard that the settings or the trials do not keep."""


def noted(trial: Trial, measured: dict[str, Any], reasons: Sequence[Reason] = ()) -> Trial:
    """Return the record with these values added to its `measured`; INVALID if there are reasons."""
    update: dict[str, Any] = {"measured": trial.measured | measured}
    if reasons:
        update |= {"validity": "INVALID", "reasons": [*trial.reasons, *reasons]}
    return trial.model_copy(update=update)


def times_unknown(trial: Trial, *, between_arrivals: bool = False) -> list[Reason]:
    """Return why no time can be taken from a trial's losses, if it is not known when they happened; else nothing.

    between_arrivals: the time is one without arrivals. Then damaged frames arrived, and that time must be known;
    otherwise they count as lost, and when they were sent is not recorded.
    """
    unknown = 0
    for reading in trial.per_direction.values():
        arrived = reading.rx_frames + (reading.corrupted or 0)
        lost = reading.lost - (reading.corrupted or 0 if between_arrivals else 0)
        no_gap = between_arrivals and reading.longest_gap_s is None and arrived > 1
        if lost > 0 and (reading.last_lost_s is None or no_gap):
            unknown += lost
    return [Reason.of(Code.LOSS_TIMES_UNKNOWN, frames=unknown)] if unknown else []
