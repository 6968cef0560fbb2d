# SPDX-License-Identifier: GPL-2.0-only
"""Judges, counts and times the frames that arrive at one port during a trial, by stream."""

from __future__ import annotations

from typing import Any

from espbench_scapy.frames import NUMBER_MASK
from espbench_scapy.histogram import Histogram
from espbench_scapy.judging import Expected, Kind, SequenceCount, judge

SLICES = 20


def whole_time(low: int, near_ns: int) -> int:
    """Return the time, ns, whose low 48 bits are `low` and which is nearest to near_ns."""
    half = 1 << 47
    time = near_ns & ~NUMBER_MASK | low
    if time > near_ns + half:
        return time - NUMBER_MASK - 1
    return time + NUMBER_MASK + 1 if time + half < near_ns else time


class StreamCount:
    """The arrivals of one stream."""

    def __init__(self, start_ns: int, duration_ns: int) -> None:
        self.sequence = SequenceCount()
        self.latency = Histogram()
        self.last_rx_ns = 0
        self.arrived_ns: tuple[int, int] | None = None  # of the first and the last intact frame
        self.longest_gap: tuple[int, int] | None = None
        self.after_stop = 0
        self.stopped_ns = 0  # the time when the last frame left; 0 while sending
        self._start_ns, self._slice_ns = start_ns, max(1, duration_ns // SLICES)
        self._slices: list[list[int]] = [[0, 0, 0] for _ in range(SLICES)]  # frames, least and sum of ns

    def intact(self, number: int, time: int, at_ns: int) -> None:
        """Count a frame that is as it was sent; time: the low 48 bits of its tx time."""
        self.last_rx_ns = max(self.last_rx_ns, at_ns)
        if not self.sequence.intact(number):
            return
        self._arrived(at_ns)
        sent_ns = whole_time(time, at_ns)
        latency = max(1, at_ns - sent_ns)
        self.latency.record(latency)
        part = self._slices[min(SLICES - 1, max(0, sent_ns - self._start_ns) // self._slice_ns)]
        part[1] = min(part[1], latency) if part[0] else latency
        part[0] += 1
        part[2] += latency
        self.after_stop += bool(self.stopped_ns) and at_ns > self.stopped_ns

    def _arrived(self, at_ns: int) -> None:
        first, last = self.arrived_ns or (at_ns, at_ns)
        longest = self.longest_gap
        if self.arrived_ns and (longest is None or at_ns - last > longest[1] - longest[0]):
            self.longest_gap = (last, max(last, at_ns))
        self.arrived_ns = (first, max(last, at_ns))

    def damaged(self, number: int | None, at_ns: int) -> None:
        """Count a frame of this stream that is not as it was sent."""
        self.last_rx_ns = max(self.last_rx_ns, at_ns)
        self.sequence.damaged(number)

    def slices(self) -> list[dict[str, Any]]:
        """Return the latency by the time when the frames were sent, in SLICES parts of the duration."""
        return [
            {
                "t_s": i * self._slice_ns / 1e9,
                "rx_frames": frames,
                "min_us": least / 1e3 if frames else None,
                "mean_us": total / frames / 1e3 if frames else None,
            }
            for i, (frames, least, total) in enumerate(self._slices)
        ]


class PortCount:
    """The arrivals at one port."""

    def __init__(self) -> None:
        self.expected: list[Expected] = []
        self.streams: list[StreamCount] = []  # one for each of `expected`
        self.total = self.foreign = self.merged = 0

    def count(self, frame: bytes, at_ns: int) -> bool:
        """Count one frame; return False if it belongs to no stream of this port."""
        self.total += 1
        verdict = judge(self.expected, frame)
        if verdict.kind is Kind.FOREIGN:
            self.foreign += 1
            return False
        stream = self.streams[verdict.stream]
        if verdict.kind is Kind.INTACT and verdict.number is not None:
            stream.intact(verdict.number, verdict.time, at_ns)
        else:
            self.merged += len(frame) > self.expected[verdict.stream].longest + 8  # up to two tags
            stream.damaged(verdict.number, at_ns)
        return True
