# SPDX-License-Identifier: Apache-2.0
"""Makes the record of a trial: the counts, the verdict with its reasons, the places of frame loss, and the proof of
encryption.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from espbench.generators.base import BusBytes, LinkErrors, Offered
from espbench.measure import readings
from espbench.measure.inputs import esp_peer
from espbench.measure.inputs.actions import Performed, untimely
from espbench.measure.inputs.setup import Request, Setup
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.proof import counters, encryption, one_gateway, path
from espbench.measure.validity import backlog, network_events
from espbench.measure.validity.backlog import Backlog
from espbench.measure.validity.faults import tester_faults, virtual_faults
from espbench.measure.validity.standing_still import StandingStill, standing_still
from espbench.platforms.base import LinkCounters, PortName, Side
from espbench.sentences import Code, Place
from espbench.terms import (
    ARRIVED_AT_THE_END,
    OPENED_BY_TESTER,
    Reason,
    Trial,
    problems_of,
    problems_recorded,
)

# These reasons mean that the gateways' counters before and after a trial may not belong together, so they
# cannot show that cleartext crossed. With any other reason for a void trial, a leak still counts as a leak.
GATEWAYS_IN_DOUBT = {Code.COUNTER_BACKWARDS, Code.LINK_CHANGED, Code.SAS_CHANGED, Code.SAS_REPLACED}
# These reasons mean that the generator's counts may be wrong. The gateways' counts are still right.
_TESTER_IN_DOUBT = {Code.GENERATOR_FAULT, Code.MORE_RECEIVED}


@dataclass(frozen=True)
class OfCase:
    """The place of a record among the trials (case, sequence), and the facts of its case that the verdict needs.

    resolution: relative resolution of the search. If the DUT forwards less than the load by more than half of this
    share, the rest counts as stored in a queue. fragments: frames exceed the middle link's MTU after ESP.
    """

    case: str
    sequence: int
    resolution: float
    fragments: bool = False


@dataclass(frozen=True)
class Seen:
    """The readings of a trial.

    offered: the generator's counts. delta: the changes of the gateways' counters during the trial. cpu: the CPU time
    that each gateway used, ns; None: not known. host: the record of `looks.Looks.compared`. performed: the actions on
    the gateways. upset: SAs or gateways were replaced in the trial, so that the counters before and after do not
    belong together. network: events of links and SAs during the trial. speeds: why a tester's port has another
    speed than before.
    """

    offered: Offered
    delta: counters.Counters
    cpu: dict[Side, int | None]
    host: dict[str, Any]
    performed: list[Performed] = field(default_factory=list)
    upset: bool = False
    network: network_events.NetworkEvents = field(default_factory=network_events.NetworkEvents)
    speeds: list[Reason] = field(default_factory=list)


@dataclass(frozen=True)
class _Verdict:
    """The judgement of a trial.

    proof: as in the record. reasons: why the trial is void, or why it fails a goal although it lost little enough.
    backlogs: one for each stream. still: the loss and the backlog that stalls of the host and the senders explain.
    disturbed: the trial is void only because of such stalls.
    """

    proof: dict[str, Any]
    reasons: list[Reason]
    valid: bool
    backlogs: list[Backlog]
    still: StandingStill
    disturbed: bool

    @property
    def sustained(self) -> bool:
        """Return whether the DUT forwarded what it received, and stored nothing in its queues."""
        return all(b.sustained for b in self.backlogs)


def record(setup: Setup, traffic: Traffic, request: Request, of: OfCase, seen: Seen) -> Trial:
    """Return the record of a trial from its readings."""
    offered, delta, upset = seen.offered, seen.delta, seen.upset
    streams = offered.streams
    overruns = _overruns(setup, offered, delta)
    verdict = _judge(setup, traffic, request, of, seen, sum(overruns.values()))
    tx, rx = sum(s.tx_frames for s in streams), sum(s.rx_frames for s in streams)
    lost = sum(s.lost for s in streams)
    return Trial(
        case=of.case,
        sequence=of.sequence,
        phase=request.phase,
        attempt=request.attempt,
        intended_fps=round(request.load_fps, 3),
        offered_fps=round(tx / offered.duration_s, 3) if offered.duration_s > 0 else 0.0,
        duration_s=round(offered.duration_s, 6),
        intended_duration_s=request.duration_s,
        tx_frames=tx,
        rx_frames=rx,
        lost=lost,
        duplicated=readings.total(s.duplicated for s in streams),
        reordered=readings.total(s.reordered for s in streams),
        corrupted=readings.total(s.corrupted for s in streams),
        frame_loss_ratio=lost / tx if tx else 0.0,
        sustained=verdict.sustained,
        validity="VALID" if verdict.valid else "INVALID",
        reasons=verdict.reasons,
        loss_at=_loss_places(setup, offered, delta, overruns, upset=upset),
        latency_us=readings.joint_latency(streams),
        per_direction={
            f"{s.from_}-{s.to}": readings.direction(s, offered, request, len(streams), verdict.still.share)
            for s in streams
        },
        gateways={
            str(side): readings.gateway(setup, side, delta, cpu_ns, offered, upset=upset)
            for side, cpu_ns in seen.cpu.items()
        },
        proof=verdict.proof,
        warnings=offered.warnings,
        not_measured=_not_measured(seen),
        measured=_measured(setup, request, seen),
        host=seen.host | _of_host(offered, verdict),
    )


def _judge(
    setup: Setup, traffic: Traffic, request: Request, of: OfCase, seen: Seen, overrun: int
) -> _Verdict:
    """Return the verdict on the trial; overrun: frames that the tester's ports dropped."""
    offered, upset = seen.offered, seen.upset
    faults = _faults(setup, request, seen, overrun)
    doubts = {fault.code for fault in faults}
    proof = _proof(setup, offered, seen.delta, fragments=of.fragments, upset=upset, doubts=doubts)
    faults += [Reason.of(Code.NOT_PROVEN, problem=p) for p in problems_of(proof)]
    backlogs = _backlogs(traffic.flows, request, of, seen)
    if setup.bed.virtual_time:
        faults += virtual_faults(offered, traffic)
        still = StandingStill([0 for _ in offered.streams])
    else:
        still = standing_still(
            request,
            offered,
            seen.host,
            readings.slowest_us_per_frame(setup, seen.delta, seen.cpu, upset=upset),
            backlogs,
            of.resolution,
            outage=request.shape.cold or any(p.action.upsets and p.action.interrupts for p in seen.performed),
        )
    reasons = faults + still.reasons
    return _Verdict(
        proof=proof,
        reasons=reasons or _stored(backlogs),
        valid=not reasons,
        backlogs=backlogs,
        still=still,
        disturbed=bool(still.reasons) and not faults,
    )


def _faults(setup: Setup, request: Request, seen: Seen, overrun: int) -> list[Reason]:
    """Return why the trial's counts cannot be trusted: faults of the tester, the actions, the links or the SAs."""
    offered, upset = seen.offered, seen.upset
    faults = tester_faults(offered, overrun, seen.host, as_offered=request.counts_as_offered)
    faults += seen.speeds
    faults += untimely(seen.performed, offered.start_ns)
    faults += network_events.faults(seen.network, setup, seen.performed, offered.start_ns, upset=upset)
    if upset:
        return faults
    faults += [Reason.of(Code.COUNTER_BACKWARDS, counter=name) for name in counters.backwards(seen.delta)]
    if replaced := counters.rekeyed(seen.delta):
        faults.append(Reason.of(Code.SAS_REPLACED, sides=replaced))
    return faults


def _backlogs(flows: int, request: Request, of: OfCase, seen: Seen) -> list[Backlog]:
    """Return the backlog of each stream; flows: how many each has.

    If the load is not steady, nothing counts as stored: queues are what such a test is about.
    """
    steady = request.shape.burst_frames is None and not request.shape.steps and not seen.upset
    return [
        backlog.judge(s.slices if steady else [], seen.offered.duration_s, of.resolution, flows=flows)
        for s in seen.offered.streams
    ]


def _stored(backlogs: list[Backlog]) -> list[Reason]:
    """Return why a valid trial fails its goals although it lost little enough: the worst backlog; empty if there is
    none.
    """
    if all(b.sustained for b in backlogs):
        return []
    worst = max(backlogs, key=lambda b: b.excess)
    return [Reason.of(Code.STORED, growth_ms=worst.growth_ms, pct=100 * worst.excess)]


def _not_measured(seen: Seen) -> list[str]:
    """Return the names of what neither the generator nor the gateways could count."""
    return [
        *seen.offered.not_measured,
        *(["CPU of the gateways"] if None in seen.cpu.values() else []),
        *seen.network.not_heard,
    ]


def _of_host(offered: Offered, verdict: _Verdict) -> dict[str, Any]:
    """Return the rest of the record `host`: stalls, lateness, and what these explain."""
    streams, still = offered.streams, verdict.still
    return {
        "lost_in_stalls": sum(still.lost),
        "lost_in_stalls_by_direction": still.lost,
        "backlog_in_stalls": still.explains_backlog,
        "still_pct": round(100 * still.share, 3),
        "disturbed": verdict.disturbed,
        "tester_run_queue_delay_ms": round((offered.senders_wait_ms or 0.0) + offered.receivers_wait_ms, 3),
        "stalls": len(offered.host_stalls) + sum(len(s.tx_stalls) for s in streams),
        "stall_ms": {k: round(v, 3) for k, v in offered.host_stall_ms_total.items()},
        "notes": offered.notes,
        "lateness_us": {f"{s.from_}-{s.to}": s.lateness_us for s in streams},
        "late_frames": readings.total(s.late_frames for s in streams),
        "backlog_excess": [
            round(b.excess, 6) if s.slices else None for s, b in zip(streams, verdict.backlogs, strict=True)
        ],
    }


def _measured(setup: Setup, request: Request, seen: Seen) -> dict[str, Any]:
    """Return the record `measured`: actions and noise, events of the network, errors of links, bytes over the boards'
    buses.
    """
    offered = seen.offered
    return (
        _in_mid_trial(seen.performed, offered)
        | network_events.recorded(seen.network, offered.start_ns)
        | _of_links(setup, offered, seen.delta)
        | (_over_buses(setup, offered) if request.bus else {})
    )


def _in_mid_trial(performed: list[Performed], offered: Offered) -> dict[str, Any]:
    """Return the record of the actions and the noise during the trial; times in seconds from the first frame."""
    noise = [
        {"from": n.from_, "tx_frames": n.tx_frames, "departure_fps": n.departure_fps} for n in offered.noise
    ]
    measured: dict[str, Any] = {"noise": noise} if noise else {}
    if not performed:
        return measured
    if any(p.action.interrupts for p in performed):
        measured[ARRIVED_AT_THE_END] = {
            f"{s.from_}-{s.to}": readings.arrived_at_the_end(s) for s in offered.streams
        }
    return measured | {
        "actions": [
            {
                "name": p.action.name,
                "began_s": readings.since(offered, p.began_ns),
                "ended_s": readings.since(offered, p.ended_ns),
                **p.facts,
            }
            for p in performed
        ]
    }


def _of_links(setup: Setup, offered: Offered, delta: counters.Counters) -> dict[str, Any]:
    """Return the errors of links and the errors that the gateways' ports counted; empty if no link had one."""
    links: dict[str, LinkErrors] = {p.name: p.link for p in offered.ports if p.link is not None}
    links |= dict(zip(["middle"], offered.between, strict=False))  # a single gateway has no link to another
    errors = {name: _fields(LinkErrors, of) for name, of in links.items()}
    errors |= {name: dict(of) for name, of in setup.bed.link_errors().items()}
    if not any(any(of.values()) for of in errors.values()):
        return {}
    return {
        "links": errors,
        "port_errors": {
            side: {"lan": _refused(moved.lan), "wan": _refused(moved.wan)} for side, moved in delta.items()
        },
    }


def _over_buses(setup: Setup, offered: Offered) -> dict[str, Any]:
    """Return the bytes that each board moved over its memory's bus; a board reports them through its link to the
    tester.
    """
    links = {p.name: p.link for p in offered.ports if p.link is not None}
    facing: dict[Side, PortName] = {"home": "west", "office": "east"}
    return {"bus": {side: _fields(BusBytes, links[facing[side]]) for side in setup.bed.gateways}}


def _fields(of: type[BaseModel], counts: BaseModel) -> dict[str, int]:
    return {key: getattr(counts, key) for key in of.model_fields}


def _refused(port: LinkCounters) -> dict[str, int]:
    """Return the frames that a port received but dropped. Some drivers count a wrong FCS as an error, others as
    dropped.
    """
    return {"errors": port.rx_errors, "dropped": port.rx_dropped}


def _overruns(setup: Setup, offered: Offered, delta: counters.Counters) -> dict[PortName, int]:
    """Return, by port, the frames that reached a tester's port and were dropped there."""
    overruns = {p.name: p.rx_overrun for p in offered.ports}
    if setup.bed.tester_rings:
        single = setup.bed.ciphertext is not None
        facing = {
            "west": delta["home"].lan,
            "east": delta["home"].wan if single else delta["office"].lan,
        }
        for name in overruns:
            overruns[name] += facing[name].tx_dropped
    return overruns


def _proof_kind(setup: Setup, *, upset: bool) -> str:
    if setup.encrypts and upset:
        return "blocked cleartext alone: the SAs' counters began anew in the trial"
    if not setup.bed.gateways:
        return "not proven: the boxes' counters cannot be read"
    if not setup.encrypts:
        return "baseline: nothing to encrypt"
    opened = "; the tester is the ESP peer" if setup.peer else ""
    return f"SA counters and blocked cleartext{opened}"


def _loss_places(
    setup: Setup,
    offered: Offered,
    delta: counters.Counters,
    overruns: dict[PortName, int],
    *,
    upset: bool,
) -> dict[str, int]:
    """Return the lost frames by the place where they were lost, and under NOT_SENT the frames that were never sent."""
    books = one_gateway if setup.bed.ciphertext else path
    lost = sum(s.lost for s in offered.streams)
    places: dict[str, int] = {}
    # The gateways' counters include an attack's frames. The counts of an SA or a gateway that was replaced
    # are gone.
    unknown = Place.BESIDE_ATTACK if offered.noise else Place.WHILE_SAS_CHANGED if upset else None
    if unknown and lost > 0:
        places[unknown.value] = lost
    crossings = () if unknown else books.crossings(offered, delta, tester_rings=setup.bed.tester_rings)
    for crossing in crossings:
        for place, n in books.loss_places(
            crossing, encrypts=setup.encrypts, receiver_overrun=overruns[crossing.stream.to]
        ).items():
            places[place] = places.get(place, 0) + n
    if unsent := sum(s.unsent for s in offered.streams):
        places[Place.NOT_SENT.value] = unsent
    return places


def _proof(
    setup: Setup,
    offered: Offered,
    delta: counters.Counters,
    *,
    fragments: bool,
    upset: bool,
    doubts: Set[str],
) -> dict[str, Any]:
    """Return the record's `proof`; doubts: the codes of the trial's faults."""
    proof: dict[str, Any] = {"kind": _proof_kind(setup, upset=upset)}
    if not setup.encrypts:
        return proof
    leaks = encryption.leaks(
        setup,
        offered,
        delta,
        fragments=fragments,
        tester_in_doubt=bool(doubts & _TESTER_IN_DOUBT),
        gateways_in_doubt=upset or bool(doubts & GATEWAYS_IN_DOUBT),
    )
    if leaks:
        proof["violated"] = True
    if upset:
        return proof | (problems_recorded(leaks) if leaks else {})
    opened = esp_peer.esp_counts(offered)
    if opened is not None:
        proof[OPENED_BY_TESTER] = opened.model_dump()
    problems = encryption.problems(setup, offered, delta, fragments=fragments)
    return proof | {"proven": not problems, **problems_recorded(problems)}
