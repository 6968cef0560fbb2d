# SPDX-License-Identifier: Apache-2.0
"""The record of a trial: what was counted, what it is worth, where frames were lost, what is proven."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from pydantic import BaseModel

from espbench.generators.base import BusBytes, LinkErrors, Offered, StreamCounts
from espbench.measure.highest_rate import highest_fps
from espbench.measure.inputs import esp_peer
from espbench.measure.inputs.actions import Performed, untimely
from espbench.measure.inputs.setup import Request, Setup
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.proof import counters, encryption, one_gateway, path
from espbench.measure.validity import backlog, network_events
from espbench.measure.validity.faults import tester_faults, virtual_faults
from espbench.measure.validity.standing_still import StandingStill, standing_still
from espbench.platforms.base import LinkCounters, PortName, Side
from espbench.sentences import Code
from espbench.terms import (
    NOT_SENT,
    DirectionReading,
    GatewayReading,
    Latency,
    Reason,
    Trial,
    problems_of,
    problems_recorded,
)

# These reasons mean that the gateways' counters before and after a trial may not belong together, so they
# cannot show that cleartext crossed. With any other reason for a void trial, a leak still counts as one.
GATEWAYS_IN_DOUBT = {Code.COUNTER_BACKWARDS, Code.LINK_CHANGED, Code.SAS_CHANGED, Code.SAS_REPLACED}
# These mean that the generator's counts may be wrong. What the gateways counted is right all the same.
_TESTER_IN_DOUBT = {Code.GENERATOR_FAULT, Code.MORE_RECEIVED}


@dataclass(frozen=True)
class OfCase:
    """The place of a record among the trials (case, sequence), and the facts of the case that its verdict needs.

    resolution: the share of the load by which the rate received may fall short of it until it counts as stored.
    fragments: frames exceed the middle link's MTU after ESP.
    """

    case: str
    sequence: int
    resolution: float
    fragments: bool = False


@dataclass(frozen=True)
class Seen:
    """The readings of a trial.

    offered: what the generator counted. delta: how the gateways' counters moved meanwhile. cpu: the CPU time that they
    used (ns; None: not known). host: host.compare's record and the senders'. performed: what was done to the gateways.
    upset: SAs or gateways were replaced in the trial, so that counters before and after do not belong together.
    network: what happened to links and SAs meanwhile.
    """

    offered: Offered
    delta: counters.Counters
    cpu: dict[Side, int | None]
    host: dict[str, Any]
    performed: list[Performed] = field(default_factory=list)
    upset: bool = False
    network: network_events.NetworkEvents = field(default_factory=network_events.NetworkEvents)


def record(setup: Setup, traffic: Traffic, request: Request, of: OfCase, seen: Seen) -> Trial:
    """Build the trial's record from what it showed."""
    offered, delta, cpu, upset = seen.offered, seen.delta, seen.cpu, seen.upset
    streams = offered.streams
    tx, rx = sum(s.tx_frames for s in streams), sum(s.rx_frames for s in streams)
    lost = sum(s.lost for s in streams)
    overruns = _overruns(setup, offered, delta)
    overrun = sum(overruns.values())
    # A load that is not steady may be stored: that is what its test is about.
    steady = request.shape.burst_frames is None and not request.shape.steps and not upset
    judged = [backlog.judge(s.slices if steady else [], offered.duration_s, of.resolution) for s in streams]
    sustained = all(b.sustained for b in judged)
    as_offered = request.as_offered or request.phase != "measure"
    reasons = tester_faults(offered, overrun, seen.host, as_offered=as_offered)
    reasons += untimely(seen.performed, offered.start_ns)
    reasons += network_events.faults(seen.network, setup, seen.performed, offered.start_ns, upset=upset)
    reasons += [
        Reason.of(Code.COUNTER_BACKWARDS, counter=name)
        for name in (() if upset else counters.backwards(delta))
    ]
    if not upset and (replaced := counters.rekeyed(delta)):
        reasons.append(Reason.of(Code.SAS_REPLACED, sides=replaced))
    doubts = {reason.code for reason in reasons}
    proof = _proof(setup, offered, delta, fragments=of.fragments, upset=upset, doubts=doubts)
    reasons += [Reason.of(Code.NOT_PROVEN, problem=p) for p in problems_of(proof)]
    if setup.bed.virtual_time:
        reasons += virtual_faults(offered, traffic)
        still = StandingStill([0 for _ in streams])
    else:
        still = standing_still(
            request,
            offered,
            seen.host,
            _slowest_us_per_frame(setup, delta, cpu, upset=upset),
            judged,
            of.resolution,
            upset=upset,
        )
    disturbed = bool(still.reasons) and not reasons
    reasons += still.reasons
    valid = not reasons
    if valid and not sustained:
        worst = max(judged, key=lambda b: b.excess)
        reasons.append(Reason.of(Code.STORED, growth_ms=worst.growth_ms, pct=100 * worst.excess))
    loss_at = _loss_places(setup, offered, delta, overruns, upset=upset)
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
        duplicated=_sum(s.duplicated for s in streams),
        reordered=_sum(s.reordered for s in streams),
        corrupted=_sum(s.corrupted for s in streams),
        frame_loss_ratio=lost / tx if tx else 0.0,
        sustained=sustained,
        validity="VALID" if valid else "INVALID",
        reasons=reasons,
        loss_at=loss_at,
        latency_us=_joint_latency(streams),
        per_direction={
            f"{s.from_}-{s.to}": _direction(s, offered, request, len(streams), still.share) for s in streams
        },
        gateways={str(side): _gateway(setup, side, delta, cpu[side], offered, upset=upset) for side in cpu},
        proof=proof,
        warnings=offered.warnings,
        not_measured=[
            *offered.not_measured,
            *(["CPU of the gateways"] if None in cpu.values() else []),
            *seen.network.not_heard,
        ],
        measured=_measured(seen.performed, offered)
        | network_events.recorded(seen.network, offered.start_ns)
        | _of_links(offered, delta)
        | (_over_buses(setup, offered) if request.bus else {}),
        host=seen.host
        | {
            "lost_in_stalls": sum(still.lost),
            "lost_in_stalls_by_direction": still.lost,
            "backlog_in_stalls": still.explains_backlog,
            "still_pct": round(100 * still.share, 3),
            "disturbed": disturbed,
            "tester_run_queue_delay_ms": round(
                (offered.senders_wait_ms or 0.0) + offered.receivers_wait_ms, 3
            ),
            "stalls": len(offered.host_stalls) + sum(len(s.tx_stalls) for s in streams),
            "stall_ms": {k: round(v, 3) for k, v in offered.host_stall_ms_total.items()},
            "notes": offered.notes,
            "lateness_us": {f"{s.from_}-{s.to}": s.lateness_us for s in streams},
            "late_frames": _sum(s.late_frames for s in streams),
            "backlog_excess": [
                round(b.excess, 6) if s.slices else None for s, b in zip(streams, judged, strict=True)
            ],
        },
    )


def _measured(performed: list[Performed], offered: Offered) -> dict[str, Any]:
    """Return the record of the actions and the noise in mid-trial; times from the first frame, s."""
    noise = [
        {"from": n.from_, "tx_frames": n.tx_frames, "departure_fps": n.departure_fps} for n in offered.noise
    ]
    measured: dict[str, Any] = {"noise": noise} if noise else {}
    if not performed:
        return measured

    return measured | {
        "actions": [
            {
                "name": p.action.name,
                "began_s": _since(offered, p.began_ns),
                "ended_s": _since(offered, p.ended_ns),
                **p.facts,
            }
            for p in performed
        ]
    }


def _of_links(offered: Offered, delta: counters.Counters) -> dict[str, Any]:
    """Return the errors of links in virtual time, and those that gateways' ports counted; empty if there were none."""
    links: dict[str, LinkErrors] = {p.name: p.link for p in offered.ports if p.link is not None}
    links |= dict(zip(["middle"], offered.between, strict=False))  # a single gateway has no link to another
    errors = {name: _fields(LinkErrors, of) for name, of in links.items()}
    if not any(any(of.values()) for of in errors.values()):
        return {}
    return {
        "links": errors,
        "port_errors": {
            side: {"lan": _refused(moved.lan), "wan": _refused(moved.wan)} for side, moved in delta.items()
        },
    }


def _over_buses(setup: Setup, offered: Offered) -> dict[str, Any]:
    """Return what boards moved over their buses; each board reports it over its links to the tester."""
    links = {p.name: p.link for p in offered.ports if p.link is not None}
    facing: dict[Side, PortName] = {"home": "west", "office": "east"}
    return {"bus": {side: _fields(BusBytes, links[facing[side]]) for side in setup.bed.gateways}}


def _fields(of: type[BaseModel], counts: BaseModel) -> dict[str, int]:
    return {key: getattr(counts, key) for key in of.model_fields}


def _refused(port: LinkCounters) -> dict[str, int]:
    """Return frames that a port received and did not hand on; drivers count a wrong FCS as an error, or as dropped."""
    return {"errors": port.rx_errors, "dropped": port.rx_dropped}


def _overruns(setup: Setup, offered: Offered, delta: counters.Counters) -> dict[PortName, int]:
    """Return frames that reached a tester's port and were dropped there, by port."""
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


def _direction(
    s: StreamCounts, offered: Offered, request: Request, directions: int, still: float
) -> DirectionReading:
    intended_fps = request.load_fps / directions
    return DirectionReading(
        intended_fps=round(intended_fps, 3),
        offered_fps=round(s.tx_frames / offered.duration_s, 3) if offered.duration_s > 0 else 0.0,
        tx_frames=s.tx_frames,
        rx_frames=s.rx_frames,
        lost=s.lost,
        duplicated=s.duplicated,
        reordered=s.reordered,
        corrupted=s.corrupted,
        unsent=s.unsent,
        backlog_frames=s.rx_after_stop,
        drain_s=None if s.drain_s is None else round(s.drain_s, 6),
        latency_us=s.latency_us or Latency(),
        tagged_us=s.tagged.latency_us if s.tagged else None,
        first_lost_s=_since(offered, s.first_lost_ns),
        last_lost_s=_since(offered, s.last_lost_ns),
        longest_gap_s=_gap(offered, s),
        first_rx_s=_since(offered, s.first_rx_ns),
        departure_fps=None if s.departure_fps is None else round(s.departure_fps, 3),
        highest_fps=round(highest_fps(s, offered, intended_fps, still), 3),
    )


def _since(offered: Offered, ns: int | None) -> float | None:
    """Return seconds from the start of the trial."""
    return None if ns is None else round((ns - offered.start_ns) / 1e9, 9)


def _gap(offered: Offered, s: StreamCounts) -> tuple[float, float] | None:
    if s.longest_gap is None:
        return None
    return round((s.longest_gap.from_ns - offered.start_ns) / 1e9, 9), round(
        (s.longest_gap.to_ns - offered.start_ns) / 1e9, 9
    )


def _sum(counts: Iterable[int | None]) -> int | None:
    """Return the sum; None if one of the values is not known."""
    listed = [*counts]
    known = [n for n in listed if n is not None]
    return sum(known) if len(known) == len(listed) else None


def _joint_latency(streams: list[StreamCounts]) -> Latency:
    """Join both directions: means weighted by frames, percentiles of the worse direction."""
    parts = [(s.latency_us, s.rx_frames) for s in streams if s.latency_us is not None]
    if not parts:
        return Latency()
    if len(streams) == 1:
        return parts[0][0].model_copy(update={"hdr": None})  # the histogram stands in per_direction
    frames = sum(n for _, n in parts) or 1

    def worst(name: str) -> float | None:
        return max((v for part, _ in parts if (v := getattr(part, name)) is not None), default=None)

    return Latency(
        min=min((p.min for p, _ in parts if p.min is not None), default=None),
        mean=round(sum((p.mean or 0.0) * n for p, n in parts) / frames, 3),
        p50=worst("p50"), p90=worst("p90"), p99=worst("p99"), p999=worst("p999"), max=worst("max"),
    )  # fmt: skip


def _loss_places(
    setup: Setup,
    offered: Offered,
    delta: counters.Counters,
    overruns: dict[PortName, int],
    *,
    upset: bool,
) -> dict[str, int]:
    """Return the lost frames by the place where they were lost, and how many were never sent."""
    books = one_gateway if setup.bed.ciphertext else path
    lost = sum(s.lost for s in offered.streams)
    places: dict[str, int] = {}
    # An attack's frames are in the gateways' counters too, and those of an SA or a gateway that was replaced are gone.
    untold = "beside an attack" if offered.noise else "while SAs came and went" if upset else ""
    if untold and lost > 0:
        places[f"{untold}, place not known"] = lost
    crossings = () if untold else books.crossings(offered, delta, tester_rings=setup.bed.tester_rings)
    for crossing in crossings:
        for place, n in books.loss_places(
            crossing, encrypts=setup.encrypts, receiver_overrun=overruns[crossing.stream.to]
        ).items():
            places[place] = places.get(place, 0) + n
    if unsent := sum(s.unsent for s in offered.streams):
        places[NOT_SENT] = unsent
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
    """Return the record's `proof`; doubts: the codes of what is wrong with the trial."""
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
        proof["opened by the tester"] = opened.model_dump()
    problems = encryption.problems(setup, offered, delta, fragments=fragments)
    return proof | {"proven": not problems, **problems_recorded(problems)}


def _frames(setup: Setup, delta: counters.Counters, side: Side, *, upset: bool) -> int | None:
    """Return how many frames a gateway handled: those it encrypted or decrypted, else received; None if not known."""
    moved = delta[side]
    if upset:
        return None
    if setup.encrypts:
        return moved.sas.encrypted + moved.sas.decrypted
    return moved.lan.rx_packets + moved.wan.rx_packets


def _us_per_frame(
    setup: Setup, delta: counters.Counters, side: Side, cpu_ns: int | None, *, upset: bool
) -> float | None:
    """Return CPU time of a gateway for each frame that it handled, µs; None where the frames are not known."""
    frames = _frames(setup, delta, side, upset=upset)
    return cpu_ns / 1e3 / frames if frames and cpu_ns is not None else None


def _instructions(us_per_frame: float | None, ns_each: Fraction | None) -> float | None:
    return None if us_per_frame is None or ns_each is None else round(1e3 * us_per_frame / float(ns_each), 3)


def _slowest_us_per_frame(
    setup: Setup, delta: counters.Counters, cpu: dict[Side, int | None], *, upset: bool
) -> float | None:
    each = [_us_per_frame(setup, delta, side, ns, upset=upset) for side, ns in cpu.items()]
    return max((us for us in each if us is not None), default=None)


def _gateway(
    setup: Setup, side: Side, delta: counters.Counters, cpu_ns: int | None, offered: Offered, *, upset: bool
) -> GatewayReading:
    """Return a gateway's reading, with its CPU over exactly the time in which it had frames: sending and draining."""
    counted = setup.encrypts and not upset
    moved = delta[side]
    working_s = offered.duration_s + max((s.drain_s or 0.0 for s in offered.streams), default=0.0)
    us_per_frame = _us_per_frame(setup, delta, side, cpu_ns, upset=upset)
    return GatewayReading(
        cpu_pct=round(100 * cpu_ns / 1e9 / working_s, 2) if cpu_ns is not None and working_s > 0 else None,
        cpu_us_per_frame=None if us_per_frame is None else round(us_per_frame, 3),
        cpu_ns=cpu_ns,
        frames=_frames(setup, delta, side, upset=upset),
        instructions_per_frame=_instructions(us_per_frame, setup.bed.ns_per_instruction),
        encrypted_frames=moved.sas.encrypted if counted else None,
        decrypted_frames=moved.sas.decrypted if counted else None,
        xfrm_errors={} if upset else moved.sas.errors,
    )
