# SPDX-License-Identifier: Apache-2.0
"""A guest without power: what is sent to it is lost, and its neighbour is never held up."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any, cast

import pytest

from espbench.platforms.base import PowerSwitch
from espbench.platforms.uml.uml_links import GuestPorts
from espbench.platforms.uml.uml_platform import UmlTestbed, _Running


def _running(ports: GuestPorts) -> _Running:
    return _Running(cast(Any, SimpleNamespace(side="home")), cast(Any, None), [], cast(Any, None), [], ports)


def _send(end: socket.socket) -> None:
    for _ in range(5000):
        end.send(bytes(1400))


def test_a_link_without_light_takes_whatever_is_sent() -> None:
    """Far more than the socket keeps; with the light on again, the next frame is there for the guest."""
    dark, alive = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with dark, alive:
        running = _running(GuestPorts("west", dark))
        alive.setblocking(False)
        with pytest.raises(BlockingIOError):
            _send(alive)
        alive.settimeout(120)
        with running.without_light():
            _send(alive)
        while True:  # drain what was under way when it came on
            try:
                dark.recv(2000, socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
        alive.send(b"the first")
        assert dark.recv(2000, socket.MSG_DONTWAIT) == b"the first"


def test_a_tap_needs_nobody_to_lose_its_frames() -> None:
    """The kernel drops what nobody reads there."""
    running = _running(GuestPorts("west", "middle-home"))
    with running.without_light():
        pass


def test_a_pair_of_guests_has_a_power_switch() -> None:
    assert isinstance(UmlTestbed.__new__(UmlTestbed), PowerSwitch)
