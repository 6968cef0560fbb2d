# SPDX-License-Identifier: Apache-2.0
"""Remembers how fast the gateways' CPUs were in the latest trials of a run, and says when a trial's were too slow."""

from __future__ import annotations

from collections import deque
from statistics import quantiles

# The usual speed is not known before this number of trials.
_LEAST_TRIALS = 5
# This number of the latest trials counts. A machine that stays slow becomes usual after three quarters of them.
_LATEST_TRIALS = 40
# Trials on undisturbed CPUs differ by 2 or 3 %. A trial whose speed is below this share of the usual one is too slow.
_SHARE = 0.93


class UsualSpeed:
    """The speeds of the gateways' CPUs in the latest trials of a run, in % of their full speed."""

    def __init__(self) -> None:
        self._latest: deque[float] = deque(maxlen=_LATEST_TRIALS)

    def add(self, pct: float | None) -> None:
        """Remember the speed in a trial; None: not known."""
        if pct is not None:
            self._latest.append(pct)

    @property
    def least_pct(self) -> float | None:
        """The least speed of a trial that counts, %; None as long as too few trials are known.

        The usual speed is the upper quartile: neighbours make CPUs slower, never faster. It is relative to the run,
        because on some machines the CPUs never have their full speed, for instance if tester and gateways share a core.
        """
        if len(self._latest) < _LEAST_TRIALS:
            return None
        return round(_SHARE * quantiles(self._latest, n=4, method="inclusive")[2], 1)
