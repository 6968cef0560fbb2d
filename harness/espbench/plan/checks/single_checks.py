# SPDX-License-Identifier: Apache-2.0
"""Finds mistakes in a plan for a single gateway, whose ESP peer is the tester, and its directions in other plans."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from espbench.catalogue.suites import suites
from espbench.plan.checks.dependent_checks import unfit_tests
from espbench.plan.keys.model import SINGLE, Plan
from espbench.plan.reading.reader import Problem, shown
from espbench.plan.resolved.frame_sizes import largest_whole, sizes_of
from espbench.plan.resolved.resolved_plan import ResolvedPlan
from espbench.terms import OPERATIONS

_STACKS = ("plain", "xfrm", "null", "lean-esp")
# These tests negotiate, interrupt one gateway of a pair, or measure both.
_TESTS_OF_PAIRS = (
    "time_to_first_packet", "rekey_loss", "set_up_rate", "rekey_rate", "capacity", "failover", "reset", "public_key",
)  # fmt: skip
_PLATFORMS = ("netns", "uml", "qemu_e500", "qemu_x86")


def direction_problems(resolved: ResolvedPlan) -> Iterator[Problem]:
    """Find directions that the plan's topology does not have."""
    plan = resolved.plan
    single = plan.topology == SINGLE
    for index, direction in enumerate(plan.directions):
        if single and direction == "one-way":
            yield Problem(
                ("directions", index),
                f"{', '.join(OPERATIONS)} or both-ways with topology: {SINGLE}",
                direction,
                "one way the gateway encrypts, the other it decrypts: say which; without directions both are measured",
                involves=(("topology",),),
            )
        if not single and direction in OPERATIONS:
            yield Problem(
                ("directions", index),
                f"one-way or both-ways with topology: {plan.topology}",
                direction,
                f"only with topology: {SINGLE} the gateway does the one without the other",
                involves=(("topology",),),
            )


def single_problems(resolved: ResolvedPlan) -> Iterator[Problem]:
    """Find all mistakes that only a plan for a single gateway can have; none in other plans."""
    plan = resolved.plan
    if plan.topology == SINGLE:
        yield from _gateway(resolved)
        yield from _stacks(plan)
        yield from unfit_tests(
            plan,
            dict.fromkeys(_TESTS_OF_PAIRS, f"tests of traffic with topology: {SINGLE}"),
            "it is about two gateways: measure a pair, topology: gateway-to-gateway",
        )
        yield from _generator(plan)
        yield from _frames(resolved)


def _gateway(resolved: ResolvedPlan) -> Iterator[Problem]:
    for dut, profile in resolved.duts:
        if profile is not None and profile.platform not in _PLATFORMS:
            yield Problem(
                ("dut",),
                f"a DUT of platform {', '.join(_PLATFORMS)} with topology: {SINGLE}",
                f"{dut} (platform: {profile.platform})",
                "measure it as a pair: topology: gateway-to-gateway",
                involves=(("topology",),),
            )


def _stacks(plan: Plan) -> Iterator[Problem]:
    for index, choice in enumerate(plan.stacks):
        if choice.kind not in _STACKS:
            yield Problem(
                ("stacks", index),
                f"one of {', '.join(_STACKS)} with topology: {SINGLE}",
                shown(choice.kind),
                "the tester speaks ESP, not IKE: its SAs are static",
                involves=(("topology",),),
            )
            continue
        for key, value in (("mode", "transport"), ("udp_encapsulation", True)):
            if getattr(choice, key) == value:
                yield Problem(
                    ("stacks", index, key),
                    f"tunnel mode, ESP directly in IP, with topology: {SINGLE}",
                    str(value).lower(),
                    "the tester speaks no other: remove it",
                    involves=(("topology",),),
                )


def _generator(plan: Plan) -> Iterator[Problem]:
    native = plan.generator.native
    if native is None:
        yield Problem(
            ("generator",),
            f"native with topology: {SINGLE}",
            plan.generator.name,
            "only the native generator is an ESP peer: remove it",
            involves=(("topology",),),
        )
        return
    for key in ("tx", "rx"):
        if getattr(native, key) == "xdp":
            yield Problem(
                ("generator", "native", key),
                f"auto, af_xdp or af_packet with topology: {SINGLE}",
                "xdp",
                "ESP is sealed and opened in user space: remove it",
                involves=(("topology",),),
            )
    if native.senders > 1:
        yield Problem(
            ("generator", "native", "senders"),
            f"1 with topology: {SINGLE}",
            str(native.senders),
            "only XDP sends from several CPUs, and it cannot seal: remove it",
            involves=(("topology",),),
        )


def _frames(resolved: ResolvedPlan) -> Iterator[Problem]:
    plan, mtu = resolved.plan, resolved.mtu
    if resolved.traffic.tag_bytes:
        yield Problem(
            ("traffic",),
            f"frames without VLAN tags with topology: {SINGLE}",
            shown(plan.traffic),
            "a gateway's tags end where its tunnel begins: choose another profile",
            involves=(("topology",),),
        )
    for (index, frame_size), choice, version in product(
        enumerate(plan.frame_sizes), plan.encrypting, plan.ip_versions
    ):
        for suite in choice.suites(plan.suites):
            if suite not in suites():
                continue
            fits = largest_whole(choice, suite, version, mtu)
            largest = max(sizes_of(resolved.traffic, frame_size))
            if largest > fits:
                yield Problem(
                    ("frame_sizes", index),
                    f"frames of at most {fits} B with topology: {SINGLE} ({suite}, IPv{version}, MTU {mtu})",
                    shown(frame_size),
                    "larger ones are fragmented after ESP, and the tester joins no fragments: choose a smaller size",
                    involves=(("suites",), ("ip_versions",), ("topology",)),
                )
