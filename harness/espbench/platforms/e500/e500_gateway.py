# SPDX-License-Identifier: Apache-2.0
"""A gateway that is an e500 guest: it has the driver-level accelerator test, and big-endian integers."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Literal

from espbench.errors import EspbenchError
from espbench.platforms.base import Side
from espbench.platforms.e500.e500_guest import Coalescing
from espbench.platforms.virtual.virtual_gateway import VirtualGateway
from espbench.platforms.virtual.virtual_guest import Guest

_SYMBOLS = "/proc/kallsyms"


class E500Gateway(VirtualGateway):
    """A `base.Gateway` with a security engine, whose ports coalesce interrupts as `coalescing` says."""

    byte_order: Literal["little", "big"] = "big"
    idle_time_needs = "harness/emulator/kernel/idle.c (docs/powerquicc.md)"

    def __init__(
        self,
        side: Side,
        guest: Guest,
        notebook: Path,
        coalescing: Coalescing = Coalescing(),  # noqa: B008  (frozen)
    ) -> None:
        super().__init__(side, guest, notebook)
        self._coalescing = coalescing

    def tell_symbols(self) -> None:
        """Save the symbols of the guest's kernel, and the address maps of its programs."""
        assert self.profile is not None
        self.profile.put_symbols(self.read([_SYMBOLS])[_SYMBOLS] or "")
        super().tell_symbols()

    def set_up_ports(self) -> None:
        """Set the interrupt coalescing of both ports. Raise EspbenchError if the driver reports other values.

        By default Linux coalesces the interrupts of frames that it sends. Here each frame has an interrupt, unless the
        profile asks for coalescing.
        """
        wanted = asdict(self._coalescing)
        for name in (self.lan, self.wan):
            answer = self.request(f"coalesce {name} " + " ".join(map(str, wanted.values())))
            if (got := {key: answer[key] for key in wanted}) != wanted:
                raise EspbenchError(
                    f"gateway {self.side}: {name} was to gather interrupts as {wanted}, its driver says {got}"
                )
