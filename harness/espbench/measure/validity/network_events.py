# SPDX-License-Identifier: Apache-2.0
"""Judges whether events of links and Security Associations on this machine make a trial void.

The monitor sees the tester's ports on every platform. If gateways are network namespaces of this machine, it also
sees their ports and SAs. If a gateway elsewhere changes its own links, the tester's end sees the carrier change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from espbench.measure.inputs.actions import Performed
from espbench.measure.inputs.setup import Setup
from espbench.sentences import Code
from espbench.stacks.daemons.ike import IkeStack
from espbench.stacks.netlink_xfrm import XfrmEvent, read_events
from espbench.terms import Reason
from espbench.this_machine import interfaces
from espbench.this_machine.link_events import Link, LinkEvent
from espbench.this_machine.monitor import Monitor

_LISTED = 100  # events in a record
_NAMED = 4  # events in a reason


@dataclass(frozen=True)
class NetworkEvents:
    """The events of a trial. sas: (time, gateway, event), in ns of CLOCK_MONOTONIC. not_heard: events that may be
    missing.
    """

    links: Sequence[LinkEvent] = ()
    sas: Sequence[tuple[int, str, XfrmEvent]] = ()
    not_heard: Sequence[str] = ()


def monitor(setup: Setup) -> Monitor:
    """Return a monitor of all links and SAs of the trial that are on this machine; in virtual time there are none."""
    bed = setup.bed
    if bed.virtual_time:
        return Monitor([], {})
    links = [Link(f"tester {name}", port.interface, port.netns) for name, port in bed.ports.items()]
    for side, netns in bed.gateway_netns.items():
        gateway = bed.gateways[side]
        links += [Link(f"{side} lan", gateway.lan, netns), Link(f"{side} wan", gateway.wan, netns)]
    encrypts = setup.stack is not None and setup.stack.encrypts
    return Monitor(links, {str(side): netns for side, netns in bed.gateway_netns.items()} if encrypts else {})


def heard(monitor: Monitor) -> NetworkEvents:
    """Return the decoded events of a monitor; call it after the trial."""
    sas = [
        (one.at_ns, side, event)
        for side, datagrams in monitor.xfrm_heard().items()
        for one in datagrams
        for event in read_events(one.datagram)
    ]
    return NetworkEvents(monitor.link_events(), sorted(sas, key=lambda sa: sa[0]), monitor.not_heard())


def faults(
    events: NetworkEvents, setup: Setup, performed: Sequence[Performed], start_ns: int, *, upset: bool
) -> list[Reason]:
    """Return a reason for each link or SA that changed unintentionally; times from the first frame.

    Links may change from the moment at which an action of the test switches a gateway off and on. SAs may change if
    the test replaces them (upset), or if a daemon negotiates them.
    """
    switched_ns = min((p.began_ns for p in performed if p.action.breaks_links), default=None)
    unmeant = [e for e in events.links if switched_ns is None or e.at_ns < switched_ns]
    reasons = []
    for link, of_link in groupby(sorted(unmeant, key=lambda e: e.link.whose), key=lambda e: e.link):
        changes = [f"{e.change} ({_since(e.at_ns, start_ns):.3f} s)" for e in of_link]
        reasons.append(
            Reason.of(Code.LINK_CHANGED, whose=link.whose, interface=link.interface, changes=_named(changes))
        )
    if not upset and not isinstance(setup.stack, IkeStack):
        for side, of_side in groupby(sorted(events.sas, key=lambda sa: sa[1]), key=lambda sa: sa[1]):
            changes = [f"{e.subject} {e.change} ({_since(at, start_ns):.3f} s)" for at, _, e in of_side]
            reasons.append(Reason.of(Code.SAS_CHANGED, side=side, changes=_named(changes)))
    return reasons


def other_speeds(setup: Setup) -> list[Reason]:
    """Return a reason for each of the tester's ports whose speed is not the first one of the run, as after an
    autonegotiation over a bad cable; remember the speed of a port that is new.

    If that happens between two trials, no event tells. Ports that report no speed now, such as those whose link is
    down, are left out. In virtual time there are none.
    """
    reasons = []
    for port in () if setup.bed.virtual_time else setup.bed.ports.values():
        if not (now_bps := interfaces.speed_bps(port.netns, port.interface)):
            continue
        first_bps = setup.link_speeds.setdefault((port.netns, port.interface), now_bps)
        if now_bps != first_bps:
            values = {"mbps": now_bps / 1e6, "first_mbps": first_bps / 1e6}
            reasons.append(Reason.of(Code.SPEED_CHANGED, port=port.name, interface=port.interface, **values))
    return reasons


def recorded(events: NetworkEvents, start_ns: int) -> dict[str, Any]:
    """Return the events for the record's `measured`, each with its time from the first frame, s; empty without
    events.
    """
    listed: list[dict[str, Any]] = [
        {
            "at_s": _since(e.at_ns, start_ns),
            "link": e.link.whose,
            "interface": e.link.interface,
            "event": str(e.change),
        }
        for e in events.links
    ]
    listed += [
        {"at_s": _since(at, start_ns), "gateway": side, "subject": e.subject, "event": str(e.change)}
        for at, side, e in events.sas
    ]
    listed.sort(key=lambda event: float(event["at_s"]))
    events_record: dict[str, Any] = {"network_events": listed[:_LISTED]} if listed else {}
    return events_record | ({"network_events_more": len(listed) - _LISTED} if len(listed) > _LISTED else {})


def _named(changes: list[str]) -> str:
    more = f", and {len(changes) - _NAMED} more" if len(changes) > _NAMED else ""
    return ", ".join(changes[:_NAMED]) + more


def _since(at_ns: int, start_ns: int) -> float:
    return round((at_ns - start_ns) / 1e9, 6)
