# SPDX-License-Identifier: Apache-2.0
"""The kernel's messages say what happened to a link."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espbench.this_machine.link_events import Heard, Link, LinkChange, ask, link_events, understood

LINK = Link("tester west", "a0", None)
RTM_NEWLINK, RTM_DELLINK = 16, 17
IFLA_IFNAME, IFLA_CARRIER, IFLA_CARRIER_CHANGES = 3, 33, 35


def attribute(kind: int, value: bytes) -> bytes:
    """A netlink attribute, padded to 4 bytes."""
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def message(
    up: bool = True, carrier: bool = True, changes: int = 1,
    *, kind: int = RTM_NEWLINK, name: str = "a0", index: int = 7, family: int = 0,
) -> bytes:  # fmt: skip
    """RTM_NEWLINK as linux/if_link.h has it."""
    body = struct.pack("=BxHiII", family, 1, index, 1 if up else 0, 0)
    body += attribute(IFLA_IFNAME, name.encode() + b"\0")
    body += attribute(IFLA_CARRIER, bytes([carrier])) + attribute(
        IFLA_CARRIER_CHANGES, struct.pack("=I", changes)
    )
    return struct.pack("=IHHII", 16 + len(body), kind, 0, 0, 0) + body


def changes(*messages: bytes) -> list[tuple[int, LinkChange]]:
    """(number of the message, what happened) for messages that came one by one."""
    events = link_events(LINK, [Heard(number, datagram) for number, datagram in enumerate(messages)])
    return [(event.at_ns, event.change) for event in events]


def test_a_state_that_stays_is_no_event() -> None:
    """Messages come for many other reasons, such as an MTU or an XDP program."""
    assert changes(message(), message(), message()) == []


@pytest.mark.parametrize(
    ("after", "change"),
    [
        (message(up=False, carrier=False, changes=2), LinkChange.SET_DOWN),
        (message(up=False), LinkChange.SET_DOWN),
        (message(carrier=False, changes=2), LinkChange.CARRIER_LOST),
        (message(changes=3), LinkChange.CARRIER_FLAPPED),
        (message(kind=RTM_DELLINK), LinkChange.REMOVED),
        (message(index=8), LinkChange.MADE),
    ],
)
def test_a_change_is_told_with_the_time_of_its_message(after: bytes, change: LinkChange) -> None:
    """Each by itself, after a link that was up."""
    assert changes(message(), message(), after) == [(2, change)]


def test_a_flap_that_the_kernel_told_late_is_seen_beside_what_it_told() -> None:
    """Lost, back, and set down before the first of it was told: three changes of the carrier."""
    events = changes(message(changes=1), message(up=False, carrier=False, changes=4))
    assert events == [(1, LinkChange.CARRIER_FLAPPED), (1, LinkChange.SET_DOWN)]


def test_a_link_comes_back() -> None:
    """Set up it has no carrier yet; removed and made again it is another one."""
    down, up = message(up=False, carrier=False, changes=2), message(carrier=False, changes=2)
    assert changes(message(), down, up, message(changes=3)) == [
        (1, LinkChange.SET_DOWN),
        (2, LinkChange.SET_UP),
        (3, LinkChange.CARRIER_BACK),
    ]
    gone = message(kind=RTM_DELLINK)
    assert changes(message(), gone, message(index=9)) == [(1, LinkChange.REMOVED), (2, LinkChange.MADE)]


def test_other_links_and_the_bridges_view_of_ours_do_not_count() -> None:
    """A bridge tells of its ports by the same kind of message."""
    other = message(up=False, name="b0", index=3)
    bridge = message(up=False, kind=RTM_DELLINK, family=7)
    assert changes(message(), other, bridge) == []
    assert not understood(LINK, [Heard(0, other), Heard(1, bridge)])
    assert understood(LINK, [Heard(0, other + message())])


@given(st.lists(st.booleans(), max_size=30), st.sets(st.integers(0, 30)))
def test_no_flap_is_lost_whichever_messages_the_kernel_leaves_out(
    carriers: list[bool], left_out: set[int]
) -> None:
    """A carrier that changed at all is told of, as long as the last look comes; one that did not is not."""
    count, carrier, messages = 0, True, [message(changes=0)]
    for number, now in enumerate(carriers):
        count += now != carrier
        carrier = now
        if number not in left_out:
            messages.append(message(carrier=now, changes=count))
    messages.append(message(carrier=carrier, changes=count))
    assert bool(changes(*messages)) == (count > 0)


def test_the_question_names_the_link() -> None:
    """RTM_GETLINK with its name, and no index."""
    length, kind, flags, *_ = struct.unpack_from("=IHHII", ask(LINK))
    assert (length, kind, flags) == (len(ask(LINK)), 18, 1)
    assert attribute(IFLA_IFNAME, b"a0\0") in ask(LINK)


@given(st.binary(max_size=60))
def test_what_is_no_message_says_nothing(datagram: bytes) -> None:
    """A header that promises more or less than there is ends the reading."""
    short = struct.pack("=IHHII", 8, RTM_NEWLINK, 0, 0, 0) + datagram
    assert changes(short) == []
