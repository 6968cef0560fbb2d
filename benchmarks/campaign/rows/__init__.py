# SPDX-License-Identifier: Apache-2.0
"""Lists the rows of the campaign's table, in its order."""

from __future__ import annotations

from campaign.row import Row
from campaign.rows.disk_full import DiskFull
from campaign.rows.hit import (
    AgentHit,
    ControllerHit,
    DaemonHit,
    GatewayClockSteps,
    GatewayHit,
    GeneratorHit,
    ReceiverHit,
    RemoteHelperHit,
    TesterClockSteps,
)
from campaign.rows.mutated import MutatedPlans
from campaign.rows.resumed import Resumed
from campaign.rows.tampered import DamagedKernels, DamagedLog, EditedPlan, EditedProcedures
from campaign.rows.truth_dut import Damages, Leaks, Stalls
from campaign.rows.two_runs import TwoRuns

ROWS: list[Row] = [
    GatewayHit(), AgentHit(), GeneratorHit(), ReceiverHit(), DaemonHit(), ControllerHit(), RemoteHelperHit(),
    Resumed(), DiskFull(), TwoRuns(), TesterClockSteps(), GatewayClockSteps(), EditedPlan(), EditedProcedures(),
    DamagedLog(), DamagedKernels(), MutatedPlans(), Leaks(), Stalls(), Damages(),
]  # fmt: skip
