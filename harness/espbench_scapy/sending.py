# SPDX-License-Identifier: GPL-2.0-only
"""Sends the frames of one stream, and notes when they left and how late they were."""

from __future__ import annotations

from typing import Any

from espbench_scapy.clock import now_ns
from espbench_scapy.frames import Template
from espbench_scapy.histogram import Histogram
from espbench_scapy.pacing import Schedule
from espbench_scapy.port import Port

# A stall begins when lateness jumps, and lasts until the frames have caught up (as in traffic/src/count/tx_stalls.rs).
LATE_NS, STALL_NS = 100_000, 500_000
_LISTED = 1000
_MARK_NS = 500_000  # interval at which the departure of a frame is noted


class Outgoing:
    """Sends the frames of one stream; the loop of the trial calls `step`."""

    def __init__(self, template: Template, schedule: Schedule, first_sequence: int, port: Port) -> None:
        self._template, self.schedule, self._first, self._port = template, schedule, first_sequence, port
        self.refused = self.retries = self.late_frames = 0
        self.first_tx_ns = self.last_tx_ns = 0
        self.lateness = Histogram()
        self._marks: list[tuple[int, int]] = []
        self.stalls: list[dict[str, Any]] = []
        self.stalls_more = 0
        self.stalls_more_ns = 0
        self._late_ns = self._left_ns = 0
        # The present stall: when it began, the sum of its pauses, the lateness before it and after its last pause; ns.
        self._stall: tuple[int, int, int, int] | None = None

    @property
    def sent(self) -> int:
        """The number of frames that left, including those that the device behind the port refused."""
        return self.schedule.sent

    def step(self) -> bool:
        """Send the next frame if it is due; return whether a frame left."""
        now = now_ns()
        if not self.schedule.may_send(now):
            return False
        index = self.sent
        frame = self._template.write(index, self._first + index, now)
        outcome = self._port.send(frame)
        if outcome == "full":
            self.retries += 1
            return False
        self.refused += outcome == "refused"
        self.schedule.took()
        self.first_tx_ns = self.first_tx_ns or now
        self.last_tx_ns = now_ns()
        if not self._marks or now - self._marks[-1][1] >= _MARK_NS:
            self._marks.append((index, now))
        if self.schedule.interval_ns:
            self.book(self.schedule.due_ns(index), now)
        return True

    def sent_at(self, index: int) -> int:
        """Return when a frame left, ns, interpolated between the noted departures before and after it."""
        after = next((i for i, mark in enumerate(self._marks) if mark[0] > index), len(self._marks))
        first, first_ns = self._marks[max(0, after - 1)]
        last, last_ns = self._marks[after] if after < len(self._marks) else (self.sent, self.last_tx_ns)
        if last <= first or index <= first:
            return first_ns
        return first_ns + round((index - first) / (last - first) * max(0, last_ns - first_ns))

    def departure_fps(self) -> float | None:
        """Return the rate at which frames left, frames/s, from the first to the last; None for fewer than two."""
        return (self.sent - 1) * 1e9 / (self.last_tx_ns - self.first_tx_ns) if self.sent > 1 else None

    def close(self) -> None:
        """End a stall that is still going on, since all frames were sent."""
        self._end_of_stall()

    def book(self, due_ns: int, now: int) -> None:
        """Record the lateness of a frame that was due at due_ns and left at now, and update the stalls."""
        late = max(0, now - due_ns)
        self.lateness.record(late)
        self.late_frames += late > LATE_NS
        before, self._late_ns, self._left_ns = self._late_ns, late, now
        pause = late - before
        if pause > STALL_NS:
            at, paused, first, _ = self._stall or (now - pause, 0, before, 0)
            self._stall = (at, paused + pause, first, late)
        elif self._stall is not None:
            _, _, first, last = self._stall
            if late < first + LATE_NS or late > last + STALL_NS:
                self._end_of_stall()

    def _end_of_stall(self) -> None:
        if self._stall is None:
            return
        at_ns, paused_ns = self._stall[:2]
        if len(self.stalls) < _LISTED:
            self.stalls.append({"at_ns": at_ns, "ms": paused_ns / 1e6, "until_ns": self._left_ns})
        else:
            self.stalls_more += 1
            self.stalls_more_ns += self._left_ns - at_ns
        self._stall = None
