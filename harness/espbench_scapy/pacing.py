# SPDX-License-Identifier: GPL-2.0-only
"""Computes the departure schedule of one stream: frame i is due at start + i × interval. Times are ns; it is pure.

The rules are those of the native generator: after a stall, frames follow each other at most 1.1 times as fast as
intended, so that catching up makes no burst.
"""

from __future__ import annotations

CATCH_UP = 1.1
# Frames that are late by at most this time may leave together.
SLACK_NS = 20_000.0


class Schedule:
    """The schedule of one stream.

    rate_fps None: as fast as possible. frames: exactly this number, however long they take; None: as many as duration_s
    has room for at the rate.
    """

    def __init__(self, start_ns: int, rate_fps: float | None, duration_s: float, frames: int | None) -> None:
        self.start_ns = start_ns
        self.interval_ns = 1e9 / rate_fps if rate_fps else 0.0
        self.planned = frames
        if self.interval_ns and frames is None:
            self.planned = max(1, round(duration_s * 1e9 / self.interval_ns))
        self.sent = 0
        self._gate_ns = 0.0

    @property
    def finished(self) -> bool:
        """True if all planned frames have left; always False for a flood."""
        return self.sent == self.planned

    def due_ns(self, frame: int) -> int:
        """Return the time at which a frame should leave."""
        return self.start_ns + int(frame * self.interval_ns)

    def next_ns(self) -> int:
        """Return the earliest time at which the next frame may leave."""
        return max(self.due_ns(self.sent), self.start_ns + int(self._gate_ns))

    def may_send(self, now_ns: int) -> bool:
        """Return whether the next frame may leave now; call `took` once it has left."""
        if self.finished or now_ns < self.start_ns:
            return False
        if not self.interval_ns:
            return True
        self._gate_ns = max(self._gate_ns, now_ns - self.start_ns - SLACK_NS)
        return self.next_ns() <= now_ns

    def took(self) -> None:
        """Note that the next frame has left."""
        self.sent += 1
        self._gate_ns += self.interval_ns / CATCH_UP
