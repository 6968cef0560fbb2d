# SPDX-License-Identifier: Apache-2.0
"""Describes the tester's two ports at a pair of gateways, or at a single gateway, that espbench built."""

from __future__ import annotations

from typing import Any

from espbench.platforms.addressing import LinkEnd, PairAddressing
from espbench.platforms.base import Placement, Port, PortName
from espbench.this_machine.network import NETNS_DIR


def tester_ports(
    netns: str,
    interfaces: dict[PortName, str],
    addressing: PairAddressing,
    placement: Placement,
    line_rate_bps: float,
    *,
    single: bool,
) -> dict[PortName, Port]:
    """Return the ports. West is connected to Home, East to Office (a single gateway: to Home's WAN port)."""
    return {
        name: Port(
            name=name,
            interface=interface,
            netns=str(NETNS_DIR / netns),
            tx_cpus=tuple(placement.cpus["tester tx"]),
            rx_cpu=placement.cpus["tester rx"][0],
            mac=mac,
            next_hop_mac=gateway.mac,
            address={version: own.host(version) for version in own.addresses},
            gateway={version: gateway.host(version) for version in gateway.addresses},
            line_rate_bps=line_rate_bps,
            mtu=addressing.mtu,
        )
        for name, interface in interfaces.items()
        for mac, own, gateway in [tester_end(name, addressing, single=single)]
    }


def tester_end(name: PortName, addressing: PairAddressing, *, single: bool) -> tuple[str, LinkEnd, LinkEnd]:
    """Return the MAC of the tester's port, the end whose addresses it has, and the gateway's end of its link."""
    if name == "west":
        return addressing.tester_west.mac, addressing.tester_west, addressing.home_lan
    if single:
        return addressing.office_wan.mac, addressing.tester_east, addressing.home_wan
    return addressing.tester_east.mac, addressing.tester_east, addressing.office_lan


def ciphertext_side(addressing: PairAddressing, *, single: bool) -> dict[str, Any]:
    """Return the fields of a Testbed for the tester as an end of the tunnels; empty if it is not one."""
    if not single:
        return {}
    outer = addressing.office_wan
    return {
        "ciphertext": "east",
        "esp_address": {version: outer.host(version) for version in outer.addresses},
    }
