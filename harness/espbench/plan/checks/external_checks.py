# SPDX-License-Identifier: Apache-2.0
"""Finds mistakes in a plan for boxes that espbench did not build: in ports, labels, and keys that such plans cannot
have.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from espbench.plan.checks.dependent_checks import unfit_tests
from espbench.plan.keys.model import Plan
from espbench.plan.keys.ports import ExternalPort
from espbench.plan.reading.reader import KeyPath, Problem, shown
from espbench.plan.resolved.resolved_plan import ResolvedPlan

# These tests drive the gateways' daemons, interrupt a gateway, measure on it, or forge packets with its keys.
_TESTS_OF_GATEWAYS = (
    "time_to_first_packet", "rekey_loss", "set_up_rate", "rekey_rate", "capacity", "failover", "reset", "attack",
    "public_key",
)  # fmt: skip
_MOST_NETWORKS = 256
# The table has, for each IP version, the octet in which networks are counted, the number of bits after it, and
# addresses that fit.
_COUNTED = {
    4: ("third", 8, "10.1.0.2/24 (west) and 10.2.0.2/24 (east)"),
    6: ("eighth", 64, "2001:db8:0:1000::2/64 (west) and 2001:db8:0:2000::2/64 (east)"),
}
_WITH_NETWORKS: tuple[KeyPath, ...] = (("flows", "networks"), ("traffic",))


def external_problems(resolved: ResolvedPlan) -> Iterator[Problem]:
    """Find all mistakes that only a plan with `topology: external` can have."""
    yield from _labels(resolved.plan)
    yield from unfit_tests(
        resolved.plan,
        dict.fromkeys(
            _TESTS_OF_GATEWAYS,
            f"a test that needs no access to the boxes, with topology: {resolved.plan.topology}",
        ),
        "espbench cannot reach these boxes: remove it, or use platform: remote for boxes that you log in to",
    )
    yield from _of_other_plans(resolved.plan)
    yield from _ports(resolved.plan)
    yield from _networks(resolved.plan)


def _labels(plan: Plan) -> Iterator[Problem]:
    """Find more than one stack or suite, since they are only labels, and stacks with options."""
    for key in ("stacks", "suites"):
        if len(getattr(plan, key)) > 1:
            yield Problem(
                (key, 1),
                "one entry: with topology: external it is a label",
                "another",
                "write one plan per configuration of the box",
                involves=(("topology",),),
            )
    for index, choice in enumerate(plan.stacks):
        if choice.stack is None:
            yield Problem(
                ("stacks", index),
                "a label with topology: external",
                "a mapping without stack",
                "write what the boxes run, such as stacks: [strongswan]",
                involves=(("topology",),),
            )
        for option in sorted(choice.model_fields_set - {"stack", "label"}):
            yield Problem(
                ("stacks", index, option),
                "no options with topology: external",
                option,
                "espbench does not configure the box: remove it",
                on_key=True,
                involves=(("topology",),),
            )


def _of_other_plans(plan: Plan) -> Iterator[Problem]:
    """Find keys that need gateways which espbench configures."""
    if isinstance(plan.dut, list):
        yield Problem(
            ("dut",),
            "one label with topology: external",
            "a list",
            "write one plan per device",
            involves=(("topology",),),
        )
    if plan.compare is not None:
        yield Problem(
            ("compare",),
            "no compare with topology: external",
            "one",
            "espbench cannot reconfigure boxes it did not build; compare finished runs instead: "
            "espbench compare RUN RUN",
            on_key=True,
            involves=(("topology",),),
        )
    if plan.capture:
        yield Problem(
            ("capture",),
            "no capture with topology: external",
            "true",
            "espbench has neither the middle link nor the keys of boxes it did not build: remove it",
            involves=(("topology",),),
        )


def _ports(plan: Plan) -> Iterator[Problem]:
    """Find ports that are missing, do not fit together, or do not fit the plan's IP versions."""
    if plan.ports is None:
        yield Problem(
            ("ports",),
            "the tester's two ports",
            "none",
            "add ports: {west: {interface: …, address: …, gateway: …}, east: {…}}",
            involves=(("topology",),),
        )
        return
    west, east = plan.ports.west, plan.ports.east
    yield from _port(plan, "west", west)
    yield from _port(plan, "east", east)
    if (west.netns, west.interface) == (east.netns, east.interface):
        yield Problem(
            ("ports", "east", "interface"),
            "another interface than west's",
            shown(east.interface),
            "frames go out of one port and come back at the other",
        )
    for index, version in enumerate(plan.ip_versions):
        if {west.ip_version, east.ip_version} != {version}:
            yield Problem(
                ("ip_versions", index),
                f"the version of both ports' addresses (IPv{west.ip_version}, IPv{east.ip_version})",
                str(version),
                f"write ip_versions: [{west.ip_version}] or change the addresses",
                involves=(("ports",),),
            )


def _port(plan: Plan, name: str, port: ExternalPort) -> Iterator[Problem]:
    at = ("ports", name)
    own, gateway = ipaddress.ip_interface(port.address), ipaddress.ip_address(port.gateway)
    if gateway not in own.network or gateway == own.ip:
        yield Problem(
            (*at, "gateway"),
            f"another address of {own.network}",
            shown(port.gateway),
            "the DUT's address on the same link as the port",
            involves=((*at, "address"),),
        )
    if port.netns is None and not plan.i_own_this_network:
        yield Problem(
            (*at, "interface"),
            "an interface in a network namespace (netns: …)",
            f"{shown(port.interface)} of the initial namespace",
            "if this network carries nothing but the test (RFC 6815), add i_own_this_network: true",
            involves=(("i_own_this_network",), (*at, "netns")),
        )


def _networks(plan: Plan) -> Iterator[Problem]:
    """Find port addresses from which the destination networks of `flows` cannot be counted, and networks of one port
    that include the other port.

    The generator adds the number of a network to one octet of the receiving port's address.
    """
    if plan.ports is None or plan.flows.networks == 1:
        return
    count = plan.flows.networks
    both = plan.ports.west, plan.ports.east
    receives = "both-ways" in plan.directions, True
    spans: list[range] = []
    for name, port, rotates in zip(("west", "east"), both, receives, strict=True):
        octet, host_bits, example = _COUNTED[port.ip_version]
        first = int(ipaddress.ip_interface(port.address).ip) >> host_bits
        spans.append(range(first, first + (count if rotates else 1)))
        if rotates and first % _MOST_NETWORKS + count > _MOST_NETWORKS:
            yield Problem(
                ("ports", name, "address"),
                f"an address whose {octet} octet is at most {_MOST_NETWORKS - count} with networks: {count}",
                shown(port.address),
                f"the number of the network is added to this octet: write addresses such as {example}",
                involves=_WITH_NETWORKS,
            )
            return
    west, east = spans
    if both[0].ip_version == both[1].ip_version and max(west[0], east[0]) <= min(west[-1], east[-1]):
        yield Problem(
            ("ports", "east", "address"),
            f"{count} networks that the west port has no part in",
            shown(both[1].address),
            f"its networks are counted upwards from it: write addresses such as {_COUNTED[both[1].ip_version][2]}",
            involves=(*_WITH_NETWORKS, ("ports", "west", "address")),
        )
