# SPDX-License-Identifier: Apache-2.0
"""Network processors that run cipher kernels alone, without a gateway (`platform: ixp`)."""

from __future__ import annotations

from espbench.errors import UsageError
from espbench.npcrypt import compilers, machine
from espbench.plan import Case, Profile, ResolvedPlan
from espbench.platforms.base import Readiness, Testbed
from espbench.runs.platform_kinds.shared.platform import Defaults, OnNote, Workspace, demand


def readiness() -> list[Readiness]:
    """List what network processors need on this machine: compilers for their code, and the emulator that runs it."""
    return [machine.readiness(), *compilers.readiness()]


class NetworkProcessors(Defaults):
    """Network processors that run cipher kernels alone, in virtual time, without a gateway or a test bed."""

    name = "ixp"
    virtual_time = True
    takes_cpus = False
    line_rate_bps = 0.0

    def __init__(self, resolved: ResolvedPlan, profile: Profile | None) -> None:
        assert profile is not None
        self._profile = profile
        self._compilers = [name for test in resolved.plan.cipher_kernels for name in test.compilers]

    def require(self, on_note: OnNote) -> None:
        demand([machine.readiness(), *compilers.readiness(self._compilers)])

    def build(self, case: Case, workspace: Workspace) -> Testbed:
        raise UsageError(
            f"dut {self._profile.name}: expected cipher_kernels, got {case.test}; it is no gateway"
        )

    def calibration_bed(self, workspace: Workspace) -> Testbed | None:
        return None
