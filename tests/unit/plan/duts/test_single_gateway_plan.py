# SPDX-License-Identifier: Apache-2.0
"""A single gateway whose ESP peer is the tester: its plans, its streams, where its frames are lost, its proof."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espbench.errors import UsageError
from espbench.generators.base import Association, EspCounts, Offered, PortCounts
from espbench.measure.inputs import esp_peer
from espbench.measure.inputs.esp_peer import EspPeer
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.proof.counters import GatewayCounters
from espbench.measure.proof.one_gateway import Passage, crossings, leaks, loss_places, proof_of_encryption
from espbench.plan import cases, load_topology, resolve
from espbench.plan.reading.reader import read_text
from espbench.platforms.base import LinkCounters, Placement
from espbench.platforms.tester_ports import ciphertext_side, tester_ports
from espbench.platforms.uml.uml_platform import UmlTestbed
from espbench.procedures.limits import limits
from espbench.sentences import Place
from espbench.stacks.base import SaCounters
from espbench.terms import Direction, line_rate_fps
from support.gateways.addresses import GATEWAY_TO_GATEWAY
from support.generators.streams import counts
from support.plans import plan_text

PLAN = plan_text(
    name="one",
    topology="single-gateway",
    suites="[3des-sha1, aes128gcm16]",
    frame_sizes="[64, 512]",
    tests="\n  - throughput: {trial: 2s, final_trial: 10s}",
)


def plan(*changes: tuple[str, str]) -> str:
    text = PLAN
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def test_without_directions_both_operations_are_measured_each_by_itself() -> None:
    """Ipsec-meth 9.3 and 9.4, and the plain baseline of either; both at once where it is asked for."""
    planned = cases(resolve(read_text(PLAN, "x.yaml", "plan")), "uml")
    assert [c.direction for c in planned] == ["encryption", "encryption", "decryption", "decryption"] * 3
    assert planned[-1].id == "0012-xfrm-aes128gcm16-512-decryption"
    text = plan(("frame_sizes", "directions: [both-ways, decryption]\nframe_sizes"))
    planned = cases(resolve(read_text(text, "x.yaml", "plan")), "uml")
    assert {c.direction for c in planned} == {"both-ways", "decryption"}


def test_the_line_rate_is_that_of_the_longer_frames_of_the_ciphertext_side() -> None:
    """64 B in clear are 114 B with 3DES-SHA1-96 (96 B of IPv4): more of them the tester's own link cannot carry."""
    planned = cases(resolve(read_text(PLAN, "x.yaml", "plan")), "uml")
    by_suite = {c.suite: c for c in planned if c.frame_size == 64}
    assert by_suite["none"].ciphertext_frame_size is None
    assert by_suite["3des-sha1"].ciphertext_frame_size == 96 + 18
    bounds = limits(by_suite["3des-sha1"], 1e9, None)
    assert bounds.maximum_fps == line_rate_fps(114, 1e9)
    assert bounds.line_rate_fps == line_rate_fps(64, 1e9)
    assert limits(by_suite["none"], 1e9, None).maximum_fps == line_rate_fps(64, 1e9)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("frame_sizes: [64", "directions: [one-way]\nframe_sizes: [64",
         "6:14: directions[0]: expected encryption, decryption or both-ways with topology: single-gateway, got "
         "one-way"),
        ("topology: single-gateway", "topology: gateway-to-gateway\ndirections: [decryption]",
         "3:14: directions[0]: expected one-way or both-ways with topology: gateway-to-gateway, got decryption"),
        ("[plain, xfrm]", "[plain, strongswan]",
         "4:17: stacks[1]: expected one of plain, xfrm, null, lean-esp with topology: single-gateway, got "
         "\"strongswan\"; the tester speaks ESP, not IKE"),
        ("xfrm]", "{stack: xfrm, mode: transport}]", "expected tunnel mode, ESP directly in IP"),
        ("frame_sizes: [64", "generator: scapy\nframe_sizes: [64", "only the native generator is an ESP peer"),
        ("frame_sizes: [64", "generator: {native: {rx: xdp}}\nframe_sizes: [64",
         "expected auto, af_xdp or af_packet with topology: single-gateway, got xdp"),
        ("throughput: {trial: 2s, final_trial: 10s}", "failover: {}",
         "expected tests of traffic with topology: single-gateway, got failover"),
        ("throughput: {trial: 2s, final_trial: 10s}", "public_key: {}",
         "expected tests of traffic with topology: single-gateway, got public_key"),
        ("512]", "1518]",
         "expected frames of at most 1464 B with topology: single-gateway (3des-sha1, IPv4, MTU 1500)"),
        ("dut: uml", "dut: remote-example", "expected a DUT of platform netns, uml, qemu_e500, qemu_x86 with"),
    ],
)  # fmt: skip
def test_what_a_single_gateway_cannot_do_is_told(old: str, new: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        resolve(read_text(plan((old, new)), "x.yaml", "plan"))
    assert message in str(error.value)


def test_home_cannot_tell_the_tester_from_office() -> None:
    """Addresses are those of the pair, so that Home is configured alike and sees the same frames."""
    single, pair = load_topology("single-gateway"), load_topology("gateway-to-gateway")
    assert single.model_dump(exclude={"name", "description"}) == pair.model_dump(
        exclude={"name", "description"}
    )
    placed = Placement({"tester tx": [0], "tester rx": [0]}, "")
    ports = tester_ports("t", {"west": "w", "east": "e"}, GATEWAY_TO_GATEWAY, placed, 1e9, single=True)
    assert ports["east"].mac == GATEWAY_TO_GATEWAY.office_wan.mac
    assert ports["east"].next_hop_mac == GATEWAY_TO_GATEWAY.home_wan.mac
    assert ports["east"].address[4] == GATEWAY_TO_GATEWAY.tester_east.host(4)


class StackOf:
    """Has as much of a stack as the tester asks: two tunnels' SAs, both directions of each."""

    encrypts = True

    def secrets(self) -> list[dict[str, Any]]:
        def sa(spi: int, source: str, destination: str) -> dict[str, Any]:
            return {
                "spi": spi, "source": source, "destination": destination, "suite": "aes128gcm16",
                "mode": "tunnel", "esn": False, "encryption_key": "aa" * 20, "integrity_key": "",
            }  # fmt: skip

        home, office = "192.0.2.1", "192.0.2.2"
        return [
            sa(1000, home, office),
            sa(1001, home, office),
            sa(2000, office, home),
            sa(2001, office, home),
        ]


def bed(**changes: Any) -> UmlTestbed:
    placed = Placement({"tester tx": [0], "tester rx": [0]}, "")
    ports = tester_ports("t", {"west": "w", "east": "e"}, GATEWAY_TO_GATEWAY, placed, 1e9, single=True)
    values: dict[str, Any] = {
        "platform": "uml",
        "dut": "d",
        "ports": ports,
        "gateways": {},
        "placement": placed,
        "queues": {},
    }
    return UmlTestbed(**(values | ciphertext_side(GATEWAY_TO_GATEWAY, single=True) | changes))


@pytest.mark.parametrize(
    ("direction", "expected"),
    [
        ("encryption", [("west", [], [1000, 1001])]),
        ("decryption", [("east", [2000, 2001], [])]),
        ("both-ways", [("west", [], [1000, 1001]), ("east", [2000, 2001], [])]),
    ],
)
def test_streams_go_through_the_sas_of_their_direction(
    direction: Direction, expected: list[tuple[str, list[int], list[int]]]
) -> None:
    """Sealed with those that lead to Home, opened with those that come from it, in the order of the tunnels."""
    peer = EspPeer.of(bed(), StackOf())  # type: ignore[arg-type]
    assert peer is not None
    traffic = Traffic(((64, 1),), 4, direction, tunnels=2, tunnel_bits=17)
    streams = peer.through(traffic.streams(bed(), {"west": "m", "east": "n"}, 100.0))
    by_stream = [(s.from_, [sa.spi for sa in s.seal], [sa.spi for sa in s.open]) for s in streams]
    assert by_stream == expected
    assert "aaaa" not in repr(streams), "keys are shown nowhere"


def test_a_pair_has_no_such_peer() -> None:
    """A baseline has none either."""
    assert EspPeer.of(bed(ciphertext=None), StackOf()) is None  # type: ignore[arg-type]
    plain = StackOf()
    plain.encrypts = False
    assert EspPeer.of(bed(), plain) is None  # type: ignore[arg-type]


def passage(tx: int, rx: int, **changes: Any) -> Passage:
    """A way on which all frames pass every place, but for `changes`."""
    values: dict[str, Any] = {
        "stream": counts(tx, rx),
        "entered": tx,
        "transformed": tx,
        "left": tx,
        "errors": {},
    }
    return Passage(**(values | changes))


def test_each_direction_has_its_own_links_and_its_own_sas() -> None:
    """West to east: in by the LAN, encrypted, out by the WAN; back it is the other way round."""
    links = [LinkCounters(rx, tx, 0, 0, 0, 0) for rx, tx in ((10, 20), (30, 40))]
    delta: Any = {"home": GatewayCounters(SaCounters(encrypted=5, decrypted=6), *links)}
    streams = [counts(10, 9), counts(10, 9, source="east")]
    offered = Offered(
        stalls_watched=True,
        start_ns=0,
        last_tx_ns=0,
        duration_s=1.0,
        intended_duration_s=1.0,
        streams=streams,
        ports=[],
    )
    there, back = crossings(offered, delta)
    assert (there.encrypts, there.entered, there.transformed, there.left) == (True, 10, 5, 40)
    assert (back.encrypts, back.entered, back.transformed, back.left) == (False, 30, 6, 20)


@given(
    st.booleans(), *(st.integers(0, 50) for _ in range(5)),
)  # fmt: skip
def test_places_of_loss_add_up(
    west: bool, ring: int, refused: int, inside: int, queue: int, link: int
) -> None:
    """Each place has the frames that were lost there, and no others."""
    sent = 1000
    entered = sent - ring
    transformed = entered - refused - inside
    left = transformed - queue
    p = passage(
        sent, left - link, stream=counts(sent, left - link, source="west" if west else "east"),
        entered=entered, transformed=transformed, left=left,
        errors={"XfrmInStateProtoError": refused} if refused else {},
    )  # fmt: skip
    places = loss_places(p, encrypts=True, receiver_overrun=0)
    expected = {
        "first port into home": ring, "home xfrm XfrmInStateProtoError": refused, "home": inside,
        "home, after ESP": queue, "last link": link,
    }  # fmt: skip
    assert places == {place: n for place, n in expected.items() if n}
    assert Place.UNACCOUNTED not in places
    assert sum(places.values()) == sent - (left - link)


def test_exact_counts_prove_either_operation() -> None:
    """One frame too few, too many or beside the SA does not."""
    for source in ("west", "east"):
        whole = passage(1000, 1000, stream=counts(1000, 1000, source=source))
        assert proof_of_encryption(whole, fragments=False) == []
        for wrong in (
            replace(whole, transformed=999, left=999),
            replace(whole, transformed=1001, left=1001),
            replace(whole, left=1001),
            replace(whole, transformed=0, left=0, stream=counts(1000, 0, source=source)),
        ):
            assert proof_of_encryption(wrong, fragments=False), wrong


def test_damaged_frames_under_an_attack_are_no_leak() -> None:
    """They may be the attacker's, and can then hide lost frames; the trial is not proven all the same."""
    damaged = passage(1000, 1000, stream=counts(1000, 990, corrupted=20), attacked=True)
    assert leaks(damaged, fragments=False) == []
    assert leaks(replace(damaged, attacked=False), fragments=False)
    stream = counts(1000, 990, corrupted=10)
    hidden = passage(1000, 990, stream=stream, transformed=990, left=990, attacked=True)
    assert leaks(hidden, fragments=False) == []
    assert proof_of_encryption(hidden, fragments=False)
    assert leaks(replace(hidden, stream=counts(1000, 991)), fragments=False)


def test_what_the_tester_opened_itself_is_of_the_proof() -> None:
    """Cleartext, strange SPIs and numbers that come twice spoil it; damage and gaps are loss, and told as that."""
    assert esp_peer.problems(None) == []
    assert esp_peer.problems(EspCounts(packets=9, authentic=7, bad_icv=1, malformed=1, gaps=4)) == []
    for name in ("cleartext", "unknown_spi", "repeated", "old"):
        assert esp_peer.problems(EspCounts.model_validate({name: 1}))[0].text.startswith("1 ")
    offered = Offered(
        stalls_watched=True,
        start_ns=0, last_tx_ns=0, duration_s=1.0, intended_duration_s=1.0, streams=[],
        ports=[PortCounts(name="west", rx_overrun=0, foreign=0),
               PortCounts(name="east", rx_overrun=0, foreign=0, esp=EspCounts(packets=3))],
    )  # fmt: skip
    assert esp_peer.esp_counts(offered) == EspCounts(packets=3)


def test_the_stand_in_of_calibration_is_sealed_and_opened_by_the_tester() -> None:
    """There is no gateway in between: both ends of each stream have the one SA, and no other stream has it."""
    peer = EspPeer.stand_in(bed(), 6)
    assert peer is not None
    hops: dict[Any, str] = {"west": "m", "east": "n"}
    streams = peer.both_ends(Traffic(((84, 1),), 6, "both-ways").streams(bed(), hops, None))
    for stream in streams:
        assert stream.seal == stream.open
        assert isinstance(stream.seal[0], Association)
        assert ":" in stream.seal[0].source
    out, back = (stream.seal[0] for stream in streams)
    assert out.spi != back.spi
    assert out.encryption_key != back.encryption_key
