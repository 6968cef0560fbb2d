# SPDX-License-Identifier: Apache-2.0
"""Defines the addresses of a gateway pair, and configures a gateway with its addresses by `ip` lines and sysctls.

    tester west ── lan Home wan ── wan Office lan ── tester east
     198.18.0.2    .1   192.0.2.1  .2         .1     198.19.0.2

The LAN networks are those reserved for benchmarks (RFC 2544 C.2.2: 198.18.0.0/15; RFC 5180: 2001:2::/48). The
addresses of the 256 networks on each side are routed to the tester, which is the only host.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_interface

from espbench.platforms.base import Gateway, Side


@dataclass(frozen=True)
class LinkEnd:
    """One interface on a link: its MAC and, by IP version, its address with prefix length."""

    mac: str
    addresses: dict[int, str]

    def host(self, version: int) -> str:
        """Return the address of this IP version without its prefix length."""
        return str(ip_interface(self.addresses[version]).ip)


@dataclass(frozen=True)
class GatewayAddressing:
    """The addresses for one gateway's configuration: its interfaces, its neighbours, and the prefixes behind them."""

    lan: LinkEnd
    wan: LinkEnd
    tester: LinkEnd
    peer: LinkEnd
    near: dict[int, str]  # IP version → the prefix behind the tester's port on its LAN
    far: dict[int, str]  # IP version → the prefix behind the peer
    mtu: int = 1500


@dataclass(frozen=True)
class PairAddressing:
    """The addresses of all interfaces of a gateway pair and the tester, and the prefixes behind the tester's ports."""

    tester_west: LinkEnd
    home_lan: LinkEnd
    home_wan: LinkEnd
    office_wan: LinkEnd
    office_lan: LinkEnd
    tester_east: LinkEnd
    west: dict[int, str]
    east: dict[int, str]
    mtu: int = 1500

    def gateway(self, side: Side) -> GatewayAddressing:
        """Return the addresses for the configuration of one gateway."""
        if side == "home":
            return GatewayAddressing(
                lan=self.home_lan,
                wan=self.home_wan,
                tester=self.tester_west,
                peer=self.office_wan,
                near=self.west,
                far=self.east,
                mtu=self.mtu,
            )
        return GatewayAddressing(
            lan=self.office_lan,
            wan=self.office_wan,
            tester=self.tester_east,
            peer=self.home_wan,
            near=self.east,
            far=self.west,
            mtu=self.mtu,
        )


# These settings make a router that forwards and sends no packets by itself: no redirects, no reverse-path filter, no
# autoconfiguration. ICMP errors are limited to one a second: enough to show a mistake, too few to be a load.
SYSCTLS = {
    "net/ipv4/ip_forward": "1",
    "net/ipv4/conf/all/rp_filter": "0",
    "net/ipv4/conf/default/rp_filter": "0",
    "net/ipv4/conf/all/send_redirects": "0",
    "net/ipv4/conf/default/send_redirects": "0",
    "net/ipv4/conf/all/accept_redirects": "0",
    "net/ipv4/conf/default/accept_redirects": "0",
    "net/ipv4/icmp_ratelimit": "1000",
    "net/ipv6/conf/all/forwarding": "1",
    "net/ipv6/conf/default/forwarding": "1",
    "net/ipv6/conf/all/accept_ra": "0",
    "net/ipv6/conf/default/accept_ra": "0",
    "net/ipv6/conf/all/accept_redirects": "0",
    "net/ipv6/conf/default/accept_redirects": "0",
    "net/ipv6/icmp/ratelimit": "1000",
}
# An interface copies these from `default` when it is made. A gateway's interface may be older than its sysctls, so they
# are set for each interface too.
INTERFACE_SYSCTLS = {
    "net/ipv4/conf/{}/rp_filter": "0",
    "net/ipv4/conf/{}/send_redirects": "0",
    "net/ipv6/conf/{}/accept_ra": "0",
    "net/ipv6/conf/{}/router_solicitations": "0",
}


def ip_lines(addressing: GatewayAddressing, lan: str, wan: str) -> list[str]:
    """Return lines for `ip -batch` that bring up both interfaces with their addresses, neighbours and routes."""
    lines = ["link set dev lo up"]
    for name, own, other in (
        (lan, addressing.lan, addressing.tester),
        (wan, addressing.wan, addressing.peer),
    ):
        lines += [
            f"link set dev {name} address {own.mac} mtu {addressing.mtu} addrgenmode none",
            f"link set dev {name} arp off multicast off up",
        ]
        for version, address in own.addresses.items():
            nodad = " nodad" if version == 6 else ""
            lines.append(f"addr add {address} dev {name}{nodad}")
            lines.append(f"neigh replace {other.host(version)} lladdr {other.mac} dev {name} nud permanent")
    for name, behind, other in (
        (lan, addressing.near, addressing.tester),
        (wan, addressing.far, addressing.peer),
    ):
        lines += [
            f"route add {prefix} via {other.host(version)} dev {name}" for version, prefix in behind.items()
        ]
    return lines


def configure(gateway: Gateway, addressing: GatewayAddressing) -> None:
    """Configure a gateway as a router between its two links. Raise EspbenchError, which names the line that failed."""
    # The `ip` lines come first, because they switch multicast off: a forwarding interface with multicast would join the
    # routers' groups and send reports.
    gateway.ip(ip_lines(addressing, gateway.lan, gateway.wan))
    settings = dict(SYSCTLS)
    for name in (gateway.lan, gateway.wan):
        settings |= {key.format(name): value for key, value in INTERFACE_SYSCTLS.items()}
    for key, value in settings.items():
        gateway.write(f"/proc/sys/{key}", value)
