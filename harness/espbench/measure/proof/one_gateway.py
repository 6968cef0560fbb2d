# SPDX-License-Identifier: Apache-2.0
"""The path of one direction through a single gateway, whose ESP peer is the tester. path.py does the same for a pair.

The gateway encrypts the frames from west and decrypts those from east.
"""

from __future__ import annotations

from dataclasses import dataclass

from espbench.generators.base import Offered, StreamCounts
from espbench.measure.proof.counters import Counters
from espbench.measure.proof.path import AFTER_COUNTING, place_of_error
from espbench.platforms.base import Side
from espbench.sentences import Code, Place
from espbench.terms import Reason

_GATEWAY: Side = "home"


@dataclass(frozen=True)
class Passage:
    """The frames of one direction, counted at each place; transformed: by the SAs of this direction."""

    stream: StreamCounts
    entered: int
    transformed: int
    left: int
    errors: dict[str, int]
    own: int = 0  # datagrams that the gateway sent for itself, included in `left`
    attacked: bool = (
        False  # the trial had an attack, and `left` includes what the gateway answers (as in path.py)
    )

    @property
    def encrypts(self) -> bool:
        return self.stream.from_ == "west"

    @property
    def arrived(self) -> int:
        s = self.stream
        return s.rx_frames + (s.duplicated or 0) + (s.corrupted or 0)

    @property
    def surely_arrived(self) -> int:
        """The number of frames that arrived and are certainly the stream's, as in path.py."""
        return self.stream.rx_frames if self.attacked else self.arrived


def crossings(offered: Offered, delta: Counters, *, tester_rings: bool = False) -> list[Passage]:
    """Return one passage for each direction. tester_rings: what a port drops when it sends has already left the
    gateway.
    """
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
                attacked=bool(offered.noise),
            )
        )
    return passages


def loss_places(passage: Passage, *, encrypts: bool, receiver_overrun: int) -> dict[str, int]:
    """Return, by place, the frames that did not arrive intact. The places of a direction add up to its loss."""
    p = passage
    refused = p.errors.get(AFTER_COUNTING, 0) if p.encrypts else 0
    inside = p.transformed - refused if encrypts else p.left
    steps = {
        Place.FIRST_PORT.at(_GATEWAY): p.stream.tx_frames - p.entered,
        **{place_of_error(_GATEWAY, name): n for name, n in p.errors.items()},
        Place.GATEWAY.at(_GATEWAY): p.entered - inside - sum(p.errors.values()),
        Place.AFTER_ESP.at(_GATEWAY): inside - p.left,
        Place.RECEIVER_OVERRUN.value: receiver_overrun,
        Place.LAST_LINK.value: p.left - p.arrived - receiver_overrun,
        Place.DAMAGED.value: p.stream.lost_damaged,
    }
    places = {place: n for place, n in steps.items() if n > 0}
    gap = p.stream.lost - sum(places.values())
    if gap != 0:
        places[Place.UNACCOUNTED.value] = gap
    return places


def proof_of_encryption(passage: Passage, *, fragments: bool) -> list[Reason]:
    """Return why it is not proven that exactly the frames that crossed were encrypted or decrypted; empty if it is
    proven.
    """
    p = passage
    problems = leaks(passage, fragments=fragments) or _not_all(p)
    if p.entered and not p.transformed:
        problems.append(Reason.of(Code.NONE_TRANSFORMED, **_gateway(p), entered=p.entered))
    if p.transformed > p.stream.tx_frames:
        problems.append(
            Reason.of(Code.MORE_TRANSFORMED, **_gateway(p), n=p.transformed, sent=p.stream.tx_frames)
        )
    return problems


def leaks(passage: Passage, *, fragments: bool) -> list[Reason]:
    """Return the reasons to believe that frames bypassed the SAs. All counters must have been read late enough."""
    p = passage
    problems = leaks_by_gateways(passage, fragments=fragments)
    if p.surely_arrived > p.transformed and not p.stream.duplicated:
        arrived = p.surely_arrived
        problems.append(Reason.of(Code.MORE_ARRIVED, **_gateway(p), n=p.transformed, arrived=arrived))
    # Under an attack, damaged frames of the attacker can hide lost ones: then this is no evidence of a leak.
    return problems or ([] if p.attacked else _not_all(p))


def leaks_by_gateways(passage: Passage, *, fragments: bool) -> list[Reason]:
    """Return the reasons to believe that frames bypassed the SAs which rest on the gateway's own counters alone."""
    p = passage
    if p.left - p.own <= p.transformed or fragments or p.attacked:
        return []
    return [Reason.of(Code.LEFT_BESIDE_SAS, **_gateway(p), n=p.transformed, left=p.left)]


def _not_all(p: Passage) -> list[Reason]:
    """Return a reason if no frame was lost, and the SAs carried fewer than were sent."""
    sent = p.stream.tx_frames
    if p.stream.never_came or p.transformed >= sent:
        return []
    return [Reason.of(Code.NOT_ALL_TRANSFORMED, **_gateway(p), n=p.transformed, sent=sent)]


def _gateway(p: Passage) -> dict[str, str]:
    """Return the values of every problem: the direction, the gateway, and whether it encrypted or decrypted."""
    did = "encrypted" if p.encrypts else "decrypted"
    return {"way": f"{p.stream.from_}-{p.stream.to}", "gateway": _GATEWAY, "did": did}
