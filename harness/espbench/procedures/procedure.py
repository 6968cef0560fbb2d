# SPDX-License-Identifier: Apache-2.0
"""The interface between a test and the session that runs it: the test asks for trials, gets their records, and
answers.

The next trial depends only on the records of earlier trials. So an interrupted run can be continued from its records,
with the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from espbench.measure.inputs.actions import Action
from espbench.measure.inputs.setup import Request, Setup
from espbench.plan.resolved.cases import Case
from espbench.procedures.limits import Limits
from espbench.terms import BaseLoad, Encryption, Finding, Outcome, Remark, Trial

# The time that each trial takes besides its waits, s, for reading counters and starting threads. It serves to
# estimate the remaining time.
OVERHEAD_S = 0.4


@dataclass(frozen=True)
class Known:
    """The facts about a case that a run knows before it begins.

    throughput: the outcome of this run's throughput test for the same case, by loss goal. hints_fps: for each loss
    goal of a throughput test, where its search begins (warm_start.py). base_loads: the loads of a base, which replace
    the test (rfc2544/base_loads.py).
    """

    limits: Limits
    throughput: dict[float, Outcome]
    frame_sizes: Sequence[int | str]
    hints_fps: Sequence[float | None] = ()
    base_loads: Sequence[BaseLoad] = ()


@dataclass(frozen=True)
class CaseFacts:
    """The facts about a case that only the session knows: its DUT, what its trials prove, and warnings for its
    figures.
    """

    dut: str
    encryption: Encryption
    warnings: list[Remark]


@dataclass(frozen=True)
class TrialMaker:
    """Makes the trials of a case on a test set-up that carries its traffic.

    trial: measure.trial.measure with all arguments that the case fixes; it raises the same errors.
    """

    setup: Setup
    trial: Callable[[Request, Sequence[Action]], Trial]


class Procedure(Protocol):
    """The test of one case. A new instance is made for each case, with the trials that are already on disk."""

    @property
    def case(self) -> Case: ...

    @property
    def trials(self) -> Sequence[Trial]:
        """The trials so far, in order."""

    @property
    def warm_up_fps(self) -> float:
        """The load of the warm-up before the first trial."""

    def next(self) -> Request | None:
        """Return the next trial to make; None if the test can answer."""

    def measure(self, request: Request, maker: TrialMaker) -> Trial:
        """Make that trial."""

    def add(self, trial: Trial) -> None:
        """Add the record of a trial."""

    def brackets(self) -> list[tuple[float, float | None, float | None]]:
        """Return, for the terminal, (loss goal, load known to meet it, load known to miss it) for each loss goal;
        frames/s.
        """

    def remaining_s(self, *, waits: bool = True) -> float:
        """Return an estimate of the remaining time, s; waits: with the waits around the trials."""

    def results(self, facts: CaseFacts) -> list[Outcome | Finding]:
        """Return the answer; only when `next` is None."""


def identity(case: Case, dut: str) -> dict[str, Any]:
    """Return the fields of an outcome or finding that identify its case."""
    return {
        "case": case.id,
        "test": case.test,
        "dut": dut,
        "stack": case.stack.shown,
        "suite": case.suite,
        "ip_version": case.ip_version,
        "frame_size": case.frame_size,
        "direction": case.direction,
        "repeat": case.repeat,
    }
