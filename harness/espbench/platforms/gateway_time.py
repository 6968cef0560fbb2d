# SPDX-License-Identifier: Apache-2.0
"""Waits by the clock of a gateway whose time is virtual, and passes only when the generator lets it."""

from __future__ import annotations

import time
from typing import Protocol, runtime_checkable

from espbench.platforms.base import Gateway


@runtime_checkable
class OwnTime(Protocol):
    """A gateway whose time is not the host's."""

    def now_s(self) -> float:
        """Return its time since the boot, s."""

    def pause(self, seconds: float) -> None:
        """Let its time pass."""


def now_s(gateway: Gateway) -> float:
    """Return a time that goes on as the gateway's does, s; only to be compared with another of the same gateway."""
    return gateway.now_s() if isinstance(gateway, OwnTime) else time.monotonic()


def pause(gateway: Gateway, seconds: float) -> None:
    """Wait so long by the gateway's clock."""
    if isinstance(gateway, OwnTime):
        gateway.pause(seconds)
    else:
        time.sleep(seconds)
