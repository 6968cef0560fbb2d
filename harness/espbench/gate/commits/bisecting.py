# SPDX-License-Identifier: Apache-2.0
"""Finds which of many commits made a frame dearer, by halving the span; says if it was not a single one.

A commit counts as bad if it costs at least the middle between good and bad. Bisection always finds a commit at which
the cost passes the middle. The costs measured on the way show whether other commits changed the cost too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, log2

# Costs within so much of the whole change are those of good or of bad; what lies between is another commit's.
_NEAR = 0.2


@dataclass(frozen=True)
class Answer:
    """The commits first to last made the frame dearer by `cost`; single: one commit did, and it did all of it.

    first and last are places in the span; they differ where commits between could not be built. whole: what bad costs
    more than good. why: what speaks against a single commit; empty of one.
    """

    first: int
    last: int
    cost: float
    whole: float
    why: str = ""

    @property
    def single(self) -> bool:
        return not self.why


class Bisection:
    """Asks for the cost of one commit after the other; places count from good, 0, to bad.

    costs: of those known already, good and bad among them; None of a commit that cannot be built or measured.
    """

    def __init__(self, bad: int, costs: Mapping[int, float | None]) -> None:
        good_cost, bad_cost = costs[0], costs[bad]
        if good_cost is None or bad_cost is None or bad_cost <= good_cost:
            raise ValueError(f"bad costs {bad_cost}, good {good_cost}: expected more")
        self._good_cost, self._bad_cost = good_cost, bad_cost
        self._bad = bad
        self._costs: dict[int, float | None] = {0: good_cost, bad: bad_cost}
        self._low, self._high = 0, bad
        replay = dict(costs)
        while (place := self.next()) is not None and place in replay:
            self.add(place, replay[place])

    def next(self) -> int | None:
        """Return the place whose cost is wanted: the middle, or the nearest that can be built; None at the end."""
        between = [place for place in range(self._low + 1, self._high) if place not in self._costs]
        middle = (self._low + self._high) // 2
        return min(between, key=lambda place: abs(place - middle), default=None)

    def add(self, place: int, cost: float | None) -> None:
        """Take the cost of a place; None: it has none."""
        self._costs[place] = cost
        if cost is None:
            return
        if cost >= (self._good_cost + self._bad_cost) / 2:
            self._high = place
        else:
            self._low = place

    @property
    def steps_left(self) -> int:
        """The number of builds that are still needed, if every commit can be built."""
        return ceil(log2(self._high - self._low))

    def answer(self) -> Answer:
        """Return the answer; call it only when `next` is None."""
        low, high = self._costs[self._low], self._costs[self._high]
        assert low is not None
        assert high is not None
        whole = self._bad_cost - self._good_cost
        why = ""
        if self._high - self._low > 1:
            why = f"{self._high - self._low - 1} commits between could not be built or measured"
        elif others := self._between():
            why = (
                f"the cost does not go up once: {len(others)} of the {len(self._costs)} commits measured cost "
                "neither what good does nor what bad does, or not in that order"
            )
        return Answer(self._low + 1, self._high, high - low, whole, why)

    def _between(self) -> list[int]:
        """Return the places whose cost is not that of good before the step, or not that of bad from it on."""
        near = _NEAR * (self._bad_cost - self._good_cost)
        return [
            place
            for place, cost in self._costs.items()
            if cost is not None
            and abs(cost - (self._good_cost if place <= self._low else self._bad_cost)) > near
        ]
