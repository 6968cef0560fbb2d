# SPDX-License-Identifier: Apache-2.0
"""Runs one procedure alone: makes its case and the results known before it, and its trials on a simulated DUT."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from espbench.measure.inputs.setup import Request
from espbench.plan import Case
from espbench.plan.keys.stack_choice import StackChoice
from espbench.procedures.limits import Limits
from espbench.procedures.procedure import CaseFacts, Known, Procedure
from espbench.terms import Encryption, Finding, Outcome, Reason
from support.simulated.queue import QueueDut

LINE = 100_000.0  # frames/s
SIZES = (64, 128, 256, 512, 1024)


def case_of(asked: Any, name: str, dut: str = "uml") -> Case:
    """Return a case of the test `name` with the settings `asked`: 64 B frames, one way, no ESP."""
    return Case(
        id="0001-x", test=name, settings=asked, stack=StackChoice(stack="plain"), suite="none", frame_size=64,
        sizes=((64, 1),), mean_frame_size=64.0, direction="one-way", ip_version=4, repeat=1, dut=dut,
    )  # fmt: skip


def outcome(fps: float | None, status: str = "OK", dut: str = "uml") -> Outcome:
    """Return the outcome of an earlier throughput test, frames/s; None with a status that has no figure."""
    return Outcome.model_validate(
        {
            "case": "0000", "test": "throughput", "dut": dut, "stack": "plain", "suite": "none", "ip_version": 4,
            "frame_size": 64, "direction": "one-way", "loss_goal": 0.0, "status": status, "throughput_fps": fps,
            "throughput_mbps": None, "line_rate_pct": None, "trials": 3, "final_trial_s": 60.0, "rfc2544": True,
            "cpu_home_pct": None, "cpu_office_pct": None, "repeat": 1, "encryption": "baseline",
        }
    )  # fmt: skip


def known(fps: float | None, maximum: float = LINE, sizes: tuple[int, ...] = SIZES) -> Known:
    """Return the facts that a procedure starts from: the throughput, frames/s (None: below the minimum), and limits."""
    outcomes = {0.0: outcome(fps)} if fps is not None else {0.0: outcome(None, "BELOW_MINIMUM")}
    return Known(Limits(1000.0, maximum, LINE, None, 67.2e6), outcomes, sizes)


def answer(procedure: Procedure, dut: str = "uml", encryption: Encryption = "baseline") -> Finding:
    """Return the only finding of a finished procedure."""
    (finding,) = procedure.results(CaseFacts(dut, encryption, []))
    assert isinstance(finding, Finding)
    return finding


def run(
    procedure: Procedure, dut: QueueDut, spoil: Callable[[Request], bool] = lambda request: False
) -> list[Request]:
    """Make all trials that the procedure requests, and return the requests; those that `spoil` selects are INVALID."""
    asked = []
    while (request := procedure.next()) is not None:
        asked.append(request)
        trial = dut.trial(request, procedure.case.id, len(procedure.trials))
        if spoil(request):
            trial = trial.model_copy(
                update={"validity": "INVALID", "reasons": [Reason.of_text("generator sent too few")]}
            )
        procedure.add(trial)
        assert len(asked) < 5000
    return asked
