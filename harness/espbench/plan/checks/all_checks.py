# SPDX-License-Identifier: Apache-2.0
"""Runs every check of rules that involve several keys: keys that contradict each other, frames that cannot pass.

A check is a function from a resolved plan to problems.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from espbench.plan.checks.accelerator_checks import accelerator_problems
from espbench.plan.checks.compare_checks import compare_problems
from espbench.plan.checks.dependent_checks import dependent_problems, unserved_tests
from espbench.plan.checks.emulated_checks import emulated_problems, link_problems, seed_problems
from espbench.plan.checks.external_checks import external_problems
from espbench.plan.checks.frame_checks import large_frames, small_frames
from espbench.plan.checks.generator_checks import generator_problems
from espbench.plan.checks.ipsec_checks import ipsec_problems
from espbench.plan.checks.kernel_checks import kernel_problems, keys_of_no_network
from espbench.plan.checks.remote_checks import remote_problems
from espbench.plan.checks.single_checks import direction_problems, single_problems
from espbench.plan.checks.stack_checks import stack_problems
from espbench.plan.checks.throughput_checks import throughput_problems
from espbench.plan.keys.board_tests import PublicKeyUnit
from espbench.plan.keys.kernel_test import CipherKernels
from espbench.plan.keys.model import NO_NETWORK, Accelerator, Test
from espbench.plan.reading.reader import KeyPath, Problem, shown
from espbench.plan.resolved.resolved_plan import ResolvedPlan

MOST_CASES = 20_000  # two weeks of the shortest trials
Check = Callable[[ResolvedPlan], Iterable[Problem]]


def problems(resolved: ResolvedPlan) -> list[Problem]:
    """Return every contradiction in a plan."""
    if too_many := [*_too_many_cases(resolved), *_too_many_points(resolved)]:
        return too_many  # the checks go through each combination
    if resolved.plan.topology == NO_NETWORK:
        return [problem for check in _OF_KERNELS for problem in check(resolved)]
    own = _OF_EXTERNAL if resolved.plan.is_external else _OF_GATEWAYS
    return [problem for check in (*_OF_ALL, *own) for problem in check(resolved)]


def _too_many_cases(resolved: ResolvedPlan) -> Iterator[Problem]:
    plan = resolved.plan
    keys = ("stacks", "suites", "ip_versions", "repeat", "directions", "frame_sizes", "tests")
    counts = {key: value if isinstance(value := getattr(plan, key), int) else len(value) for key in keys}
    counts["dut"] = len(resolved.duts)
    if (count := _product(counts)) > MOST_CASES:
        yield _too_many((), counts, count)


def _too_many_points(resolved: ResolvedPlan) -> Iterator[Problem]:
    """Find too many combinations of the lists of one test of boards or network processors, or of all such tests
    together.
    """
    together = 0
    for index, test in enumerate(resolved.plan.tests):
        counts = {key: len(entries) for key, entries in _lists_of(test).items()}
        if not counts:
            continue
        count = len(resolved.duts) * _product(counts)
        if (together := together + count) > MOST_CASES:
            yield _too_many(("tests", index, test.name), counts, together)
            return


def _too_many(at: KeyPath, counts: dict[str, int], count: int) -> Problem:
    largest = max(counts, key=counts.__getitem__)
    return Problem(
        (*at, largest),
        f"at most {MOST_CASES:,} combinations of {', '.join(counts)}",
        f"{count:,}",
        "shorten one of them, or write several plans",
        involves=tuple((*at, key) for key in counts),
    )


def _product(counts: dict[str, int]) -> int:
    return math.prod(max(1, count) for count in counts.values())


def _lists_of(test: Test) -> dict[str, list[Any]]:
    """Return the lists of a test that measures every combination of them; empty for other tests."""
    if not isinstance(test.settings, Accelerator | PublicKeyUnit | CipherKernels):
        return {}
    return {key: value for key, value in test.settings if isinstance(value, list) and key != "duts"}


def _repeated(resolved: ResolvedPlan) -> Iterator[Problem]:
    plan = resolved.plan
    lists: dict[str, Sequence[object]] = {
        "suites": plan.suites,
        "frame_sizes": plan.frame_sizes,
        "directions": plan.directions,
        "ip_versions": plan.ip_versions,
    }
    for key, entries in lists.items():
        yield from _twice((key,), entries, "remove it; repeat: 2 measures every case twice")
    for number, test in enumerate(plan.tests):
        for key, entries in _lists_of(test).items():
            yield from _twice(("tests", number, test.name, key), entries, "remove it")
    labels = [choice.shown for choice in plan.stacks]
    for index, label in enumerate(labels):
        if label in labels[:index]:
            remedy = "give one of them a label, such as {stack: xfrm, label: xfrm-esn, esn: true}"
            yield Problem(
                ("stacks", index), "a label of its own for each stack", f"{shown(label)} again", remedy
            )


def _twice(at: KeyPath, entries: Sequence[object], remedy: str) -> Iterator[Problem]:
    for index, entry in enumerate(entries):
        if entry in entries[:index]:
            yield Problem((*at, index), "each entry once", f"{shown(entry)} again", remedy)


def _keys_of_external(resolved: ResolvedPlan) -> Iterator[Problem]:
    plan = resolved.plan
    for key in ("ports", "i_own_this_network"):
        if getattr(plan, key):
            yield Problem(
                (key,),
                f"no {key} with topology: {plan.topology}",
                "one",
                "remove it, or use topology: external",
                on_key=True,
                involves=(("topology",),),
            )


_OF_ALL: tuple[Check, ...] = (
    _repeated,
    throughput_problems,
    small_frames,
    generator_problems,
    accelerator_problems,
    direction_problems,
    dependent_problems,
    ipsec_problems,
    kernel_problems,
    link_problems,
    seed_problems,
)
_OF_KERNELS: tuple[Check, ...] = (_repeated, kernel_problems, keys_of_no_network)
_OF_EXTERNAL: tuple[Check, ...] = (external_problems,)
_OF_GATEWAYS: tuple[Check, ...] = (
    single_problems,
    stack_problems,
    unserved_tests,
    _keys_of_external,
    large_frames,
    compare_problems,
    remote_problems,
    emulated_problems,
)
