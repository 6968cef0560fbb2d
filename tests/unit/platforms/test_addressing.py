# SPDX-License-Identifier: Apache-2.0
"""The addresses of a gateway pair fit together, and each gateway is told its own."""

from __future__ import annotations

from ipaddress import ip_address, ip_interface, ip_network

import pytest

from espbench.platforms.addressing import LinkEnd, ip_lines
from espbench.platforms.base import SIDES, Side
from support.gateways.addresses import GATEWAY_TO_GATEWAY

LINKS = [
    (GATEWAY_TO_GATEWAY.tester_west, GATEWAY_TO_GATEWAY.home_lan),
    (GATEWAY_TO_GATEWAY.home_wan, GATEWAY_TO_GATEWAY.office_wan),
    (GATEWAY_TO_GATEWAY.office_lan, GATEWAY_TO_GATEWAY.tester_east),
]


@pytest.mark.parametrize(("one", "other"), LINKS)
@pytest.mark.parametrize("version", [4, 6])
def test_both_ends_of_a_link_share_its_network(one: LinkEnd, other: LinkEnd, version: int) -> None:
    """Two addresses of one network, not the same."""
    first, second = ip_interface(one.addresses[version]), ip_interface(other.addresses[version])
    assert first.network == second.network
    assert first.ip != second.ip


def test_macs_are_unique_unicast_and_locally_administered() -> None:
    """Six of them; bit 1 of the first octet set, bit 0 clear (IEEE 802)."""
    macs = [end.mac for link in LINKS for end in link]
    assert len(set(macs)) == 6
    assert all(int(mac[:2], 16) & 3 == 2 for mac in macs)


def test_networks_are_those_set_aside_for_benchmarks() -> None:
    """RFC 2544 C.2.2 and RFC 5180 8."""
    for prefixes in (GATEWAY_TO_GATEWAY.west, GATEWAY_TO_GATEWAY.east):
        assert ip_network(prefixes[4]).subnet_of(ip_network("198.18.0.0/15"))  # type: ignore[arg-type]
        assert ip_network(prefixes[6]).subnet_of(ip_network("2001:2::/48"))  # type: ignore[arg-type]


@pytest.mark.parametrize("side", SIDES)
def test_each_gateway_routes_near_to_the_tester_and_far_to_the_peer(side: Side) -> None:
    """Every next hop is on the link the route leaves by and has a permanent neighbour there."""
    own = GATEWAY_TO_GATEWAY.gateway(side)
    lines = ip_lines(own, "lan0", "wan0")
    for version in (4, 6):
        for device, end, other, prefix in (
            ("lan0", own.lan, own.tester, own.near[version]),
            ("wan0", own.wan, own.peer, own.far[version]),
        ):
            hop = other.host(version)
            assert ip_address(hop) in ip_interface(end.addresses[version]).network
            assert f"route add {prefix} via {hop} dev {device}" in lines
            assert f"neigh replace {hop} lladdr {other.mac} dev {device} nud permanent" in lines


def test_what_is_near_for_one_gateway_is_far_for_the_other() -> None:
    """Home and Office see each other and the two sides mirrored."""
    home, office = GATEWAY_TO_GATEWAY.gateway("home"), GATEWAY_TO_GATEWAY.gateway("office")
    assert (home.near, home.far) == (office.far, office.near)
    assert (home.wan, home.peer) == (office.peer, office.wan)
