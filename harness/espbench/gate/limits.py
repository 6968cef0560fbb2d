# SPDX-License-Identifier: Apache-2.0
"""Parses how much worse a figure may be than its base: `instructions=0.1%`, `instructions=50`, or both with `|`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from espbench.errors import UsageError

Quantity = Literal["instructions", "throughput"]
UNITS: Mapping[Quantity, str] = {"instructions": "instructions per frame", "throughput": "frames/s"}
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)(%?)")


@dataclass(frozen=True)
class Limit:
    """A share of the base's figure, and a number in the figure's unit; a figure may be worse by the larger one."""

    share: float = 0.0
    number: float = 0.0

    def allowance(self, base: float) -> float:
        """Return by how much a figure may be worse than the base's, in the figure's unit."""
        return max(self.share * base, self.number)

    def __str__(self) -> str:
        parts = [f"{100 * self.share:g}%" if self.share else "", f"{self.number:g}" if self.number else ""]
        return "|".join(part for part in parts if part) or "0"


DEFAULTS: Mapping[Quantity, Limit] = {"instructions": Limit(share=0.001), "throughput": Limit(share=0.02)}


def limits(texts: Sequence[str]) -> dict[Quantity, Limit]:
    """Return the limit of each quantity, as given or the default; UsageError for a text that cannot be read."""
    given: dict[Quantity, Limit] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name not in get_args(Quantity):
            raise _refused(text)
        quantity: Quantity = name  # type: ignore[assignment]
        if quantity in given:
            raise UsageError(
                f"--limit: expected one limit of {quantity}, got two; join them: {quantity}=0.1%|50"
            )
        given[quantity] = _limit(text, value)
    return {**DEFAULTS, **given}


def limited(texts: Sequence[str]) -> list[Quantity]:
    """Return the quantities of which these texts, which `limits` could read, give a limit."""
    return [
        quantity for quantity in get_args(Quantity) for text in texts if text.partition("=")[0] == quantity
    ]


def _limit(text: str, value: str) -> Limit:
    shares: list[float] = []
    numbers: list[float] = []
    for part in value.split("|"):
        read = _NUMBER.fullmatch(part.strip())
        if read is None or not math.isfinite(float(read[1])):
            raise _refused(text)
        if read[2]:
            shares.append(float(read[1]) / 100)
        else:
            numbers.append(float(read[1]))
    # Nobody knows which of two shares, or of two numbers, is meant.
    if len(shares) > 1 or len(numbers) > 1 or any(share >= 1 for share in shares):
        raise _refused(text)
    return Limit(sum(shares), sum(numbers))


def _refused(text: str) -> UsageError:
    return UsageError(
        f"--limit: expected {' or '.join(get_args(Quantity))}, =, and a share below 100%, a number, or one of "
        f"each with |, got {text}; such as instructions=0.1%, instructions=50 or throughput=2%"
    )
