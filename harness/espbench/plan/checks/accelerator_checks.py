# SPDX-License-Identifier: Apache-2.0
"""Finds an accelerator test that is asked for twice, or of something that is not an emulated board."""

from __future__ import annotations

from collections.abc import Iterator

from espbench.plan.reading.reader import Problem, shown
from espbench.plan.resolved.resolved_plan import AUTO, ResolvedPlan


def accelerator_problems(resolved: ResolvedPlan) -> Iterator[Problem]:
    """Find a second accelerator test, and one of a device that is not emulated."""
    plan = resolved.plan
    asked = [index for index, test in enumerate(plan.tests) if test.accelerator is not None]
    for index in asked[1:]:
        yield Problem(("tests", index), "one accelerator test", "another", "list its sizes and suites in one")
    for dut, profile in resolved.duts if asked else []:
        is_known = profile is not None or dut == AUTO or plan.topology == "external"
        if is_known and (profile is None or profile.board is None):
            yield Problem(
                ("tests", asked[0]),
                "an emulated board (platform: qemu_e500) for an accelerator test",
                shown(dut),
                "it runs inside the guest: use dut: mpc8548e, or remove the test",
                on_key=True,
                involves=(("dut",),),
            )
