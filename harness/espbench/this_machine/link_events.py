# SPDX-License-Identifier: Apache-2.0
"""Derives the changes of a link from the kernel's messages (RTM_NEWLINK, RTM_DELLINK); pure functions."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

RTM_NEWLINK, RTM_DELLINK, RTM_GETLINK = 16, 17, 18
NLM_F_REQUEST = 1
IFF_UP = 0x1
_HEADER = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence number, port


class LinkChange(StrEnum):
    """A change of a link; the value is its name in a trial's record."""

    SET_DOWN = "set down"
    SET_UP = "set up"
    CARRIER_LOST = "carrier lost"
    CARRIER_BACK = "carrier back"
    CARRIER_FLAPPED = "carrier flapped"  # by the kernel's count it changed more often than the messages say
    REMOVED = "removed"
    MADE = "made anew"


@dataclass(frozen=True)
class Link:
    """An interface of this machine.

    whose: who has it, such as `tester west`. netns: the file of its namespace; None: the namespace of this process.
    """

    whose: str
    interface: str
    netns: str | None


@dataclass(frozen=True)
class Heard:
    """A datagram from the kernel, and the time when this process received it, ns of CLOCK_MONOTONIC."""

    at_ns: int
    datagram: bytes


@dataclass(frozen=True)
class LinkEvent:
    """A change of a link, and the time when this process learned of it, ns of CLOCK_MONOTONIC."""

    at_ns: int
    link: Link
    change: LinkChange


@dataclass(frozen=True)
class _State:
    """The state of a link according to one message."""

    name: str
    index: int
    up: bool
    carrier: bool
    carrier_changes: int
    removed: bool


def ask(link: Link) -> bytes:
    """Return the message RTM_GETLINK, which asks for the state of one link by its name."""
    from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg  # noqa: PLC0415  (loaded where there is a network to watch)

    message = ifinfmsg()
    message["header"]["type"] = RTM_GETLINK
    message["header"]["flags"] = NLM_F_REQUEST
    message["attrs"] = [("IFLA_IFNAME", link.interface)]
    message.encode()
    return bytes(message.data)


def link_events(link: Link, heard: Sequence[Heard]) -> list[LinkEvent]:
    """Return the events of a link from all messages in its namespace; its first message gives the initial state."""
    events: list[LinkEvent] = []
    now: _State | None = None
    for at_ns, state in _states(link, heard):
        if now is not None:
            events += [LinkEvent(at_ns, link, change) for change in _changes(now, state)]
        now = state
    return events


def understood(link: Link, heard: Sequence[Heard]) -> bool:
    """Return whether the kernel has reported this link at all."""
    return any(True for _ in _states(link, heard))


def _changes(before: _State, after: _State) -> list[LinkChange]:
    if after.removed:
        return [] if before.removed else [LinkChange.REMOVED]
    if before.removed or before.index != after.index:
        return [LinkChange.MADE]
    changed = before.carrier != after.carrier
    unseen = after.carrier_changes - before.carrier_changes - changed
    changes = [LinkChange.CARRIER_FLAPPED] if unseen > 0 else []
    if before.up != after.up:
        # The carrier changes together with the state; this is not an event of its own.
        changes.append(LinkChange.SET_UP if after.up else LinkChange.SET_DOWN)
    elif changed:
        changes.append(LinkChange.CARRIER_BACK if after.carrier else LinkChange.CARRIER_LOST)
    return changes


def _states(link: Link, heard: Sequence[Heard]) -> Iterator[tuple[int, _State]]:
    index = None
    for one in heard:
        for kind, message in _messages(one.datagram):
            state = _read(kind, message)
            if state is None or (state.name != link.interface and state.index != index):
                continue
            index = state.index
            yield one.at_ns, state


def _messages(datagram: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (type, whole message) of each message in a datagram."""
    offset = 0
    while offset + _HEADER.size <= len(datagram):
        length, kind, *_ = _HEADER.unpack_from(datagram, offset)
        if length < _HEADER.size:
            return
        yield kind, datagram[offset : offset + length]
        offset += (length + 3) & ~3


def _read(kind: int, message: bytes) -> _State | None:
    """Return the state in a message about a link itself (not about its place in a bridge); None for other messages."""
    from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg  # noqa: PLC0415

    if kind not in (RTM_NEWLINK, RTM_DELLINK):
        return None
    link = ifinfmsg(message)
    link.decode()
    if link["family"]:
        return None
    return _State(
        name=link.get_attr("IFLA_IFNAME") or "",
        index=link["index"],
        up=bool(link["flags"] & IFF_UP),
        carrier=bool(link.get_attr("IFLA_CARRIER")),
        carrier_changes=link.get_attr("IFLA_CARRIER_CHANGES") or 0,
        removed=kind == RTM_DELLINK,
    )
