# SPDX-License-Identifier: Apache-2.0
"""The user's own boxes, which espbench neither builds nor asks (`topology: external`)."""

from __future__ import annotations

import math
from functools import cached_property

from espbench.errors import UsageError
from espbench.plan import Case, Profile, ResolvedPlan
from espbench.platforms import external
from espbench.platforms.base import PortName, Testbed
from espbench.runs.platform_kinds.shared.platform import Defaults, OnNote, Workspace, demand
from espbench.this_machine import own_ssh


class External(Defaults):
    """The user's own boxes between two ports of the tester; espbench builds, asks and undoes nothing on them."""

    name = "external"
    virtual_time = False
    takes_cpus = False

    def __init__(self, resolved: ResolvedPlan, profile: Profile | None = None) -> None:
        self._plan = resolved.plan

    @cached_property
    def line_rate_bps(self) -> float:
        """The plan's line rate; without one, the rate that the ports report, bit/s."""
        ports = self._ports().values()
        return self._plan.line_rate or external.line_rate_bps((port.netns, port.interface) for port in ports)

    def require(self, on_note: OnNote) -> None:
        demand(external.readiness())
        for name, port in self._ports().items():
            netns_file = external.netns_path(port.netns) if port.netns else None
            own_ssh.refuse_port(f"ports: {name}", port.interface, netns_file)

    def build(self, case: Case, workspace: Workspace) -> Testbed:
        return external.build(
            self._ports(),
            workspace.placement,
            dut=self._plan.duts[0],
            i_own_this_network=self._plan.i_own_this_network,
            line_rate_bps=self.line_rate_bps,
        )

    def calibration_bed(self, workspace: Workspace) -> Testbed | None:
        return None  # there is no way past the boxes

    def memory_mb(self) -> float:
        return math.inf

    def _ports(self) -> dict[PortName, external.ExternalPort]:
        """Return the user's two ports."""
        if self._plan.ports is None:
            raise UsageError("ports: expected west and east for topology external, got none")
        return {
            "west": external.ExternalPort(**self._plan.ports.west.model_dump()),
            "east": external.ExternalPort(**self._plan.ports.east.model_dump()),
        }
