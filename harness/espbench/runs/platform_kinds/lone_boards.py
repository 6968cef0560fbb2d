# SPDX-License-Identifier: Apache-2.0
"""Emulated boards whose cores run cipher kernels alone (`platform: qemu_e500` without a network)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from espbench.errors import UsageError
from espbench.npcrypt import board
from espbench.platforms.e500 import own_kernel
from espbench.platforms.virtual.parts.build import Kit
from espbench.platforms.virtual.parts.kits import E500_KIT
from espbench.runs.platform_kinds.network_processors import NetworkProcessors
from espbench.runs.platform_kinds.shared.platform import OnNote, demand


class LoneBoards(NetworkProcessors):
    """Emulated boards whose cores run cipher kernels alone, without a gateway or a test bed."""

    name = "qemu_e500"

    def require(self, on_note: OnNote) -> None:
        for key in ("modules", "overlay"):
            if (paths := getattr(self._profile, key)) is not None:
                raise UsageError(
                    f"{key}: expected none for a board that runs cipher kernels alone, got {paths.home}; remove {key}:"
                )
        demand([E500_KIT.readiness(), board.readiness()])
        if self._profile.own_kernel is not None:
            own_kernel.identified(Path(self._profile.own_kernel.home))

    @property
    def kits(self) -> list[Kit[Any]]:
        """List the kits of which a board is built."""
        return [E500_KIT]

    def notes(self) -> list[str]:
        """Say where the board's core is not of the device's own kind."""
        return [self._profile.core_note] if self._profile.core_note else []
