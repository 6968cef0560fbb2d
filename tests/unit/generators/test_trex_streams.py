# SPDX-License-Identifier: Apache-2.0
"""The frames and field-engine programs handed to TRex: right checksums, every flow, exact numbers."""

from __future__ import annotations

import base64
import ipaddress
import math
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espbench.errors import UsageError
from espbench.generators.base import FrameShare, Stream
from espbench.generators.trex_frames import frame_of
from espbench.generators.trex_streams import frames_of, trex_streams
from support.generators.checksums import ones_sum
from support.generators.streams import stream


def frame_bytes(one: Stream, share: FrameShare) -> bytes:
    return frame_of(one, share, rotates=max(one.networks, one.tunnels, one.ports) > 1).data


V6 = {"ip_version": 6, "src": "2001:2::2", "dst": "2001:2:0:8000::2"}


@pytest.mark.parametrize("changes", [{}, V6])
@given(size=st.integers(84, 1518))
def test_checksums_are_right_at_every_size(changes: dict[str, Any], size: int) -> None:
    """Computed from scratch, header and datagram."""
    one = stream(**changes)
    data = frame_bytes(one, FrameShare(size=size))
    assert len(data) == size - 4
    header = 20 if one.ip_version == 4 else 40
    udp = data[14 + header :]
    addresses = data[26:34] if one.ip_version == 4 else data[22:54]
    if one.ip_version == 4:
        assert ones_sum(data[14:34]) == 0xFFFF
        assert struct.unpack_from("!H", data, 16)[0] == size - 18
    else:
        assert struct.unpack_from("!H", data, 18)[0] == len(udp)
    assert ones_sum(addresses + struct.pack("!HH", 17, len(udp)) + udp) == 0xFFFF
    assert struct.unpack("!HHH", udp[:6]) == (49184, 7, len(udp))


TEMPLATES = {
    "two VLAN tags, TOS, an IPv4 option, UDP": (
        "000000000000 000000000000 88a8 0064 8100 e007 0800 46b8 0000 0000 0000 00 11 0000 00000000 00000000 "
        "94040000 1388 13c4 0000 0000", 22, 24),
    "TCP with options": (
        "000000000000 000000000000 0800 4500 0000 0000 0000 00 06 0000 00000000 00000000 "
        "0050 1388 00000001 00000002 6010 ffff 0000 0000 020405b4", 14, 20),
}  # fmt: skip


@pytest.mark.parametrize("name", TEMPLATES)
@given(size=st.integers(100, 1518))
def test_headers_of_a_profile_are_kept_and_filled(name: str, size: int) -> None:
    """Tags, options, TOS, ports and flags stand; addresses, lengths and checksums are right."""
    text, ip, ip_bytes = TEMPLATES[name]
    header = bytes.fromhex(text)
    one = stream(headers=["AAAA", base64.b64encode(header).decode()])
    made = frame_of(one, FrameShare(size=size, header=1), rotates=False)
    data, transport = made.data, ip + ip_bytes
    assert (made.ip, made.transport, len(data)) == (ip, transport, size - 4)
    assert data[12 : ip + 2] == header[12 : ip + 2]
    assert data[ip + 20 : transport + 4] == header[ip + 20 : transport + 4]
    assert ones_sum(data[ip:transport]) == 0xFFFF
    assert struct.unpack_from("!H", data, ip + 2)[0] == len(data) - ip
    rest = data[transport:]
    assert ones_sum(data[ip + 12 : ip + 20] + struct.pack("!HH", made.protocol, len(rest)) + rest) == 0xFFFF
    if made.protocol == 17:
        assert struct.unpack_from("!H", rest, 4)[0] == len(rest)
    else:
        assert rest[4:16] == header[transport + 4 : transport + 16]


def test_frames_alike_are_one_stream() -> None:
    """A recording's frames, size by size and header by header."""
    headers = [base64.b64encode(bytes.fromhex(text)).decode() for text, *_ in TEMPLATES.values()]
    shares = [FrameShare(size=200, header=n % 2) for n in range(6)] + [FrameShare(size=300)]
    made = trex_streams(stream(headers=headers, frames=shares), 70, 700.0)
    assert [m["mode"]["total_pkts"] for m in made] == [30, 30, 10]
    assert [m["mode"]["rate"]["value"] for m in made] == [300, 300, 100]


def test_rotating_tcp_flows_are_refused() -> None:
    """Its checksum covers the addresses."""
    header = base64.b64encode(bytes.fromhex(TEMPLATES["TCP with options"][0])).decode()
    with pytest.raises(UsageError, match="one flow with TCP"):
        trex_streams(stream(headers=[header], networks=3, frames=[FrameShare(size=128)]), 1, 1.0)


def test_the_frame_is_the_native_generators() -> None:
    """Field by field: traffic/src/frame/template.rs and RFC 2544 C.2.6.4; DF only where it is asked for."""
    data = frame_bytes(stream(), FrameShare(size=66))
    assert data[:14] == bytes.fromhex("020000000011 020000000001 0800")
    assert data[14:24] == bytes.fromhex("4500 0030 0000 0000 0a 11")
    assert data[26:34] == bytes.fromhex("c6120002 c6130002")
    assert data[42:60] == bytes(18)
    assert data[60:] == bytes([18, 19])
    assert frame_bytes(stream(dont_fragment=True), FrameShare(size=64))[20:22] == b"\x40\0"


@given(
    weights=st.lists(st.integers(1, 50), min_size=1, max_size=6),
    frames=st.integers(1, 10**6),
)
def test_a_mix_adds_up_and_keeps_its_proportions(weights: list[int], frames: int) -> None:
    """It adds up to the frame; no size is off by more than one."""
    one = stream(frames=[FrameShare(size=64 + n, weight=w) for n, w in enumerate(weights)])
    made = trex_streams(one, frames, 5000.0)
    counts = {len(base64.b64decode(m["packet"]["binary"])) + 4 - 64: m["mode"]["total_pkts"] for m in made}
    assert sum(counts.values()) == frames
    assert all(m["mode"]["total_pkts"] > 0 for m in made)
    for n, weight in enumerate(weights):
        assert abs(counts.get(n, 0) - frames * weight / sum(weights)) < 1


def flows_of(one: Stream, frames: int) -> list[tuple[bytes, bytes, int]]:
    """Return what the field engine makes of a stream: source, destination and source port of each frame."""
    (made,) = trex_streams(one, frames, 5000.0)
    data = bytearray(base64.b64decode(made["packet"]["binary"]))
    *program, last = made["vm"]["instructions"]
    assert last == {"type": "fix_checksum_ipv4", "pkt_offset": 14}
    variables = {i["name"]: i for i in program if i["type"] == "flow_var"}
    values = {name: v["init_value"] for name, v in variables.items()}
    flows = []
    for _ in range(frames):
        for i in program:
            if i["type"] == "write_flow_var":
                size = variables[i["name"]]["size"]
                at = i["pkt_offset"]
                data[at : at + size] = values[i["name"]].to_bytes(size, "big")
        flows.append((bytes(data[26:30]), bytes(data[30:34]), struct.unpack_from("!H", data, 34)[0]))
        for name, v in variables.items():
            values[name] += v["step"]
            if values[name] > v["max_value"]:
                values[name] = v["min_value"]
    return flows


@given(networks=st.integers(1, 256), ports=st.integers(1, 40))
def test_every_flow_of_the_networks_is_sent_or_all_are_refused(networks: int, ports: int) -> None:
    """Flows are counted as in the native generator: network n is n more in the third octet."""
    one = stream(networks=networks, ports=ports)
    if networks * ports == 1:
        assert trex_streams(one, 1, 1.0)[0]["vm"]["instructions"] == []
        return
    if math.gcd(networks, ports) > 1:
        with pytest.raises(UsageError, match="no divisor in common"):
            trex_streams(one, 1, 1.0)
        return
    sent = flows_of(one, networks * ports)
    expected = {
        (ipaddress.ip_address(f"198.19.{n}.2").packed, 49184 + p)
        for n in range(networks)
        for p in range(ports)
    }
    assert {(dst, port) for _, dst, port in sent} == expected
    assert {src for src, _, _ in sent} == {ipaddress.ip_address("198.18.0.2").packed}


def test_tunnels_move_both_addresses_together() -> None:
    """Subnet i is only ever talked to from subnet i."""
    sent = flows_of(stream(tunnels=1000, tunnel_bits=26), 1000)
    first = [int.from_bytes(ipaddress.ip_address(a).packed, "big") for a in ("198.18.0.2", "198.19.0.2")]
    pairs = [(int.from_bytes(s, "big") - first[0], int.from_bytes(d, "big") - first[1]) for s, d, _ in sent]
    assert pairs == [(64 * i, 64 * i) for i in range(1000)]


def test_rotating_flows_have_no_udp_checksum() -> None:
    """Rather none (RFC 768) than one that is wrong in every frame but the first."""
    assert frame_bytes(stream(networks=2), FrameShare(size=64))[40:42] == b"\0\0"


def test_flows_beyond_the_address_space_are_refused() -> None:
    """The engine would wrap around into other networks."""
    with pytest.raises(UsageError, match="use fewer flows"):
        trex_streams(stream(networks=200, dst="255.255.100.2"), 1, 1.0)


def test_macs_are_the_frames() -> None:
    """The server's own configuration is overruled: the flags have bit 0, and 1 in bits 1 and 2."""
    assert trex_streams(stream(), 1, 1.0)[0]["flags"] == 3


@pytest.mark.parametrize(("rate", "seconds", "frames"), [(5000.0, 2.0, 10_000), (0.1, 1.0, 1), (3.3, 1.0, 3)])
def test_frames_of_a_rate(rate: float, seconds: float, frames: int) -> None:
    """Whole, at least one."""
    assert frames_of(stream(rate_fps=rate), seconds) == frames
