# SPDX-License-Identifier: Apache-2.0
"""What a plan cannot ask of gateways on real boxes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from espbench.errors import UsageError
from espbench.plan.model import Plan
from espbench.plan.profiles import load_profile
from espbench.plan.reader import Problem


def remote_problems(plan: Plan, path: Path | None) -> Iterator[Problem]:
    """Empty where no DUT is a pair of boxes; a profile that cannot be read is somebody else's to tell."""
    if not plan.capture:
        return
    for dut in plan.duts:
        try:
            remote = dut != "auto" and load_profile(dut, path).platform == "remote"
        except UsageError:
            continue
        if remote:
            yield Problem(
                ("capture",),
                f"no capture with {dut} (platform: remote)",
                "true",
                "the boxes' middle link is a cable that espbench cannot see: remove it",
                involves=(("dut",),),
            )
