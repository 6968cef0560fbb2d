# SPDX-License-Identifier: Apache-2.0
"""Remembers the full speed of each CPU, and how fast the gateways' CPUs were in the latest trials of a run; says when
those of a trial were too slow.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from statistics import fmean, quantiles
from typing import Any

from espbench.terms import FULL_GATEWAY_SPEED, GATEWAY_SPEED

# The usual speed is not known before this number of trials.
_LEAST_TRIALS = 5
# This number of the latest trials counts. A machine that stays slow becomes usual after three quarters of them.
_LATEST_TRIALS = 40
# Trials on undisturbed CPUs differ by 2 or 3 %. A trial whose speed is below this share of the usual one is too slow.
_SHARE = 0.93


class UsualSpeed:
    """The full speeds of a run's CPUs, and the speeds of the gateways' CPUs in its latest trials.

    These are kept in the unit of the full speed, not in % of it: the full speed rises when CPUs are faster than ever
    before, and % of one full speed cannot be compared with % of another.

    All generators of a run share one: the fastest work that one process has seen says nothing about the full speed if
    it began beside a neighbour.
    """

    def __init__(self) -> None:
        self._full_per_ms: dict[str, float] = {}
        self._latest: deque[float] = deque(maxlen=_LATEST_TRIALS)

    def see(self, fastest_per_ms: Mapping[str, float]) -> None:
        """Raise the full speed of each of these CPUs to the fastest work that a generator has seen there."""
        for cpu, per_ms in fastest_per_ms.items():
            self._full_per_ms[cpu] = max(per_ms, self._full_per_ms.get(cpu, 0.0))

    def pct(self, mean_per_ms: Mapping[str, float]) -> float | None:
        """Return the mean speed of these CPUs in a trial, in % of their full speed; each must have been seen.

        None if the full speed of one is not known, because all trials so far were too short.
        """
        if self.full_per_ms(mean_per_ms) is None:
            return None
        shares = (min(1.0, per_ms / self._full_per_ms[cpu]) for cpu, per_ms in mean_per_ms.items())
        return round(100 * fmean(shares), 1)

    def full_per_ms(self, cpus: Collection[str]) -> float | None:
        """Return the mean full speed of these CPUs, of which each must have been seen; None if one is not known."""
        full = [self._full_per_ms[cpu] for cpu in cpus]
        return fmean(full) if full and all(full) else None

    def continue_after(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Begin with a resumed run's trials: the records of the host, in their order."""
        for record in records:
            speeds = record.get("cpu_speed") or {}
            self.see({cpu: speed["fastest_per_ms"] for cpu, speed in speeds.items()})
            self.add(record)

    def add(self, record: Mapping[str, Any]) -> None:
        """Remember the speed in a trial, from its record of the host, if it is known."""
        pct, full_per_ms = record.get(GATEWAY_SPEED), record.get(FULL_GATEWAY_SPEED)
        if pct is not None and full_per_ms is not None:
            self._latest.append(pct / 100 * full_per_ms)

    def least_pct(self, full_per_ms: float) -> float | None:
        """Return the least speed of a trial that counts, in % of this full speed; None as long as too few trials are
        known.

        The usual speed is the upper quartile: neighbours make CPUs slower, never faster. It is relative to the run,
        because on some machines the CPUs never have their full speed, for instance if tester and gateways share a core.
        """
        if len(self._latest) < _LEAST_TRIALS:
            return None
        usual_per_ms = quantiles(self._latest, n=4, method="inclusive")[2]
        return round(100 * _SHARE * usual_per_ms / full_per_ms, 1)


def speeds_pct(host_records: Iterable[Mapping[str, Any]]) -> list[float | None]:
    """Return the speed of the gateways' CPUs in each of these records, in % of the highest full speed that any of them
    knows; None where no speed is known.

    The full speed can rise during a run, so % in different records cannot be compared as they are.
    """
    records = list(host_records)
    known = [full for record in records if (full := record.get(FULL_GATEWAY_SPEED)) is not None]
    each = []
    for record in records:
        pct, full = record.get(GATEWAY_SPEED), record.get(FULL_GATEWAY_SPEED)
        each.append(pct if pct is None or full is None else round(pct * full / max(known), 1))
    return each
