# SPDX-License-Identifier: Apache-2.0
"""Estimates how long the trials of a plan take, before any of them is made."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from espbench.plan.keys.board_tests import Bus
from espbench.plan.keys.model import SINGLE, Plan, Throughput
from espbench.plan.keys.rfc2544_tests import BackToBack, Flood, FrameLoss, Latency, SystemRecovery
from espbench.plan.resolved.cases import Case
from espbench.procedures.limits import limits
from espbench.procedures.procedure import Known, Procedure
from espbench.runs.procedure_kinds import procedure_for

_NEAR_THE_THROUGHPUT = (Throughput, Latency, FrameLoss, Flood, BackToBack, SystemRecovery, Bus)
# One CPU of a usual host executes so many instructions of gateways in virtual time in a second (docs/virtual-time.md,
# Speed). Copying the guests of a case and setting them up takes _SET_UP_CPU_S, s. With these two, 23 of the 25 plans
# for boards whose CPU time is in docs/published.md took 0.6 to 2.1 times the estimate; two, whose links lose frames,
# took far more.
HOST_INSTRUCTIONS_PER_S = 250e6
_SET_UP_CPU_S = 4.0


def expected_s(plan: Plan, cases: Iterable[Case], line_rate_bps: float) -> float:
    """Return the time of all trials with their waits, s: of searches as long as they usually are, and of all repeats.

    The set-up of gateways, repeated trials and comparisons at fixed loads are not included. line_rate_bps: 0 if it is
    not known.
    """
    return sum(_procedure(plan, case, line_rate_bps).remaining_s() for case in cases)


def expected_cpu_s(
    plan: Plan, cases: Iterable[Case], line_rate_bps: float, instructions_per_s: float
) -> float:
    """Return the CPU time that the host needs for all trials of gateways in virtual time, s, roughly.

    The gateways are taken to be busy in all trials, and idle in the waits, which then cost next to nothing. Trials that
    are the same are executed once, as those of latency are. Cases of IPsec tests are left out: most of their time, the
    gateways are idle. instructions_per_s: those of a busy gateway, in a second of virtual time.
    """
    gateways = 1 if plan.topology == SINGLE else 2
    per_virtual_s = gateways * instructions_per_s / HOST_INSTRUCTIONS_PER_S
    return sum(
        _SET_UP_CPU_S
        + per_virtual_s * _procedure(plan, _each_trial_once(case), line_rate_bps).remaining_s(waits=False)
        for case in cases
        if keeps_gateways_busy(case)
    )


def keeps_gateways_busy(case: Case) -> bool:
    """Return whether a case's trials have loads near the throughput or above: those of RFC 2544 but for resets."""
    return isinstance(case.settings, _NEAR_THE_THROUGHPUT)


def _each_trial_once(case: Case) -> Case:
    if not isinstance(case.settings, Latency):
        return case
    return replace(case, settings=case.settings.model_copy(update={"repeats": 1}))


def _procedure(plan: Plan, case: Case, line_rate_bps: float) -> Procedure:
    known = Known(limits(case, line_rate_bps, None, plan.generator.fastest_fps), {}, plan.frame_sizes)
    return procedure_for(case, known, [])
