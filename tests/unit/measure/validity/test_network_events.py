# SPDX-License-Identifier: Apache-2.0
"""Tests which changes of links and SAs make a trial void, and what its record says of them."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from espbench.generators.base import Generator
from espbench.measure.inputs.actions import Action, Performed
from espbench.measure.inputs.setup import Setup
from espbench.measure.validity import network_events
from espbench.measure.validity.network_events import NetworkEvents, faults, other_speeds, recorded
from espbench.platforms import placement
from espbench.platforms.base import Port, Testbed
from espbench.sentences import Code
from espbench.stacks.base import Stack
from espbench.stacks.daemons.ike import IkeStack
from espbench.stacks.netlink_xfrm import XfrmChange, XfrmEvent
from espbench.terms import Reason
from espbench.this_machine import interfaces
from espbench.this_machine.link_events import Link, LinkChange, LinkEvent

START = 10**9
EAST = Link("tester east", "a1", "/run/netns/e")


class Bed(Testbed):
    """No gateways."""

    def close(self) -> None: ...


def port(name: Any, **changes: Any) -> Port:
    return Port(
        name=name, interface="nosuch0", netns=None, tx_cpus=(0,), rx_cpu=0, mac="", next_hop_mac=None, address={},
        gateway={}, line_rate_bps=1e9, mtu=1500, **changes,
    )  # fmt: skip


def setup(stack: object = None, **changes: Any) -> Setup:
    bed = Bed("external", "", {"west": port("west")}, {}, placement.choose(), {}, **changes)
    return Setup(bed, cast(Generator, None), cast(Stack | None, stack), {})


def link(at_s: float, change: LinkChange, of: Link = EAST) -> LinkEvent:
    return LinkEvent(START + round(at_s * 1e9), of, change)


def sa(at_s: float, change: XfrmChange) -> tuple[int, str, XfrmEvent]:
    return START + round(at_s * 1e9), "home", XfrmEvent(change, "SA 0x00000001 to 192.0.2.2")


def performed(at_s: float, *, breaks_links: bool) -> Performed:
    at_ns = START + round(at_s * 1e9)
    return Performed(Action("an action", at_s, dict, breaks_links=breaks_links), at_ns, at_ns + 1000, {})


def worded(reasons: list[Reason]) -> list[str]:
    return [reason.text for reason in reasons]


FLAP = NetworkEvents(links=[link(0.5, LinkChange.CARRIER_LOST), link(0.75, LinkChange.CARRIER_BACK)])


def test_a_flap_voids_the_trial_and_is_named_with_its_times() -> None:
    """One reason for each link, whatever happened to it."""
    assert worded(faults(FLAP, setup(), [], START, upset=False)) == [
        "link of tester east, a1: carrier lost (0.500 s), carrier back (0.750 s) after the first frame"
    ]
    assert recorded(FLAP, START) == {
        "network_events": [
            {"at_s": 0.5, "link": "tester east", "interface": "a1", "event": "carrier lost"},
            {"at_s": 0.75, "link": "tester east", "interface": "a1", "event": "carrier back"},
        ]
    }


def test_nothing_that_happened_says_nothing() -> None:
    """The records of almost all trials are as they always were."""
    assert faults(NetworkEvents(), setup(), [], START, upset=False) == []
    assert recorded(NetworkEvents(), START) == {}


@pytest.mark.parametrize(
    ("done", "reasons"),
    [
        ([performed(0.2, breaks_links=True)], 0),
        ([performed(0.2, breaks_links=False)], 1),
        ([performed(0.6, breaks_links=True)], 1),
    ],
    ids=["after a power cycle began", "beside a restart of a daemon", "before a power cycle began"],
)
def test_a_link_that_goes_with_its_gateways_power_is_meant(done: list[Performed], reasons: int) -> None:
    """A power cycle excuses links once it has begun; replacing SAs on purpose excuses none."""
    assert len(faults(FLAP, setup(), done, START, upset=True)) == reasons


def test_a_change_of_static_sas_voids_the_trial() -> None:
    """Nobody replaces them but whoever disturbs the trial, or a test whose procedure does so."""
    events = NetworkEvents(sas=[sa(0.5, XfrmChange.DELETED)])
    assert worded(faults(events, setup(), [], START, upset=False)) == [
        "SAs of home: SA 0x00000001 to 192.0.2.2 deleted (0.500 s) after the first frame"
    ]
    assert faults(events, setup(), [], START, upset=True) == []
    assert len(recorded(events, START)["network_events"]) == 1


def test_a_daemons_rekeying_is_noted_and_no_fault() -> None:
    """Stacks that negotiate may replace their SAs at any time."""
    negotiated = object.__new__(IkeStack)
    events = NetworkEvents(sas=[sa(0.5, XfrmChange.ADDED), sa(0.6, XfrmChange.DELETED)])
    assert faults(events, setup(negotiated), [], START, upset=False) == []
    assert [event["event"] for event in recorded(events, START)["network_events"]] == ["added", "deleted"]


def test_a_storm_of_events_is_counted_and_not_listed() -> None:
    """A record and a reason stay readable."""
    storm = NetworkEvents(links=[link(number / 1000, LinkChange.CARRIER_FLAPPED) for number in range(1000)])
    (reason,) = faults(storm, setup(), [], START, upset=False)
    assert reason.text.endswith("carrier flapped (0.003 s), and 996 more after the first frame")
    record = recorded(storm, START)
    assert (len(record["network_events"]), record["network_events_more"]) == (100, 900)


def test_in_virtual_time_nothing_of_this_machine_is_watched() -> None:
    """Records of virtual time know nothing of the host."""
    with network_events.monitor(setup(virtual_time=True)) as watching:
        pass
    assert network_events.heard(watching) == NetworkEvents([], [], [])


def test_a_port_that_is_no_interface_of_this_machine_is_named_as_not_watched() -> None:
    """A generator may have taken it from the kernel."""
    with network_events.monitor(setup()) as watching:
        pass
    assert network_events.heard(watching).not_heard == [
        "changes of the link of tester west in mid-trial (this machine has no interface nosuch0)"
    ]


def test_a_kernel_without_such_sockets_is_said_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """EPROTONOSUPPORT is the answer of a kernel without NETLINK_XFRM."""

    def refuse(*_: object) -> socket.socket:
        raise OSError(errno.EPROTONOSUPPORT, "Protocol not supported")

    monkeypatch.setattr("espbench.this_machine.monitor.socket.socket", refuse)
    with network_events.monitor(setup()) as watching:
        pass
    assert network_events.heard(watching).not_heard == [
        "changes of the links of tester west in mid-trial (Protocol not supported)"
    ]


def at_ports(*, virtual_time: bool = False) -> Setup:
    ports = {
        name: SimpleNamespace(name=name, interface=interface, netns=None)
        for name, interface in (("west", "eth7"), ("east", "eth8"))
    }
    bed = SimpleNamespace(virtual_time=virtual_time, ports=ports)
    return cast(Setup, SimpleNamespace(bed=bed, link_speeds={}))


def speeds(monkeypatch: pytest.MonkeyPatch, *mbps: float) -> None:
    """Let eth7 report these speeds, one after the other; eth8 always reports 1,000 Mbit/s."""
    of_west: Iterator[float] = iter(mbps)
    report = {"eth7": lambda: next(of_west), "eth8": lambda: 1000.0}
    monkeypatch.setattr(interfaces, "speed_bps", lambda netns, name: 1e6 * report[name]())


def test_another_speed_is_named_until_the_first_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    speeds(monkeypatch, 1000.0, 1000.0, 100.0, 100.0, 1000.0)
    setup = at_ports()
    found = [other_speeds(setup) for _ in range(5)]
    assert [len(reasons) for reasons in found] == [0, 0, 1, 1, 0]
    assert found[2][0].code == Code.SPEED_CHANGED
    assert "port west (eth7) runs at 100 Mbit/s; when the run began, it was 1000 Mbit/s" in found[2][0].text


def test_a_port_that_reports_no_speed_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A link that is down has none; the monitor of a trial sees that it went down."""
    speeds(monkeypatch, 0.0, 1000.0, 0.0, 1000.0)
    setup = at_ports()
    assert [other_speeds(setup) for _ in range(4)] == [[]] * 4


def test_virtual_time_has_no_links_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interfaces, "speed_bps", cast(Any, pytest.fail))
    assert other_speeds(at_ports(virtual_time=True)) == []
