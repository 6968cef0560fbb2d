# SPDX-License-Identifier: Apache-2.0
"""Reads recordings of Ethernet links: pcap (microseconds or nanoseconds, either byte order) and pcapng."""

from __future__ import annotations

import struct
from collections.abc import Iterator

ETHERNET = 1  # LINKTYPE_ETHERNET
_MOST = 256 << 20  # largest size of a frame or block, bytes: no recording has more
_PCAPNG = 0x0A0D0D0A
_INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _PACKET = 1, 2, 3, 6
_BYTE_ORDER = 0x1A2B3C4D


class NotARecording(ValueError):
    """The file is not a recording that can be read; the text says why."""


def frames(data: bytes) -> Iterator[bytes]:
    """Yield the frames in order, each as far as it was recorded. Raise NotARecording."""
    magic = data[:4]
    if magic == _PCAPNG.to_bytes(4, "little"):
        yield from _pcapng(data)
    elif magic in (b"\xa1\xb2\xc3\xd4", b"\xa1\xb2\x3c\x4d"):
        yield from _pcap(data, ">")
    elif magic in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1"):
        yield from _pcap(data, "<")
    else:
        raise NotARecording("neither pcap nor pcapng")


def _pcap(data: bytes, order: str) -> Iterator[bytes]:
    if len(data) < 24:
        raise NotARecording("cut off in its header")
    (link,) = struct.unpack_from(f"{order}I", data, 20)
    _only_ethernet(link & 0xFFFF)
    at = 24
    while at < len(data):
        if len(data) < at + 16:
            raise NotARecording(f"cut off at byte {at}")
        (length,) = struct.unpack_from(f"{order}I", data, at + 8)
        at += 16
        if length > _MOST or len(data) < at + length:
            raise NotARecording(f"cut off at byte {at}")
        yield data[at : at + length]
        at += length


def _pcapng(data: bytes) -> Iterator[bytes]:
    order, links, at = "<", list[int](), 0
    while at < len(data):
        if len(data) < at + 12:
            raise NotARecording(f"cut off at byte {at}")
        (kind,) = struct.unpack_from(f"{order}I", data, at)
        if kind == _PCAPNG:  # a new section: its own byte order and interfaces
            order = "<" if data[at + 8 : at + 12] == _BYTE_ORDER.to_bytes(4, "little") else ">"
            links = []
        (length,) = struct.unpack_from(f"{order}I", data, at + 4)
        if length < 12 or length % 4 or length > _MOST or len(data) < at + length:
            raise NotARecording(f"cut off at byte {at}")
        body = data[at + 8 : at + length - 4]
        try:
            if kind == _INTERFACE:
                links.append(struct.unpack_from(f"{order}H", body)[0])
            elif kind in (_PACKET, _OLD_PACKET, _SIMPLE_PACKET):
                yield _of_block(kind, body, order, links)
        except struct.error:
            raise NotARecording(f"a block too short at byte {at}") from None
        at += length


def _of_block(kind: int, body: bytes, order: str, links: list[int]) -> bytes:
    if kind == _SIMPLE_PACKET:
        (length,), start, interface = struct.unpack_from(f"{order}I", body), 4, 0
        length = min(length, len(body) - start)  # the frame may be cut to the interface's snap length
    else:
        (interface,) = struct.unpack_from(f"{order}{'I' if kind == _PACKET else 'H'}", body)
        (length,), start = struct.unpack_from(f"{order}I", body, 12), 20
    if interface >= len(links):
        raise NotARecording(f"a frame of interface {interface}, which it does not describe")
    _only_ethernet(links[interface])
    if len(body) < start + length:
        raise NotARecording("a frame longer than its block")
    return body[start : start + length]


def _only_ethernet(link: int) -> None:
    if link != ETHERNET:
        raise NotARecording(f"of link type {link}; record an Ethernet interface (link type {ETHERNET})")
