# SPDX-License-Identifier: Apache-2.0
"""Finds tests of a board's engine that are asked for twice, and tests of boards of something that is no board."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from espbench.plan.checks.emulated_checks import no_dual_pass
from espbench.plan.reading.reader import Problem, shown
from espbench.plan.resolved.resolved_plan import AUTO, ResolvedPlan

_WHY = {
    "accelerator": "it runs inside the guest",
    "public_key_unit": "it runs inside the guest",
    "bus": "only emulated devices count what they move",
}


def accelerator_problems(resolved: ResolvedPlan) -> Iterator[Problem]:
    """Find a second test of one kind, and tests of boards of a device that is not emulated."""
    plan = resolved.plan
    asked = [index for index, test in enumerate(plan.tests) if test.accelerator is not None]
    for index in asked[1:]:
        yield Problem(("tests", index), "one accelerator test", "another", "list its sizes and suites in one")
    for index in asked[:1]:
        yield from _dual_pass(resolved, index)
    units = [index for index, test in enumerate(plan.tests) if test.public_key_unit is not None]
    for index in units[1:]:
        yield Problem(
            ("tests", index), "one public_key_unit test", "another", "list its clocks and sizes in one"
        )
    of_boards = [index for index, test in enumerate(plan.tests) if test.name in _WHY]
    for index, (dut, profile) in product(of_boards, resolved.duts):
        is_known = profile is not None or dut == AUTO or plan.is_external
        if is_known and (profile is None or profile.board is None):
            yield Problem(
                ("tests", index),
                f"an emulated board (platform: qemu_e500) for the test {plan.tests[index].name}",
                shown(dut),
                f"{_WHY[plan.tests[index].name]}: use dut: mpc8548e, or remove the test",
                on_key=True,
                involves=(("dut",),),
            )


def _dual_pass(resolved: ResolvedPlan, index: int) -> Iterator[Problem]:
    accelerator = resolved.plan.tests[index].accelerator
    if accelerator is None or "dual-pass" not in accelerator.crypto:
        return
    boards = {
        dut: profile.board
        for dut, profile in resolved.duts
        if profile is not None and profile.board is not None
    }
    yield from no_dual_pass(boards, ("tests", index, "accelerator", "crypto"))
