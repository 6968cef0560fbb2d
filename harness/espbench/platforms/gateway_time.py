# SPDX-License-Identifier: Apache-2.0
"""Waiting as a gateway waits: by its own clock where its time is virtual and passes only when it is let."""

from __future__ import annotations

import time
from typing import Protocol, runtime_checkable

from espbench.platforms.base import Gateway


@runtime_checkable
class OwnTime(Protocol):
    """A gateway whose time is not the host's."""

    def now_s(self) -> float:
        """Its time since the boot, s."""

    def pause(self, seconds: float) -> None:
        """Let its time pass."""


def now_s(gateway: Gateway) -> float:
    """A time that goes on as the gateway's does, s; only to be compared with another of the same gateway."""
    return gateway.now_s() if isinstance(gateway, OwnTime) else time.monotonic()


def pause(gateway: Gateway, seconds: float) -> None:
    """Wait so long by the gateway's clock."""
    if isinstance(gateway, OwnTime):
        gateway.pause(seconds)
    else:
        time.sleep(seconds)
