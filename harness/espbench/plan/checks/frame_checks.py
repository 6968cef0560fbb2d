# SPDX-License-Identifier: Apache-2.0
"""Finds frame sizes that cannot be sent or cannot pass: too small, or too large for a link, a stack or ESP."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from espbench.catalogue.suites import suites
from espbench.plan.keys.model import SINGLE
from espbench.plan.reading.reader import KeyPath, Problem, shown
from espbench.plan.resolved.frame_sizes import framing_bytes, largest_whole, shares_of, sizes_of
from espbench.plan.resolved.resolved_plan import ResolvedPlan


def small_frames(resolved: ResolvedPlan) -> Iterator[Problem]:
    """Find frames that are too small for their headers and the test payload."""
    plan, traffic = resolved.plan, resolved.traffic
    for version, (index, frame_size) in product(plan.ip_versions, enumerate(plan.frame_sizes)):
        shares = shares_of(traffic, frame_size)
        least = [(size, traffic.smallest_frame(version, *header)) for size, _, *header in shares]
        small = [(size, smallest) for size, smallest in least if size < smallest]
        if small:
            size, smallest = small[0]
            got = shown(frame_size) + (f" (it holds {size} B)" if isinstance(frame_size, str) else "")
            yield Problem(
                ("frame_sizes", index),
                f"frames of at least {smallest} B for IPv{version}",
                got,
                "headers and the test payload need that much",
                involves=(("ip_versions",),),
            )


def large_frames(resolved: ResolvedPlan) -> Iterator[Problem]:
    """Find frames that do not fit the links, a stack or, with dont_fragment, the middle link after ESP."""
    plan, traffic, mtu = resolved.plan, resolved.traffic, resolved.mtu
    for index, frame_size in enumerate(plan.frame_sizes):
        at, largest = ("frame_sizes", index), max(sizes_of(traffic, frame_size))
        framing = framing_bytes(traffic)
        if largest - framing > mtu:
            yield Problem(
                at,
                f"frames of at most {mtu + framing} B (the MTU is {mtu})",
                shown(frame_size),
                "choose a smaller size, or a DUT profile with a larger mtu",
                involves=(("dut",),),
            )
            continue
        refused = list(_frames_no_stack_takes(resolved, at, frame_size, largest))
        yield from refused
        if plan.dont_fragment and not refused and plan.topology != SINGLE:
            yield from _frames_that_cannot_pass(resolved, at, frame_size, largest)


def _frames_no_stack_takes(
    resolved: ResolvedPlan, at: KeyPath, frame_size: int | str, largest: int
) -> Iterator[Problem]:
    framing = framing_bytes(resolved.traffic)
    for choice in resolved.plan.stacks:
        for facts in choice.facts:
            if facts.largest_packet is None:
                continue
            packet, why = facts.largest_packet
            if largest - framing > packet:
                yield Problem(
                    at,
                    f"frames of at most {packet + framing} B with {choice.shown} ({why})",
                    shown(frame_size),
                    f"choose {packet + framing} or less, or measure that stack in a plan of its own",
                    involves=(("stacks",),),
                )


def _frames_that_cannot_pass(
    resolved: ResolvedPlan, at: KeyPath, frame_size: int | str, largest: int
) -> Iterator[Problem]:
    plan, mtu = resolved.plan, resolved.mtu
    for choice, version in product(plan.encrypting, plan.ip_versions):
        for suite in choice.suites(plan.suites):
            if suite not in suites():
                continue
            fits = largest_whole(choice, suite, version, mtu) + resolved.traffic.tag_bytes
            if largest <= fits:
                continue
            form = f"{choice.mode} mode" + (" in UDP" if choice.in_udp else "")
            yield Problem(
                at,
                f"frames of at most {fits} B with dont_fragment: true "
                f"({suite}, {form}, IPv{version}, MTU {mtu})",
                shown(frame_size),
                f"choose {fits} or less, or dont_fragment: false",
                involves=(("dont_fragment",), ("suites",), ("stacks",), ("dut",), ("ip_versions",)),
            )
