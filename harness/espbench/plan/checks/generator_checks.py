# SPDX-License-Identifier: Apache-2.0
"""Finds mistakes in a plan's generator that depend on the topology and its ports."""

from __future__ import annotations

import math
from collections.abc import Iterator

from espbench.plan.checks.dependent_checks import unfit_tests
from espbench.plan.keys.generator_choice import shown_server
from espbench.plan.keys.model import Plan
from espbench.plan.reading.reader import Problem, shown
from espbench.plan.reading.units import Rate
from espbench.plan.resolved.resolved_plan import ResolvedPlan

_TAG = "tags a frame"
_STEPS = "changes the rate within a trial"
_NOISE = "sends other traffic beside the streams"
_TIMES = "records when frames were lost and arrived"
# These tests need something that the generator cannot do (docs/generators.md, "What other tests need"). A run would end
# without a result, or with times that nobody measured.
_LACKS: dict[str, dict[str, str]] = {
    "scapy": {"latency": _TAG, "system_recovery": _STEPS, "attack": _NOISE},
    "trex": {
        "latency": _TAG,
        "system_recovery": _STEPS,
        "attack": _NOISE,
        "back_to_back": "sends a number of frames",
        "time_to_first_packet": _TIMES,
        "failover": _TIMES,
        "reset": _TIMES,
    },
}


def generator_problems(resolved: ResolvedPlan) -> Iterator[Problem]:
    """Find every mistake in `generator` that none of its keys shows alone."""
    plan = resolved.plan
    yield from _too_fast(plan)
    name = plan.generator.name
    yield from unfit_tests(
        plan,
        {test: f"a generator that {lack}" for test, lack in _LACKS.get(name, {}).items()},
        "use generator: native, or remove this test",
        key="generator",
        got=f"generator: {name}",
    )
    trex = plan.generator.trex
    if trex is None:
        return
    yield from _flows(resolved)
    external = plan.is_external
    if trex.server is not None and not external:
        yield Problem(
            ("generator", "trex", "server"),
            f"no server with topology: {plan.topology}",
            shown(shown_server(trex.server)),
            "the ports of that test bed are made anew for each pair of gateways, and TRex is launched from "
            "TREX_DIR in their namespace: remove it, or use topology: external",
            on_key=True,
            involves=(("topology",),),
        )
    if trex.server is None and "ports" in trex.model_fields_set:
        yield Problem(
            ("generator", "trex", "ports"),
            "ports beside server only",
            "no server",
            "a server that espbench launches has two ports: remove it",
            on_key=True,
            involves=(("generator", "trex", "server"),),
        )
    if not external or plan.ports is None:
        return
    if trex.server is None and (
        plan.ports.west.netns is None or plan.ports.west.netns != plan.ports.east.netns
    ):
        yield Problem(
            ("ports", "east", "netns"),
            "both ports in one network namespace with generator: trex",
            shown(plan.ports.east.netns),
            "TRex is launched there, since its control ports ask nobody who they are: move both ports into "
            "one namespace, or run TRex yourself and add server: host:port",
            involves=(("generator",), ("ports", "west", "netns")),
        )
    for side in ("west", "east"):
        if getattr(plan.ports, side).gateway_mac is None:
            yield Problem(
                ("ports", side, "gateway_mac"),
                "the gateway's MAC address with generator: trex",
                "none",
                "TRex neither asks for it nor answers: add it, and a static neighbour on the DUT "
                "for the port's own address",
                involves=(("generator",),),
            )


def _too_fast(plan: Plan) -> Iterator[Problem]:
    """Find rates in frames/s that the generator refuses; rates in other units become frames/s only in a run."""
    most = plan.generator.fastest_fps
    for index, test in enumerate(plan.tests):
        for key, value in test.settings:
            for rate in value if isinstance(value, list) else [value]:
                if isinstance(rate, Rate) and rate.unit == "fps" and rate.value > most:
                    yield Problem(
                        ("tests", index, test.name, key),
                        f"at most {Rate(most, 'fps')} with generator: {plan.generator.name}",
                        shown(str(rate)),
                        "it sends no faster: choose a lower rate, or generator: trex",
                        involves=(("generator",),),
                    )


def _flows(resolved: ResolvedPlan) -> Iterator[Problem]:
    """Find numbers of flows with which TRex would leave flows out, or send wrong checksums."""
    plan = resolved.plan
    ports = plan.flows.ports
    subnets = {plan.flows.networks, *(choice.tunnels for choice in plan.stacks)}
    for count in sorted(subnets):
        if math.gcd(count, ports) > 1:
            fewer = next(n for n in range(ports, 0, -1) if math.gcd(count, n) == 1)
            yield Problem(
                ("flows", "ports"),
                f"no divisor in common with the {count} networks or tunnels with generator: trex",
                str(ports),
                f"TRex advances both with each frame and would leave flows out: write {fewer}",
                involves=(("generator",), ("flows", "networks"), ("stacks",)),
            )
    rotates = max(*subnets, ports) > 1
    if rotates and resolved.traffic.has_tcp:
        yield Problem(
            ("traffic",),
            "frames without TCP where flows or tunnels rotate with generator: trex",
            shown(plan.traffic),
            "TRex cannot keep the TCP checksum right there: one flow, or generator: native",
            involves=(("generator",), ("flows",), ("stacks",)),
        )
    if rotates and 6 in plan.ip_versions:
        yield Problem(
            ("ip_versions", plan.ip_versions.index(6)),
            "4 where flows or tunnels rotate with generator: trex",
            "6",
            "TRex cannot keep the UDP checksum right there: one flow, or generator: native",
            involves=(("generator",), ("flows",), ("stacks",)),
        )
