# SPDX-License-Identifier: Apache-2.0
"""Gateways that are guests of User-Mode Linux (`platform: uml`)."""

from __future__ import annotations

from pathlib import Path

from espbench.generators import native
from espbench.plan import Case, Profile, ResolvedPlan
from espbench.platforms.base import Testbed
from espbench.platforms.uml import uml_platform
from espbench.runs.platform_kinds.shared.from_profile import FromProfile
from espbench.runs.platform_kinds.shared.platform import OnNote, Workspace, demand


class Guests(FromProfile):
    """Gateways that are guests of User-Mode Linux."""

    name = "uml"

    def __init__(self, resolved: ResolvedPlan, profile: Profile | None) -> None:
        super().__init__(resolved, profile)
        self._guests = _guests_of(self._profile)
        self._builder = uml_platform.UmlPlatform(self._guests, self._addressing, self._errors, _wire)

    def require(self, on_note: OnNote) -> None:
        demand(uml_platform.readiness(self._guests))

    def build(self, case: Case, workspace: Workspace) -> Testbed:
        w = workspace
        bed = self._builder.build(
            w.registry, w.logs, w.placement, capture=self._plan.capture, single=self._single,
            line_rate_bps=self.line_rate_bps,
        )  # fmt: skip
        bed.chance = self._chance(case)
        return self._named(bed)

    def calibration_bed(self, workspace: Workspace) -> Testbed:
        return self._builder.calibration_bed(
            workspace.registry, workspace.placement, _wire(), single=self._single,
            line_rate_bps=self.line_rate_bps,
        )  # fmt: skip

    def memory_mb(self) -> float:
        return (1 if self._single else 2) * self._profile.memory


def _guests_of(profile: Profile) -> uml_platform.UmlProfile:
    return uml_platform.UmlProfile(
        name=profile.name,
        kernel={"home": profile.kernel.home, "office": profile.kernel.office},
        modules={"home": Path(profile.modules.home), "office": Path(profile.modules.office)}
        if profile.modules
        else None,
        memory_mb=profile.memory,
    )


def _wire() -> list[str]:
    """Return the command of the program that joins taps."""
    return [str(native.binary()), "wire"]
