# SPDX-License-Identifier: Apache-2.0
"""The tester's two ports on a pair that espbench built."""

from __future__ import annotations

from espbench.platforms.addressing import PairAddressing
from espbench.platforms.base import Placement, Port, PortName
from espbench.platforms.registry import NETNS_DIR


def tester_ports(
    netns: str,
    interfaces: dict[PortName, str],
    addressing: PairAddressing,
    placement: Placement,
    line_rate_bps: float,
) -> dict[PortName, Port]:
    """West faces Home, east faces Office; all addresses are known, nothing needs resolving."""
    ends = {
        "west": (addressing.tester_west, addressing.home_lan),
        "east": (addressing.tester_east, addressing.office_lan),
    }
    return {
        name: Port(
            name=name,
            interface=interface,
            netns=str(NETNS_DIR / netns),
            tx_cpus=tuple(placement.cpus["tester tx"]),
            rx_cpu=placement.cpus["tester rx"][0],
            mac=own.mac,
            next_hop_mac=gateway.mac,
            address={version: own.host(version) for version in own.addresses},
            gateway={version: gateway.host(version) for version in gateway.addresses},
            line_rate_bps=line_rate_bps,
            mtu=addressing.mtu,
        )
        for name, interface in interfaces.items()
        for own, gateway in [ends[name]]
    }
