# SPDX-License-Identifier: Apache-2.0
"""Compares the throughput of encryption alone and of decryption alone with that of a pair of the same gateways.

A frame that crosses a pair is encrypted once and decrypted once. Gateways with one core each do this at the same time:
the pair is no faster than the slower operation, min(E, D). Gateways that share one core do it in turns, and the times
of a frame add up: the pair is no faster than 1 / (1/E + 1/D).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from espbench.terms import OPERATIONS, Outcome, for_median

Key = tuple[str, str, int, int | str, float]  # stack, suite, IP version, frame size, loss goal


@dataclass(frozen=True)
class Figure:
    """The median throughput of the repeats that have one, frames/s and Mbps; at_limit: it is a lower bound.

    instructions_home and instructions_office are per frame, the medians too; None in real time. upper_fps: the median
    of the lowest rates that missed; None if not every search has one.
    """

    fps: float
    mbps: float
    at_limit: bool
    instructions_home: float | None = None
    instructions_office: float | None = None
    upper_fps: float | None = None


@dataclass(frozen=True)
class Operations:
    """The operations with one stack, suite, IP version, frame size and loss goal; None: not measured, or no figure."""

    key: Key
    encryption: Figure | None
    decryption: Figure | None
    pair: Figure | None = None

    @property
    def lower(self) -> Figure | None:
        """The slower of the two operations; None unless both have a figure."""
        if self.encryption is None or self.decryption is None:
            return None
        return min(self.encryption, self.decryption, key=lambda figure: figure.fps)

    @property
    def slower(self) -> str:
        """The slower operation; empty if it is not known.

        It is not if the lower figure is only a bound, or if both are equal within the resolution of the search.
        """
        lower = self.lower
        if self.encryption is None or self.decryption is None or lower is None or lower.at_limit:
            return ""
        if max(self.encryption.fps, self.decryption.fps) <= max(lower.fps, lower.upper_fps or 0.0):
            return ""
        return OPERATIONS[self.encryption.fps > self.decryption.fps]

    @property
    def in_turns_fps(self) -> float | None:
        """The rate of one core that both encrypts and decrypts each frame, frames/s."""
        if self.encryption is None or self.decryption is None:
            return None
        return 1 / (1 / self.encryption.fps + 1 / self.decryption.fps)

    def is_bound_limited(self, *, shares_core: bool) -> bool:
        """Return whether `bound_fps` may be higher in truth, because its parts are lower bounds."""
        parts = [self.encryption, self.decryption] if shares_core else [self.lower]
        return any(part.at_limit for part in parts if part)

    def bound_fps(self, *, shares_core: bool) -> float | None:
        """Return the highest rate that a pair can reach with these operations, frames/s; None if it is not known."""
        return self.in_turns_fps if shares_core else self.lower.fps if self.lower else None


def operations(single: Sequence[Outcome], pair: Sequence[Outcome] = ()) -> list[Operations]:
    """Pair encryption and decryption, in the order of the single gateway's outcomes.

    pair: outcomes of a pair of gateways; only those of the direction one-way (west to east) are used.
    """
    keys = dict.fromkeys(_key(o) for o in single if o.direction in OPERATIONS)
    return [
        Operations(
            key,
            _figure([o for o in single if _key(o) == key and o.direction == "encryption"]),
            _figure([o for o in single if _key(o) == key and o.direction == "decryption"]),
            _figure([o for o in pair if _key(o) == key and o.direction == "one-way"]),
        )
        for key in keys
    ]


def _key(o: Outcome) -> Key:
    return (o.stack, o.suite, o.ip_version, o.frame_size, o.loss_goal)


def _figure(repeats: Sequence[Outcome]) -> Figure | None:
    measured = for_median(repeats)
    if not measured:
        return None
    return Figure(
        median(o.throughput_fps or 0.0 for o in measured),
        median(o.throughput_mbps or 0.0 for o in measured),
        any(o.is_lower_bound for o in measured),
        _median([o.instructions_home_per_frame for o in measured]),
        _median([o.instructions_office_per_frame for o in measured]),
        _median([o.upper_fps for o in measured]) if all(o.upper_fps for o in measured) else None,
    )


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
