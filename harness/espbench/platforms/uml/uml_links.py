# SPDX-License-Identifier: Apache-2.0
"""The links of a pair of User-Mode Linux guests: taps, pairs of sockets, and a wire in the middle of each that errs.

    tap west ── vec0 Home vec1 ══ socketpair, or taps and a bridge ══ vec1 Office vec0 ── tap east
    tap west ── wire ── tap west-far ── bridge ── tap west-dut ── vec0 Home …      (a link that errs)

Each guest's port is of the same kind with errors and without: what a frame costs the guest does not depend on them.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass

from espbench.platforms.base import SIDES, PortName, Side
from espbench.platforms.link_errors import Errors
from espbench.platforms.uml.link_wire import ErringLinks, Wire, WireEnd, link_number
from espbench.this_machine.network import NETNS_DIR, make_bridge, make_tap, set_link, write_sysctls
from espbench.this_machine.registry import Registry

TAP_QUEUE = 10_000
MIDDLE_BUFFER = 8 << 20
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33  # linux/asm-generic/socket.h; the socket module does not name them
LAN_OF: dict[Side, PortName] = {"home": "west", "office": "east"}


@dataclass(frozen=True)
class GuestPorts:
    """The other ends of a guest's ports: its LAN's tap; its WAN's tap, or its end of a pair of sockets."""

    lan: str
    wan: WireEnd


@dataclass(frozen=True)
class LinkMaker:
    """Makes the links of one test bed in the tester's namespace.

    wire: the program that carries links that err, on these cpus. capture: the middle link becomes a bridge whose port
    shows what crosses it. single: Home alone, whose WAN is the tester's east port.
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
        """Make all links; EspbenchError says what failed. What was made until then stays registered."""
        # Before the links: no router solicitation, no multicast report may count as a frame of the DUT.
        write_sysctls(self.netns, {f"net/ipv6/conf/{conf}/disable_ipv6": "1" for conf in ("all", "default")})
        wires: dict[str, Wire] = {}
        taps = {name: self._testers_link(name, wires) for name in LAN_OF.values()}
        wans: dict[Side, WireEnd] = {"home": taps["east"]} if self.single else self._middle(wires)
        ports = {side: GuestPorts(taps[LAN_OF[side]], wan) for side, wan in wans.items()}
        return ports, ErringLinks(self.errors, wires)

    def _testers_link(self, name: PortName, wires: dict[str, Wire]) -> str:
        """Make the link of a tester's port; return the tap of the guest at its other end."""
        self._tap(name)
        if name not in self.errors.links:
            return name
        far, dut = f"{name}-far", f"{name}-dut"
        self._bridge(f"{name}-link", far, dut)
        wires[name] = self._start(name, (name, far))
        return dut

    def _middle(self, wires: dict[str, Wire]) -> dict[Side, WireEnd]:
        """Make the link between the guests; return the end of each."""
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
                # The kernel doubles what it is given.
                end.setsockopt(socket.SOL_SOCKET, option, MIDDLE_BUFFER // 2)
        return ends

    def _start(self, link: str, ends: tuple[WireEnd, WireEnd]) -> Wire:
        """Start the program that is a link: the first end is the tester's, or Home's, as in virtual time."""
        number = ["--link", str(link_number(link, single=self.single))]
        command = [*self.wire, *self.errors.of(link).flags_of_wire, *number]
        return Wire.start(
            self.registry, f"{link} link", command, ends, str(NETNS_DIR / self.netns), self.cpus
        )

    def _tap(self, name: str) -> None:
        """Make a tap, which answers nothing."""
        make_tap(self.netns, name)
        set_link(self.netns, name, queue=TAP_QUEUE, mtu=self.mtu, arp=False, multicast=False)
        set_link(self.netns, name, up=True)

    def _bridge(self, name: str, *taps: str) -> None:
        """Make taps and join them."""
        for tap in taps:
            self._tap(tap)
        make_bridge(self.netns, name, taps, self.mtu)
        set_link(self.netns, name, arp=False, multicast=False, up=True)


def queues(*, capture: bool, single: bool, errors: Errors) -> dict[str, str]:
    """Name the queues of the links, and their lengths."""
    middle = f"2 taps of {TAP_QUEUE} frames and a bridge" if capture else f"{MIDDLE_BUFFER} bytes each way"
    return {
        "west tap": f"{TAP_QUEUE} frames",
        "east tap": f"{TAP_QUEUE} frames",
        **({} if single else {"middle link": middle}),
        **{f"{name} link, which errs": "a wire and as much before it as behind it" for name in errors.links},
    }
