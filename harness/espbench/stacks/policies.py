# SPDX-License-Identifier: Apache-2.0
"""Makes a gateway's XFRM policies, those that forbid cleartext included, and reads its SAs and policies back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from espbench.platforms.base import Gateway, Side
from espbench.stacks import netlink_xfrm as xfrm
from espbench.stacks.base import INBOUND, SaCounters, Tunnel, xfrm_errors

LOWEST_PRECEDENCE = 2**32 - 1
FIRST_REQID = 2544
# The Security Context lists this many tunnels one by one. If there are more, it lists the first and gives their number.
LISTED_TUNNELS = 4


@dataclass(frozen=True)
class SideView:
    """One tunnel as seen from one gateway: its own and its peer's WAN address, and the outbound and inbound traffic."""

    own: str
    peer: str
    outbound: xfrm.Selector
    inbound: xfrm.Selector

    @staticmethod
    def of(side: Side, tunnel: Tunnel) -> SideView:
        """Return the view of all the traffic between the two prefixes."""
        return SideView._between(side, tunnel, tunnel.west, tunnel.east)

    @staticmethod
    def each(side: Side, tunnel: Tunnel) -> list[SideView]:
        """Return a view for each tunnel, in order."""
        return [SideView._between(side, tunnel, west, east) for west, east in tunnel.pairs]

    @staticmethod
    def _between(side: Side, tunnel: Tunnel, west: str, east: str) -> SideView:
        west_east, east_west = xfrm.Selector(west, east), xfrm.Selector(east, west)
        if side == "home":
            return SideView(tunnel.home, tunnel.office, west_east, east_west)
        return SideView(tunnel.office, tunnel.home, east_west, west_east)

    def policies(self, mode: xfrm.Mode, reqid: int, interface_id: int) -> list[xfrm.Policy]:
        """Return the policies out, in and fwd; each demands ESP by the SA with this request id."""
        out = xfrm.Template(self.own, self.peer, mode, reqid)
        back = xfrm.Template(self.peer, self.own, mode, reqid)
        return [
            xfrm.Policy(self.outbound, "out", out, interface_id=interface_id),
            xfrm.Policy(self.inbound, "in", back, interface_id=interface_id),
            xfrm.Policy(self.inbound, "fwd", back, interface_id=interface_id),
        ]


def flush(gateway: Gateway) -> None:
    """Delete every ESP SA and policy of the gateway."""
    gateway.netlink(xfrm.NETLINK_XFRM, xfrm.flush(gateway.byte_order))


def flush_sas(gateway: Gateway) -> None:
    """Delete every ESP SA of the gateway; policies stay."""
    gateway.netlink(xfrm.NETLINK_XFRM, xfrm.flush(gateway.byte_order)[:1])


def floor(
    side: Side, tunnel: Tunnel, action: xfrm.PolicyAction = "block", *, interface_id: int = 0
) -> list[xfrm.Policy]:
    """Return the policies of lowest precedence, for packets to or from the far prefix that no tunnel's policy matches.

    Every stack has these policies, so that all pay for the same look-ups: stacks that encrypt block such packets, the
    baseline lets them pass. One end of each selector is any address, for two reasons. First, the kernel keeps one
    policy for a selector, whatever its priority: a daemon's policy for the same selector would replace this one, and
    no policy would be left when the daemon deletes its own. Second, with a policy over the prefixes of all tunnels the
    kernel would search the tunnels' policies one by one, not in a tree.

    interface_id: the id of the XFRM interface to which the traffic is routed; 0: none. The outbound policy then has
    this id only: when the kernel forwards, it first looks up a policy without interface, and the interface then looks
    up its own. For inbound packets there are policies both with the id and without it.
    """
    view = SideView.of(side, tunnel)
    anywhere = "0.0.0.0/0" if tunnel.ip_version == 4 else "::/0"
    outbound = xfrm.Selector(anywhere, view.outbound.destination)
    inbound = xfrm.Selector(view.inbound.source, anywhere)
    made = [xfrm.Policy(outbound, "out", interface_id=interface_id)]
    for number in sorted({0, interface_id}):
        made += [
            xfrm.Policy(inbound, "in", interface_id=number),
            xfrm.Policy(inbound, "fwd", interface_id=number),
        ]
    return [replace(policy, priority=LOWEST_PRECEDENCE, action=action) for policy in made]


def protecting(side: Side, tunnel: Tunnel, *, interface_id: int = 0) -> list[xfrm.Policy]:
    """Return the tunnels' policies, which are the same for every stack on XFRM in tunnel mode.

    The tunnels have consecutive request ids from FIRST_REQID on.
    """
    made = []
    for reqid, view in enumerate(SideView.each(side, tunnel), start=FIRST_REQID):
        made += view.policies("tunnel", reqid, interface_id)
    return made


def install(gateway: Gateway, policies: list[xfrm.Policy]) -> None:
    """Put policies into the gateway's kernel."""
    messages = [xfrm.new_policy(policy, gateway.byte_order) for policy in policies]
    gateway.netlink(xfrm.NETLINK_XFRM, messages)


def dump_sas(gateway: Gateway) -> list[xfrm.SaReading]:
    """Return the gateway's SAs, without keys."""
    return [xfrm.read_sa(message, gateway.byte_order) for message in _sa_messages(gateway)]


def dump_policies(gateway: Gateway) -> list[xfrm.PolicyReading]:
    """Return the gateway's policies without the per-socket policies."""
    order = gateway.byte_order
    (replies,) = gateway.netlink(xfrm.NETLINK_XFRM, [xfrm.dump_policies(order)])
    return [xfrm.read_policy(message, order) for message in replies if xfrm.is_policy_of_user(message, order)]


def sa_counters(gateway: Gateway, own: str) -> SaCounters:
    """Return the packets of all ESP SAs from and to the gateway's own address, and its XFRM errors."""
    read = (xfrm.read_count(message, gateway.byte_order) for message in _sa_messages(gateway))
    counts = [count for count in read if count]
    return SaCounters(
        encrypted=sum(sa.packets for sa in counts if sa.source == own),
        decrypted=sum(sa.packets for sa in counts if sa.destination == own),
        errors=xfrm_errors(gateway),
        spis=frozenset(sa.spi + INBOUND * (sa.destination == own) for sa in counts),
    )


def sa_entries(readings: list[xfrm.SaReading]) -> dict[str, Any]:
    """Return one gateway's SAs for the Security Context: all if they are few, else two, their number and the kinds."""
    ordered = sorted(readings, key=lambda sa: (sa.reqid, sa.source))
    if len(ordered) <= 2 * LISTED_TUNNELS:
        return {"security_associations": [_entry(sa) for sa in ordered]}
    kinds = dict.fromkeys(_kind(sa) for sa in ordered)
    return {
        "security_associations": [_entry(sa) for sa in ordered[:2]],
        "number of SAs": len(ordered),
        "kinds of SAs": list(kinds),
    }


def policy_entries(readings: list[xfrm.PolicyReading]) -> list[str]:
    """Return one gateway's policies for the Security Context: all if they are few, else the first ones and a number."""
    texts = [str(policy) for policy in readings]
    if len(texts) <= 3 * LISTED_TUNNELS:
        return texts
    return [*texts[:3], f"… and {len(texts) - 3} more, one of each direction for every tunnel's selectors"]


def sa_secrets(gateway: Gateway, suite: str) -> list[dict[str, Any]]:
    """Return the kernel's SAs with their keys, to decrypt a capture. The keys must never be written to a file."""
    entries = []
    for message in _sa_messages(gateway):
        sa = xfrm.read_sa(message, gateway.byte_order)
        encryption, integrity = xfrm.read_keys(message, gateway.byte_order)
        entries.append(secret_entry(sa, suite, encryption, integrity))
    return entries


def secret_entry(
    sa: xfrm.SaReading | xfrm.SecurityAssociation, suite: str, encryption: bytes, integrity: bytes
) -> dict[str, Any]:
    """Return one SA in the form that espbench_scapy.decrypt expects."""
    return {
        "spi": sa.spi,
        "source": sa.source,
        "destination": sa.destination,
        "suite": suite,
        "mode": sa.mode,
        "esn": sa.esn,
        "encryption_key": encryption.hex(),
        "integrity_key": integrity.hex(),
    }


def few(texts: Iterable[str], at_most: int = 8) -> list[str]:
    """Return the distinct texts; if there are more than at_most, the first ones and the number of the others."""
    distinct = list(dict.fromkeys(texts))
    more = len(distinct) - at_most
    return distinct if more <= 0 else [*distinct[:at_most], f"… and {more} more like these"]


def _sa_messages(gateway: Gateway) -> list[bytes]:
    (replies,) = gateway.netlink(xfrm.NETLINK_XFRM, [xfrm.dump_sas(gateway.byte_order)])
    return replies


def _entry(sa: xfrm.SaReading) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "from": sa.source,
        "to": sa.destination,
        "spi": f"{sa.spi:#010x}",
        "mode": sa.mode,
        **sa.algorithms,
        "replay_window": sa.replay_window,
        "esn": sa.esn,
        "lifetime": sa.lifetime,
        "udp_encapsulation": sa.udp_encapsulation or "none",
    }
    if sa.mode == "tunnel" and ":" not in sa.source:
        entry["df"] = "copied" if sa.copy_df else "cleared"
    if sa.mode == "tunnel" and not sa.copy_dscp:
        entry["dscp"] = "not copied to the outer header"
    if sa.interface_id:
        entry["interface_id"] = sa.interface_id
    return entry


def _kind(sa: xfrm.SaReading) -> str:
    own = {"from", "to", "spi"}
    return "; ".join(f"{name} {value}" for name, value in _entry(sa).items() if name not in own)
