# SPDX-License-Identifier: Apache-2.0
"""Estimates how long the trials of a plan take, before any of them is made."""

from __future__ import annotations

from collections.abc import Iterable

from espbench.plan.keys.model import Plan
from espbench.plan.resolved.cases import Case
from espbench.procedures.limits import limits
from espbench.procedures.procedure import Known
from espbench.runs.procedure_kinds import procedure_for


def expected_s(plan: Plan, cases: Iterable[Case], line_rate_bps: float) -> float:
    """Return the time of all trials with their waits, s: of searches as long as they usually are, and of all repeats.

    The set-up of gateways, repeated trials and comparisons at fixed loads are not included. line_rate_bps: 0 if it is
    not known.
    """
    fastest_fps = plan.generator.fastest_fps
    return sum(
        procedure_for(
            case, Known(limits(case, line_rate_bps, None, fastest_fps), {}, plan.frame_sizes), []
        ).remaining_s()
        for case in cases
    )
