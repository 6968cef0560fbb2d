# SPDX-License-Identifier: Apache-2.0
"""Holds the common parts of platforms whose gateways espbench builds or sets up from a profile."""

from __future__ import annotations

from pathlib import Path

from espbench.plan import Case, Profile, ResolvedPlan, load_topology
from espbench.plan.keys.model import SINGLE
from espbench.platforms.base import SIDES, Side, Testbed
from espbench.platforms.chance import Chance
from espbench.platforms.virtual.own.additions import Own
from espbench.runs.platform_kinds.shared.addressing import addressing_of
from espbench.runs.platform_kinds.shared.link_errors import errors_of
from espbench.runs.platform_kinds.shared.platform import Defaults


class FromProfile(Defaults):
    """The base of platforms whose gateways espbench builds or sets up from a profile.

    A kind says so if its gateways are in virtual time, or take no CPUs of this machine.
    """

    virtual_time = False
    takes_cpus = True

    def __init__(self, resolved: ResolvedPlan, profile: Profile | None) -> None:
        assert profile is not None
        self._resolved = resolved
        self._plan = resolved.plan
        self._profile = profile
        self._single = resolved.plan.topology == SINGLE
        self._errors = errors_of(self._plan.links)
        self._addressing = addressing_of(load_topology(resolved.plan.topology), profile.mtu)

    @property
    def line_rate_bps(self) -> float:
        return self._plan.line_rate or self._profile.line_rate or 0.0

    def _own_paths(self) -> dict[Side, Own]:
        """Return the kernels, modules and overlays that the profile names, by gateway; empty if there are none."""
        named = self._profile.own_kernel, self._profile.modules, self._profile.overlay
        if not any(named):
            return {}
        return {
            side: Own(*(Path(getattr(paths, side)) if paths else None for paths in named)) for side in SIDES
        }

    def _chance(self, case: Case) -> Chance:
        """Return the source of random numbers for the case's gateways or links; each repeat has its own."""
        return Chance(self._plan.seed, case.repeat)

    def _named(self, bed: Testbed) -> Testbed:
        """Give a test bed the profile's name and queues."""
        bed.dut = self._profile.name
        bed.queues |= self._profile.queues
        return bed
