# SPDX-License-Identifier: Apache-2.0
"""Measurements as a quantity: mean, least, greatest, standard deviation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean, stdev

from espbench.terms import DirectionReading, Quantity, Trial


def quantity(name: str, unit: str, values: Iterable[float | None], digits: int = 3) -> Quantity:
    """The mean of the values that are known; without any, no figure. `digits` are decimals."""
    known = [value for value in values if value is not None]
    if not known:
        return Quantity(name=name, unit=unit, value=None, n=0)
    return Quantity(
        name=name,
        unit=unit,
        value=round(fmean(known), digits),
        n=len(known),
        minimum=round(min(known), digits),
        maximum=round(max(known), digits),
        stdev=round(stdev(known), digits) if len(known) > 1 else None,
    )


def by_direction(
    name: str,
    unit: str,
    trials: Sequence[Trial],
    figure: Callable[[DirectionReading], float | None],
    digits: int = 3,
) -> list[Quantity]:
    """The same of each direction by itself (RFC 2544 14), where both were loaded at once."""
    ways = list(trials[0].per_direction) if trials else []
    if len(ways) < 2:
        return []
    return [
        quantity(f"{name}, {way}", unit, [figure(trial.per_direction[way]) for trial in trials], digits)
        for way in ways
    ]
