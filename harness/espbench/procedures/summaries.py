# SPDX-License-Identifier: Apache-2.0
"""Makes quantities from measurements: mean, least, greatest, standard deviation."""

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
    """Return the mean of the known values, with their range and standard deviation; without any, a quantity without a
    value.

    digits: decimals. way, part and named: as in `figure`.
    """
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
    """Return the rate of the frames that arrived while others were still sent, frames/s; None if the generator cannot
    tell.

    Frames that leave a queue after the sending were not forwarded at that load.
    """
    backlogs = [d.backlog_frames for d in trial.per_direction.values()]
    known = [n for n in backlogs if n is not None]
    if len(known) < len(backlogs) or trial.duration_s <= 0:
        return None
    return (trial.rx_frames - sum(known)) / trial.duration_s


def forwarding_fps(trial: Trial) -> float:
    """Return the forwarding rate (RFC 2285 3.6.1), frames/s.

    If the generator cannot tell them apart, it includes the frames that arrived after the sending.
    """
    in_time = None if _late_were_in_transit(trial) else in_time_fps(trial)
    return trial.rx_frames / trial.duration_s if in_time is None else in_time


def forwarding_of_fps(trial: Trial, direction: DirectionReading) -> float:
    """Return the part of a trial's `forwarding_fps` that one direction has, frames/s."""
    whole = _late_were_in_transit(trial) or in_time_fps(trial) is None
    late = 0 if whole else direction.backlog_frames or 0
    return (direction.rx_frames - late) / trial.duration_s


def _late_were_in_transit(trial: Trial) -> bool:
    """Return whether the frames that arrived after the sending came from no queue that grew."""
    return not trial.lost and trial.sustained


def stored(trials: Sequence[Trial]) -> list[Remark]:
    """Return a warning if the load filled a queue; then the figures describe the queue (docs/method.md, rule 6)."""
    n = sum(not trial.sustained for trial in trials)
    return [Remark.of(Code.STORED_IN_SOME, stored=n, trials=len(trials))] if n else []


def by_direction(
    key: Key,
    trials: Sequence[Trial],
    reading: Callable[[DirectionReading], float | None],
    digits: int = 3,
) -> list[Quantity]:
    """Return a quantity for each direction by itself (RFC 2544 14); nothing if only one direction was loaded."""
    loaded = list(trials[0].per_direction) if trials else []
    if len(loaded) < 2:
        return []
    return [
        quantity(key, [reading(trial.per_direction[way]) for trial in trials], digits, way=way)
        for way in loaded
    ]


def loss_pct(direction: DirectionReading) -> float | None:
    """Return the frame loss of one direction, %; None if it sent no frame."""
    return round(100 * direction.lost / direction.tx_frames, 6) if direction.tx_frames else None


def loss_by_direction(trial: Trial) -> dict[str, float | None]:
    """Return the frame loss of each direction, %, None in an INVALID trial; empty if only one direction was loaded."""
    if len(trial.per_direction) < 2:
        return {}
    valid = trial.validity == "VALID"
    return {way: loss_pct(reading) if valid else None for way, reading in trial.per_direction.items()}
