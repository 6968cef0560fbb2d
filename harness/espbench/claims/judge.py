# SPDX-License-Identifier: Apache-2.0
"""Claim and our value → judgement: agrees, differs, not measured, cannot be measured here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from espbench.claims.measures import our_value
from espbench.claims.model import Claim
from espbench.claims.our_value import OurValue
from espbench.claims.points import Points

Word = Literal["agrees", "differs", "not measured", "cannot be measured here"]
WORDS: tuple[Word, ...] = ("agrees", "differs", "not measured", "cannot be measured here")


@dataclass(frozen=True)
class Judged:
    """A claim, our side of it, and what is to be said of the two."""

    claim: Claim
    ours: OurValue
    word: Word
    why: str  # what is missing, or the reason for a difference; empty where nothing is known


def judge_all(claims: Iterable[Claim], points: Points) -> list[Judged]:
    """Every claim held against the same points."""
    return [judge(claim, our_value(claim, points)) for claim in claims]


def judge(claim: Claim, found: OurValue) -> Judged:
    """Ours agrees if all of it lies within the tolerance; of a bracket, if part of it does."""
    if claim.ours is None:
        return Judged(claim, found, "cannot be measured here", claim.cannot)
    if not found.exists:
        return Judged(claim, found, "not measured", found.missing)
    agrees = bool(found.holds) if claim.value is None else _within(claim, claim.value, found)
    return Judged(claim, found, "agrees" if agrees else "differs", "" if agrees else claim.because)


def _within(claim: Claim, value: float, found: OurValue) -> bool:
    low, high = value * (1 - claim.tolerance), value * (1 + claim.tolerance)
    match claim.qualifier:
        case "above":
            return found.low >= low
        case "below":
            return found.high <= high
    if found.bracket:
        return found.low < high and found.high >= low
    return low <= found.low and found.high <= high
