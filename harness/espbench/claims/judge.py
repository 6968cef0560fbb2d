# SPDX-License-Identifier: Apache-2.0
"""Judges a claim by our value: agrees, differs, not measured, cannot be measured here."""

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
    """A claim, our value, and the judgement."""

    claim: Claim
    ours: OurValue
    word: Word
    why: str  # what is missing, or the reason for a difference; empty if it is not known


def judge_all(claims: Iterable[Claim], points: Points) -> list[Judged]:
    """Return the judgement of every claim by the same points."""
    return [judge(claim, our_value(claim, points)) for claim in claims]


def judge(claim: Claim, ours: OurValue) -> Judged:
    """Judge a claim by our value, which agrees if all of it is within the tolerance.

    A bracket that is partly within the tolerance is too wide, and counts as not measured.
    """
    if claim.cannot:
        return Judged(claim, ours, "cannot be measured here", claim.cannot)
    if not ours.exists:
        return Judged(claim, ours, "not measured", ours.missing)
    if claim.value is not None and ours.bracket and (too_wide := _too_wide(claim, claim.value, ours)):
        return Judged(claim, ours, "not measured", too_wide)
    holds = bool(ours.holds) if claim.value is None else ours.holds is not False
    agrees = holds and (claim.value is None or _within(claim, claim.value, ours))
    return Judged(claim, ours, "agrees" if agrees else "differs", "" if agrees else claim.because)


def _within(claim: Claim, value: float, ours: OurValue) -> bool:
    low, high = _tolerated(claim, value)
    match claim.qualifier:
        case "above":
            return ours.low >= low
        case "below":
            return ours.high <= high
    return low <= ours.low and ours.high <= high


def _too_wide(claim: Claim, value: float, ours: OurValue) -> str:
    """Say what is missing if the measured sizes do not show whether our value is within the tolerance; else return "".

    Our value is above ours.low and at most ours.high. It is outside the tolerance if this whole range is outside, and
    inside if the whole range is inside.
    """
    low, high = _tolerated(claim, value)
    outside = ours.high < low or ours.low >= high
    if outside or _within(claim, value, ours):
        return ""
    upper = "the largest measured" if math.isinf(ours.high) else f"{ours.high:g} {claim.unit}"
    return (
        f"ours is above {ours.low:g} {claim.unit}, up to {upper}: too wide to tell whether it is from "
        f"{low:g} to {high:g} {claim.unit}; measure sizes close to those two"
    )


def _tolerated(claim: Claim, value: float) -> tuple[float, float]:
    return value * (1 - claim.tolerance), value * (1 + claim.tolerance)
