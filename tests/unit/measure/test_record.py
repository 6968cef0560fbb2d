# SPDX-License-Identifier: Apache-2.0
"""Tests what a trial's record says: where cleartext ends the case (decision 0029), what was noticed."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from espbench.generators.base import (
    EspCounts,
    Generator,
    LossEpisode,
    NoiseCounts,
    Offered,
    PortCounts,
    Slice,
    Stall,
)
from espbench.measure import trial as measuring
from espbench.measure.inputs.actions import Action, Performed
from espbench.measure.inputs.setup import Request, Setup, TrialBroken
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.proof import encryption
from espbench.measure.proof.counters import Counters, GatewayCounters
from espbench.measure.proof.readiness import InClear
from espbench.measure.record import OfCase, Seen, record
from espbench.platforms import placement
from espbench.platforms.base import LinkCounters, Testbed
from espbench.procedures.ipsec.ipsec_common import upset as rekeys
from espbench.sentences import Code
from espbench.stacks.base import SaCounters, Stack
from espbench.terms import ARRIVED_AT_THE_END, Remark, Trial
from support.generators.streams import counts

SENT, CLEAR = 1000, 10


class Bed(Testbed):
    """No ports: nothing is sent here."""

    def close(self) -> None: ...


def link(rx: int, tx: int) -> LinkCounters:
    return LinkCounters(rx, tx, 0, 0, 0, 0)


def moved(spis: frozenset[Any] = frozenset()) -> Counters:
    """All frames crossed, of which Home encrypted but SENT - CLEAR."""
    sas = SaCounters(encrypted=SENT - CLEAR, decrypted=SENT - CLEAR, spis=spis)
    return {
        "home": GatewayCounters(sas, link(SENT, 0), link(0, SENT)),
        "office": GatewayCounters(sas, link(0, SENT), link(SENT, 0)),
    }


def trial_of(
    delta: Counters,
    *,
    phase: Any = "final",
    overrun: int = 0,
    upset: bool = False,
    actions: Sequence[Action] = (),
    rx_frames: int = SENT,
    platform: str = "netns",
    **changes: Any,
) -> Trial:
    """The record of a trial of 1 s in which the counters moved like this."""
    stream = counts(SENT, rx_frames, latency_us=None)
    offered = Offered(
        stalls_watched=True,
        start_ns=0, last_tx_ns=10**9, duration_s=1.0, intended_duration_s=1.0, streams=[stream],
        ports=[
            PortCounts(name="west", rx_overrun=0, foreign=0), PortCounts(name="east", rx_overrun=overrun, foreign=0)
        ],
    ).model_copy(update=changes)  # fmt: skip
    bed = Bed(platform, "", {}, {}, placement.choose(), {})
    setup = Setup(bed, cast(Generator, None), cast(Stack, SimpleNamespace(encrypts=True)), {})
    return record(
        setup,
        Traffic(((64, 1),), 4, "one-way"),
        Request(float(SENT), 1.0, phase),
        OfCase("c", 0, 0.01),
        Seen(offered, delta, {}, {}, [Performed(each, 0, 0, {}) for each in actions], upset=upset),
    )


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ({}, ""),
        ({"overrun": 3}, "receiver overrun"),
        ({"clock_step_ns": 50_000_000}, "clock stepped"),
        ({"stopped_early": True}, "stopped"),
        ({"phase": "measure", "duration_s": 1.2}, "instead of 1.000 s"),
    ],
)
def test_what_the_tester_did_wrong_does_not_heal_a_leak(what: dict[str, Any], said: str) -> None:
    """The gateways' counters say that ten frames crossed in clear, however the tester sent or received."""
    trial = trial_of(moved(), **what)
    assert any(said in reason.text for reason in trial.reasons)
    assert trial.violated


@pytest.mark.parametrize("foreign", [0, None])
def test_what_came_shows_no_leak_if_frames_of_others_count_as_received(foreign: int | None) -> None:
    """Ten frames were lost before Home, and ten of another device came: by the counts of TRex nothing was lost."""
    left = gateways(encrypted=SENT - 10, left_home=SENT - 10, decrypted=SENT - 10, left_office=SENT - 10)
    ports = [
        PortCounts(name="west", rx_overrun=0, foreign=foreign),
        PortCounts(name="east", rx_overrun=0, foreign=foreign),
    ]
    trial = trial_of(left, ports=ports)
    assert trial.validity == "INVALID"  # the gateways contradict the tester: this is no pass
    assert trial.violated is (foreign is not None)


def test_the_gateways_own_counters_show_a_leak_whatever_the_tester_counts() -> None:
    beside = gateways(encrypted=SENT - 10, left_home=SENT, decrypted=SENT - 10, left_office=SENT - 10)
    assert trial_of(beside, ports=[PortCounts(name="east", rx_overrun=0, foreign=None)]).violated


def test_frames_that_the_testers_card_dropped_are_not_the_boxes_loss() -> None:
    """The trial is void, and the frames are booked at the tester."""
    trial = trial_of(
        gateways(encrypted=SENT, left_home=SENT, decrypted=SENT, left_office=SENT),
        platform="remote", rx_frames=SENT - 3, overrun=3,
    )  # fmt: skip
    assert trial.validity == "INVALID"
    assert [reason.values for reason in trial.reasons if reason.code == Code.RECEIVER_OVERRUN] == [
        {"frames": 3}
    ]
    assert trial.loss_at == {"receiver overrun": 3}


def attacked(*, home_lan: int, home_wan: int, own: int, encrypted: int = SENT) -> Counters:
    """Return what the gateways counted, both ways, while Home was attacked."""
    return {
        "home": GatewayCounters(
            SaCounters(encrypted=encrypted, decrypted=SENT, own_datagrams=own),
            link(SENT, home_lan), link(SENT, home_wan),
        ),
        "office": GatewayCounters(
            SaCounters(encrypted=SENT, decrypted=encrypted), link(SENT, encrypted), link(SENT, SENT)
        ),
    }  # fmt: skip


def under_attack(*, lost: int = 0) -> tuple[Setup, Offered]:
    """Return a set-up and a trial both ways with an attack; lost: frames from west."""
    flood = NoiseCounts(
        id=100, from_="west", intended_frames=500, tx_frames=500, tx_refused=0, unsent=0, duration_s=1.0,
        departure_fps=500.0,
    )  # fmt: skip
    offered = Offered(
        stalls_watched=True, start_ns=0, last_tx_ns=10**9, duration_s=1.0, intended_duration_s=1.0, streams=[],
        ports=[PortCounts(name=name, rx_overrun=0, foreign=0) for name in ("west", "east")], noise=[],
    ).model_copy(
        update={"streams": [counts(SENT, SENT - lost), counts(SENT, SENT, source="east")], "noise": [flood]}
    )  # fmt: skip
    bed = Bed("netns", "", {}, {}, placement.choose(), {})
    return Setup(bed, cast(Generator, None), cast(Stack, SimpleNamespace(encrypts=True)), {}), offered


def test_a_daemon_that_died_under_attack_is_no_leak() -> None:
    """Home's kernel answered 50 packets of the attack by ICMP, because no program listened any more."""
    delta = attacked(home_lan=SENT + 50, home_wan=SENT, own=0)
    setup, offered = under_attack()
    with pytest.raises(TrialBroken) as died, measuring._leaks_first(setup, offered, delta, fragments=False):
        raise TrialBroken("home: charon has died", Code.DAEMON_DIED)
    assert died.value.code == Code.DAEMON_DIED


@pytest.mark.parametrize(
    ("delta", "problem"),
    [
        (attacked(home_lan=SENT + 48, home_wan=SENT + 2, own=50), None),
        (
            attacked(home_lan=SENT + 48, home_wan=SENT + 2, own=40),
            "2050 frames left home under attack, 40 of them its own; it encrypted or decrypted 2000",
        ),
        (
            attacked(home_lan=SENT + 48, home_wan=SENT + 2, own=50, encrypted=SENT - 10),
            "2050 frames left home under attack, 50 of them its own; it encrypted or decrypted 1990",
        ),
    ],
    ids=["answers and IKE", "answers that nobody counted", "ten frames in clear, fewer than the answers"],
)
def test_under_attack_what_left_both_ports_must_be_accounted_for(
    delta: Counters, problem: str | None
) -> None:
    """Ten frames of the last trial did not arrive, so only the counters of Home's ports show them."""
    setup, offered = under_attack(lost=SENT - delta["home"].sas.encrypted)
    assert encryption.leaks(setup, offered, delta, fragments=False) == []
    found = encryption.problems(setup, offered, delta, fragments=False)
    assert [*map(str, found)] == ([problem] if problem else [])


def test_under_attack_a_frame_that_arrives_beside_the_sas_is_a_leak() -> None:
    """Nothing was lost, and Home encrypted ten frames less than came to east."""
    delta = attacked(home_lan=SENT + 50, home_wan=SENT, own=50, encrypted=SENT - 10)
    setup, offered = under_attack()
    with pytest.raises(InClear), measuring._leaks_first(setup, offered, delta, fragments=False):
        raise TrialBroken("home: charon has died", Code.DAEMON_DIED)


def gateways(*, encrypted: int, left_home: int, decrypted: int, left_office: int) -> Counters:
    """Return what the gateways counted, west to east."""
    return {
        "home": GatewayCounters(SaCounters(encrypted=encrypted), link(SENT, 0), link(0, left_home)),
        "office": GatewayCounters(SaCounters(decrypted=decrypted), link(0, left_office), link(left_home, 0)),
    }


@pytest.mark.parametrize(
    "delta",
    [
        moved(spis=frozenset({1, 2})),  # what the old SAs carried is not known
        moved() | {"home": GatewayCounters(SaCounters(encrypted=-5), link(SENT, 0), link(0, SENT))},
    ],
    ids=["SAs were replaced", "a counter ran backwards"],
)
def test_counts_that_do_not_belong_together_accuse_nobody(delta: Counters) -> None:
    """The trial is void, and the next one will tell."""
    trial = trial_of(delta)
    assert (trial.validity, trial.violated) == ("INVALID", False)


@pytest.mark.parametrize(
    ("doubt", "rx_frames"), [({"faults": ["the generator does not know"]}, SENT), ({}, SENT + 1)]
)
@pytest.mark.parametrize(
    ("delta", "violated"),
    [
        (gateways(encrypted=900, left_home=900, decrypted=900, left_office=SENT), True),
        (gateways(encrypted=900, left_home=SENT, decrypted=900, left_office=900), True),
        (gateways(encrypted=900, left_home=900, decrypted=SENT, left_office=SENT), True),
        (gateways(encrypted=900, left_home=900, decrypted=900, left_office=900), False),
    ],
    ids=[
        "left Office beside its SA",
        "left Home beside its SA",
        "never encrypted",
        "only the tester says so",
    ],
)
def test_the_gateways_own_counters_show_a_leak_though_the_testers_are_in_doubt(
    delta: Counters, violated: bool, doubt: dict[str, Any], rx_frames: int
) -> None:
    """Arrivals may be counted wrong and accuse nobody. What left a gateway beside its SA stays a leak."""
    trial = trial_of(delta, rx_frames=rx_frames, **doubt)
    assert (trial.validity, trial.violated) == ("INVALID", violated)


def test_what_arrived_beside_the_sas_is_a_leak_if_nothing_is_in_doubt() -> None:
    delta = gateways(encrypted=900, left_home=900, decrypted=900, left_office=900)
    assert trial_of(delta).violated


def test_a_gateway_that_sends_all_in_clear_is_found_where_nothing_arrives() -> None:
    """Office drops it; TRex cannot tell that from a link that is down, and says so as a fault of its own."""
    delta = gateways(encrypted=0, left_home=SENT, decrypted=0, left_office=0)
    trial = trial_of(delta, rx_frames=0, faults=["nothing at all arrived"])
    assert (trial.validity, trial.violated) == ("INVALID", True)


@pytest.mark.parametrize(
    "upset", [False, True], ids=["SAs were replaced by somebody", "SAs are replaced by the test"]
)
def test_what_the_tester_saw_in_clear_is_a_leak_whatever_became_of_the_sas(upset: bool) -> None:
    """A gateway that loses its SA and goes on forwarding: no counter can be believed, and the frames were there."""
    clear = PortCounts(
        name="east", rx_overrun=0, foreign=0, esp=EspCounts(packets=5, authentic=5, cleartext=3)
    )
    trial = trial_of(moved(spis=frozenset({1, 2})), upset=upset, ports=[clear])
    assert (trial.validity, trial.violated) == ("INVALID", True)
    assert "3 frames reached the tester in clear" in [*map(str, trial.problems)]
    none = clear.model_copy(update={"esp": EspCounts(packets=5, authentic=5)})
    assert not trial_of(moved(spis=frozenset({1, 2})), upset=upset, ports=[none]).violated


def test_a_leaks_codes_are_written_and_read_again() -> None:
    """They stand beside the same in words; records of earlier versions have only the words."""
    trial = trial_of(moved())
    assert (Code.MORE_ARRIVED, "office") in [(p.code, p.values.get("gateway")) for p in trial.problems]
    assert Trial.model_validate_json(trial.model_dump_json()).problems == trial.problems
    assert trial.proof["problems"] == [*map(str, trial.problems)]
    earlier = {key: value for key, value in trial.proof.items() if key != "problem_codes"}
    read = trial.model_copy(update={"proof": earlier})
    assert [*map(str, read.problems)] == [*map(str, trial.problems)]
    assert {reason.code for reason in read.problems} == {Code.PROOF_PROBLEM}


def test_what_the_generator_noticed_stands_with_the_trial() -> None:
    """Nothing that it tells is dropped, though the trial be valid and no figure affected."""
    note = "port west: 2 frames never left: its driver had no room for them; they count as not sent"
    delta, remark = moved(), Remark.of_text("its sender is not pinned to a CPU")
    trial = trial_of(delta, notes=[note], warnings=[remark])
    assert (trial.host["notes"], trial.warnings) == ([note], [remark])
    assert (trial_of(delta).host["notes"], trial_of(delta).warnings) == ([], [])


@pytest.mark.parametrize(
    ("actions", "in_rekeys", "void"),
    [
        (rekeys(dict), 0, True),
        (rekeys(dict), 310, False),
        ([Action("flush", 0.0, dict)], 0, False),
    ],
    ids=["rekeys lost nothing", "rekeys lost most", "the SAs were deleted, which is an outage"],
)
def test_what_stalls_lost_is_not_the_loss_of_rekeys(
    actions: list[Action], in_rekeys: int, void: bool
) -> None:
    """Two stalls of 30 ms in 60 s at 10,000 frames/s, far apart, lost 150 frames each; rule 7 in docs/method.md."""
    s, sent = 10**9, 600_000
    lost = [(10 * s, 150), (40 * s, 150), *([(25 * s, in_rekeys)] if in_rekeys else [])]
    stream = counts(
        sent, sent - sum(n for _, n in lost), latency_us=None, duration_s=60.0, first_lost_ns=10 * s,
        last_lost_ns=40 * s, loss_episodes=[LossEpisode(from_ns=at, to_ns=at, frames=n) for at, n in lost],
    )  # fmt: skip
    trial = trial_of(
        gateways(encrypted=sent, left_home=sent, decrypted=sent, left_office=sent),
        phase="measure", upset=True, actions=actions, streams=[stream], duration_s=60.0, intended_duration_s=60.0,
        last_tx_ns=60 * s, host_stalls=[Stall(cpu=0, at_ns=at * s, ms=30.0) for at in (10, 40)],
    )  # fmt: skip
    assert [reason.code for reason in trial.reasons] == [Code.HOST_STALL_OF_LOSS] * void
    assert trial.validity == ("INVALID" if void else "VALID")


@pytest.mark.parametrize(
    ("actions", "share"), [([Action("flush", 0.0, dict)], {"west-east": 0.8}), (rekeys(dict), None)]
)
def test_a_trial_of_an_outage_records_how_many_frames_arrived_at_its_end(
    actions: list[Action], share: dict[str, float] | None
) -> None:
    """Each of 20 parts of the trial has 50 frames, of which 40 of the last part arrived."""
    parts = [Slice(t_s=n / 20, rx_frames=40 if n == 19 else 50, min_us=1.0, mean_us=1.0) for n in range(20)]
    stream = counts(SENT, SENT - 10, latency_us=None, slices=parts)
    trial = trial_of(moved(), upset=True, actions=actions, streams=[stream])
    assert trial.measured.get(ARRIVED_AT_THE_END) == share
