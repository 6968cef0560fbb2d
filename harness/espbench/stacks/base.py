# SPDX-License-Identifier: Apache-2.0
"""Defines the interface of a stack: block cleartext, bring the tunnel up, read its counters and Security Context."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Any, Literal, Protocol

from espbench.errors import UsageError
from espbench.platforms.base import Gateway, Side, Testbed


@dataclass(frozen=True)
class Tunnel:
    """The traffic to protect: between the prefixes `west` and `east`, through the gateways' WAN addresses.

    home and office are these addresses. pairs are the selectors of each tunnel as (west prefix, east prefix). Without
    pairs there is one tunnel for all traffic.
    """

    ip_version: int
    home: str
    office: str
    west: str
    east: str
    pairs: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if not self.pairs:
            object.__setattr__(self, "pairs", ((self.west, self.east),))

    @property
    def bits(self) -> int:
        """The prefix length of one tunnel's subnets, the same on both sides. The traffic rotates through the
        subnets.
        """
        return ip_network(self.pairs[0][0]).prefixlen


def split(west: str, east: str, n: int) -> tuple[tuple[str, str], ...]:
    """Return the selectors of n tunnels as (west prefix, east prefix).

    Both prefixes are split into the smallest power of two of subnets that is at least n; the tunnels get the first n.
    A subnet is no smaller than a /26 (IPv6: /64). Raise UsageError if n such subnets do not fit, or if the two
    prefixes differ in length.
    """
    sides = [ip_network(west), ip_network(east)]
    room = min((26 if side.version == 4 else 64) - side.prefixlen for side in sides)
    bits = (n - 1).bit_length()
    if sides[0].prefixlen != sides[1].prefixlen or n < 1 or bits > max(room, 0):
        raise UsageError(
            f"tunnels: expected 1 to {2 ** max(room, 0)} between {west} and {east}, got {n}; both sides are split "
            "alike, into subnets of a /26 (IPv6: /64) or larger"
        )
    subnets = [itertools.islice(side.subnets(bits), n) for side in sides]
    return tuple((str(a), str(b)) for a, b in zip(*subnets, strict=True))


@dataclass(frozen=True)
class StackOptions:
    """The options of a stack from the plan; replay_window in packets (0 switches the replay check off).

    df says how the outer IPv4 header gets its DF bit. interface: the VPN is route-based, through an XFRM interface.
    """

    mode: Literal["transport", "tunnel"] = "tunnel"
    replay_window: int = 32
    esn: bool = False
    tunnels: int = 1
    udp_encapsulation: bool = False
    df: Literal["copy", "clear", "set"] = "copy"
    interface: bool = False


# An SPI has 32 bits.
INBOUND = 1 << 32


@dataclass(frozen=True)
class SaCounters:
    """The frames that one gateway's SAs have carried since the SAs were made, and its XFRM errors by name.

    spis identifies the SAs: each is an SPI, of inbound SAs plus INBOUND, because the gateways choose their SPIs
    independently of each other. A rekey replaces the SAs, and the counts of the old SAs are lost. own_datagrams: the
    gateway sent these for itself (IKE, ICMP); they are not part of the test's traffic.
    """

    encrypted: int = 0
    decrypted: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    spis: frozenset[int] = frozenset()
    own_datagrams: int = 0


# The counters of what a gateway sends for itself, in /proc/net/snmp and snmp6. A kernel answers a datagram to a closed
# port by ICMP, such as IKE to a daemon that died.
_OWN_SENT = {"Udp:": "OutDatagrams", "Icmp:": "OutMsgs"}
_OWN_SENT_6 = re.compile(r"^(?:Udp6OutDatagrams|Icmp6OutMsgs)\s+(\d+)", re.MULTILINE)


class Stack(Protocol):
    """A stack installed on the gateways of one test bed."""

    name: str
    encrypts: bool

    @property
    def sas(self) -> int:
        """The number of SAs that each gateway's kernel must hold as long as the tunnels are up."""

    def block(self) -> None:
        """Forbid cleartext between the prefixes; from now on no packet between them passes without an SA."""

    def establish(self) -> None:
        """Bring the tunnel up."""

    def counters(self, side: Side) -> SaCounters: ...

    def rest(self) -> None:
        """Restore the state after a start, before each trial, if the stack keeps packets or memory of the last
        trial.
        """

    def security_context(self) -> dict[str, Any]:
        """Return the Security Context read back from the running gateways (ipsec-meth), without keys.

        Its key `mismatches` lists the differences from the plan. A single difference makes the case INVALID.
        """

    def secrets(self) -> list[dict[str, Any]]:
        """Return the SAs with their keys, to decrypt a capture. The keys must never be written to a file."""


def xfrm_errors(gateway: Gateway) -> dict[str, int]:
    """Return the counters of a gateway's /proc/net/xfrm_stat that are not zero, by name."""
    text = gateway.read(["/proc/net/xfrm_stat"])["/proc/net/xfrm_stat"] or ""
    counters = (line.split() for line in text.splitlines())
    return {name: int(value) for name, value in counters if int(value)}


def own_sent(gateway: Gateway) -> int:
    """Return the number of datagrams that the gateway has sent for itself since it was made: UDP of its programs, and
    ICMP of its kernel.

    The kernel's ESP in UDP is not counted.
    """
    snmp, snmp6 = "/proc/net/snmp", "/proc/net/snmp6"
    texts = gateway.read([snmp, snmp6])
    rows = [line.split() for line in (texts[snmp] or "").splitlines()]
    sent = 0
    for names, values in itertools.pairwise(rows):
        if names[:1] == values[:1] and names[0] in _OWN_SENT:
            sent += int(dict(zip(names, values, strict=True)).get(_OWN_SENT[names[0]], "0"))
    return sent + sum(map(int, _OWN_SENT_6.findall(texts[snmp6] or "")))


def both(bed: Testbed) -> list[tuple[Gateway, Gateway]]:
    """Return (gateway, its peer) for Home and Office."""
    home, office = bed.gateways["home"], bed.gateways["office"]
    return [(home, office), (office, home)]
