# SPDX-License-Identifier: Apache-2.0
"""Makes the parts of a run from its plan, in the process that measures: the generator, and a worker's platforms."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from espbench.generators import choose as generators
from espbench.generators.base import Generator
from espbench.plan import Profile, ResolvedPlan
from espbench.plan.keys.model import SINGLE
from espbench.runs.platform_kinds.external import External
from espbench.runs.platform_kinds.shared.platform import Platform
from espbench.runs.platform_kinds.table import PLATFORMS
from espbench.this_machine.registry import Registry

Devices = Sequence[tuple[str, Profile | None]]
"""Each device under test of a run, by its name in results; without a profile: boxes that espbench did not build."""


def new_generator(resolved: ResolvedPlan, registry: Registry, logs: Path) -> Generator:
    """Return the plan's generator; no port is open yet."""
    asked = resolved.plan.generator
    esp = resolved.plan.topology == SINGLE
    return generators.new(asked.name, asked.settings, registry, logs / "generator.log", esp=esp)


def platforms_of(resolved: ResolvedPlan, devices: Devices) -> dict[str, Platform]:
    """Return the platform of each device, by the device's name."""
    return {
        name: External(resolved) if profile is None else PLATFORMS[profile.platform].make(resolved, profile)
        for name, profile in devices
    }
