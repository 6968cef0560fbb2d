# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a plan's accelerator test: asked twice, or of something that is not an emulated board."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from espbench.errors import UsageError
from espbench.plan.model import Plan
from espbench.plan.profiles import load_profile
from espbench.plan.reader import Problem, shown


def accelerator_problems(plan: Plan, path: Path | None) -> Iterator[Problem]:
    """A profile that cannot be read is somebody else's to tell."""
    asked = [index for index, test in enumerate(plan.tests) if test.accelerator is not None]
    for index in asked[1:]:
        yield Problem(("tests", index), "one accelerator test", "another", "list its sizes and suites in one")
    for dut in plan.duts if asked else []:
        try:
            emulated = (
                plan.topology != "external" and dut != "auto" and load_profile(dut, path).board is not None
            )
        except UsageError:
            continue
        if not emulated:
            yield Problem(
                ("tests", asked[0]),
                "an emulated board (platform: qemu_e500) for an accelerator test",
                shown(dut),
                "it runs inside the guest: use dut: mpc8548e, or remove the test",
                on_key=True,
                involves=(("dut",),),
            )
