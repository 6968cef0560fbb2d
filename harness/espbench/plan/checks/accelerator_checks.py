# SPDX-License-Identifier: Apache-2.0
"""Finds mistakes in the tests of crypto engines and boards: tests listed twice, and devices that cannot run them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from espbench.plan.checks.emulated_checks import no_dual_pass
from espbench.plan.keys.model import Accelerator
from espbench.plan.reading.reader import Problem, shown
from espbench.plan.resolved.resolved_plan import AUTO, ResolvedPlan

_INSTEAD = {"accelerator": "mpc8548e or uml", "public_key_unit": "mpc8548e", "bus": "mpc8548e"}
_WHY = {
    "accelerator": "it runs inside the guest",
    "public_key_unit": "it runs inside the guest",
    "bus": "only emulated devices count what they move",
}


def accelerator_problems(resolved: ResolvedPlan) -> Iterator[Problem]:
    """Find a second test of the same kind, a test of a device without an engine, and board tests of a device that is
    not emulated.
    """
    plan = resolved.plan
    asked = [index for index, test in enumerate(plan.tests) if test.accelerator is not None]
    for index in asked[1:]:
        yield Problem(("tests", index), "one accelerator test", "another", "list its sizes and suites in one")
    for index in asked[:1]:
        yield from _dual_pass(resolved, index)
        yield from _variants(plan.tests[index].accelerator, index)
    units = [index for index, test in enumerate(plan.tests) if test.public_key_unit is not None]
    for index in units[1:]:
        yield Problem(
            ("tests", index), "one public_key_unit test", "another", "list its clocks and sizes in one"
        )
    of_boards = [index for index, test in enumerate(plan.tests) if test.name in _WHY]
    for index, (dut, profile) in product(of_boards, resolved.duts):
        is_known = profile is not None or dut == AUTO or plan.is_external
        is_uml = profile is not None and profile.platform == "uml"
        if is_uml and plan.tests[index].accelerator is not None:
            yield from _without_engine(plan.tests[index].accelerator, index, dut)
        elif is_known and (profile is None or profile.board is None):
            yield Problem(
                ("tests", index),
                f"an emulated board (platform: qemu_e500) for the test {plan.tests[index].name}",
                shown(dut),
                f"{_WHY[plan.tests[index].name]}: use dut: {_INSTEAD[plan.tests[index].name]}, or remove the test",
                on_key=True,
                involves=(("dut",),),
            )


def _without_engine(accelerator: Accelerator | None, index: int, dut: str) -> Iterator[Problem]:
    """Find uses of an engine with a guest that has none."""
    assert accelerator is not None
    if accelerator.crypto != ["software"]:
        yield Problem(
            ("tests", index, "accelerator", "crypto"),
            f"crypto: [software] with {dut}",
            shown(", ".join(accelerator.crypto)),
            "its kernel has no engine: write crypto: [software], and measure boards in a plan of their own",
            involves=(("dut",),),
        )


def _variants(accelerator: Accelerator | None, index: int) -> Iterator[Problem]:
    """Find variants that no guest can execute, and variants listed twice."""
    assert accelerator is not None
    unbuilt = [crypto for crypto in accelerator.crypto if crypto in ("dual-pass", "software")]
    for number, variant in enumerate(accelerator.variants):
        at = ("tests", index, "accelerator", "variants", number)
        if variant.descriptors == "prebuilt" and unbuilt:
            yield Problem(
                (*at, "descriptors"),
                f"no prebuilt descriptors with crypto: {unbuilt[0]}",
                shown("prebuilt"),
                "only a single pass of the engine has a descriptor for the whole operation: "
                "measure the others without this variant, in a plan of their own",
            )
        if variant.operation == "decrypt" and variant.data == "cached":
            yield Problem(
                (*at, "data"),
                "unique data with operation: decrypt",
                shown("cached"),
                "the block that all operations read is plain: remove one of the two keys",
            )
        if variant in accelerator.variants[:number]:
            yield Problem(at, "variants that differ", "the same again", "remove it")


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
