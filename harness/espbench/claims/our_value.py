# SPDX-License-Identifier: Apache-2.0
"""Defines our value for a claim: a range or a statement, or what was not measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from espbench.claims.points import Point


@dataclass(frozen=True)
class OurValue:
    """Our value for a claim.

    low, high: our figure, or the lowest and the highest of several. bracket: the true figure is above low and at most
    high. holds: whether a statement without a number holds; with low and high: False if what the claim says beside its
    number does not hold. text: details for people. goal: the loss goal of all figures, if they have the same. missing:
    what was not measured; then nothing else is set. is_short: some trial was shorter than RFC 2544 24 wants.
    """

    low: float = math.nan
    high: float = math.nan
    bracket: bool = False
    holds: bool | None = None
    text: str = ""
    goal: float | None = None
    missing: str = ""
    is_short: bool = False

    @property
    def exists(self) -> bool:
        """True if anything was measured."""
        return not self.missing


def lacking(what: str) -> OurValue:
    """Return a value without figures, because nothing was measured."""
    return OurValue(missing=what)


def ranged(values: Sequence[float], points: Sequence[Point] = (), text: str = "") -> OurValue:
    """Return the range of one or more values."""
    return replace(of(points), low=min(values), high=max(values), text=text)


def statement(points: Sequence[Point], text: str, *, holds: bool) -> OurValue:
    """Return the value of a statement that holds, or does not."""
    return replace(of(points), holds=holds, text=text)


def of(points: Sequence[Point]) -> OurValue:
    """Return a value without figures: only the points' loss goal, if all have the same, and whether any is short."""
    goals = {p.loss_goal for p in points}
    return OurValue(goal=goals.pop() if len(goals) == 1 else None, is_short=any(p.is_short for p in points))
