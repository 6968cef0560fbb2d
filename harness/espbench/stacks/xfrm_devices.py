# SPDX-License-Identifier: Apache-2.0
"""Makes the devices to which traffic is routed before ESP: IP-in-IP devices (transport mode) and XFRM interfaces."""

from __future__ import annotations

from typing import Literal

from espbench.errors import MachineLacks, UsageError
from espbench.platforms.base import Gateway
from espbench.stacks.base import StackOptions, Tunnel
from espbench.stacks.policies import SideView

IPIP_DEVICE = "ipip0e"
XFRM_IF_ID = 2544
# Pluto accepts no other name for the interface with this id (ipsec.conf(5), ipsec-interface).
XFRM_DEVICE = f"ipsec{XFRM_IF_ID}"


def route_through_ipip(gateway: Gateway, view: SideView, df: Literal["copy", "clear", "set"]) -> None:
    """Route the far prefix through an IP-in-IP device between the WAN addresses; raise MachineLacks without one.

    df: `set` sets the DF bit of the outer IPv4 header, other values copy it from the inner header. A fixed TTL and a
    copied DF bit exclude each other (ip-link(8)), so with a copied bit the TTL is copied too.
    """
    if ":" in view.own:
        kind = "ip6tnl mode ip6ip6 encaplimit none hoplimit 64"
    else:
        kind = "ipip " + ("ttl 64 pmtudisc" if df == "set" else "ttl inherit nopmtudisc")
    name, _, arguments = kind.partition(" ")
    ends = ["local", view.own, "remote", view.peer]
    gateway.run(["ip", "link", "del", IPIP_DEVICE])
    made = gateway.run(["ip", "link", "add", IPIP_DEVICE, "type", name, *ends, *arguments.split()])
    if made.rc != 0:
        raise MachineLacks(
            f"{gateway.side}: mode: transport needs an IP-in-IP device, refused: {made.err.strip()}",
            "use a kernel with CONFIG_NET_IPIP and CONFIG_IPV6_TUNNEL, or dut: uml, or mode: tunnel",
        )
    _route(gateway, view, IPIP_DEVICE)


def route_through_interface(gateway: Gateway, view: SideView) -> None:
    """Route the far prefix to an XFRM interface, so that only policies and SAs with XFRM_IF_ID match its traffic.

    Raise MachineLacks if the kernel has no XFRM interfaces.
    """
    gateway.run(["ip", "link", "del", XFRM_DEVICE])
    made = gateway.run(
        ["ip", "link", "add", XFRM_DEVICE, "type", "xfrm", "dev", gateway.wan, "if_id", str(XFRM_IF_ID)]
    )
    if made.rc != 0:
        raise MachineLacks(
            f"{gateway.side}: interface: true needs an XFRM interface, its kernel refused: {made.err.strip()}",
            "use a kernel with CONFIG_XFRM_INTERFACE, or interface: false (policy-based)",
        )
    _route(gateway, view, XFRM_DEVICE)


def routed_wrongly(gateway: Gateway, view: SideView, device: str) -> list[str]:
    """Return a problem if the gateway's route to the far prefix does not lead to this device; empty if it does."""
    route = gateway.run(["ip", _family(view), "route", "show", view.outbound.destination]).out.strip()
    if f" dev {device} " in f" {route} ":
        return []
    return [f"route to {view.outbound.destination}: expected by {device}, the gateway has {route or 'none'}"]


def df_of_ipip(gateway: Gateway) -> str:
    """Return how the IP-in-IP device gets its DF bit, as the gateway reports it: `copy`, `set` or `unknown`."""
    shown = gateway.run(["ip", "-d", "link", "show", IPIP_DEVICE]).out.split()
    return "copy" if "nopmtudisc" in shown else "set" if "pmtudisc" in shown else "unknown"


def refuse_what_cannot_be(options: StackOptions, tunnel: Tunnel) -> None:
    """Raise UsageError for a combination of options that the Linux kernel does not support for static SAs."""
    mode, df, tunnels = options.mode, options.df, len(tunnel.pairs)
    if options.esn and options.replay_window == 0:
        raise UsageError(
            "replay_window: expected 1 or more with esn: true, got 0; the receiver guesses the high half of the "
            "number from its window (RFC 4303 A2)"
        )
    if mode == "transport" and tunnels > 1:
        raise UsageError(
            f"tunnels: expected 1 with mode: transport, got {tunnels}; there all traffic is one IP-in-IP flow "
            "between the gateways: use mode: tunnel"
        )
    if mode == "transport" and options.interface:
        raise UsageError("interface: expected false with mode: transport, got true; use mode: tunnel")
    if tunnel.ip_version == 4 and df == {"tunnel": "set", "transport": "clear"}[mode]:
        # xfrm4_tunnel_encap_add() either clears the bit (XFRM_STATE_NOPMTUDISC) or copies the inner packet's. For
        # transport mode, ip_tunnel_xmit() adds the inner bit unless `ignore-df` is set, which ipip devices refuse.
        other = "clear" if mode == "tunnel" else "set"
        raise UsageError(
            f"df: expected copy or {other} for static SAs with mode: {mode}, got {df}; the kernel has no way to "
            f"{df} the DF bit there"
        )


def _route(gateway: Gateway, view: SideView, device: str) -> None:
    gateway.ip(
        [f"link set {device} up", f"route replace {view.outbound.destination} dev {device}"],
    )


def _family(view: SideView) -> str:
    return "-6" if ":" in view.own else "-4"
