# SPDX-License-Identifier: Apache-2.0
"""Makes trials of a throughput case whose tester offers less than the intended load."""

from __future__ import annotations

from pathlib import Path

from espbench.measure.inputs.setup import Request
from espbench.plan import Case, cases, load_plan
from espbench.procedures.limits import Limits
from espbench.procedures.rfc2544.throughput import ThroughputCase
from espbench.terms import DirectionReading, Reason, Trial
from support.plans import plan_text

PLAN = plan_text(
    name="t", stacks="[plain]", suites=None, frame_sizes="[512]", tests="[{throughput: {loss_goals: [0]}}]"
)
MAXIMUM = 100_000.0


def case(folder: Path, goal: str = "0") -> Case:
    """Return the only case of a plan with a throughput test."""
    file = folder / "plan.yaml"
    file.write_text(PLAN.replace("loss_goals: [0]", f"loss_goals: [{goal}]"))
    return cases(load_plan(file))[0]


def short(
    case: Case,
    sequence: int,
    *,
    share: float = 0.65,
    lost: float = 0.0,
    disturbed: bool = False,
    taken_pct: float = 0.0,
) -> Trial:
    """Return the record of the first trial at the maximum; a slow tester steadily offered a share of the load.

    sequence: also the number of the attempt. lost: the loss ratio. taken_pct: the share of the sender's CPU that others
    used, %.
    """
    tx = int(2.0 * MAXIMUM * share)
    rx = round(tx * (1 - lost))
    direction = DirectionReading(
        intended_fps=MAXIMUM, offered_fps=share * MAXIMUM, tx_frames=tx, rx_frames=rx, lost=tx - rx, duplicated=0,
        reordered=0, corrupted=0, highest_fps=share * MAXIMUM,
    )  # fmt: skip
    return Trial(
        case=case.id, sequence=sequence, phase="search", attempt=sequence, intended_fps=MAXIMUM,
        offered_fps=share * MAXIMUM, duration_s=2.0, intended_duration_s=2.0, tx_frames=tx,
        rx_frames=rx, lost=tx - rx, duplicated=0, reordered=0, corrupted=0, frame_loss_ratio=lost,
        validity="INVALID" if disturbed else "VALID", reasons=[Reason.of_text("host starvation")] if disturbed else [],
        per_direction={"west-east": direction},
        host={"disturbed": disturbed, "sender_foreign_pct": taken_pct},
    )  # fmt: skip


def maximum_after(folder: Path, *disturbed: bool, taken_pct: float = 0.0) -> float:
    """Return the search's maximum, frames/s, after trials that all offered too little; disturbed: each by the host?"""
    measured = case(folder)
    trials = [short(measured, n, disturbed=host, taken_pct=taken_pct) for n, host in enumerate(disturbed)]
    running = ThroughputCase(measured, Limits(1000.0, MAXIMUM, MAXIMUM, None), [512], trials)
    return running.search.maximum_fps


def answer(wanted: Request, case: Case, sequence: int, *, limit_fps: float) -> Trial:
    """Return the record of a trial of a DUT that loses half of the frames if the load is above its limit."""
    tx = round(wanted.load_fps * wanted.duration_s)
    rx = tx if wanted.load_fps <= limit_fps else tx // 2
    load = round(wanted.load_fps, 3)
    direction = DirectionReading(
        intended_fps=load, offered_fps=load, tx_frames=tx, rx_frames=rx, lost=tx - rx, duplicated=0, reordered=0,
        corrupted=0,
    )  # fmt: skip
    return Trial(
        case=case.id, sequence=sequence, phase=wanted.phase, attempt=wanted.attempt, intended_fps=load,
        offered_fps=load, duration_s=wanted.duration_s, intended_duration_s=wanted.duration_s, tx_frames=tx,
        rx_frames=rx, lost=tx - rx, duplicated=0, reordered=0, corrupted=0,
        frame_loss_ratio=(tx - rx) / tx if tx else 0.0, validity="VALID", per_direction={"west-east": direction},
    )  # fmt: skip
