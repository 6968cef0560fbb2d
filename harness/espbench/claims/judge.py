# SPDX-License-Identifier: Apache-2.0
"""Claim and our value → judgement: agrees, differs, not measured, cannot be measured here."""

from __future__ import annotations

import math
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
    """Ours agrees if all of it lies within the tolerance; a bracket too wide to tell is no measurement."""
    if claim.ours is None:
        return Judged(claim, found, "cannot be measured here", claim.cannot)
    if not found.exists:
        return Judged(claim, found, "not measured", found.missing)
    if claim.value is not None and found.bracket and (untold := _too_wide(claim, claim.value, found)):
        return Judged(claim, found, "not measured", untold)
    agrees = bool(found.holds) if claim.value is None else _within(claim, claim.value, found)
    return Judged(claim, found, "agrees" if agrees else "differs", "" if agrees else claim.because)


def _within(claim: Claim, value: float, found: OurValue) -> bool:
    low, high = _tolerated(claim, value)
    match claim.qualifier:
        case "above":
            return found.low >= low
        case "below":
            return found.high <= high
    return low <= found.low and found.high <= high


def _too_wide(claim: Claim, value: float, found: OurValue) -> str:
    """What is missing where the sizes measured leave open whether ours is within the tolerance; else empty.

    Ours lies above found.low, up to found.high. It is outside if all of that is, inside if all of that is.
    """
    low, high = _tolerated(claim, value)
    outside = found.high < low or found.low >= high
    if outside or _within(claim, value, found):
        return ""
    upper = "the largest measured" if math.isinf(found.high) else f"{found.high:g} {claim.unit}"
    return (
        f"ours is above {found.low:g} {claim.unit}, up to {upper}: too wide to tell whether it is from "
        f"{low:g} to {high:g} {claim.unit}; measure sizes close to those two"
    )


def _tolerated(claim: Claim, value: float) -> tuple[float, float]:
    return value * (1 - claim.tolerance), value * (1 + claim.tolerance)
