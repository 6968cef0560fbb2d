# SPDX-License-Identifier: GPL-2.0-only
"""Writes the test frames of one stream, frame by frame; they are the same as the native generator's.

    UDP or TCP payload:   magic | stream | sequence (48 bit) | tx time (48 bit) | check | 18 19 1a …

All fields are big-endian; tx time is CLOCK_MONOTONIC in ns modulo 2^48. Magic and check depend on the run's key.
"""

from __future__ import annotations

import base64
import ipaddress
import math
import struct
from dataclasses import dataclass
from typing import Any

from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether

from espbench_scapy.failure import Failure
from espbench_scapy.layout import UDP as UDP_NUMBER
from espbench_scapy.layout import Layout, be16, folded, layout, transport_sum, word_sum

FCS = 4
TEST_HEADER = 18
NUMBER_MASK = (1 << 48) - 1
MOST_SHARES, LONGEST_CYCLE = 4096, 65_536
_64 = (1 << 64) - 1
_CACHED = 4096
_NO_MAC = "00:00:00:00:00:00"


def _mix(a: int, b: int) -> int:
    """Return the product of two 64-bit numbers, 128 bits, folded to 64 bits."""
    product = (a & _64) * (b & _64)
    return (product ^ (product >> 64)) & _64


class RunKey:
    """The key that distinguishes the frames of this run from all others."""

    def __init__(self, run_key: int, instant: int) -> None:
        turned = (run_key << 17 | run_key >> 47) & _64
        self._secret = _mix(run_key ^ 0x9E3779B97F4A7C15, instant | 1) ^ turned
        self.magic = _mix(self._secret ^ 0xA0761D6478BD642F, 0xE7037ED1A0B428DB) >> 24 & 0xFFFF

    def check(self, stream: int, sequence: int, time: int) -> int:
        """Return the check over magic, stream, sequence and time, 16 bits."""
        first = self.magic << 48 | stream << 32 | sequence >> 16
        second = (sequence << 48 & _64) | time & NUMBER_MASK
        turned = (self._secret << 32 | self._secret >> 32) & _64
        mixed = _mix(
            first ^ self._secret ^ 0xE7037ED1A0B428DB, second ^ turned ^ 0x8EBC6AF09C88C6E3
        )  # fmt: skip
        return (mixed ^ mixed >> 32 ^ mixed >> 16) & 0xFFFF

    def header(self, stream: int, sequence: int, time: int) -> bytes:
        """Return the test header: the 18 bytes at the start of the payload."""
        number, at = sequence & NUMBER_MASK, time & NUMBER_MASK
        return b"".join(
            (
                struct.pack("!HH", self.magic, stream),
                number.to_bytes(6, "big"),
                at.to_bytes(6, "big"),
                self.check(stream, number, at).to_bytes(2, "big"),
            )
        )


def pattern(length: int) -> bytes:
    """Return the payload after the test header, `length` bytes."""
    return bytes((TEST_HEADER + i) & 0xFF for i in range(length))


def cycle(shares: list[dict[str, Any]]) -> list[int]:
    """Return the indexes into `shares` for one cycle, by smooth weighted round robin; equal weights keep their order.

    Raise Failure for weights that are not supported.
    """
    weights = [share.get("weight", 1) for share in shares]
    if not 1 <= len(weights) <= MOST_SHARES or min(weights) < 1:
        raise Failure(f"frames: expected 1 to {MOST_SHARES} sizes, each with a weight of at least 1")
    divisor = math.gcd(*weights)
    weights = [weight // divisor for weight in weights]
    total = sum(weights)
    if total > LONGEST_CYCLE:
        raise Failure(
            f"frames: the weights make a cycle of {total} frames, at most {LONGEST_CYCLE} are supported",
            "use smaller weights",
        )
    if max(weights) == 1:
        return list(range(total))
    credit, order = [0] * len(weights), []
    for _ in range(total):
        credit = [have + weight for have, weight in zip(credit, weights, strict=True)]
        richest = max(range(len(credit)), key=lambda i: (credit[i], -i))
        credit[richest] -= total
        order.append(richest)
    return order


@dataclass(frozen=True)
class Flows:
    """The addresses of flows: those of flow k are the first ones plus k · step; the source moves only with tunnels."""

    count: int
    step: int
    source_moves: bool
    src: int
    dst: int
    octets: int

    @classmethod
    def of(cls, stream: dict[str, Any]) -> Flows:
        """Return the flows of a stream; raise Failure if they do not fit into the address space.

        The number of a network is added to the third octet of an IPv4 address, or to the eighth of an IPv6 address;
        that of a tunnel at the prefix length of the tunnels' subnets.
        """
        src, dst = (ipaddress.ip_address(stream[end]) for end in ("src", "dst"))
        if {src.version, dst.version} != {stream["ip_version"]}:
            raise Failure(f"src {src} and dst {dst} are not IPv{stream['ip_version']}")
        bits = dst.max_prefixlen
        networks, tunnels = stream.get("networks", 1), stream.get("tunnels", 1)
        if networks > 1 and tunnels > 1:
            raise Failure(f"{networks} networks and {tunnels} tunnels at once", "ask for one of them")
        if tunnels > 1:
            prefix = stream.get("tunnel_bits", 0)
            if not 1 <= prefix <= bits:
                raise Failure(
                    f"tunnel_bits is {prefix}, expected 1 to {bits}", "the length of one tunnel's subnet"
                )
            step = 1 << (bits - prefix)
            last = (1 << bits) - 1 - step * (tunnels - 1)
            if (
                tunnels > 65_535
                or max(int(src), int(dst)) > last
                or abs(int(src) - int(dst)) < step * tunnels
            ):
                raise Failure(
                    f"{tunnels} tunnels of /{prefix} from {src} and {dst} on do not fit",
                    "subnets are counted upwards and must neither reach the other side's nor leave the address space",
                )
            return cls(tunnels, step, True, int(src), int(dst), bits // 8)
        step = 1 << (8 if bits == 32 else 64)
        if not 1 <= networks <= 256 or (int(dst) // step & 0xFF) + networks > 256:
            raise Failure(
                f"{networks} networks from {dst} on do not fit",
                "1 to 256: added to the third octet of an IPv4 address, the eighth of an IPv6 one, below 256",
            )
        return cls(networks, step, False, int(src), int(dst), bits // 8)

    def addresses(self, index: int) -> bytes:
        """Return source and destination address of a flow, as in the IP header."""
        offset = index * self.step
        source = self.src + (offset if self.source_moves else 0)
        return source.to_bytes(self.octets, "big") + (self.dst + offset).to_bytes(self.octets, "big")

    def reach(self, destination: bytes) -> bool:
        """Return whether this is the destination of one of the flows."""
        offset = int.from_bytes(destination, "big") - self.dst
        return offset >= 0 and offset % self.step == 0 and offset // self.step < self.count


@dataclass(frozen=True)
class _Base:
    """A frame that lacks only test header, identification and checksums, with the sums over all other bytes."""

    data: bytes
    at: Layout
    ip_sum: int
    transport_sum: int


class Template:
    """Writes the frames of one stream: in the form of RFC 2544, or with the headers that the stream gives."""

    def __init__(self, stream: dict[str, Any], key: RunKey) -> None:
        self.stream, self.key = stream["id"], key
        self.flows = Flows.of(stream)
        self._macs = _mac(stream["dst_mac"]) + _mac(stream["src_mac"])
        self._ttl = stream.get("ttl", 64)
        self._dont_fragment = stream.get("dont_fragment", False)
        self._ports = stream.get("ports", 1)
        self.headers = [base64.b64decode(text) for text in stream.get("headers", ())] or [_usual(stream)]
        self.layouts = [self._located(header, stream["ip_version"]) for header in self.headers]
        highest = max(be16(h, at.transport) for h, at in zip(self.headers, self.layouts, strict=True))
        if not 1 <= self._ports <= 65_536 - highest:
            raise Failure(
                f"{self._ports} ports from {highest} on do not fit",
                "source ports rotate upwards and must stay below 65536",
            )
        self.order = cycle(stream["frames"])
        self.sizes: list[tuple[int, int]] = [
            (share["size"] - FCS, share.get("header", 0)) for share in stream["frames"]
        ]
        for length, variant in self.sizes:
            if not 0 <= variant < len(self.headers):
                raise Failure(f"a frame has header {variant}, there are {len(self.headers)}")
            least = self.layouts[variant].payload + TEST_HEADER
            if not least <= length <= 65_535 - FCS:
                raise Failure(
                    f"frame size {length + FCS} is out of range: with these headers a test frame has "
                    f"{least + FCS} to 65535 bytes",
                    "sizes count the 4-byte FCS; the smallest frame holds the headers and an 18-byte test header",
                )
        self._pattern = pattern(max(length for length, _ in self.sizes))
        self._bases: dict[tuple[int, int, int], _Base] = {}

    @property
    def longest(self) -> int:
        """The size of the longest frame, bytes without FCS."""
        return max(length for length, _ in self.sizes)

    def ip_lengths(self) -> set[int]:
        """Return the sizes of the stream's frames from the IP header on, bytes."""
        return {length - self.layouts[variant].ip for length, variant in self.sizes}

    def write(self, index: int, sequence: int, time: int) -> bytes:
        """Return frame `index`; with the index rotate first networks or tunnels, then source ports."""
        size = self.order[index % len(self.order)]
        flow, port = index % self.flows.count, index // self.flows.count % self._ports
        base = self._base(size, flow, port)
        frame, at = bytearray(base.data), base.at
        header = self.key.header(self.stream, sequence, time)
        frame[at.payload : at.payload + TEST_HEADER] = header
        total = folded(base.transport_sum + word_sum(header)) ^ 0xFFFF
        if at.protocol == UDP_NUMBER:
            total = total or 0xFFFF  # 0 would say that there is no checksum
        frame[at.checksum : at.checksum + 2] = total.to_bytes(2, "big")
        if at.ip_version == 4:
            # An identification is only meaningful if the frame may be fragmented (RFC 6864).
            identification = 0 if self._dont_fragment else index & 0xFFFF
            frame[at.ip + 4 : at.ip + 6] = identification.to_bytes(2, "big")
            check = folded(base.ip_sum + identification) ^ 0xFFFF
            frame[at.ip + 10 : at.ip + 12] = check.to_bytes(2, "big")
        return bytes(frame)

    def _base(self, size: int, flow: int, port: int) -> _Base:
        wanted = (size, flow, port)
        base = self._bases.get(wanted)
        if base is None:
            if len(self._bases) >= _CACHED:
                self._bases.clear()
            base = self._bases[wanted] = self._assembled(*wanted)
        return base

    def _assembled(self, size: int, flow: int, port: int) -> _Base:
        length, variant = self.sizes[size]
        at, header = self.layouts[variant], self.headers[variant]
        filling = length - at.payload - TEST_HEADER
        frame = bytearray(header + bytes(TEST_HEADER) + self._pattern[:filling])
        frame[:12] = self._macs
        frame[at.addresses] = self.flows.addresses(flow)
        if at.ip_version == 4:
            flags = 0x4000 if self._dont_fragment else 0
            struct.pack_into("!HHH", frame, at.ip + 2, length - at.ip, 0, flags)
            frame[at.ip + 8] = self._ttl
            frame[at.ip + 10 : at.ip + 12] = b"\0\0"
        else:
            struct.pack_into("!H", frame, at.ip + 4, length - at.ip - 40)
            frame[at.ip + 7] = self._ttl
        source = be16(frame, at.transport) + port
        struct.pack_into("!H", frame, at.transport, source)
        if at.protocol == UDP_NUMBER:
            struct.pack_into("!H", frame, at.transport + 4, length - at.transport)
        frame[at.checksum : at.checksum + 2] = b"\0\0"
        ip_sum = word_sum(frame[at.ip : at.transport]) if at.ip_version == 4 else 0
        return _Base(bytes(frame), at, ip_sum, transport_sum(frame, at, length))

    @staticmethod
    def _located(header: bytes, ip_version: int) -> Layout:
        at = layout(header)
        if at is None or at.payload != len(header) or at.ip_version != ip_version:
            raise Failure(
                f"a header of {len(header)} bytes is not Ethernet, IPv{ip_version} and UDP or TCP",
                "give the bytes from Ethernet to the end of UDP or TCP",
            )
        return at


def _usual(stream: dict[str, Any]) -> bytes:
    """Return the headers of RFC 2544's test frame, made by Scapy; with zero addresses, Scapy looks up no routes."""
    ip = IP(src="0.0.0.0", dst="0.0.0.0") if stream["ip_version"] == 4 else IPv6(src="::", dst="::")
    return bytes(
        Ether(src=_NO_MAC, dst=_NO_MAC) / ip / UDP(sport=stream["src_port"], dport=stream["dst_port"])
    )


def _mac(text: str) -> bytes:
    parts = text.split(":")
    try:
        mac = bytes(int(part, 16) for part in parts)
    except ValueError:
        mac = b""
    if len(mac) != 6:
        raise Failure(
            f"'{text}' is not a MAC address", "write six hexadecimal bytes, such as 02:00:00:00:00:01"
        )
    return mac
