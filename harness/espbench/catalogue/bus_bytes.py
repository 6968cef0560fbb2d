# SPDX-License-Identifier: Apache-2.0
"""Computes the bytes that cross the memory bus for a frame, as section "Bus Bandwidth" of the first article does.

They are the bytes from network to memory, memory to accelerator and back, and memory to network, with the keys. Like
the article, this leaves out descriptors, tables and the CPU's own accesses. Frames count with their FCS.
"""

from __future__ import annotations

from dataclasses import dataclass

from espbench.catalogue.suites import suites
from espbench.terms import FCS_BYTES

_FRAMING = 14 + FCS_BYTES
_MTU = 1500
_OUTER_HEADER = 20  # of ESP in tunnel mode, IPv4
_SPI_AND_SEQUENCE = 8
_KEY_BYTES = {"3des-sha1": 24 + 20, "aes128-sha1": 16 + 20, "aes256-sha256": 32 + 32}


@dataclass(frozen=True)
class Moves:
    """The bytes that are moved for one frame; sent: those of the frame that leaves, or of both frames if fragmented."""

    received: int
    to_engine: int
    from_engine: int
    sent: int

    @property
    def total(self) -> int:
        """The sum of all bytes."""
        return self.received + self.to_engine + self.from_engine + self.sent


def plain(frame_size: int) -> Moves:
    """Return the bytes that forwarding a frame moves: in, and out again."""
    return Moves(frame_size, 0, 0, frame_size)


def encrypted(frame_size: int, suite: str) -> Moves:
    """Return the bytes that encrypting and forwarding a frame moves, if the engine does cipher and hash in one pass.

    To the engine go keys, ESP header, IV and the padded packet; ciphertext and ICV come back. A packet that no longer
    fits into the usual MTU leaves in two frames.
    """
    listed = suites()[suite]
    packet = listed.esp_packet_size(frame_size - _FRAMING, "tunnel", 4)
    ahead = _SPI_AND_SEQUENCE + listed.iv_bytes
    data = packet - _OUTER_HEADER - ahead - listed.icv_bytes
    return Moves(
        received=frame_size,
        to_engine=_KEY_BYTES[suite] + ahead + data,
        from_engine=data + listed.icv_bytes,
        sent=packet + _FRAMING + (_OUTER_HEADER + _FRAMING if packet > _MTU else 0),
    )


def increase_pct(frame_size: int, suite: str) -> float:
    """Return how many more bytes ESP moves than plain forwarding, %."""
    return 100 * (encrypted(frame_size, suite).total / plain(frame_size).total - 1)
