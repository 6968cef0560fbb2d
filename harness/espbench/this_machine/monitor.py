# SPDX-License-Identifier: Apache-2.0
"""Receives the kernel's messages about this machine's links and Security Associations while a trial runs.

Each network namespace concerned gets a socket that has joined the kernel's multicast groups. The sockets are opened
right before the trial and drained right after it. Meanwhile a thread sleeps in poll(2) and notes the time when a
message arrives, so it uses no CPU time as long as nothing happens. Messages are decoded after the trial.

The monitor also requests the state of each link at the beginning and at the end. The kernel may delay its message about
a lost carrier by up to a second, and sends none if the carrier comes back within that time, but it counts both changes.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from espbench.this_machine.link_events import Heard, Link, LinkEvent, ask, link_events, understood
from espbench.this_machine.network import in_netns

NETLINK_ROUTE, NETLINK_XFRM = 0, 6
# Bits of the groups: RTNLGRP_LINK (linux/rtnetlink.h); XFRMNLGRP_EXPIRE, _SA and _POLICY (linux/xfrm.h).
GROUPS = {NETLINK_ROUTE: 1 << 0, NETLINK_XFRM: 1 << 1 | 1 << 2 | 1 << 3}
SO_RCVBUFFORCE = 33  # linux/asm-generic/socket.h
_BUFFER_BYTES = 4 << 20
_LARGEST_DATAGRAM = 1 << 16


@dataclass
class _Ear:
    """A socket that listens in one namespace, and the messages it received.

    subject: the changes that it reports, in words, for the case that it cannot.
    """

    socket: socket.socket
    subject: str
    heard: list[Heard] = field(default_factory=list)
    overflowed: bool = False

    def drain(self) -> None:
        """Receive all messages that have arrived."""
        while True:
            try:
                datagram = self.socket.recv(_LARGEST_DATAGRAM, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                self.overflowed = True
            else:
                self.heard.append(Heard(time.monotonic_ns(), datagram))


class Monitor:
    """Listens while its context is entered.

    links: the links to watch. gateways: gateway → file of the namespace whose SAs are watched.
    """

    def __init__(self, links: Sequence[Link], gateways: Mapping[str, str]) -> None:
        self._links = {
            netns: [link for link in links if link.netns == netns] for netns in {link.netns for link in links}
        }
        self._gateways = gateways
        self._of_links: dict[str | None, _Ear] = {}  # by namespace
        self._of_xfrm: dict[str, _Ear] = {}  # by gateway
        self._deaf: list[str] = []
        self._stop: int | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        for netns, links in self._links.items():
            whose = " and ".join(link.whose for link in links)
            ear = self._open(netns, NETLINK_ROUTE, f"changes of the links of {whose} in mid-trial")
            if ear is not None:
                self._of_links[netns] = ear
                self._look(netns, ear)
        for whose, netns in self._gateways.items():
            ear = self._open(netns, NETLINK_XFRM, f"changes of the SAs of {whose} in mid-trial")
            if ear is not None:
                self._of_xfrm[whose] = ear
        if self._ears:
            self._stop = os.eventfd(0)
            self._thread = threading.Thread(target=self._listen, name="network monitor", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is not None and self._stop is not None:
            os.eventfd_write(self._stop, 1)
            self._thread.join()
            os.close(self._stop)
        for netns, ear in self._of_links.items():
            self._look(netns, ear)
        for ear in self._ears:
            ear.drain()
            ear.socket.close()

    @property
    def _ears(self) -> list[_Ear]:
        return [*self._of_links.values(), *self._of_xfrm.values()]

    def link_events(self) -> list[LinkEvent]:
        """Return the events of the links while the monitor listened, in the order of time."""
        events = [
            event
            for netns, ear in self._of_links.items()
            for link in self._links[netns]
            for event in link_events(link, ear.heard)
        ]
        return sorted(events, key=lambda event: event.at_ns)

    def xfrm_heard(self) -> dict[str, list[Heard]]:
        """Return by gateway the kernel's messages about SAs and policies while the monitor listened."""
        return {whose: ear.heard for whose, ear in self._of_xfrm.items()}

    def not_heard(self) -> list[str]:
        """Say which changes may be missing, because a socket was refused, a link is missing, or messages were lost."""
        missing = [
            f"changes of the link of {link.whose} in mid-trial (this machine has no interface {link.interface})"
            for netns, ear in self._of_links.items()
            for link in self._links[netns]
            if not understood(link, ear.heard)
        ]
        cut = [f"{ear.subject} (more came than could be kept)" for ear in self._ears if ear.overflowed]
        return self._deaf + missing + cut

    def _open(self, netns: str | None, protocol: int, subject: str) -> _Ear | None:
        try:
            return _Ear(in_netns(netns, lambda: _listening(protocol)), subject)
        except OSError as error:
            self._deaf.append(f"{subject} ({error.strerror})")
            return None

    def _look(self, netns: str | None, ear: _Ear) -> None:
        """Request the state of each link; the kernel answers at once, after the messages it has sent before."""
        for link in self._links[netns]:
            ear.socket.send(ask(link))

    def _listen(self) -> None:
        ears = {ear.socket.fileno(): ear for ear in self._ears}
        waiting = select.poll()
        for number in (*ears, self._stop):
            waiting.register(number, select.POLLIN)  # type: ignore[arg-type]
        while True:
            ready = [number for number, _ in waiting.poll()]
            for number in ready:
                if number in ears:
                    ears[number].drain()
            if self._stop in ready:
                return


def _listening(protocol: int) -> socket.socket:
    """Return a socket that has joined the protocol's groups, in the namespace of the calling thread; raise OSError."""
    opened = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol)
    try:
        try:
            opened.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, _BUFFER_BYTES)
        except PermissionError:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
        opened.bind((0, GROUPS[protocol]))
    except OSError:
        opened.close()
        raise
    return opened
