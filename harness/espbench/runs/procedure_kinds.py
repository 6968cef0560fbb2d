# SPDX-License-Identifier: Apache-2.0
"""Finds the procedure that runs a case, by the kind of its settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from espbench.plan.keys.board_tests import Bus
from espbench.plan.keys.ipsec_tests import (
    Attack,
    Capacity,
    Failover,
    FirstPacket,
    PublicKey,
    RekeyLoss,
    RekeyRate,
    Reset,
    SetUpRate,
)
from espbench.plan.keys.model import Throughput
from espbench.plan.keys.rfc2544_tests import (
    AroundTrials,
    BackToBack,
    Flood,
    FrameLoss,
    Latency,
    SystemRecovery,
)
from espbench.plan.resolved.cases import Case
from espbench.procedures.boards.bus import BusCase
from espbench.procedures.ipsec.attack import AttackCase
from espbench.procedures.ipsec.capacity import CapacityCase
from espbench.procedures.ipsec.first_packet import FirstPacketCase
from espbench.procedures.ipsec.outage import FailoverCase, ResetCase
from espbench.procedures.ipsec.public_key import PublicKeyCase
from espbench.procedures.ipsec.rekey_loss import RekeyLossCase
from espbench.procedures.ipsec.rekey_rate import RekeyRateCase
from espbench.procedures.ipsec.set_up_rate import SetUpRateCase
from espbench.procedures.procedure import Known, Procedure
from espbench.procedures.rfc2544.back_to_back import BackToBackCase
from espbench.procedures.rfc2544.base_loads import BaseLoadsCase
from espbench.procedures.rfc2544.flood import FloodCase
from espbench.procedures.rfc2544.frame_loss import FrameLossCase
from espbench.procedures.rfc2544.latency import LatencyCase
from espbench.procedures.rfc2544.system_recovery import SystemRecoveryCase
from espbench.procedures.rfc2544.throughput import ThroughputCase
from espbench.terms import Trial


def _throughput(case: Case, known: Known, trials: Sequence[Trial]) -> Procedure:
    return ThroughputCase(case, known.limits, known.frame_sizes, trials, known.hints_fps)


_PROCEDURES: dict[type[AroundTrials], Callable[[Case, Known, Sequence[Trial]], Procedure]] = {
    Throughput: _throughput,
    Latency: LatencyCase,
    FrameLoss: FrameLossCase,
    Flood: FloodCase,
    BackToBack: BackToBackCase,
    SystemRecovery: SystemRecoveryCase,
    FirstPacket: FirstPacketCase,
    RekeyLoss: RekeyLossCase,
    SetUpRate: SetUpRateCase,
    RekeyRate: RekeyRateCase,
    Capacity: CapacityCase,
    Failover: FailoverCase,
    Reset: ResetCase,
    Attack: AttackCase,
    PublicKey: PublicKeyCase,
    Bus: BusCase,
}


def procedure_for(case: Case, known: Known, trials: Sequence[Trial]) -> Procedure:
    """Return the procedure of the case's test, or of a check at its base's loads, with the trials that are on disk."""
    if known.base_loads:
        return BaseLoadsCase(case, known, trials)
    return _PROCEDURES[type(case.settings)](case, known, trials)
