# SPDX-License-Identifier: Apache-2.0
"""Recordings: read whatever wrote them, replayed with their headers, sizes and order and nothing else."""

from __future__ import annotations

import contextlib
import io
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Raw
from scapy.utils import PcapNgWriter, wrpcap

from espbench.plan.traffic.headers import NotAHeader, header_of, without_connection
from espbench.plan.traffic.pcap import NotARecording, frames
from espbench.plan.traffic.replay import MOST_FRAMES, MOST_HEADERS, replay
from support.session.examples import examples

MACS: dict[str, Any] = {"src": "02:00:00:00:00:01", "dst": "02:00:00:00:00:02"}


def udp(port: int = 5060, size: int = 100, **fields: Any) -> bytes:
    packet = Ether(**MACS) / IP(src="192.0.2.1", dst="192.0.2.9", **fields) / UDP(sport=port, dport=53)
    return bytes(packet / Raw(bytes(size)))


def pcap(listed: list[bytes], order: str = "<", magic: int = 0xA1B2C3D4, link: int = 1) -> bytes:
    records = b"".join(struct.pack(f"{order}IIII", 1, 2, len(f), len(f)) + f for f in listed)
    return struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 65535, link) + records


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("magic", [0xA1B2C3D4, 0xA1B23C4D])
def test_both_byte_orders_and_resolutions_are_read(order: str, magic: int) -> None:
    """Microseconds or nanoseconds: the times are not used."""
    listed = [udp(1), udp(2, 300)]
    assert list(frames(pcap(listed, order, magic))) == listed


def test_what_scapy_writes_is_read(tmp_path: Path) -> None:
    """Both of its formats; an independent writer."""
    listed = [udp(1), udp(2, 301), udp(3, 7)]
    old, new = tmp_path / "a.pcap", tmp_path / "a.pcapng"
    wrpcap(str(old), [Ether(f) for f in listed])
    writer = PcapNgWriter(str(new))
    for f in listed:
        writer.write(Ether(f))
    writer.close()
    assert list(frames(old.read_bytes())) == list(frames(new.read_bytes())) == listed


def test_pcapng_of_the_other_byte_order_and_its_simple_blocks_are_read() -> None:
    """A big-endian section with an interface cut at 64 bytes, a simple and an enhanced packet block."""

    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        return struct.pack(">II", kind, len(body) + 12) + body + struct.pack(">I", len(body) + 12)

    frame = udp(9, 18)
    section = block(0x0A0D0D0A, struct.pack(">IHHq", 0x1A2B3C4D, 1, 0, -1))
    section += block(1, struct.pack(">HHI", 1, 0, 64))
    section += block(3, struct.pack(">I", len(frame)) + frame)
    section += block(6, struct.pack(">IIIII", 0, 0, 0, len(frame), len(frame)) + frame)
    assert list(frames(section)) == [frame, frame]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "neither pcap nor pcapng"),
        (b"GIF89a", "neither pcap nor pcapng"),
        (pcap([udp()])[:-1], "cut off at byte 40"),
        (pcap([udp()])[:30], "cut off at byte 24"),
        (pcap([udp()], link=113), "of link type 113; record an Ethernet interface"),
        (pcap([])[:10], "cut off in its header"),
        (pcap([]), "without a frame of UDP or TCP in IPv4: it is empty"),
        (pcap([bytes(Ether(**MACS) / IP() / ICMP())]), "1 neither UDP nor TCP (IP protocol 1)"),
        (pcap([bytes(Ether(**MACS) / IPv6() / UDP())]), "without a frame of UDP or TCP in IPv4: 1 IPv6"),
        (pcap([udp(port) for port in range(1, MOST_HEADERS + 2)]), "of more than 64 different headers within"),
        (pcap([udp()] * (MOST_FRAMES + 1)), "of more than 4096 frames"),
    ],
)  # fmt: skip
def test_what_cannot_be_replayed_says_why(data: bytes, said: str) -> None:
    """One message, never a traceback."""
    with pytest.raises(NotARecording) as error:
        replay(data, 4)
    assert said in str(error.value)


@given(st.binary(max_size=200), st.integers(0, 400), st.integers(0, 255))
@settings(max_examples=examples(300), deadline=None)
def test_no_damage_brings_down_the_reader(junk: bytes, at: int, byte: int) -> None:
    """Cut, overwritten and random files are NotARecording or read as what they then are."""
    stream = io.BytesIO()
    stream.write(pcap([udp(1), udp(2, 300)]))
    data = bytearray(stream.getvalue())
    data[at % len(data)] = byte
    for damaged in (bytes(data), bytes(data[:at]), b"\x0a\x0d\x0d\x0a" + junk, junk):
        with contextlib.suppress(NotARecording):
            replay(damaged, 4)


@given(st.binary(max_size=120))
def test_no_frame_brings_down_the_header_reader(data: bytes) -> None:
    """A recording may hold any bytes."""
    for frame in (data, bytes(12) + b"\x08\x00\x45" + data, bytes(12) + b"\x86\xdd\x60" + data):
        with contextlib.suppress(NotAHeader):
            header = header_of(frame)
            assert header_of(header.data) == header
            assert without_connection(without_connection(header)) == without_connection(header)


def test_order_sizes_and_headers_are_kept_and_the_rest_is_not() -> None:
    """Sizes with FCS, padded to 64; addresses, TTL, lengths, checksums gone; DSCP, ports, options stay."""
    listed = [udp(7, 100, tos=184), udp(8, 300), udp(7, 58, tos=184, ttl=3, id=99), udp(8, 0)]
    replayed = replay(pcap(listed), 4)
    assert replayed.shares == ((146, 1, 0), (346, 1, 1), (104, 1, 0), (64, 1, 1))
    assert [header.source_port for header in replayed.headers] == [7, 8]
    assert replayed.headers[0].data[15] == 184
    assert replayed.headers[0].data[:12] == bytes(12)
    assert replayed.headers[0].data[22:34] == b"\x00\x11" + bytes(10)
    assert replayed.notes[0].startswith("4 frames with 2 different headers")


def test_a_connection_is_one_header_whatever_its_numbers() -> None:
    """Sequence numbers, windows and timestamps differ in every segment of one TCP connection."""
    segments = [
        bytes(
            Ether(**MACS) / IP(src="192.0.2.1", dst="192.0.2.9")
            / TCP(sport=1024, dport=443, flags="A", seq=n, ack=7 * n, window=n,
                  options=[("NOP", None), ("NOP", None), ("Timestamp", (n, n + 1))])
            / Raw(bytes(n))
        )
        for n in (1, 500, 1000)
    ]  # fmt: skip
    replayed = replay(pcap(segments), 4)
    (header,) = replayed.headers
    assert [share[0] for share in replayed.shares] == [88, 14 + 20 + 32 + 500 + 4, 14 + 20 + 32 + 1000 + 4]
    assert replayed.notes[1] == "1 frame lengthened to hold the test header"
    assert Ether(header.data)[TCP].flags == "A"
    assert Ether(header.data)[TCP].options == [("NOP", None), ("NOP", None), ("Timestamp", (0, 0))]


def test_what_is_left_out_is_counted() -> None:
    """Fragments have no ports, what a recorder merged is no frame; the rest is replayed all the same."""
    listed = [udp(), udp(flags="MF"), udp(frag=185), udp(len=0), udp(size=9000), udp()]
    replayed = replay(pcap(listed), 4)
    assert len(replayed.shares) == 2
    assert replayed.notes[1:] == (
        "2 frames of the recording left out: an IP fragment",
        "1 frame of the recording left out: without a length (recorded before the port cut it into frames)",
        "1 frame of the recording left out: larger than 9000 B (merged by the recorder's offloads?)",
    )


def test_tags_are_part_of_the_header_and_of_the_size() -> None:
    """A tagged frame of 1522 B is 1522 B."""
    tagged = bytes(Ether(**MACS) / Dot1Q(vlan=7) / IP() / UDP(sport=1, dport=2) / Raw(bytes(1472)))
    replayed = replay(pcap([tagged]), 4)
    assert replayed.shares == ((1522, 1, 0),)
    assert replayed.headers[0].vlans == [7]
