# SPDX-License-Identifier: Apache-2.0
"""Finds what network processors and boards cannot do, and cipher_kernels tests with other devices."""

from __future__ import annotations

from collections.abc import Iterator

from espbench.plan.duts.processors import Processor
from espbench.plan.duts.profiles import Profile
from espbench.plan.keys.kernel_test import CipherKernels
from espbench.plan.keys.model import NO_NETWORK
from espbench.plan.reading.reader import KeyPath, Problem, did_you_mean, shown
from espbench.plan.resolved.resolved_plan import ResolvedPlan

KEYS_OF_NETWORKS = ("stacks", "suites", "compare", "capture", "ports", "line_rate", "i_own_this_network")
_ON_BOARDS: dict[str, list[object]] = {
    "levels": [0, 1], "compilers": ["gcc"], "engines": [1], "threads": [1]
}  # fmt: skip
_RC4_FLOWS = 8  # without local memory, the scratch memory has room for the state of this many flows


def kernel_problems(resolved: ResolvedPlan) -> Iterator[Problem]:
    """Find tests and devices that do not fit together."""
    plan = resolved.plan
    without_network = plan.topology == NO_NETWORK
    profiles = {dut: p for dut, p in resolved.duts if p is not None}
    for dut, profile in profiles.items():
        if without_network and profile.processor is None and profile.board is None:
            expected, remedy = (
                "a network processor (platform: ixp) or a board (qemu_e500)",
                "use dut: ixp2800",
            )
        elif not without_network and profile.processor is not None:
            expected, remedy = "a gateway", f"network processors need topology: {NO_NETWORK}"
        else:
            continue
        yield Problem(
            ("dut",), f"{expected} with topology: {plan.topology}", shown(dut), remedy,
            on_key=True, involves=(("topology",),),
        )  # fmt: skip
    for index, test in enumerate(plan.tests):
        at: KeyPath = ("tests", index)
        if (test.cipher_kernels is not None) != without_network:
            yield Problem(
                at,
                "cipher_kernels" if without_network else f"no {test.name}",
                test.name if without_network else "one",
                f"topology: {NO_NETWORK} has only cipher_kernels; use topology: gateway-to-gateway for {test.name}"
                if without_network
                else f"cipher_kernels needs topology: {NO_NETWORK}",
                on_key=True,
                involves=(("topology",),),
            )
        elif test.cipher_kernels is not None:
            yield from _of_test(test.cipher_kernels, (*at, "cipher_kernels"), profiles)


def keys_of_no_network(resolved: ResolvedPlan) -> Iterator[Problem]:
    """Find keys that mean nothing without a network."""
    plan = resolved.plan
    for key in KEYS_OF_NETWORKS:
        if getattr(plan, key):
            yield Problem(
                (key,),
                f"no {key} with topology: {NO_NETWORK}",
                "some",
                "there are no gateways: remove it",
                on_key=True,
                involves=(("topology",),),
            )
    for key in ("repeat", "seed"):
        if key in plan.model_fields_set and getattr(plan, key) != 1:
            yield Problem(
                (key,), "1", str(getattr(plan, key)), "of engines nothing is drawn by chance: remove it"
            )


def _of_test(test: CipherKernels, at: KeyPath, profiles: dict[str, Profile]) -> Iterator[Problem]:
    for index, dut in enumerate(test.duts):
        if dut not in profiles:
            remedy = did_you_mean(dut, tuple(profiles), "name it in the plan's dut too")
            yield Problem((*at, "duts", index), "one of the plan's DUTs", shown(dut), remedy)
    for name, profile in profiles.items():
        if test.duts and name not in test.duts:
            continue
        if profile.board is not None:
            yield from _of_board(test, at, name)
        elif profile.processor is not None:
            yield from _of_engines(test, at, name, profile.processor)
            yield from _of_rc4(test, at, name, profile.processor)


def _of_engines(test: CipherKernels, at: KeyPath, name: str, processor: Processor) -> Iterator[Problem]:
    """Check that there are so many engines and threads."""
    for key, most in (("engines", processor.stated.engines), ("threads", processor.stated.threads)):
        for index, count in enumerate(getattr(test, key)):
            if count > most:
                yield Problem(
                    (*at, key, index),
                    f"at most {most} {key} with {name}",
                    str(count),
                    "use fewer, or name in duts whom the test is for",
                    involves=(("dut",),),
                )


def _of_board(test: CipherKernels, at: KeyPath, name: str) -> Iterator[Problem]:
    """Check that nothing is asked of a board's core that only engines have."""
    for key, allowed in _ON_BOARDS.items():
        if others := [entry for entry in getattr(test, key) if entry not in allowed]:
            yield Problem(
                (*at, key),
                f"{' and '.join(map(str, allowed))} with {name}",
                ", ".join(map(str, others)),
                "its core has no engines and waits for each reference: give the board a test of its own, with duts",
                involves=(("dut",),),
            )
    if test.faster.dram or test.faster.sram:
        yield Problem(
            (*at, "faster"), f"no faster with {name}", "some", "memory takes no time there: remove it"
        )


def _of_rc4(test: CipherKernels, at: KeyPath, name: str, processor: Processor) -> Iterator[Problem]:
    """Find RC4 tests whose state does not fit into the memory."""
    if "rc4" not in test.kernels:
        return
    if 0 in test.levels and max(test.threads) * max(test.engines if _is_shared(processor) else [1]) > 1:
        yield Problem(
            (*at, "levels"),
            f"no level 0 of rc4 with more than one flow in a memory ({name})",
            "level 0",
            "its state is a kilobyte there, and two flows need two: list rc4 in a test of its own",
        )
    if _is_shared(processor) and max(test.engines) * max(test.threads) > _RC4_FLOWS:
        yield Problem(
            (*at, "kernels"),
            f"no rc4 with more than {_RC4_FLOWS} threads in all on {name}",
            "rc4",
            "its states do not fit into the scratch memory: list rc4 in a test of its own",
        )


def _is_shared(processor: Processor) -> bool:
    return processor.stated.local_memory == 0
