# SPDX-License-Identifier: Apache-2.0
"""The frames of a stream as whole bytes, for generators that replay them: with addresses, lengths and checksums."""

from __future__ import annotations

import base64
import ipaddress
import struct
from dataclasses import dataclass

from espbench.errors import UsageError
from espbench.generators.base import FrameShare, Stream
from espbench.terms import FCS_BYTES

UDP, TCP = 17, 6
TEST_HEADER_BYTES = 18
_ETHERNET_BYTES, _TAG_BYTES = 14, 4
_TAGS = (0x8100, 0x88A8)
_CHECKSUM_AT = {UDP: 6, TCP: 16}
_IPV6_HEADER_BYTES = 40


@dataclass(frozen=True)
class Frame:
    """One frame without FCS, with the offsets of its headers (ip, transport) and of its IP addresses (source,
    destination).
    """

    data: bytes
    ip: int
    transport: int
    protocol: int
    source: int
    destination: int


def frame_of(stream: Stream, share: FrameShare, *, rotates: bool) -> Frame:
    """Return the frame of the first flow, with the native generator's layout; its test header is zero.

    Checksums are right, except the UDP checksum of IPv4 flows that rotate: it is 0, which means none (RFC 768).
    Raise UsageError if the frame size has no room for headers and test payload.
    """
    data = _headers(stream, share)
    ip = _ETHERNET_BYTES
    while _be16(data, ip - 2) in _TAGS:
        ip += _TAG_BYTES
    is_v4 = stream.ip_version == 4
    transport = ip + (4 * (data[ip] & 0xF) if is_v4 else _IPV6_HEADER_BYTES)
    protocol = data[ip + (9 if is_v4 else 6)]
    length = share.size - FCS_BYTES
    if length < len(data) + TEST_HEADER_BYTES:
        least = len(data) + TEST_HEADER_BYTES + FCS_BYTES
        raise UsageError(
            f"generator trex: expected IPv{stream.ip_version} frames of at least {least} B, got {share.size} B; "
            "headers and the test payload need that much"
        )
    pattern = length - len(data) - TEST_HEADER_BYTES
    data += bytes(TEST_HEADER_BYTES) + bytes((TEST_HEADER_BYTES + i) & 0xFF for i in range(pattern))

    data[:12] = _mac(stream.dst_mac) + _mac(stream.src_mac)
    addresses = ipaddress.ip_address(stream.src).packed + ipaddress.ip_address(stream.dst).packed
    source = ip + (12 if is_v4 else 8)
    data[source : source + len(addresses)] = addresses
    if is_v4:
        fragment = 0x4000 if stream.dont_fragment else 0
        struct.pack_into("!HHHB", data, ip + 2, length - ip, 0, fragment, stream.ttl)
        struct.pack_into("!H", data, ip + 10, 0)
        struct.pack_into("!H", data, ip + 10, _checksum(data[ip:transport]))
    else:
        struct.pack_into("!H", data, ip + 4, length - transport)
        data[ip + 7] = stream.ttl
    if protocol == UDP:
        struct.pack_into("!H", data, transport + 4, length - transport)
    at = transport + _CHECKSUM_AT[protocol]
    struct.pack_into("!H", data, at, 0)
    if not (rotates and is_v4 and protocol == UDP):
        pseudo = addresses + struct.pack("!HH", protocol, length - transport)
        checksum = _checksum(pseudo + data[transport:])
        struct.pack_into("!H", data, at, checksum or (0xFFFF if protocol == UDP else 0))
    return Frame(bytes(data), ip, transport, protocol, source, source + len(addresses) // 2)


def _headers(stream: Stream, share: FrameShare) -> bytearray:
    """Return the headers from the destination MAC to UDP or TCP: the stream's own, or those of the test frame."""
    if stream.headers:
        return bytearray(base64.b64decode(stream.headers[share.header]))
    ports = struct.pack("!HHHH", stream.src_port, stream.dst_port, 0, 0)
    if stream.ip_version == 4:
        return bytearray(bytes(12) + b"\x08\x00\x45" + bytes(8) + bytes([UDP]) + bytes(10) + ports)
    return bytearray(bytes(12) + b"\x86\xdd\x60" + bytes(5) + bytes([UDP]) + bytes(33) + ports)


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def _be16(data: bytearray, at: int) -> int:
    return int.from_bytes(data[at : at + 2], "big")


def _checksum(data: bytes | bytearray) -> int:
    """Return the Internet checksum (RFC 1071)."""
    if len(data) % 2:
        data = data + b"\0"
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
