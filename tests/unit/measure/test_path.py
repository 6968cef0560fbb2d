# SPDX-License-Identifier: Apache-2.0
"""Every lost frame is booked to a place, and encryption is proven by exact counts or not at all."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espbench.errors import GatewayFailed
from espbench.generators.base import Offered
from espbench.measure.proof.counters import (
    AT_REST_LOOKS,
    GatewayCounters,
    moved,
    read,
    read_at_rest,
    vanished,
)
from espbench.measure.proof.path import Crossing, crossings, leaks, loss_places, proof_of_encryption
from espbench.platforms.base import Gateway, LinkCounters, Testbed
from espbench.sentences import Code, Place
from espbench.stacks.base import SaCounters, Stack, own_sent
from support.generators.streams import counts


def crossing(tx: int, rx: int, **changes: Any) -> Crossing:
    """A way on which all frames pass every place, but for `changes`."""
    values: dict[str, Any] = {
        "stream": counts(tx, rx), "first": "home", "second": "office", "entered_first": tx, "left_first": tx,
        "entered_second": tx, "left_second": tx, "encrypted": tx, "decrypted": tx, "first_errors": {},
        "second_errors": {}, "ring_drops_between": 0,
    }  # fmt: skip
    return Crossing(**(values | changes))


def test_exact_counts_prove_the_encryption() -> None:
    """SAs encrypted as many frames as were sent, and decrypted as many as were received."""
    assert proof_of_encryption(crossing(1000, 1000), fragments=False) == []


def test_a_frame_that_arrived_without_being_decrypted_spoils_the_proof() -> None:
    """1000 arrived, 999 were decrypted: one came in clear."""
    problems = proof_of_encryption(crossing(1000, 1000, decrypted=999, left_second=999), fragments=False)
    assert "west-east: 1000 frames arrived, office decrypted 999" in [*map(str, problems)]


def test_damaged_frames_under_an_attack_are_no_leak() -> None:
    """They may be the attacker's, and can then hide lost frames. Without an attack they are the stream's."""
    stream = counts(1000, 990, corrupted=20)
    changes: dict[str, Any] = {"stream": stream, "decrypted": 1000, "left_second": 1000}
    assert leaks(crossing(1000, 0, **changes, attacked=True), fragments=False) == []
    (problem,) = leaks(crossing(1000, 0, **changes), fragments=False)
    assert str(problem) == "west-east: 1010 frames arrived, office decrypted 1000"
    changes |= {"stream": counts(1000, 990, corrupted=10), "decrypted": 990, "left_second": 990}
    assert leaks(crossing(1000, 0, **changes, attacked=True), fragments=False) == []
    assert proof_of_encryption(crossing(1000, 0, **changes, attacked=True), fragments=False)
    # An intact frame is the stream's, whoever floods.
    attacked = crossing(1000, 1000, decrypted=999, left_second=999, attacked=True)
    (problem,) = leaks(attacked, fragments=False)
    assert str(problem) == "west-east: 1000 frames arrived, office decrypted 999"


def test_a_frame_that_left_home_beside_the_sa_spoils_the_proof() -> None:
    """Home sent one more frame than it encrypted."""
    problems = proof_of_encryption(crossing(1000, 999, left_first=1000, encrypted=999), fragments=False)
    assert Code.LEFT_BESIDE_SAS in [problem.code for problem in problems]
    own = proof_of_encryption(
        crossing(1000, 999, left_first=1002, first_own=1, encrypted=999), fragments=False
    )
    assert "west-east: 1002 frames left home, 1 of them its own, it encrypted 999: cleartext?" in [
        *map(str, own)
    ]


def test_sa_counters_that_count_foreign_traffic_spoil_the_proof() -> None:
    """More encrypted than the tester sent: somebody else uses the tunnel."""
    assert proof_of_encryption(crossing(1000, 1000, encrypted=1001, left_first=1001), fragments=False)


def test_counters_that_stand_still_spoil_the_proof() -> None:
    """All frames arrived and no SA moved: nothing was encrypted."""
    assert proof_of_encryption(crossing(1000, 1000, encrypted=0, decrypted=0), fragments=False)


def test_a_gateway_that_encrypts_nothing_of_a_lost_trial_is_no_proof() -> None:
    """Frames reached Home, none was encrypted and none arrived: the tunnel is gone, whatever the loss says."""
    nothing = dict.fromkeys(("left_first", "entered_second", "left_second", "encrypted", "decrypted"), 0)
    (problem,) = proof_of_encryption(crossing(1000, 0, **nothing), fragments=False)
    assert str(problem) == "west-east: 1000 frames entered home, it encrypted none"
    dropped_before = nothing | {"entered_first": 0}
    assert proof_of_encryption(crossing(1000, 0, **dropped_before), fragments=False) == []


def test_a_gateway_with_fewer_sas_than_its_tunnels_need_is_named() -> None:
    """Office lacks one of two tunnels: loss then says nothing of speed. Rekeying may show more SAs."""
    none = LinkCounters(0, 0, 0, 0, 0, 0)
    home, office = (GatewayCounters(SaCounters(spis=frozenset(range(n))), none, none) for n in (5, 2))
    assert vanished({"home": home, "office": office}, 4) == ["office holds 2 of 4 SAs"]


@given(
    tx=st.integers(1, 10**6),
    first_port=st.integers(0, 10**4),
    home=st.integers(0, 10**4),
    error=st.integers(0, 10**4),
    refused=st.integers(0, 10**4),
    ring=st.integers(0, 10**4),
    wire=st.integers(0, 10**4),
    office=st.integers(0, 10**4),
    overrun=st.integers(0, 10**4),
)
def test_the_places_add_up_to_the_loss(  # noqa: PLR0913  (one for each place)
    tx: int,
    first_port: int,
    home: int,
    error: int,
    refused: int,
    ring: int,
    wire: int,
    office: int,
    overrun: int,
) -> None:
    """However many frames are lost at each place, each place gets just its own.

    What the cipher refused had been counted by the SA, what found none had not.
    """
    total = first_port + home + error + refused + ring + wire + office + overrun
    sent = tx + total
    entered = sent - first_port
    encrypted = entered - home - error
    decrypted = encrypted - refused - ring - wire
    errors = {"XfrmOutNoStates": error, "XfrmOutStateProtoError": refused}
    places = loss_places(
        crossing(
            sent, tx, entered_first=entered, encrypted=encrypted, decrypted=decrypted,
            left_second=decrypted - office, first_errors={name: n for name, n in errors.items() if n},
            ring_drops_between=ring,
        ),
        encrypts=True,
        receiver_overrun=overrun,
    )  # fmt: skip
    expected = {
        "first port into home": first_port, "home": home, "home xfrm XfrmOutNoStates": error,
        "home xfrm XfrmOutStateProtoError": refused,
        "office ring": ring, "middle link": wire, "office": office, "receiver overrun": overrun,
    }  # fmt: skip
    assert places == {place: n for place, n in expected.items() if n}


def test_what_no_counter_saw_is_said_to_be_unaccounted() -> None:
    """Ten frames are missing and every counter claims to have passed them all on."""
    places = loss_places(crossing(1000, 990, left_second=990), encrypts=True, receiver_overrun=0)
    assert places == {"office": 10}
    shared = loss_places(
        crossing(1000, 990, second_errors={"XfrmInNoStates": 25}), encrypts=True, receiver_overrun=0
    )
    assert shared[Place.UNACCOUNTED] != 0


def test_an_error_of_a_gateway_is_of_one_direction() -> None:
    """Each gateway refuses to encrypt some frames and to decrypt some: each is lost once, and all are accounted for."""
    sent, home_out, office_in, office_out, home_in = 1000, 30, 5, 40, 7
    there, back = sent - home_out, sent - office_out
    home_errors = {"XfrmOutStateProtoError": home_out, "XfrmInStateSeqError": home_in}
    office_errors = {"XfrmOutStateProtoError": office_out, "XfrmInStateSeqError": office_in}
    port = dict.fromkeys(("rx_dropped", "tx_dropped", "rx_errors", "tx_errors"), 0)
    lan = {
        "home": LinkCounters(rx_packets=sent, tx_packets=back - home_in, **port),
        "office": LinkCounters(rx_packets=sent, tx_packets=there - office_in, **port),
    }
    wan = {
        "home": LinkCounters(rx_packets=back, tx_packets=there, **port),
        "office": LinkCounters(rx_packets=there, tx_packets=back, **port),
    }
    # An SA counts a frame before it gives it to the cipher.
    sas = {
        "home": SaCounters(encrypted=sent, decrypted=back - home_in, errors=home_errors),
        "office": SaCounters(encrypted=sent, decrypted=there - office_in, errors=office_errors),
    }
    delta = {side: GatewayCounters(sas[side], lan[side], wan[side]) for side in ("home", "office")}
    other = counts(sent, back - home_in, source="east")
    offered = Offered(
        stalls_watched=True,
        start_ns=0, last_tx_ns=1, duration_s=1, intended_duration_s=1, ports=[],
        streams=[counts(sent, there - office_in), other],
    )  # fmt: skip
    places = [
        loss_places(way, encrypts=True, receiver_overrun=0)
        for way in crossings(offered, delta)  # type: ignore[arg-type]
    ]
    assert places == [
        {"home xfrm XfrmOutStateProtoError": home_out, "office xfrm XfrmInStateSeqError": office_in},
        {"office xfrm XfrmOutStateProtoError": office_out, "home xfrm XfrmInStateSeqError": home_in},
    ]


def test_directions_read_the_counters_of_their_own_way() -> None:
    """East to west Office encrypts and Home decrypts."""
    zero = LinkCounters(0, 0, 0, 0, 0, 0)
    delta = {
        "home": GatewayCounters(SaCounters(encrypted=10, decrypted=7), zero, zero),
        "office": GatewayCounters(SaCounters(encrypted=8, decrypted=9), zero, zero),
    }
    back = counts(8, 7, source="east")
    offered = Offered(
        stalls_watched=True,
        start_ns=0,
        last_tx_ns=1,
        duration_s=1,
        intended_duration_s=1,
        streams=[counts(10, 9), back],
        ports=[],
    )
    there, home_again = crossings(offered, delta)  # type: ignore[arg-type]
    assert (there.first, there.encrypted, there.decrypted) == ("home", 10, 9)
    assert (home_again.first, home_again.encrypted, home_again.decrypted) == ("office", 8, 7)


def test_what_the_testers_full_ring_refused_is_a_receiver_overrun_and_not_the_duts() -> None:
    """1000 sent, 20 refused by the tester's veth: Office passed on all; with any other port it lost them."""
    stream = counts(1000, 980)
    offered = Offered(
        stalls_watched=True,
        start_ns=0,
        last_tx_ns=10**9,
        duration_s=1.0,
        intended_duration_s=1.0,
        streams=[stream],
        ports=[],
    )
    whole, short = LinkCounters(1000, 1000, 0, 0, 0, 0), LinkCounters(1000, 980, 0, 20, 0, 0)
    delta = {
        "home": GatewayCounters(SaCounters(), whole, whole),
        "office": GatewayCounters(SaCounters(), short, whole),
    }
    (ours,) = crossings(offered, delta, tester_rings=True)  # type: ignore[arg-type]
    (theirs,) = crossings(offered, delta)  # type: ignore[arg-type]
    assert loss_places(ours, encrypts=False, receiver_overrun=20) == {"receiver overrun": 20}
    assert loss_places(theirs, encrypts=False, receiver_overrun=0) == {"office": 20}


class Passing:
    """A gateway and its stack at once, through which so many late frames pass, one at each look at either."""

    lan, wan = "lan", "wan"

    def __init__(self, frames: int) -> None:
        self.left = frames
        self.passed = 0

    def _pass(self) -> int:
        if self.left:
            self.left -= 1
            self.passed += 1
        return self.passed

    def link_counters(self) -> dict[str, LinkCounters]:
        passed = self._pass()
        return {"lan": LinkCounters(passed, 0, 0, 0, 0, 0), "wan": LinkCounters(0, passed, 0, 0, 0, 0)}

    def counters(self, side: str) -> SaCounters:
        return SaCounters(encrypted=self._pass())


def test_late_learning_frames_do_not_look_like_cleartext() -> None:
    """A frame that passes between the looks at links and at SAs has left, and was encrypted before."""
    gateway = Passing(2)
    bed = cast(Testbed, SimpleNamespace(gateways={"home": gateway}))
    stack = cast(Stack, gateway)
    hasty = moved(read(bed, stack), read(bed, stack))["home"]
    assert hasty.wan.tx_packets > hasty.sas.encrypted
    gateway = Passing(5)
    bed, stack = cast(Testbed, SimpleNamespace(gateways={"home": gateway})), cast(Stack, gateway)
    waits: list[float] = []
    before = read_at_rest(bed, stack, waits.append)
    assert 0 < len(waits) < AT_REST_LOOKS
    patient = moved(before, read(bed, stack))["home"]
    assert (patient.wan.tx_packets, patient.sas.encrypted) == (0, 0)


def test_a_box_that_never_rests_is_not_waited_for_for_ever() -> None:
    """Frames that its own network goes on sending are seen in the trial, too."""
    gateway = Passing(10_000)
    waits: list[float] = []
    bed = cast(Testbed, SimpleNamespace(gateways={"home": gateway}))
    assert read_at_rest(bed, cast(Stack, gateway), waits.append)["home"].sas.encrypted > 0
    assert len(waits) == AT_REST_LOOKS


def test_an_interface_that_is_gone_is_named() -> None:
    """Somebody pulled a box's card, or moved it to another namespace, in mid-run: the trial is void, and says why."""
    gone = SimpleNamespace(lan="lan0", wan="wan0", link_counters=lambda: {"lo": None, "wan0": None})
    bed = cast(Testbed, SimpleNamespace(gateways={"home": gone}))
    with pytest.raises(GatewayFailed, match=r"gateway home: .* lan0 is gone; there are lo, wan0"):
        read(bed, None)


def test_a_gateways_own_datagrams_are_udp_and_icmp() -> None:
    """Both versions of IP count, and nothing that it forwards or receives; a kernel without IPv6 has no snmp6."""
    texts: dict[str, str | None] = {
        "/proc/net/snmp": "Ip: Forwarding ForwDatagrams\nIp: 1 900\nIcmp: InMsgs OutMsgs\nIcmp: 7 50\n"
        "IcmpMsg: OutType3\nIcmpMsg: 50\nUdp: InDatagrams OutDatagrams\nUdp: 500 400\n"
        "UdpLite: InDatagrams OutDatagrams\nUdpLite: 1 1\n",
        "/proc/net/snmp6": "Icmp6InMsgs 3\nIcmp6OutMsgs 20\nUdp6InDatagrams 9\nUdp6OutDatagrams 100\n",
    }
    gateway = cast(Gateway, SimpleNamespace(read=lambda paths: {path: texts[path] for path in paths}))
    assert own_sent(gateway) == 570
    texts["/proc/net/snmp6"] = None
    assert own_sent(gateway) == 450
