# SPDX-License-Identifier: Apache-2.0
"""Finds which of many commits made a frame dearer, by halving the span; says if it was not a single one.

A commit counts as bad if it costs at least the middle between good and bad. Bisection always finds a commit at which
the cost passes the middle. The costs measured on the way show whether other commits changed the cost too. They cannot
show that the commit was undone and made again later. So one more commit is measured at the end, between the answer and
bad; if that costs less than the middle, the search goes on above it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, log2

# Commits that do not touch the path of a frame were seen to move its cost by up to so many instructions (docs/ci.md).
_FEW = 3.0
# The costs of good and of bad must stay apart: near is at most this share of the whole change.
_MOST_NEAR = 0.2
# If so many commits that were to confirm the answer cannot be built, it stays as it is.
_TRIES = 3


@dataclass(frozen=True)
class Answer:
    """The commits first to last made the frame dearer by `cost`; single: one commit did, and it did all of it.

    first and last are places in the span; they differ where commits between could not be built. whole: what bad costs
    more than good. why: what speaks against a single commit; empty of one. unconfirmed: so many commits that were to
    confirm the answer could not be built or measured, and no other did; 0: it is confirmed, or there is none between.
    """

    first: int
    last: int
    cost: float
    whole: float
    why: str = ""
    unconfirmed: int = 0

    @property
    def single(self) -> bool:
        return not self.why


class Bisection:
    """Asks for the cost of one commit after the other; places count from good, 0, to bad.

    costs: of those known already, good and bad among them; None of a commit that cannot be built or measured.
    near: by so much a commit may differ from good, or from bad, and still cost the same; espbench adds what it knows.
    """

    def __init__(self, bad: int, costs: Mapping[int, float | None], near: float = 0.0) -> None:
        good_cost, bad_cost = costs[0], costs[bad]
        if good_cost is None or bad_cost is None or bad_cost <= good_cost:
            raise ValueError(f"bad costs {bad_cost}, good {good_cost}: expected more")
        self._good_cost, self._bad_cost = good_cost, bad_cost
        self._near = min(_MOST_NEAR * (bad_cost - good_cost), max(near, _FEW))
        self._costs: dict[int, float | None] = {0: good_cost, bad: bad_cost}
        self._confirmed = False
        self._unbuildable = 0  # of those that were to confirm the answer
        replay = dict(costs)
        while (place := self.next() or self.to_confirm()) is not None and place in replay:
            self.add(place, replay[place])

    def next(self) -> int | None:
        """Return the place whose cost is wanted: the middle, or the nearest that can be built; None at the end."""
        between = [place for place in range(self._low + 1, self._high) if place not in self._costs]
        middle = (self._low + self._high) // 2
        return min(between, key=lambda place: abs(place - middle), default=None)

    def to_confirm(self) -> int | None:
        """Return the place of one more commit that confirms the answer; None if there is none, or no need.

        It is the middle of the largest gap between commits that were measured from the answer on. If the answer was
        undone and made again, it may lie where it was undone.
        """
        done = self._confirmed or self._unbuildable >= _TRIES
        if done or self.next() is not None or not self.answer().single:
            return None
        bad = sorted(place for place in self._measured if place >= self._high)
        low, high = max(pairwise(bad), key=lambda gap: gap[1] - gap[0], default=(0, 0))
        between = [place for place in range(low + 1, high) if place not in self._costs]
        return min(between, key=lambda place: abs(place - (low + high) // 2), default=None)

    def add(self, place: int, cost: float | None) -> None:
        """Take the cost of a place; None: it has none."""
        if self.next() is None:
            self._unbuildable += cost is None
            self._confirmed = self._confirmed or cost is not None
        self._costs[place] = cost

    @property
    def steps_left(self) -> int:
        """The number of builds that are still needed, if every commit can be built."""
        return ceil(log2(self._high - self._low))

    def answer(self) -> Answer:
        """Return the answer; call it only when `next` is None."""
        measured = self._measured
        whole = self._bad_cost - self._good_cost
        risen = [place for place in measured if place < self._low and self._is_bad(measured[place])]
        why = ""
        if self._high - self._low > 1:
            why = f"{self._high - self._low - 1} commits between could not be built or measured"
        elif risen:
            why = (
                f"the cost does not go up once: it had risen at place {min(risen)}, and had fallen again at place "
                f"{self._low}"
            )
        elif others := self._between():
            why = (
                f"the cost does not go up once: {len(others)} of the {len(self._costs)} commits measured cost "
                "neither what good does nor what bad does, or not in that order"
            )
        cost = measured[self._high] - measured[self._low]
        return Answer(
            self._low + 1, self._high, cost, whole, why, 0 if self._confirmed else self._unbuildable
        )  # fmt: skip

    @property
    def _measured(self) -> dict[int, float]:
        return {place: cost for place, cost in self._costs.items() if cost is not None}

    @property
    def _low(self) -> int:
        """The last place that is not bad, as far as it was measured."""
        return max(place for place, cost in self._measured.items() if not self._is_bad(cost))

    @property
    def _high(self) -> int:
        """The first bad place after it."""
        return min(place for place in self._measured if place > self._low)

    def _is_bad(self, cost: float) -> bool:
        return cost >= (self._good_cost + self._bad_cost) / 2

    def _between(self) -> list[int]:
        """Return the places whose cost is not that of good before the step, or not that of bad from it on."""
        return [
            place
            for place, cost in self._measured.items()
            if abs(cost - (self._good_cost if place <= self._low else self._bad_cost)) > self._near
        ]
