# SPDX-License-Identifier: GPL-2.0-only
"""Reads the clocks: all times are ns of CLOCK_MONOTONIC, but the kernel's time stamps of frames are CLOCK_REALTIME."""

from __future__ import annotations

import time

_STEP_NS = 20_000  # smaller differences are noise of reading two clocks


def now_ns() -> int:
    """Return the time of CLOCK_MONOTONIC, ns."""
    return time.monotonic_ns()


def realtime_offset_ns() -> int:
    """Return CLOCK_REALTIME minus CLOCK_MONOTONIC, ns: of several readings, the one that took the shortest time."""
    readings = []
    for _ in range(8):
        before = time.monotonic_ns()
        wall = time.time_ns()
        width = time.monotonic_ns() - before
        readings.append((width, wall - before - width // 2))
    return min(readings)[1]


class StepWatch:
    """Watches for steps of the wall clock; `offset_ns` is its offset at the beginning."""

    def __init__(self) -> None:
        self.offset_ns = realtime_offset_ns()
        self.step_ns = 0

    def sample(self) -> None:
        """Read the clocks again, and keep the largest step in `step_ns`."""
        moved = realtime_offset_ns() - self.offset_ns
        if abs(moved) > _STEP_NS and abs(moved) > abs(self.step_ns):
            self.step_ns = moved
