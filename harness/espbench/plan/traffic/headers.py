# SPDX-License-Identifier: Apache-2.0
"""The headers of a frame, from Ethernet to UDP or TCP, without the fields that the generator writes itself. Pure."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from espbench.terms import FCS_BYTES

TEST_HEADER_BYTES = 18  # traffic/src/frame/test_header.rs
ETHERNET_BYTES, TAG_BYTES = 14, 4
_TAGS = frozenset({0x8100, 0x88A8})
_IPV4, _IPV6 = 0x0800, 0x86DD
_TCP, _UDP = 6, 17
_END, _NOP, _SACK, _TIMESTAMPS = 0, 1, 5, 8  # TCP options


class NotAHeader(ValueError):
    """A frame whose headers no generator can use; the text says why."""


@dataclass(frozen=True)
class Header:
    """Header bytes as generators.base.Stream describes them; the fields that the generator writes are zero.

    ip, transport: offsets of the IP header and of the UDP or TCP header.
    """

    data: bytes
    ip: int
    transport: int
    ip_version: int
    protocol: int

    @property
    def tags(self) -> bytes:
        """The VLAN tags as on the wire, type field first."""
        return self.data[12 : self.ip - 2]

    @property
    def vlans(self) -> list[int]:
        """The VLAN identifiers, outermost first."""
        return [_be16(self.tags, at + 2) & 0xFFF for at in range(0, len(self.tags), TAG_BYTES)]

    @property
    def is_tcp(self) -> bool:
        """True if the frame carries TCP, not UDP."""
        return self.protocol == _TCP

    @property
    def source_port(self) -> int:
        return _be16(self.data, self.transport)

    @property
    def smallest_frame(self) -> int:
        """The size of the smallest frame that has room for the test header, bytes with FCS."""
        return max(64, len(self.data) + TEST_HEADER_BYTES + FCS_BYTES)


def header_of(frame: bytes) -> Header:
    """Return the header of a frame, of which at least the headers must be complete. Raise NotAHeader."""
    ip = _ip_offset(frame)
    kind = _be16(frame, ip - 2)
    if kind == _IPV4:
        version, protocol, transport = 4, *_ipv4(frame, ip)
    elif kind == _IPV6:
        version, protocol, transport = 6, *_ipv6(frame, ip)
    else:
        raise NotAHeader(f"no IP (type {kind:#06x})")
    least = {_UDP: 8, _TCP: 20}.get(protocol)
    if least is None:
        raise NotAHeader(f"neither UDP nor TCP (IP protocol {protocol})")
    if len(frame) < transport + least:
        raise NotAHeader("cut off in its headers")
    end = transport + (least if protocol == _UDP else 4 * (frame[transport + 12] >> 4))
    if not transport + least <= end <= len(frame):
        raise NotAHeader("cut off in its headers")
    data = bytearray(frame[:end])
    data[:12] = bytes(12)
    if version == 4:
        data[ip + 2 : ip + 9] = bytes(7)  # length, identification, flags, offset, TTL
        data[ip + 10 : ip + 20] = bytes(10)  # checksum, addresses
    else:
        data[ip + 4 : ip + 6] = bytes(2)
        data[ip + 7 : ip + 40] = bytes(33)  # hop limit, addresses
    if protocol == _UDP:
        data[transport + 4 :] = bytes(4)
    else:
        data[transport + 16 : transport + 18] = bytes(2)
    return Header(bytes(data), ip, transport, version, protocol)


def ip_bytes(frame: bytes, header: Header) -> int:
    """Return the size of the IP packet by its own length field, bytes."""
    at = header.ip
    return _be16(frame, at + 2) if header.ip_version == 4 else _be16(frame, at + 4) + 40


def without_connection(header: Header) -> Header:
    """Return a TCP header without the state of a connection: numbers, window, timestamps, SACK blocks; UDP is
    unchanged.
    """
    if header.protocol != _TCP:
        return header
    data, at = bytearray(header.data), header.transport
    data[at + 4 : at + 12] = bytes(8)
    data[at + 14 : at + 16] = bytes(2)
    data[at + 18 : at + 20] = bytes(2)
    option = at + 20
    while option < len(data) and data[option] != _END:
        if data[option] == _NOP:
            option += 1
            continue
        length = data[option + 1] if option + 1 < len(data) else 0
        if length < 2 or option + length > len(data):
            break
        if data[option] in (_SACK, _TIMESTAMPS):
            data[option + 2 : option + length] = bytes(length - 2)
        option += length
    return Header(bytes(data), header.ip, header.transport, header.ip_version, header.protocol)


def _ip_offset(frame: bytes) -> int:
    at = 12
    while len(frame) >= at + 6 and _be16(frame, at) in _TAGS:
        at += TAG_BYTES
    if at > 12 + 2 * TAG_BYTES:
        raise NotAHeader("more than two VLAN tags")
    if len(frame) < at + 2:
        raise NotAHeader("cut off in its headers")
    return at + 2


def _ipv4(frame: bytes, ip: int) -> tuple[int, int]:
    """Return the protocol behind the IP header, and its offset."""
    if len(frame) < ip + 20 or frame[ip] >> 4 != 4 or frame[ip] & 15 < 5:
        raise NotAHeader("cut off in its headers")
    if _be16(frame, ip + 6) & 0x3FFF:
        raise NotAHeader("an IP fragment")
    return frame[ip + 9], ip + 4 * (frame[ip] & 15)


def _ipv6(frame: bytes, ip: int) -> tuple[int, int]:
    if len(frame) < ip + 40 or frame[ip] >> 4 != 6:
        raise NotAHeader("cut off in its headers")
    if frame[ip + 6] not in (_UDP, _TCP):
        raise NotAHeader(f"neither UDP nor TCP directly in IPv6 (next header {frame[ip + 6]})")
    return frame[ip + 6], ip + 40


def _be16(data: bytes, at: int) -> int:
    return int(struct.unpack_from("!H", data, at)[0])
