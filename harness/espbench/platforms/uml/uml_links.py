# SPDX-License-Identifier: Apache-2.0
"""Makes the links of User-Mode Linux guests: taps, pairs of sockets, and a wire in the middle of each link with errors.

    tap west ── vec0 Home vec1 ══ socketpair, or taps and a bridge ══ vec1 Office vec0 ── tap east
    tap west ── wire ── tap west-far ── bridge ── tap west-dut ── vec0 Home …      (a link with errors)

Each guest's port is of the same kind with and without errors, so the cost of a frame in the guest is the same.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass

from espbench.platforms.base import SIDES, PortName, Side
from espbench.platforms.link_errors import Errors
from espbench.platforms.uml.link_wire import ErringLinks, Wire, WireEnd, link_number
from espbench.this_machine.network import (
    NETNS_DIR,
    ipv6_is_here,
    make_bridge,
    make_tap,
    set_link,
    write_sysctls,
)
from espbench.this_machine.registry import Registry

TAP_QUEUE = 10_000
MIDDLE_BUFFER = 8 << 20
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33  # linux/asm-generic/socket.h; the socket module does not name them
LAN_OF: dict[Side, PortName] = {"home": "west", "office": "east"}


@dataclass(frozen=True)
class GuestPorts:
    """The host's ends of a guest's ports: the tap of its LAN port; the tap or the socket of its WAN port."""

    lan: str
    wan: WireEnd


@dataclass(frozen=True)
class LinkMaker:
    """Makes the links of one test bed in the tester's namespace.

    wire: the command of the program for links with errors, which runs on these cpus. capture: the middle link becomes a
    bridge, so that its frames can be captured. single: there is only Home, whose WAN port is at the tester's east port.
    """

    registry: Registry
    netns: str
    mtu: int
    errors: Errors
    wire: Sequence[str]
    cpus: Sequence[int]
    capture: bool = False
    single: bool = False

    def make(self) -> tuple[dict[Side, GuestPorts], ErringLinks]:
        """Make all links, and return each guest's ports and the links with errors.

        Raise EspbenchError if a link cannot be made. What was made until then stays registered.
        """
        # IPv6 is disabled before the links exist, so that no router solicitation or multicast report counts as a frame
        # of the DUT.
        if ipv6_is_here():
            write_sysctls(
                self.netns, {f"net/ipv6/conf/{conf}/disable_ipv6": "1" for conf in ("all", "default")}
            )
        wires: dict[str, Wire] = {}
        taps = {name: self._testers_link(name, wires) for name in LAN_OF.values()}
        wans: dict[Side, WireEnd] = {"home": taps["east"]} if self.single else self._middle(wires)
        ports = {side: GuestPorts(taps[LAN_OF[side]], wan) for side, wan in wans.items()}
        return ports, ErringLinks(self.errors, wires)

    def _testers_link(self, name: PortName, wires: dict[str, Wire]) -> str:
        """Make the link of a port of the tester, and return the guest's tap at its other end."""
        self._tap(name)
        if name not in self.errors.links:
            return name
        far, dut = f"{name}-far", f"{name}-dut"
        self._bridge(f"{name}-link", far, dut)
        wires[name] = self._start(name, (name, far))
        return dut

    def _middle(self, wires: dict[str, Wire]) -> dict[Side, WireEnd]:
        """Make the link between the guests, and return each guest's end."""
        errs = "middle" in self.errors.links
        if self.capture:
            taps: dict[Side, WireEnd] = {side: f"middle-{side}" for side in SIDES}
            if errs:
                self._bridge("middle", "middle-home", "middle-a")
                self._bridge("middle-2", "middle-b", "middle-office")
                wires["middle"] = self._start("middle", ("middle-a", "middle-b"))
            else:
                self._bridge("middle", "middle-home", "middle-office")
            return taps
        home, office = self._sockets("home", "office")
        if errs:
            near = office
            far, office = self._sockets("wire to office", "office beyond it")
            wires["middle"] = self._start("middle", (near, far))
        return {"home": home, "office": office}

    def _sockets(self, *names: str) -> tuple[socket.socket, socket.socket]:
        """Make a pair of sockets, which stays open with the test bed, so that a guest can be started again at it."""
        ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for name, end in zip(names, ends, strict=True):
            self.registry.closing(f"middle link of {name}", end.close)
            for option in (SO_SNDBUFFORCE, SO_RCVBUFFORCE):
                # The kernel doubles the value that is set.
                end.setsockopt(socket.SOL_SOCKET, option, MIDDLE_BUFFER // 2)
        return ends

    def _start(self, link: str, ends: tuple[WireEnd, WireEnd]) -> Wire:
        """Start the program of a link with errors. As in virtual time, the first end is the tester's or Home's."""
        number = ["--link", str(link_number(link, single=self.single))]
        command = [*self.wire, *self.errors.of(link).flags_of_wire, *number]
        return Wire.start(
            self.registry, f"{link} link", command, ends, str(NETNS_DIR / self.netns), self.cpus
        )

    def _tap(self, name: str) -> None:
        """Make a tap; the host does not answer on it."""
        make_tap(self.netns, name)
        set_link(self.netns, name, queue=TAP_QUEUE, mtu=self.mtu, arp=False, multicast=False)
        set_link(self.netns, name, up=True)

    def _bridge(self, name: str, *taps: str) -> None:
        """Make taps and a bridge that connects them."""
        for tap in taps:
            self._tap(tap)
        make_bridge(self.netns, name, taps, self.mtu)
        set_link(self.netns, name, arp=False, multicast=False, up=True)


def queues(*, capture: bool, single: bool, errors: Errors) -> dict[str, str]:
    """Return the queues of the links by name, with their lengths."""
    middle = f"2 taps of {TAP_QUEUE} frames and a bridge" if capture else f"{MIDDLE_BUFFER} bytes each way"
    return {
        "west tap": f"{TAP_QUEUE} frames",
        "east tap": f"{TAP_QUEUE} frames",
        **({} if single else {"middle link": middle}),
        **{f"{name} link, which errs": "a wire and as much before it as behind it" for name in errors.links},
    }
