# SPDX-License-Identifier: GPL-2.0-only
"""The clocks: everything is told in CLOCK_MONOTONIC nanoseconds; the kernel stamps frames in CLOCK_REALTIME."""

from __future__ import annotations

import time

_STEP_NS = 20_000  # less is the noise of reading two clocks


def now_ns() -> int:
    """Return the time of CLOCK_MONOTONIC, ns."""
    return time.monotonic_ns()


def realtime_offset_ns() -> int:
    """CLOCK_REALTIME minus CLOCK_MONOTONIC, from the tightest of several readings."""
    readings = []
    for _ in range(8):
        before = time.monotonic_ns()
        wall = time.time_ns()
        width = time.monotonic_ns() - before
        readings.append((width, wall - before - width // 2))
    return min(readings)[1]


class StepWatch:
    """Watches for a step of the wall clock; `offset_ns` is what it began with."""

    def __init__(self) -> None:
        self.offset_ns = realtime_offset_ns()
        self.step_ns = 0

    def sample(self) -> None:
        """Look again; the largest step is kept."""
        moved = realtime_offset_ns() - self.offset_ns
        if abs(moved) > _STEP_NS and abs(moved) > abs(self.step_ns):
            self.step_ns = moved
