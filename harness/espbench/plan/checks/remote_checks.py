# SPDX-License-Identifier: Apache-2.0
"""Finds keys that a plan cannot use with gateways on real boxes."""

from __future__ import annotations

from collections.abc import Iterator

from espbench.plan.reading.reader import Problem
from espbench.plan.resolved.resolved_plan import ResolvedPlan


def remote_problems(resolved: ResolvedPlan) -> Iterator[Problem]:
    """Find a capture of the link between two boxes."""
    if not resolved.plan.capture:
        return
    for dut, profile in resolved.duts:
        if profile is not None and profile.platform == "remote":
            yield Problem(
                ("capture",),
                f"no capture with {dut} (platform: remote)",
                "true",
                "the boxes' middle link is a cable that espbench cannot see: remove it",
                involves=(("dut",),),
            )
