# SPDX-License-Identifier: Apache-2.0
"""Checks the labgrid files, targets and drivers that a profile's boxes name, before anything is opened."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from espbench.plan import Plan, Profile
from espbench.plan.duts.boxes import Labgrid
from espbench.plan.duts.profiles import profile_path
from espbench.plan.keys.ipsec_tests import Reset
from espbench.plan.reading.reader import Problem, key_path, read
from espbench.plan.resolved.resolved_plan import ResolvedPlan
from espbench.platforms.base import SIDES, Side
from espbench.platforms.remote.labgrid_board import LabgridTarget, Unsuitable, examine


def check(resolved: ResolvedPlan) -> None:
    """Check the boxes of every profile that a plan names.

    UsageError names each unsuitable file, target and driver, with its place in the profile. MachineLacks if boxes
    have `labgrid:` and labgrid is not installed.
    """
    for dut, profile in resolved.duts:
        if profile is not None and (problems := list(_problems(resolved.plan, profile))):
            raise read(profile_path(dut, resolved.path), "DUT profile").error(problems)


def target_of(board: Labgrid) -> LabgridTarget:
    """Return a profile's `labgrid:` in the form that the platform takes."""
    return LabgridTarget(Path(board.config), board.target, board.back_within)


def _problems(plan: Plan, profile: Profile) -> Iterator[Problem]:
    for side in SIDES:
        board = getattr(profile.boxes, side).labgrid if profile.boxes is not None else None
        if board is None:
            continue
        at = ("boxes", side, "labgrid")
        try:
            drivers = examine(target_of(board))
        except Unsuitable as why:
            yield Problem((*at, why.key), why.expected, why.got, why.remedy)
            continue
        if drivers.power is False and (asking := _power_cycles(plan, side)):
            yield Problem(
                (*at, "target"),
                f"a target with a power driver, since {asking[0]} switches {side} off and on",
                f"{board.target} of {board.config} with {', '.join(drivers.names)}",
                "add a power driver (such as NetworkPowerDriver) there, or ask for daemon or sa-flush",
            )


def _power_cycles(plan: Plan, side: Side) -> list[str]:
    """Return the key paths of the plan's tests that switch this gateway off and on."""
    return [
        key_path(("tests", index, test.name))
        for index, test in enumerate(plan.tests)
        if isinstance(test.settings, Reset)
        and test.settings.what == "power"
        and test.settings.gateway == side
    ]
