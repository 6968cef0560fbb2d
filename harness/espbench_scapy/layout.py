# SPDX-License-Identifier: GPL-2.0-only
"""Finds the headers of an Ethernet frame: tags, IPv4 or IPv6, UDP or TCP. It reads bytes and changes none."""

from __future__ import annotations

import struct
from dataclasses import dataclass

TAGS = frozenset({0x8100, 0x88A8, 0x9100})  # 802.1Q, 802.1ad, and the type that was used before 802.1ad
IPV4, IPV6 = 0x0800, 0x86DD
TCP, UDP = 6, 17
ETHERNET = 14


@dataclass(frozen=True)
class Layout:
    """Offsets into a frame: of the IP header, of the UDP or TCP header, and of the payload after it."""

    ip: int
    transport: int
    payload: int
    ip_version: int
    protocol: int

    @property
    def addresses(self) -> slice:
        """The place of source and destination address."""
        return slice(self.ip + 12, self.ip + 20) if self.ip_version == 4 else slice(self.ip + 8, self.ip + 40)

    @property
    def checksum(self) -> int:
        """The offset of the UDP or TCP checksum."""
        return self.transport + (6 if self.protocol == UDP else 16)


def be16(data: bytes | bytearray | memoryview, at: int) -> int:
    """Return the big-endian 16-bit number at an offset."""
    return int.from_bytes(data[at : at + 2], "big")


def tags_end(frame: bytes) -> int:
    """Return the offset of the type field after the VLAN tags (12 without tags)."""
    at = 12
    while be16(frame, at) in TAGS and len(frame) > at + 6:
        at += 4
    return at


def layout(frame: bytes) -> Layout | None:
    """Return the places of a frame's headers; None if it is not UDP or TCP directly in IP, or too short for them."""
    at = tags_end(frame)
    ip, kind = at + 2, be16(frame, at)
    if kind == IPV4 and len(frame) >= ip + 20 and frame[ip] >> 4 == 4:
        version, protocol, transport = 4, frame[ip + 9], ip + 4 * (frame[ip] & 15)
        if transport < ip + 20:
            return None
    elif kind == IPV6 and len(frame) >= ip + 40 and frame[ip] >> 4 == 6:
        version, protocol, transport = 6, frame[ip + 6], ip + 40
    else:
        return None
    if protocol == UDP:
        payload = transport + 8
    elif protocol == TCP and len(frame) > transport + 12 and frame[transport + 12] >> 4 >= 5:
        payload = transport + 4 * (frame[transport + 12] >> 4)
    else:
        return None
    return Layout(ip, transport, payload, version, protocol) if len(frame) >= payload else None


def word_sum(data: bytes | bytearray | memoryview) -> int:
    """Return the sum of the 16-bit big-endian words (RFC 1071), not folded."""
    whole = len(data) & ~1
    total: int = sum(struct.unpack(f"!{whole // 2}H", data[:whole]))
    return total + (data[-1] << 8) if len(data) & 1 else total


def folded(total: int) -> int:
    """Return a sum folded to 16 bits (one's complement)."""
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def transport_sum(frame: bytes | bytearray, at: Layout, end: int) -> int:
    """Return the sum over pseudo header, transport header and payload up to `end`; right if it folds to 0xffff."""
    return (
        word_sum(frame[at.addresses])
        + at.protocol
        + (end - at.transport)
        + word_sum(frame[at.transport : end])
    )
