# SPDX-License-Identifier: Apache-2.0
"""Makes synthetic outcomes of a plan's cases, for tests in which the figure of one case is used for another."""

from __future__ import annotations

from typing import Any

from espbench.plan import Case
from espbench.terms import Outcome


def outcome_of(case: Case, goal: float, fps: float, **changes: Any) -> Outcome:
    """Return an outcome of this case whose bounds are close to `fps`."""
    fields: dict[str, Any] = {
        "case": case.id, "test": case.test, "dut": case.dut, "stack": case.stack.shown, "suite": case.suite,
        "ip_version": 4, "frame_size": case.frame_size, "direction": case.direction, "loss_goal": goal,
        "status": "OK", "throughput_fps": 0.995 * fps, "throughput_mbps": None, "line_rate_pct": None, "trials": 9,
        "final_trial_s": 60.0, "rfc2544": True, "cpu_home_pct": None, "cpu_office_pct": None,
        "repeat": case.repeat, "encryption": "baseline", "lower_fps": 0.995 * fps, "upper_fps": fps / 0.995,
    }  # fmt: skip
    return Outcome.model_validate(fields | changes)
