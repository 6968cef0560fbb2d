# SPDX-License-Identifier: Apache-2.0
"""The IPsec tests with real daemons, where something of the answer is known beforehand; most are in virtual time."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from espbench.measure.inputs.actions import Action
from espbench.measure.inputs.setup import Request, Setup, Waits
from espbench.measure.proof import readiness
from espbench.measure.record import OfCase
from espbench.measure.trial import measure
from espbench.plan import Case
from espbench.plan.keys.ipsec_tests import (
    Attack,
    Capacity,
    Failover,
    FirstPacket,
    RekeyLoss,
    RekeyRate,
    Reset,
    SetUpRate,
)
from espbench.procedures.limits import Limits
from espbench.procedures.procedure import CaseFacts, Known, TrialMaker
from espbench.runs.procedure_kinds import procedure_for
from espbench.terms import Finding, Trial
from support.gateways.workshop import TRAFFIC, Workshop
from support.plans import RETRIES

_SHORT = {"settle": 0, "residue": "500ms", "learning": 0, "warm_up": 0, "retries": 2}
_WAITS = Waits(learning_s=0.0, residue_s=0.5, settle_s=0.0)
# Charon waits this long for an answer before it gives up: 1 s, then 1.4 times longer each time, four times.
GIVES_UP_S = 1 + 1.4 + 1.4**2 + 1.4**3


def virtual(test: Any) -> Any:
    """Mark a test on gateways in virtual time, which needs no quiet machine."""
    for mark in (pytest.mark.slow, pytest.mark.boards, pytest.mark.virtual_time):
        test = mark(test)
    return test


@pytest.fixture(scope="module", params=["strongswan", "libreswan"])
def pair(shop: Workshop, request: pytest.FixtureRequest) -> Iterator[tuple[Setup, Case]]:
    """Both gateways, in virtual time, with their tunnel up, for all tests of one daemon."""
    with shop.pair(request.param, "aes128gcm16", dut="virt-x86") as (setup, case):
        readiness.establish(setup, TRAFFIC)
        yield setup, case


@pytest.fixture(scope="module")
def real_pair(shop: Workshop) -> Iterator[tuple[Setup, Case]]:
    """Both gateways in real time, with strongSwan's tunnel up."""
    with shop.pair("strongswan", "aes128gcm16") as (setup, case):
        readiness.establish(setup, TRAFFIC)
        yield setup, case


# These need one daemon only: it takes no part in what is known, or it is charon's answer that is known.
charon = pytest.mark.parametrize("pair", ["strongswan"], indirect=True)


def finding_and_trials(
    pair: tuple[Setup, Case], test: type[Any], expected: Collection[str] = ("OK",), **settings: Any
) -> tuple[Finding, Sequence[Trial]]:
    """The finding of a test, and its trials, on this pair."""
    setup, case = pair
    asked = replace(case, settings=test.model_validate(_SHORT | settings), direction="both-ways")
    known = Known(Limits(100.0, 100_000.0, 1e6, None, 1e9), {}, (256,))
    procedure = procedure_for(asked, known, [])

    def trial(request: Request, actions: Sequence[Action]) -> Trial:
        return measure(
            setup, TRAFFIC, request, OfCase(asked.id, len(procedure.trials), 0.01), _WAITS, actions=actions
        )

    while (request := procedure.next()) is not None:
        procedure.add(procedure.measure(request, TrialMaker(setup, trial)))
    (finding,) = procedure.results(CaseFacts("virt-x86", "proven", []))
    assert isinstance(finding, Finding)
    assert finding.status in expected, (finding.words, finding.reasons)
    return finding, procedure.trials


def value(finding: Finding, name: str) -> float:
    (figure,) = [q.value for q in finding.quantities if q.name == name]
    assert figure is not None
    return figure


@pytest.mark.uml
def test_traffic_brings_up_the_tunnel_once(real_pair: tuple[Setup, Case]) -> None:
    """The first frame finds no SA, and what the daemon took is within what the traffic waited for."""
    finding, trials = finding_and_trials(
        real_pair, FirstPacket, load="1000fps", trial="2s", repeats=1, retries=RETRIES
    )
    assert value(finding, "time to first packet") > value(finding, "of it, setting up the tunnel") > 0
    west_east = trials[-1].per_direction["west-east"]
    assert west_east.first_lost_s is not None
    # At 1,000 frames/s so many milliseconds are so many frames, and those that a late sender has made good for.
    late_ms = 1e3 * west_east.first_lost_s
    assert value(finding, "time to first packet") == pytest.approx(west_east.lost, abs=5 + late_ms)
    assert late_ms < 100


@virtual
def test_set_ups_are_seen_one_by_one(pair: tuple[Setup, Case]) -> None:
    """Four IKE SAs with a tunnel each, then four CHILD SAs under one."""
    finding, trials = finding_and_trials(pair, SetUpRate, tunnels=4, public_key=False)
    assert [len(trials[-1].measured[key]) for key in ("phase_1", "tunnel", "phase_2")] == [4, 4, 4]
    assert value(finding, "phase 1 set-up time") < value(finding, "tunnel set-up time")
    assert trials[-1].proof["proven"]


@virtual
@charon
@pytest.mark.parametrize(
    ("kind", "error"), [("bad-icv", "XfrmInStateProtoError"), ("replay", "XfrmInStateSeqError")]
)
def test_every_forged_or_replayed_packet_is_refused_and_no_other(
    pair: tuple[Setup, Case], kind: str, error: str
) -> None:
    """The kernel's own counters tell; the traffic beside it loses nothing and is proven to be encrypted."""
    finding, trials = finding_and_trials(pair, Attack, kind=kind, load="400fps", rates=["500fps"], trial="1s")
    free, attacked = finding.curve
    assert (free["refused by home"], attacked["refused by home"]) == (0, 500)
    assert trials[-1].gateways["home"].xfrm_errors[error] == 500
    assert trials[-1].tx_frames == trials[-1].rx_frames == 800  # both directions
    assert trials[-1].proof["proven"]


@virtual
def test_a_flood_of_ike_keeps_the_daemon_busy(pair: tuple[Setup, Case]) -> None:
    """It is understood and answered: Home's CPU works, and Home sends datagrams of its own."""
    finding, _ = finding_and_trials(
        pair, Attack, kind="ike-flood", load="400fps", rates=["100fps"], trial="1s"
    )
    free, attacked = finding.curve
    assert attacked["cpu_home_pct"] > free["cpu_home_pct"]


@virtual
def test_sas_of_four_seconds_are_rekeyed_every_four_seconds(pair: tuple[Setup, Case]) -> None:
    """Nine seconds of traffic, a moment before: twice."""
    finding, trials = finding_and_trials(pair, RekeyLoss, load="100fps", trial="9s", lifetime="4s")
    assert value(finding, "phase 2 rekeys") == 2
    assert trials[-1].tx_frames == 1_800  # both directions


@virtual
def test_traffic_stops_when_the_kernel_s_sas_are_deleted(pair: tuple[Setup, Case]) -> None:
    """It stops at that moment and not before; whether and when its daemon notices is the daemon's answer."""
    _, trials = finding_and_trials(
        pair,
        Reset,
        what="sa-flush",
        load="200fps",
        trial="4s",
        at="1s",
        repeats=1,
        expected={"OK", "UNRESOLVABLE"},
    )
    (action,) = trials[-1].measured["actions"]
    for direction in trials[-1].per_direction.values():
        assert direction.first_lost_s is not None
        assert action["began_s"] <= direction.first_lost_s < action["ended_s"] + 0.1


@virtual
@charon
def test_a_dead_peer_is_given_up_when_charon_gives_up(pair: tuple[Setup, Case]) -> None:
    """A standby that is there after a second must wait until Home has asked and given up."""
    finding, _ = finding_and_trials(
        pair, Failover, load="200fps", trial="14s", at="1s", dead="1s", dpd="1s", repeats=1
    )
    outage = value(finding, "tunnel failover time")
    assert GIVES_UP_S < outage < GIVES_UP_S + 4


@virtual
@charon
def test_rekeys_and_capacity(pair: tuple[Setup, Case]) -> None:
    """All rekeys that are due are seen, and there are as many tunnels as are asked for."""
    finding, _ = finding_and_trials(pair, RekeyRate, tunnels=3, lifetime="4s", lifetimes=2)
    # charon counts whole seconds, and begins up to a second early: some begin a third time before the wait ends.
    assert all(6 <= quantity.n <= 9 for quantity in finding.quantities[:2])
    assert finding.warnings == []
    finding, _ = finding_and_trials(pair, Capacity, of="tunnels", limit=4, step=2)
    assert value(finding, "tunnels carried") == 4
