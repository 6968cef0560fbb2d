# SPDX-License-Identifier: GPL-2.0-only
"""Judges received frames: whether they are of this trial, whether every byte is as sent, and which numbers arrived.

Routers may change MAC addresses, VLAN tags, TTL and DSCP; NAT may change addresses and ports (and corrects the
checksums). Any other change makes a frame of this run *corrupted*. Frames of others, frames of earlier trials and
fragments are *foreign*.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from espbench_scapy.frames import NUMBER_MASK, TEST_HEADER, RunKey, Template, pattern
from espbench_scapy.layout import UDP, Layout, be16, folded, layout, transport_sum, word_sum

_SMALLEST_WIRE = 60  # without FCS: shorter frames are padded by the sending port


class Kind(Enum):
    """The kinds of frames that arrive in a trial."""

    INTACT = "intact"
    CORRUPTED = "corrupted"
    FOREIGN = "foreign"


@dataclass(frozen=True)
class Verdict:
    """The judgement of one frame.

    stream: index into the expected streams. number: of the frame within the trial, from 0; None if it is not known.
    time: the low 48 bits of the tx time, ns.
    """

    kind: Kind
    stream: int = 0
    number: int | None = None
    time: int = 0


FOREIGN = Verdict(Kind.FOREIGN)


class Expected:
    """The frames of one stream that are expected at a port.

    sequences: the number of planned frames; None for a flood.
    """

    def __init__(self, template: Template, key: RunKey, first_sequence: int, sequences: int | None) -> None:
        self.stream = template.stream
        self.longest = template.longest
        self._key = key
        self._first, self._sequences = first_sequence, sequences
        self._lengths = template.ip_lengths()
        self._shapes = {
            (at.ip_version, at.protocol, at.transport - at.ip, at.payload - at.transport)
            for at in template.layouts
        }
        self._offsets = {at.payload - at.ip for at in template.layouts}
        self._ports = {
            be16(h, at.transport + 2) for h, at in zip(template.headers, template.layouts, strict=True)
        }
        self._flows = template.flows
        self._pattern = pattern(template.longest)

    def number(self, payload: bytes) -> tuple[int | None, int] | None:
        """Return (number in this trial or None, tx time) of a test header of this run and stream; else None."""
        if len(payload) < TEST_HEADER or be16(payload, 0) != self._key.magic:
            return None
        stream, check = be16(payload, 2), be16(payload, 16)
        sequence, time = int.from_bytes(payload[4:10], "big"), int.from_bytes(payload[10:16], "big")
        if stream != self.stream or check != self._key.check(stream, sequence, time):
            return None
        number = (sequence - self._first) & NUMBER_MASK
        too_late = number > NUMBER_MASK >> 1 if self._sequences is None else number >= self._sequences
        return (None if too_late else number), time

    def unhurt(self, frame: bytes, at: Layout) -> bool:
        """Return whether every byte of a frame is as sent, if its test header is right."""
        end = at.ip + _ip_length(frame, at)
        shape = (at.ip_version, at.protocol, at.transport - at.ip, at.payload - at.transport)
        if end - at.ip not in self._lengths or shape not in self._shapes or not _whole(frame, at, end):
            return False
        rest = frame[at.payload + TEST_HEADER : end]
        return rest == self._pattern[: len(rest)] and _sums_right(frame, at, end)

    def recognises(self, frame: bytes, ip: int) -> bool:
        """Return whether a frame without a right test header is a damaged frame of this stream."""
        if any(frame[ip + at : ip + at + 2] == self._key.magic.to_bytes(2, "big") for at in self._offsets):
            return True
        # An undamaged frame without our magic is not ours, whatever its destination.
        at = layout(frame)
        if at is not None:
            end = at.ip + _ip_length(frame, at)
            return not (_whole(frame, at, end) and _sums_right(frame, at, end)) and self._addressed(frame, ip)
        return self._addressed(frame, ip)

    def claimed(self, frame: bytes, ip: int) -> bool:
        """Return whether a frame has the stream's id where a test header has it."""
        return any(frame[ip + at + 2 : ip + at + 4] == self.stream.to_bytes(2, "big") for at in self._offsets)

    def _addressed(self, frame: bytes, ip: int) -> bool:
        for version, _, header, _ in self._shapes:
            end = ip + (20 if version == 4 else 40)
            octets = 4 if version == 4 else 16
            port = frame[ip + header + 2 : ip + header + 4]
            if (
                len(port) == 2
                and be16(port, 0) in self._ports
                and self._flows.reach(frame[end - octets : end])
            ):
                return True
        return False


def judge(streams: list[Expected], frame: bytes) -> Verdict:
    """Judge one frame, with its VLAN tags, by the streams that are expected at the port."""
    if len(frame) < 34:
        return FOREIGN
    at = layout(frame)
    if at is not None:
        payload = frame[at.payload : at.payload + TEST_HEADER]
        for index, expected in enumerate(streams):
            found = expected.number(payload)
            if found is None:
                continue
            number, time = found
            if number is None:
                return FOREIGN  # of an earlier trial
            if expected.unhurt(frame, at):
                return Verdict(Kind.INTACT, index, number, time)
            return Verdict(Kind.CORRUPTED, index, number)
    ip = at.ip if at is not None else _ip_offset(frame)
    suspects = [i for i, expected in enumerate(streams) if expected.recognises(frame, ip)]
    # If the frame could be of several streams, the stream id in it decides.
    claimed = [i for i in suspects if streams[i].claimed(frame, ip)]
    return Verdict(Kind.CORRUPTED, (claimed or suspects)[0]) if suspects else FOREIGN


def _ip_offset(frame: bytes) -> int:
    from_tags = 14
    while be16(frame, from_tags - 2) in (0x8100, 0x88A8, 0x9100) and from_tags < 22:
        from_tags += 4
    return from_tags


def _ip_length(frame: bytes, at: Layout) -> int:
    return be16(frame, at.ip + 2) if at.ip_version == 4 else be16(frame, at.ip + 4) + 40


def _whole(frame: bytes, at: Layout, end: int) -> bool:
    """Return whether lengths and IP header fit a frame that ends where this one does, or is padded to 64 B with FCS."""
    if end != len(frame) and not end < len(frame) <= _SMALLEST_WIRE:
        return False
    if end < at.payload or (at.protocol == UDP and be16(frame, at.transport + 4) != end - at.transport):
        return False
    if at.ip_version == 6:
        return True
    is_fragment = be16(frame, at.ip + 6) & 0x3FFF  # also the first fragment of a packet
    return not is_fragment and folded(word_sum(frame[at.ip : at.transport])) == 0xFFFF


def _sums_right(frame: bytes, at: Layout, end: int) -> bool:
    unchecked = at.protocol == UDP and be16(frame, at.checksum) == 0
    return not unchecked and folded(transport_sum(frame, at, end)) == 0xFFFF


class SequenceCount:
    """Counts exactly the lost, duplicated, reordered (RFC 4737) and corrupted frames of one stream."""

    _INTACT, _DAMAGED = 1, 2

    def __init__(self) -> None:
        self._seen = bytearray()
        self._highest = -1
        self.received = self.duplicated = self.reordered = self.corrupted = 0
        self._corrupted_copies = 0  # corrupted frames whose number was also counted by another frame

    def intact(self, number: int) -> bool:
        """Count an intact frame; return whether it is the first intact one with its number."""
        self._grow(number)
        before = self._seen[number]
        if before & self._INTACT:
            self.duplicated += 1
            return False
        self._seen[number] |= self._INTACT
        self.received += 1
        self._corrupted_copies += before == self._DAMAGED
        self.reordered += number < self._highest
        self._highest = max(number, self._highest)
        return True

    def damaged(self, number: int | None) -> None:
        """Count a damaged frame; number: its number if its test header is undamaged, else None."""
        self.corrupted += 1
        if number is None:
            return
        self._grow(number)
        self._corrupted_copies += bool(self._seen[number])
        self._seen[number] |= self._DAMAGED

    @property
    def accounted(self) -> int:
        """The number of frames that arrived, intact or corrupted, each counted once."""
        return self.received + self.corrupted - self._corrupted_copies

    def lost(self, sent: int) -> int:
        """Return the number of frames, of `sent`, that did not arrive in any form."""
        return max(0, sent - self.accounted)

    def missing_runs(self, sent: int) -> list[tuple[int, int]]:
        """Return (first, last) of every run of consecutive numbers below `sent` that did not arrive, in order."""
        seen = bytes(self._seen[:sent]).ljust(sent, b"\0")
        return [(run.start(), run.end() - 1) for run in re.finditer(rb"\0+", seen)]

    def _grow(self, number: int) -> None:
        if number >= len(self._seen):
            self._seen.extend(bytes(number + 4096 - len(self._seen)))
