# SPDX-License-Identifier: Apache-2.0
"""Waits by a gateway's own clock: virtual time passes only when the generator lets it pass."""

from __future__ import annotations

import time
from typing import Protocol, runtime_checkable

from espbench.platforms.base import Gateway


@runtime_checkable
class OwnTime(Protocol):
    """A gateway whose clock is not that of the host."""

    def now_s(self) -> float:
        """Return the gateway's time since its boot, s."""

    def pause(self, seconds: float) -> None:
        """Let this much of the gateway's time pass."""


def now_s(gateway: Gateway) -> float:
    """Return the time on the gateway's clock, s; only differences of times of the same gateway have a meaning."""
    return gateway.now_s() if isinstance(gateway, OwnTime) else time.monotonic()


def pause(gateway: Gateway, seconds: float) -> None:
    """Wait this long by the gateway's clock."""
    if isinstance(gateway, OwnTime):
        gateway.pause(seconds)
    else:
        time.sleep(seconds)
