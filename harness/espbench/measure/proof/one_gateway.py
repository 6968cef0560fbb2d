# SPDX-License-Identifier: Apache-2.0
"""One direction's way through a single gateway, whose ESP peer is the tester: as path.py does it for a pair.

From west the gateway encrypts, from east it decrypts.
"""

from __future__ import annotations

from dataclasses import dataclass

from espbench.generators.base import Offered, StreamCounts
from espbench.measure.proof.counters import Counters
from espbench.measure.proof.path import AFTER_COUNTING, DAMAGED, UNACCOUNTED, place_of_error
from espbench.platforms.base import Side

_GATEWAY: Side = "home"


@dataclass(frozen=True)
class Passage:
    """The frames of one direction, counted at each place; transformed: by the SAs of this direction."""

    stream: StreamCounts
    entered: int
    transformed: int
    left: int
    errors: dict[str, int]
    own: int = 0  # datagrams of the gateway's own, among those that left it

    @property
    def encrypts(self) -> bool:
        return self.stream.from_ == "west"

    @property
    def arrived(self) -> int:
        s = self.stream
        return s.rx_frames + (s.duplicated or 0) + (s.corrupted or 0)


def crossings(offered: Offered, delta: Counters, *, tester_rings: bool = False) -> list[Passage]:
    """Return one passage for each direction. tester_rings: what a port drops on sending has left the gateway."""
    counters = delta[_GATEWAY]
    passages = []
    for stream in offered.streams:
        west = stream.from_ == "west"
        into, out_of = (counters.lan, counters.wan) if west else (counters.wan, counters.lan)
        passages.append(
            Passage(
                stream,
                entered=into.rx_packets,
                transformed=counters.sas.encrypted if west else counters.sas.decrypted,
                left=out_of.tx_packets + (out_of.tx_dropped if tester_rings else 0),
                errors=counters.sas.errors,
                own=counters.sas.own_datagrams,
            )
        )
    return passages


def loss_places(passage: Passage, *, encrypts: bool, receiver_overrun: int) -> dict[str, int]:
    """Book the frames that did not arrive intact; the places of a direction add up to its loss."""
    p = passage
    refused = p.errors.get(AFTER_COUNTING, 0) if p.encrypts else 0
    inside = p.transformed - refused if encrypts else p.left
    steps = {
        f"first port into {_GATEWAY}": p.stream.tx_frames - p.entered,
        **{place_of_error(_GATEWAY, name): n for name, n in p.errors.items()},
        f"{_GATEWAY}": p.entered - inside - sum(p.errors.values()),
        f"{_GATEWAY}, after ESP": inside - p.left,
        "receiver overrun": receiver_overrun,
        "last link": p.left - p.arrived - receiver_overrun,
        DAMAGED: p.stream.lost_damaged,
    }
    places = {place: n for place, n in steps.items() if n > 0}
    gap = p.stream.lost - sum(places.values())
    if gap != 0:
        places[UNACCOUNTED] = gap
    return places


def proof_of_encryption(passage: Passage, *, fragments: bool) -> list[str]:
    """Say why it is not proven that exactly the frames that crossed were encrypted, or decrypted; empty = proven."""
    p = passage
    sent, where = p.stream.tx_frames, f"{p.stream.from_}-{p.stream.to}"
    does = "encrypted" if p.encrypts else "decrypted"
    problems = leaks(passage, fragments=fragments)
    if p.entered and not p.transformed:
        problems.append(f"{where}: {p.entered} frames entered {_GATEWAY}, it {does} none")
    if p.transformed > sent:
        problems.append(f"{where}: {_GATEWAY} {does} {p.transformed} frames, only {sent} were sent")
    return problems


def leaks(passage: Passage, *, fragments: bool) -> list[str]:
    """Say which counts show that frames crossed beside the SAs; all counters must have been read late enough."""
    p = passage
    sent, where = p.stream.tx_frames, f"{p.stream.from_}-{p.stream.to}"
    does = "encrypted" if p.encrypts else "decrypted"
    problems = leaks_by_gateways(passage, fragments=fragments)
    if p.arrived > p.transformed and not p.stream.duplicated:
        problems.append(f"{where}: {p.arrived} frames arrived, {_GATEWAY} {does} {p.transformed}")
    if p.stream.never_came == 0 and p.transformed < sent and not problems:
        problems.append(f"{where}: {sent} sent and received, {p.transformed} {does}")
    return problems


def leaks_by_gateways(passage: Passage, *, fragments: bool) -> list[str]:
    """Say which of the gateway's own counters show a leak, whatever the tester counted."""
    p = passage
    if p.left - p.own <= p.transformed or fragments:
        return []
    does = "encrypted" if p.encrypts else "decrypted"
    way = f"{p.stream.from_}-{p.stream.to}"
    return [f"{way}: {p.left} frames left {_GATEWAY}, it {does} {p.transformed}: cleartext?"]
