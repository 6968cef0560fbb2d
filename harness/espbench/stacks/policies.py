# SPDX-License-Identifier: Apache-2.0
"""The tunnel as one gateway sees it, and the reading back of what its kernel holds."""

from __future__ import annotations

from dataclasses import dataclass

from espbench.platforms.base import Gateway, Side
from espbench.stacks import netlink_xfrm as xfrm
from espbench.stacks.base import Tunnel


@dataclass(frozen=True)
class SideView:
    """Own and peer WAN address, and the traffic that leaves and enters through the tunnel."""

    own: str
    peer: str
    outbound: xfrm.Selector
    inbound: xfrm.Selector

    @staticmethod
    def of(side: Side, tunnel: Tunnel) -> SideView:
        west_east = xfrm.Selector(tunnel.west, tunnel.east)
        east_west = xfrm.Selector(tunnel.east, tunnel.west)
        if side == "home":
            return SideView(tunnel.home, tunnel.office, west_east, east_west)
        return SideView(tunnel.office, tunnel.home, east_west, west_east)


def flush(gateway: Gateway) -> None:
    """Delete every ESP SA and policy of the gateway."""
    gateway.netlink(xfrm.NETLINK_XFRM, xfrm.flush())


def dump_sas(gateway: Gateway) -> list[xfrm.SaReading]:
    """The gateway's SAs, without keys."""
    (replies,) = gateway.netlink(xfrm.NETLINK_XFRM, [xfrm.dump_sas()])
    return [xfrm.read_sa(message) for message in replies]


def dump_policies(gateway: Gateway) -> list[xfrm.PolicyReading]:
    """The gateway's policies, per-socket ones left out."""
    (replies,) = gateway.netlink(xfrm.NETLINK_XFRM, [xfrm.dump_policies()])
    return [xfrm.read_policy(message) for message in replies if xfrm.is_policy_of_user(message)]
