# SPDX-License-Identifier: Apache-2.0
"""A plan as the list of cases to measure, in the order that reuses a gateway pair longest."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from espbench.plan.checks import FRAMING_BYTES, mean_frame_size
from espbench.plan.model import Plan, StackChoice, Throughput
from espbench.plan.traffic_profiles import mix
from espbench.stacks.suites import suites
from espbench.terms import CaseEntry, Direction

NO_SUITE = "none"
_USUAL_MTU = 1500


@dataclass(frozen=True)
class Case:
    """One point of the plan: everything that is fixed while one search runs.

    sizes are (frame size with FCS, weight): one entry, or those of a mix. stack.shown is its
    name in results; suite is "none" for the baseline. fragments: frames exceed the middle link's
    MTU after ESP. `pair` is equal for cases that can share one gateway pair.
    """

    id: str
    test: str
    settings: Throughput
    stack: StackChoice
    suite: str
    frame_size: int | str
    sizes: tuple[tuple[int, int], ...]
    mean_frame_size: float
    direction: Direction
    ip_version: int
    repeat: int
    dut: str
    fragments: bool = False
    notes: tuple[str, ...] = ()

    @property
    def pair(self) -> tuple[str, str, int]:
        """Stack, suite and IP version: what a gateway pair is configured for."""
        return self.stack.shown, self.suite, self.ip_version

    def entry(self, dut: str | None = None) -> CaseEntry:
        """The case as the manifest lists it; dut replaces the label it was made with."""
        return CaseEntry(
            case=self.id,
            test=self.test,
            dut=dut or self.dut,
            stack=self.stack.shown,
            suite=self.suite,
            ip_version=self.ip_version,
            frame_size=self.frame_size,
            direction=self.direction,
            repeat=self.repeat,
        )


def cases(plan: Plan, dut_label: str | None = None, mtu: int = _USUAL_MTU) -> list[Case]:
    """The plan's cases, the same for the same plan.

    Order: stack (plain first) → suite → IP version → repeat → test → direction → frame size.
    dut_label names the DUT once `auto` is resolved; without it, the plan's own word. mtu is the
    middle link's; frames that exceed it after ESP carry a note.
    """
    names = _test_names(plan)
    label = dut_label or ("external" if (plan.topology, plan.dut) == ("external", "auto") else plan.dut)
    found: list[Case] = []
    for (stack, suite), version, repeat, index, direction, size in product(
        _stacks_and_suites(plan),
        plan.ip_versions,
        range(1, plan.repeat + 1),
        range(len(plan.tests)),
        plan.directions,
        plan.frame_sizes,
    ):
        parts = [
            f"{len(found) + 1:04}",
            stack.shown,
            "" if suite == NO_SUITE else suite,
            "ip6" if version == 6 else "",
            str(size),
            direction,
            names[index] if len(names) > 1 else "",
            f"r{repeat}" if plan.repeat > 1 else "",
        ]
        sizes = (
            tuple((part.size, part.weight) for part in mix(size).mix)
            if isinstance(size, str)
            else ((size, 1),)
        )
        found.append(
            Case(
                id=_slug(parts),
                test=names[index],
                settings=plan.tests[index].settings,
                stack=stack,
                suite=suite,
                frame_size=size,
                sizes=sizes,
                mean_frame_size=mean_frame_size(size),
                direction=direction,
                ip_version=version,
                repeat=repeat,
                dut=label,
                fragments=bool(_fragments(plan, suite, sizes, version, mtu)),
                notes=tuple(_fragments(plan, suite, sizes, version, mtu)),
            )
        )
    return found


def notes(plan: Plan) -> list[str]:
    """What espbench does that the plan does not say, for the terminal and the manifest."""
    if plan.topology == "external":
        return []
    position = next((i for i, choice in enumerate(plan.stacks) if choice.stack == "plain"), None)
    if position is None:
        return ["plain added in front: the baseline is always measured (ipsec-meth 9.1)"]
    return ["plain moved to the front: the baseline is measured first (ipsec-meth 9.1)"] if position else []


def _stacks_and_suites(plan: Plan) -> Iterator[tuple[StackChoice, str]]:
    if plan.topology == "external":
        label = plan.stacks[0] if plan.stacks else StackChoice(stack="external")
        yield label, plan.suites[0] if plan.suites else NO_SUITE
        return
    baselines = [choice for choice in plan.stacks if choice.stack == "plain"] or [StackChoice(stack="plain")]
    for choice in baselines:
        yield choice, NO_SUITE
    yield from product(plan.encrypting, plan.suites)


def _test_names(plan: Plan) -> list[str]:
    """`throughput`, and `throughput-2` … where a plan has the same test again."""
    names: list[str] = []
    for index, test in enumerate(plan.tests):
        before = sum(earlier.name == test.name for earlier in plan.tests[:index])
        names.append(f"{test.name}-{before + 1}" if before else test.name)
    return names


def _fragments(
    plan: Plan, suite: str, sizes: tuple[tuple[int, int], ...], version: int, mtu: int
) -> list[str]:
    """A note if ESP makes packets larger than the MTU, else nothing."""
    if plan.topology == "external" or suite == NO_SUITE:
        return []
    fits = suites()[suite].largest_inner(mtu, "tunnel", version) + FRAMING_BYTES
    if max(size for size, _ in sizes) <= fits:
        return []
    return [f"frames above {fits} B are fragmented after ESP (MTU {mtu}, {suite}, IPv{version})"]


def _slug(parts: list[str]) -> str:
    text = "-".join(part for part in parts if part).lower()
    return re.sub(r"[^a-z0-9]+", "-", text).strip("-")
