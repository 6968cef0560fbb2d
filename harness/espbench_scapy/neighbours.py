# SPDX-License-Identifier: GPL-2.0-only
"""Makes and reads ARP and neighbour discovery frames with Scapy (RFC 826, RFC 4861).

`tags` are VLAN tags as on the wire, type field first (81 00 00 07: VLAN 7); an answer has the tags of its question.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from scapy.layers.inet6 import (
    ICMPv6ND_NA,
    ICMPv6ND_NS,
    ICMPv6NDOptDstLLAddr,
    ICMPv6NDOptSrcLLAddr,
    IPv6,
)
from scapy.layers.l2 import ARP, Ether
from scapy.utils6 import in6_getnsma, in6_getnsmac

from espbench_scapy.layout import IPV6, be16, tags_end

_ARP = 0x0806
_SHORTEST = 60
_EVERYBODY = "ff:ff:ff:ff:ff:ff"


@dataclass(frozen=True)
class Heard:
    """A question or an answer about the address `target`, with sender, sender's MAC address, and VLAN tags."""

    question: bool
    target: str
    sender: str
    mac: str
    tags: bytes


def question(mac: str, address: str, target: str, tags: bytes = b"") -> bytes:
    """Return the frame that asks who has `target`."""
    if ipaddress.ip_address(target).version == 4:
        asking = Ether(src=mac, dst=_EVERYBODY) / ARP(
            op=1, hwsrc=mac, psrc=address, hwdst="00:00:00:00:00:00", pdst=target
        )
    else:
        group = in6_getnsma(ipaddress.ip_address(target).packed)
        asking = (
            Ether(src=mac, dst=in6_getnsmac(group))
            / IPv6(src=address, dst=str(ipaddress.IPv6Address(group)), hlim=255)
            / ICMPv6ND_NS(tgt=target)
            / ICMPv6NDOptSrcLLAddr(lladdr=mac)
        )
    return _tagged(bytes(asking), tags)


def answer(mac: str, asked: Heard) -> bytes:
    """Return the frame that answers a question: the port with this MAC address has the address."""
    if ipaddress.ip_address(asked.target).version == 4:
        telling = Ether(src=mac, dst=asked.mac) / ARP(
            op=2, hwsrc=mac, psrc=asked.target, hwdst=asked.mac, pdst=asked.sender
        )
    else:
        # Duplicate address detection asks from the unspecified address; the answer goes to all nodes.
        dst = "ff02::1" if asked.sender == "::" else asked.sender
        telling = (
            Ether(src=mac, dst=asked.mac)
            / IPv6(src=asked.target, dst=dst, hlim=255)
            / ICMPv6ND_NA(tgt=asked.target, R=0, S=1, O=1)
            / ICMPv6NDOptDstLLAddr(lladdr=mac)
        )
    return _tagged(bytes(telling), asked.tags)


def read(frame: bytes) -> Heard | None:
    """Return the question or answer in a frame; None if it is neither ARP nor neighbour discovery."""
    if len(frame) < 42:
        return None
    end = tags_end(frame)
    tags, kind = frame[12:end], be16(frame, end)
    if kind != _ARP and not (kind == IPV6 and len(frame) > end + 42 and frame[end + 8] == 58):
        return None
    packet = Ether(frame[:12] + frame[end:])
    if ARP in packet:
        arp = packet[ARP]
        asks = arp.op == 1
        return Heard(asks, arp.pdst if asks else arp.psrc, arp.psrc, arp.hwsrc, tags)
    if ICMPv6ND_NS in packet:
        option = packet.getlayer(ICMPv6NDOptSrcLLAddr)
        mac = option.lladdr if option else packet.src
        return Heard(True, packet[ICMPv6ND_NS].tgt, packet[IPv6].src, mac, tags)
    if ICMPv6ND_NA in packet:
        option = packet.getlayer(ICMPv6NDOptDstLLAddr)
        mac = option.lladdr if option else packet.src
        return Heard(False, packet[ICMPv6ND_NA].tgt, packet[IPv6].src, mac, tags)
    return None


def _tagged(frame: bytes, tags: bytes) -> bytes:
    return (frame[:12] + tags + frame[12:]).ljust(_SHORTEST, b"\0")
