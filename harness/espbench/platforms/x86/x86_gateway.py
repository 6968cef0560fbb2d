# SPDX-License-Identifier: Apache-2.0
"""A gateway that is an x86-64 guest: its ports have rings of a length that can be chosen."""

from __future__ import annotations

from pathlib import Path

from espbench.errors import EspbenchError
from espbench.platforms.base import Side
from espbench.platforms.virtual.virtual_gateway import VirtualGateway
from espbench.platforms.virtual.virtual_guest import Guest
from espbench.platforms.x86.own_kernel import PORTS
from espbench.platforms.x86.x86_guest import Machine


class X86Gateway(VirtualGateway):
    """A `base.Gateway` with Debian's kernel."""

    has_power_switch = True

    def __init__(
        self, side: Side, guest: Guest, notebook: Path, machine: Machine, *, own_kernel: bool = False
    ) -> None:
        super().__init__(side, guest, notebook)
        self._machine = machine
        self._own_kernel = own_kernel

    def ip(self, lines: list[str]) -> None:
        """Carry them out; where that fails because the user's kernel has no ports, that is what the message says."""
        try:
            super().ip(lines)
        except EspbenchError:
            if self._own_kernel and not {self.lan, self.wan} <= self.link_counters().keys():
                raise EspbenchError(
                    f"gateway {self.side}: expected {self.lan} and {self.wan}, the profile's kernel found no driver "
                    f"for them: build {PORTS} in (CONFIG_E1000E), or give modules:"
                ) from None
            raise

    def tell_symbols(self) -> None:
        """Have the guest read its kernel's own table of symbols, which has the modules too."""
        self.request("symbols")
        super().tell_symbols()

    def set_up_ports(self) -> None:
        """Give both ports the rings that the profile asks for; EspbenchError where the driver has others."""
        wanted = {"receive": self._machine.receive_ring, "transmit": self._machine.transmit_ring}
        for name in (self.lan, self.wan):
            answer = self.request(f"rings {name} {wanted['receive']} {wanted['transmit']}")
            if (got := {ring: answer[ring] for ring in wanted}) != wanted:
                raise EspbenchError(
                    f"gateway {self.side}: rings of {name}: expected {wanted} frames, its driver has {got}"
                )
