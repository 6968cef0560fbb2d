# SPDX-License-Identifier: Apache-2.0
"""The loads that a search may try: a geometric sequence ("row") from the maximum down to the minimum.

Neighbours are one resolution apart, so a search ends once the lower of two neighbours passes and the upper misses.
For a DUT that behaves the same each time, the answer does not depend on the order of the trials: a good or bad first
guess saves or costs trials, but cannot change the figure. All goals use the same loads and share their trials, and
repeats measure the same loads again.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from functools import lru_cache

from espbench.search.evidence import tidy

MOST_LOADS = 1_000_000  # of a row; with steps of 0.01 %, these span over 39 powers of ten
_ROUNDING = 1e-5  # relative; tidy() may move two neighbours apart by this much


class Loads:
    """The row of loads between a minimum and a maximum (frames/s), rising; places are counted from the minimum.

    The maximum may be lowered: the row then ends there, and its other loads stay.

    Raises ValueError if there would be more than MOST_LOADS loads, which would fill the memory.
    """

    def __init__(self, minimum: float, maximum: float, resolution: float) -> None:
        self._ratio = _ratio(resolution)
        self._whole = _row(minimum, maximum, resolution)
        self._row = self._whole

    def end_at(self, maximum: float) -> None:
        """Lower the maximum: remove all loads above it, and make it the highest load."""
        below = self._whole[: bisect_left(self._whole, maximum)]
        self._row = (*below, maximum)

    def place(self, load: float) -> int:
        """Return the place of the highest load not above `load`; one behind the last place if all are below it."""
        return len(self._row) if load > self._row[-1] else max(bisect_right(self._row, load) - 1, 0)

    def up(self, load: float) -> float:
        """Return the lowest load of the row that is not below `load`."""
        return self._row[min(bisect_left(self._row, load), len(self._row) - 1)]

    def at_or_above(self, load: float) -> float:
        """Return the lowest load of the row not below `load`; infinity if `load` is above the maximum."""
        return self.up(load) if load <= self._row[-1] else math.inf

    def down(self, load: float) -> float:
        """Return the highest load of the row that is not above `load`."""
        return self[self.place(load)]

    def at_or_below(self, load: float) -> float:
        """Return the highest load not above `load`, as if the row continued below the minimum."""
        lowest = self._row[0]
        if load >= lowest:
            return self.down(load)
        places = math.ceil(math.log(load / lowest) / math.log(self._ratio))
        return min(tidy(lowest * self._ratio**places), load)

    def __getitem__(self, place: int) -> float:
        return self._row[min(max(place, 0), len(self._row) - 1)]

    def middle(self, low: float, high: float) -> float:
        """Return the load of the row in the middle between two loads; its ratios to both are equal."""
        return self[(self.place(low) + self.place(high)) // 2]

    def are_neighbours(self, low: float, high: float) -> bool:
        """Return whether no load of the row is between the two."""
        return self.place(high) - self.place(low) <= 1


def _ratio(resolution: float) -> float:
    """Return the ratio of a load to the next higher one."""
    return 1 - resolution + _ROUNDING


@lru_cache(maxsize=16)
def _row(minimum: float, maximum: float, resolution: float) -> tuple[float, ...]:
    ratio = _ratio(resolution)
    possible = 0 < minimum <= maximum < math.inf and 0 < ratio < 1
    if not possible or (math.log(minimum) - math.log(maximum)) / math.log(ratio) > MOST_LOADS:
        raise ValueError(
            f"at most {MOST_LOADS:,} loads expected from {minimum} to {maximum} fps, {resolution} apart"
        )
    falling, place = [maximum], 1
    while (load := tidy(maximum * ratio**place)) > minimum:
        falling.append(load)
        place += 1
    if minimum < maximum:
        falling.append(minimum)
    return tuple(reversed(falling))
