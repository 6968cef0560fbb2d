# SPDX-License-Identifier: Apache-2.0
"""Lists the cases of a plan, in the order that reuses a gateway pair longest."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from espbench.catalogue.suites import suites
from espbench.plan.keys.model import NO_NETWORK, SINGLE, Plan
from espbench.plan.keys.rfc2544_tests import AroundTrials
from espbench.plan.keys.stack_choice import StackChoice
from espbench.plan.resolved.frame_sizes import (
    FRAMING_BYTES,
    USUAL_MTU,
    largest_whole,
    mean_frame_size,
    shares_of,
)
from espbench.plan.resolved.resolved_plan import ResolvedPlan
from espbench.plan.traffic.traffic_pattern import Shares
from espbench.terms import CaseEntry, Direction

NO_SUITE = "none"


@dataclass(frozen=True)
class Case:
    """One point of the plan: everything that is fixed while one test runs.

    sizes are (frame size with FCS, weight): one entry, or those of a mix. With several headers, each entry also has
    an index into headers, which are those of the traffic profile. stack.shown is the stack's name in results; suite
    is "none" for the baseline. fragments: frames exceed the middle link's MTU after ESP. engine_mhz: the clock of a
    board's crypto engine, if a test sets it. ciphertext_frame_size: mean size of the ESP frames on the tester's own
    link, if it has one that carries ESP. `pair` is equal for cases that can share one gateway pair.
    """

    id: str
    test: str
    settings: AroundTrials
    stack: StackChoice
    suite: str
    frame_size: int | str
    sizes: Shares
    mean_frame_size: float
    direction: Direction
    ip_version: int
    repeat: int
    dut: str
    fragments: bool = False
    notes: tuple[str, ...] = ()
    headers: tuple[bytes, ...] = ()
    ciphertext_frame_size: float | None = None
    engine_mhz: int | None = None

    @property
    def pair(self) -> tuple[str, str, str, int]:
        """DUT, stack, suite and IP version: the configuration of a gateway pair."""
        return self.dut, self.stack.shown, self.suite, self.ip_version

    def entry(self, dut: str | None = None) -> CaseEntry:
        """Return the case as the manifest lists it; dut replaces the case's own label of the DUT."""
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
            stack_kind=self.stack.kind,
            options=self.stack.options,
            tunnels=self.stack.tunnels,
        )


def cases(
    resolved: ResolvedPlan, dut_label: str | Sequence[str] | None = None, mtu: int = USUAL_MTU
) -> list[Case]:
    """Return the plan's cases; the same plan always has the same cases.

    Order: DUT → stack (plain first) → suite → IP version → repeat → test → direction → frame size. dut_label is the
    DUT's name once `auto` is resolved; several names if the plan compares DUTs. Default: the plan's own word or the
    profiles' names. mtu is the middle link's; cases whose frames exceed it after ESP have a note.
    """
    plan, traffic = resolved.plan, resolved.traffic
    names = _test_names(plan)
    settings = [settings for _, settings in plan.traffic_tests]
    labels = _dut_labels(resolved, dut_label)
    made: list[Case] = []
    for label, (stack, suite), version, repeat, index, direction, size in product(
        labels,
        _stacks_and_suites(plan),
        plan.ip_versions,
        range(1, plan.repeat + 1),
        range(len(plan.traffic_tests)),
        plan.directions,
        plan.frame_sizes,
    ):
        asked = settings[index]
        first = size == plan.frame_sizes[0] and direction == plan.directions[0]
        if not asked.applies_to(stack) or (asked.per_pair and not first):
            continue
        position = [
            label if len(labels) > 1 else "",
            stack.shown,
            "" if suite == NO_SUITE else suite,
            "ip6" if version == 6 else "",
            *(["", ""] if asked.per_pair else [str(size), direction]),
            names[index] if len(names) > 1 else "",
            f"r{repeat}" if plan.repeat > 1 else "",
        ]
        sizes = shares_of(traffic, size)
        too_large = _fragments(resolved, stack, suite, sizes, version, mtu)
        made.append(
            Case(
                id=_slug([f"{len(made) + 1:04}", *position]),
                test=names[index],
                settings=asked,
                stack=stack,
                suite=suite,
                frame_size=size,
                sizes=sizes,
                mean_frame_size=mean_frame_size(traffic, size),
                direction=direction,
                ip_version=version,
                repeat=repeat,
                dut=label,
                fragments=bool(too_large),
                notes=tuple(too_large),
                headers=tuple(header.data for header in traffic.headers),
                ciphertext_frame_size=_ciphertext_frame_size(plan, suite, sizes, version),
            )
        )
    return made


def notes(resolved: ResolvedPlan) -> list[str]:
    """Return what espbench does without being asked by the plan, for the terminal and the manifest."""
    return [*resolved.traffic.notes, *_notes_of_baselines(resolved.plan), *_notes_of_tests(resolved.plan)]


def _notes_of_baselines(plan: Plan) -> list[str]:
    if plan.is_external or plan.topology == NO_NETWORK:
        return []
    position = next((i for i, choice in enumerate(plan.stacks) if choice.kind == "plain"), None)
    if position is None:
        return ["plain added in front: the baseline is always measured (ipsec-meth 9.1)"]
    return ["plain moved to the front: the baseline is measured first (ipsec-meth 9.1)"] if position else []


def _notes_of_tests(plan: Plan) -> list[str]:
    """Say of each test which of the plan's stacks with ESP it does not measure."""
    if plan.is_external or plan.topology == NO_NETWORK:
        return []
    notes = []
    for name, settings in plan.traffic_tests:
        served = [choice for choice in plan.encrypting if settings.applies_to(choice)]
        left_out = [choice.shown for choice in plan.encrypting if choice not in served]
        if served and left_out:
            notes.append(f"{name} is not measured with {', '.join(left_out)}")
    return list(dict.fromkeys(notes))


def _stacks_and_suites(plan: Plan) -> Iterator[tuple[StackChoice, str]]:
    if plan.is_external:
        label = plan.stacks[0] if plan.stacks else StackChoice(stack="external")
        yield label, plan.suites[0] if plan.suites else NO_SUITE
        return
    baselines = [choice for choice in plan.stacks if choice.kind == "plain"] or [StackChoice(stack="plain")]
    for choice in baselines:
        yield choice, NO_SUITE
    for choice in plan.encrypting:
        for suite in choice.suites(plan.suites):
            yield choice, suite


def _dut_labels(resolved: ResolvedPlan, given: str | Sequence[str] | None) -> list[str]:
    plan = resolved.plan
    if given is not None:
        return [given] if isinstance(given, str) else list(given)
    if plan.is_external:
        return ["external" if plan.dut == "auto" else plan.duts[0]]
    return resolved.dut_names if isinstance(plan.dut, list) else plan.duts


def _test_names(plan: Plan) -> list[str]:
    """Return the names of the tests: `throughput`, and `throughput-2` … if a plan has the same test again."""
    names: list[str] = []
    given = [name for name, _ in plan.traffic_tests]
    for index, name in enumerate(given):
        before = given[:index].count(name)
        names.append(f"{name}-{before + 1}" if before else name)
    return names


def _fragments(
    resolved: ResolvedPlan,
    stack: StackChoice,
    suite: str,
    sizes: Shares,
    version: int,
    mtu: int,
) -> list[str]:
    """Return a note if ESP makes packets larger than the MTU, else nothing."""
    if resolved.plan.is_external or suite == NO_SUITE:
        return []
    fits = largest_whole(stack, suite, version, mtu) + resolved.traffic.tag_bytes
    if max(size for size, *_ in sizes) <= fits:
        return []
    form = f"{suite} in UDP" if stack.in_udp else suite
    return [f"frames above {fits} B are fragmented after ESP (MTU {mtu}, {form}, IPv{version})"]


def _ciphertext_frame_size(plan: Plan, suite: str, sizes: Shares, version: int) -> float | None:
    if plan.topology != SINGLE or suite == NO_SUITE:
        return None
    sealed = suites()[suite].esp_packet_size
    frames = [
        (sealed(size - FRAMING_BYTES, "tunnel", version) + FRAMING_BYTES, weight)
        for size, weight, *_ in sizes
    ]
    return sum(size * weight for size, weight in frames) / sum(weight for _, weight in frames)


def _slug(parts: list[str]) -> str:
    text = "-".join(part for part in parts if part).lower()
    return re.sub(r"[^a-z0-9]+", "-", text).strip("-")
