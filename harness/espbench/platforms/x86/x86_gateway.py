# SPDX-License-Identifier: Apache-2.0
"""A gateway that is an x86-64 guest: the length of its ports' rings can be set."""

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
    idle_time_needs = "CONFIG_X86_IOPL_IOPERM=y"

    def __init__(
        self, side: Side, guest: Guest, notebook: Path, machine: Machine, *, own_kernel: bool = False
    ) -> None:
        super().__init__(side, guest, notebook)
        self._machine = machine
        self._own_kernel = own_kernel

    def ip(self, lines: list[str]) -> None:
        """Execute the lines; if they fail because the user's kernel has no ports, the error says so."""
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
        """Let the guest also save the symbols of its kernel and modules."""
        self.request("symbols")
        super().tell_symbols()

    def set_up_ports(self) -> None:
        """Set the rings of both ports to the profile's lengths. Raise EspbenchError if the driver has other lengths."""
        wanted = {"receive": self._machine.receive_ring, "transmit": self._machine.transmit_ring}
        for name in (self.lan, self.wan):
            answer = self.request(f"rings {name} {wanted['receive']} {wanted['transmit']}")
            if (got := {ring: answer[ring] for ring in wanted}) != wanted:
                raise EspbenchError(
                    f"gateway {self.side}: rings of {name}: expected {wanted} frames, its driver has {got}"
                )
