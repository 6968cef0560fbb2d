# SPDX-License-Identifier: Apache-2.0
"""The path of one direction through the test bed, place by place: where frames were lost, and the proof that the
frames that arrived had been encrypted (docs/method.md, rules 1 and 2).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from espbench.generators.base import Offered, StreamCounts
from espbench.measure.proof.counters import Counters
from espbench.platforms.base import Side
from espbench.sentences import Code, Place
from espbench.terms import Reason

# An SA counts a frame before it passes it to the cipher, which may refuse it (xfrm_output_one()).
AFTER_COUNTING = "XfrmOutStateProtoError"
# A gateway counts its errors for both directions together. The first part of an error's name says whether the
# gateway was decrypting or encrypting (Linux, Documentation/networking/xfrm_proc.rst).
_INBOUND, _OUTBOUND = ("XfrmIn", "XfrmFwd"), ("XfrmOut",)


@dataclass(frozen=True)
class Crossing:
    """The frames of one direction, counted at each place, in the order in which they pass.

    arrived counts all frames of the stream that came back, including damaged and duplicated ones. encrypted and
    decrypted are the counters of the SAs of this direction. first_own and second_own: datagrams that a gateway sent
    for itself, such as IKE; left_first and left_second include them. attacked: the trial had an attack, so these may
    have left by either port (left_under_attack).
    """

    stream: StreamCounts
    first: Side
    second: Side
    entered_first: int
    left_first: int
    entered_second: int
    left_second: int
    encrypted: int
    decrypted: int
    first_errors: dict[str, int]
    second_errors: dict[str, int]
    ring_drops_between: int
    first_own: int = 0
    second_own: int = 0
    attacked: bool = False

    @property
    def arrived(self) -> int:
        s = self.stream
        return s.rx_frames + (s.duplicated or 0) + (s.corrupted or 0)

    @property
    def surely_arrived(self) -> int:
        """The number of frames that arrived and are certainly the stream's: a damaged one may be the attacker's."""
        return self.stream.rx_frames if self.attacked else self.arrived


def crossings(offered: Offered, delta: Counters, *, tester_rings: bool = False) -> list[Crossing]:
    """Return one crossing for each direction; empty for boxes whose counters cannot be read.

    tester_rings: what the second gateway's port drops when it sends has already left the gateway.
    """
    if not delta:
        return []
    both_ways = len({stream.from_ for stream in offered.streams}) > 1
    attacked = bool(offered.noise)
    ways = [_crossing(stream, delta, tester_rings, both_ways) for stream in offered.streams]
    return [replace(way, attacked=attacked) for way in ways]


def _crossing(stream: StreamCounts, delta: Counters, tester_rings: bool, both_ways: bool) -> Crossing:
    first: Side = "home" if stream.from_ == "west" else "office"
    second: Side = "office" if first == "home" else "home"
    return Crossing(
        stream=stream,
        first=first,
        second=second,
        entered_first=delta[first].lan.rx_packets,
        left_first=delta[first].wan.tx_packets,
        entered_second=delta[second].wan.rx_packets,
        left_second=delta[second].lan.tx_packets + (delta[second].lan.tx_dropped if tester_rings else 0),
        encrypted=delta[first].sas.encrypted,
        decrypted=delta[second].sas.decrypted,
        first_errors=_without(_INBOUND, delta[first].sas.errors) if both_ways else delta[first].sas.errors,
        second_errors=_without(_OUTBOUND, delta[second].sas.errors)
        if both_ways
        else delta[second].sas.errors,
        ring_drops_between=delta[first].wan.tx_dropped,
        first_own=delta[first].sas.own_datagrams,
        second_own=delta[second].sas.own_datagrams,
    )


def _without(beginnings: tuple[str, ...], errors: dict[str, int]) -> dict[str, int]:
    return {name: n for name, n in errors.items() if not name.startswith(beginnings)}


def place_of_error(gateway: str, name: str) -> str:
    """Return the place of loss of a frame for which a gateway counted this error, of XFRM or of another part of its
    stack.
    """
    return (Place.XFRM_ERROR if name.startswith("Xfrm") else Place.OTHER_ERROR).at(gateway, name)


def loss_places(crossing: Crossing, *, encrypts: bool, receiver_overrun: int) -> dict[str, int]:
    """Return, by place, the frames that did not arrive intact. The places of a direction add up to its loss.

    With ESP, the SA counters mark the middle of the path; they count a fragmented frame once. Without ESP, the links'
    counters do.
    """
    c = crossing
    handed_over = c.encrypted - c.first_errors.get(AFTER_COUNTING, 0) if encrypts else c.left_first
    taken_over = c.decrypted if encrypts else c.entered_second
    first_xfrm, second_xfrm = sum(c.first_errors.values()), sum(c.second_errors.values())
    steps = {
        Place.FIRST_PORT.at(c.first): c.stream.tx_frames - c.entered_first,
        **{place_of_error(c.first, name): n for name, n in c.first_errors.items()},
        Place.GATEWAY.at(c.first): c.entered_first - handed_over - first_xfrm,
        Place.RING.at(c.second): min(c.ring_drops_between, max(0, handed_over - taken_over)),
        **{place_of_error(c.second, name): n for name, n in c.second_errors.items()},
        Place.MIDDLE_LINK.value: handed_over - taken_over - c.ring_drops_between - second_xfrm,
        Place.GATEWAY.at(c.second): taken_over - c.left_second,
        Place.RECEIVER_OVERRUN.value: receiver_overrun,
        Place.LAST_LINK.value: c.left_second - c.arrived - receiver_overrun,
        Place.DAMAGED.value: c.stream.lost_damaged,
    }
    places = {place: n for place, n in steps.items() if n > 0}
    # Both directions share the error counters, and a DUT that duplicates frames hides losses. The difference
    # is reported as such and not spread over the places.
    gap = c.stream.lost - sum(places.values())
    if gap != 0:
        places[Place.UNACCOUNTED.value] = gap
    return places


def proof_of_encryption(crossing: Crossing, *, fragments: bool) -> list[Reason]:
    """Return why it is not proven that exactly the frames that crossed were encrypted; empty if it is proven."""
    c = crossing
    sent, where = c.stream.tx_frames, f"{c.stream.from_}-{c.stream.to}"
    of_first = {"way": where, "gateway": c.first, "did": "encrypted"}
    problems = leaks(crossing, fragments=fragments)
    if c.entered_first and not c.encrypted:
        problems.append(Reason.of(Code.NONE_TRANSFORMED, **of_first, entered=c.entered_first))
    if c.encrypted > sent:
        problems.append(Reason.of(Code.MORE_TRANSFORMED, **of_first, n=c.encrypted, sent=sent))
    if c.stream.never_came == 0 and not c.encrypted == c.decrypted == sent and not problems:
        problems.append(_not_all(crossing))
    return problems


def leaks(crossing: Crossing, *, fragments: bool) -> list[Reason]:
    """Return the reasons to believe that frames crossed without encryption. All counters must have been read late
    enough.

    A frame cannot arrive without being decrypted, be decrypted without being encrypted, or leave the first gateway
    without passing its SA. Without loss, each of these counts is at least the number of frames sent.
    """
    c = crossing
    sent, where = c.stream.tx_frames, f"{c.stream.from_}-{c.stream.to}"
    problems = leaks_by_gateways(crossing, fragments=fragments)
    if c.surely_arrived > c.decrypted and not c.stream.duplicated:
        of_second = {"way": where, "gateway": c.second, "did": "decrypted", "n": c.decrypted}
        problems.append(Reason.of(Code.MORE_ARRIVED, **of_second, arrived=c.surely_arrived))
    # Under an attack, damaged frames of the attacker can hide lost ones, so never_came is no evidence.
    if not c.attacked and c.stream.never_came == 0 and min(c.encrypted, c.decrypted) < sent and not problems:
        problems.append(_not_all(crossing))
    return problems


def leaks_by_gateways(crossing: Crossing, *, fragments: bool) -> list[Reason]:
    """Return the reasons to believe in a leak that rest on the gateways' own counters alone."""
    c = crossing
    where = f"{c.stream.from_}-{c.stream.to}"
    problems = []
    if c.decrypted > c.encrypted:
        problems.append(
            Reason.of(
                Code.MORE_DECRYPTED,
                way=where, second=c.second, decrypted=c.decrypted, first=c.first, encrypted=c.encrypted,
            )
        )  # fmt: skip
    if c.attacked:
        return problems
    if c.left_second - c.second_own > c.decrypted:
        of_second = {"way": where, "gateway": c.second, "did": "decrypted", "n": c.decrypted}
        problems.append(Reason.of(Code.MORE_LEFT, **of_second, left=c.left_second))
    if c.left_first - c.first_own > c.encrypted and not fragments:
        code, own = Code.LEFT_BESIDE_SAS, {}
        if c.first_own:
            code, own = Code.LEFT_BESIDE_SAS_AND_OWN, {"own": c.first_own}
        of_first = {"way": where, "gateway": c.first, "did": "encrypted", "n": c.encrypted}
        problems.append(Reason.of(code, **of_first, **own, left=c.left_first))
    return problems


def left_under_attack(delta: Counters) -> list[Reason]:
    """Return why it is not proven that no frame left a gateway beside its SAs during an attack; empty if it is proven.

    What the gateway answers to the attacker leaves by the LAN port, its IKE by the WAN port. Only their sum is
    counted, so both ports are judged together. This is no evidence of a leak: the gateway may answer by something that
    is not counted.
    """
    problems = []
    for side, c in delta.items():
        left, through = c.lan.tx_packets + c.wan.tx_packets, c.sas.encrypted + c.sas.decrypted
        own = c.sas.own_datagrams
        if left - own > through:
            problems.append(Reason.of(Code.LEFT_UNDER_ATTACK, gateway=side, left=left, own=own, n=through))
    return problems


def _not_all(c: Crossing) -> Reason:
    where = f"{c.stream.from_}-{c.stream.to}"
    return Reason.of(
        Code.NOT_ALL_ON_BOTH, way=where, sent=c.stream.tx_frames, encrypted=c.encrypted, decrypted=c.decrypted
    )
