# SPDX-License-Identifier: Apache-2.0
"""Makes quantities of measurements: mean, least, greatest, standard deviation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean, stdev
from typing import Any

from espbench.quantities import Key, figure
from espbench.sentences import Code
from espbench.terms import DirectionReading, Quantity, Remark, Trial


def quantity(
    key: Key, values: Iterable[float | None], digits: int = 3, *, way: str = "", part: str = "", **named: Any
) -> Quantity:
    """Return the mean of the values that are known; without any, no figure. digits: decimals; the rest as `figure`."""
    known = [value for value in values if value is not None]
    if not known:
        return figure(key, None, n=0, way=way, part=part, **named)
    spread = {
        "minimum": float(round(min(known), digits)),
        "maximum": float(round(max(known), digits)),
        "stdev": round(stdev(known), digits) if len(known) > 1 else None,
    }
    mean = round(fmean(known), digits)
    return figure(key, mean, n=len(known), way=way, part=part, **named).model_copy(update=spread)


def in_time_fps(trial: Trial) -> float | None:
    """Return frames that arrived while others were still sent, a second: what a queue gives out afterwards was not
    forwarded at that load. None where the generator cannot tell.
    """
    backlogs = [d.backlog_frames for d in trial.per_direction.values()]
    known = [n for n in backlogs if n is not None]
    if len(known) < len(backlogs) or trial.duration_s <= 0:
        return None
    return (trial.rx_frames - sum(known)) / trial.duration_s


def forwarding_fps(trial: Trial) -> float:
    """Return the forwarding rate (RFC 2285 3.6.1).

    With a generator that cannot tell, it includes what came after the sending.
    """
    whole = trial.rx_frames / trial.duration_s
    if not trial.lost and trial.sustained:
        return whole  # the last frames were on their way
    in_time = in_time_fps(trial)
    return whole if in_time is None else in_time


def stored(trials: Sequence[Trial]) -> list[Remark]:
    """Return a warning where the load grew a queue: what is measured then is the queue (docs/method.md, rule 6)."""
    n = sum(not trial.sustained for trial in trials)
    return [Remark.of(Code.STORED_IN_SOME, stored=n, trials=len(trials))] if n else []


def by_direction(
    key: Key,
    trials: Sequence[Trial],
    reading: Callable[[DirectionReading], float | None],
    digits: int = 3,
) -> list[Quantity]:
    """Return a quantity for each direction by itself (RFC 2544 14), where both were loaded at once."""
    loaded = list(trials[0].per_direction) if trials else []
    if len(loaded) < 2:
        return []
    return [
        quantity(key, [reading(trial.per_direction[way]) for trial in trials], digits, way=way)
        for way in loaded
    ]
