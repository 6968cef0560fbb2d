# SPDX-License-Identifier: Apache-2.0
"""One trial: offer, drain, count, read the CPUs, prove the encryption, and say what it is worth.

Three separate answers (METHODOLOGY): did it run, may it be trusted (VALID or INVALID with the
reasons), and what did it lose. Whether a goal is met is the search's to say.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from espbench.errors import EspbenchError
from espbench.generators.base import Generator, Noise, Offered, OnProgress, RateStep, Stream, StreamCounts
from espbench.measure import backlog, counters, esp_peer, host, one_gateway, path, stalls
from espbench.measure.actions import Action, Performed, performing, untimely
from espbench.measure.esp_peer import EspPeer
from espbench.measure.traffic import Traffic
from espbench.platforms.base import PortName, Side, Testbed
from espbench.stacks.base import Stack
from espbench.terms import DirectionReading, GatewayReading, Latency, Phase, Trial

# METHODOLOGY: a generator that sent less than this share of what was intended spoilt the trial.
OFFERED_LIMIT = 0.995
# A loss that frames departing later than this can have cost is the tester's, not the DUT's; how far a sender
# that is just fast enough falls behind comes on top.
LATE_LIMIT_S = 0.01
# Of any trial, passed or failed: half of its frames later than this was not the load that it says.
HALF_LATE_S = 0.025
# CPU time of others (and stolen time) on a gateway's CPU beyond which a failed trial is not the DUT's.
STARVATION_LIMIT_PCT = 5.0
# The same on a CPU that sends: beyond it, that too few frames were sent says nothing about the generator's ceiling.
TAKEN_LIMIT_PCT = 2.0
# Of an outage that is measured: more of it than this may not be the host's.
OUTAGE_STALLS = 0.1
CLOCK_STEP_LIMIT_MS = 1.0
UNSENT, LATE = "generator sent", "departures late"
_LEARNING_FRAMES_S = 0.1
_LEARNING_FPS = 100.0


@dataclass(frozen=True)
class Waits:
    """RFC 2544 23, seconds: after learning frames, for the residue, before the next trial."""

    learning_s: float = 2.0
    residue_s: float = 2.0
    settle_s: float = 5.0


@dataclass(frozen=True)
class Shape:
    """In what a trial's load is not steady; times from its start, s.

    steps: (time, share of the load) from which on it is that share. burst_frames: so many frames in each
    direction at the load and no more. tag_at_s: the first frame from then on has its latency told.
    noise: an attack beside the streams. cold: no learning frames, which would bring up tunnels before their time;
    as with an action that upsets, no SA need be there then.
    """

    steps: tuple[tuple[float, float], ...] = ()
    burst_frames: int | None = None
    tag_at_s: float | None = None
    noise: tuple[Noise, ...] = ()
    cold: bool = False


@dataclass(frozen=True)
class Request:
    """What a search or another test asks for."""

    load_fps: float
    duration_s: float
    phase: Phase
    attempt: int = 0
    shape: Shape = Shape()


@dataclass
class Bench:
    """Everything a trial is measured with; lives as long as a pair of gateways."""

    bed: Testbed
    generator: Generator
    stack: Stack | None
    next_hops: dict[PortName, str]
    peer: EspPeer | None = None  # the tester as the end of the tunnels, once they are up

    def streams(self, traffic: Traffic, load_fps: float | None) -> list[Stream]:
        """The case's streams, as ESP where the tester is the end of the tunnels."""
        streams = traffic.streams(self.bed, self.next_hops, load_fps)
        return self.peer.through(streams) if self.peer else streams

    @property
    def encrypts(self) -> bool:
        return self.stack is not None and self.stack.encrypts


class TrialBroken(EspbenchError):
    """A gateway or the generator died in mid-trial: the trial is void, the test bed must be rebuilt."""


def measure(
    bench: Bench,
    traffic: Traffic,
    request: Request,
    *,
    case: str,
    sequence: int,
    waits: Waits,
    goals: list[float],
    resolution: float,
    fragments: bool = False,
    actions: Sequence[Action] = (),
    on_progress: OnProgress | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Trial:
    """Run one trial with its waits and return its record; raises TrialBroken.

    actions are done to the gateways while frames flow; what they told stands in the record's `measured`. An action
    that replaces SAs or restarts a gateway takes the proof of encryption with it: the record says so.

    In virtual time the waits are of virtual time too, and that before the next trial is not needed: each
    begins in the same state.
    """
    try:
        bench.bed.begin_trial()
        if bench.stack is not None:
            bench.stack.rest()
        if not request.shape.cold:
            learn(bench, traffic, waits.learning_s, sleep)
        before = counters.read(bench.bed, bench.stack)
        host_before, cpu_before = _look(bench)
        with performing(actions) as performed:
            offered = bench.generator.offer(
                shaped(bench.streams(traffic, request.load_fps), request.shape),
                request.duration_s,
                waits.residue_s,
                on_progress=on_progress,
                noise=request.shape.noise,
            )
        # CPU first: reading the counters costs the gateways some.
        cpu_after = {side: g.cpu_ns() for side, g in bench.bed.gateways.items()}
        host_after = host.look()
        after = counters.read(bench.bed, bench.stack)
    except EspbenchError as error:
        raise TrialBroken(blame(bench, error)) from error
    upset = request.shape.cold or any(action.upsets for action in actions)
    if bench.stack is not None and not upset:
        gone = [text for c in (before, after) for text in counters.vanished(c, bench.stack.sas)]
        if gone:
            raise TrialBroken(f"the tunnels are not up any more: {'; '.join(dict.fromkeys(gone))}")
    cpu = {side: cpu_after[side] - cpu_before[side] for side in cpu_after}
    trial = _record(
        bench, traffic, request, offered, counters.moved(before, after), cpu,
        host.compare(
            host_before, host_after, gateway_cpus=_gateway_cpus(bench), gateway_ns=sum(cpu.values()),
            sender_cpus=set(bench.bed.placement.cpus["tester tx"]), sender_ns=_sender_ns(bench, offered),
        ) | taken_from_senders(
            offered, bench.bed.placement.cpus["tester tx"], together=_sends_and_receives_together(bench)
        ),
        case=case, sequence=sequence, goals=goals, resolution=resolution, fragments=fragments,
        performed=performed, upset=upset,
    )  # fmt: skip
    if not bench.bed.virtual_time:
        sleep(waits.settle_s)
    return trial


def learn(bench: Bench, traffic: Traffic, wait_s: float, sleep: Callable[[float], None] = time.sleep) -> None:
    """Learning frames (RFC 2544 23 b): a few, then the wait; they are not counted."""
    load = _LEARNING_FPS * traffic.directions
    virtual = bench.bed.virtual_time
    bench.generator.offer(
        bench.streams(traffic, load),
        _LEARNING_FRAMES_S,
        wait_s,
        quiet_s=None if virtual else min(wait_s, 0.05),
    )
    if not virtual:
        sleep(wait_s)


def warm_up(bench: Bench, traffic: Traffic, load_fps: float, duration_s: float) -> None:
    """Caches, flows and the CPU's clock; not counted. Raises TrialBroken."""
    try:
        bench.generator.offer(bench.streams(traffic, load_fps), duration_s, 1.0, quiet_s=0.1)
    except EspbenchError as error:
        raise TrialBroken(blame(bench, error)) from error


def broken(request: Request, reason: str, *, case: str, sequence: int) -> Trial:
    """The record of a trial that could not be carried through."""
    return Trial(
        case=case, sequence=sequence, phase=request.phase, attempt=request.attempt,
        intended_fps=round(request.load_fps, 3), offered_fps=0.0, duration_s=0.0,
        intended_duration_s=request.duration_s, tx_frames=0, rx_frames=0, lost=0, duplicated=0,
        reordered=0, corrupted=0, frame_loss_ratio=0.0, validity="INVALID", reasons=[reason],
    )  # fmt: skip


def _look(bench: Bench) -> tuple[host.HostSnapshot, dict[Side, int]]:
    snapshot = host.look()
    return snapshot, {side: g.cpu_ns() for side, g in bench.bed.gateways.items()}


def _gateway_cpus(bench: Bench) -> set[int]:
    """The gateways' CPUs on which the tester does not run."""
    cpus = bench.bed.placement.cpus
    return {c for side in bench.bed.gateways for c in cpus.get(side, [])} - _tester_cpus(bench)


def _sender_ns(bench: Bench, offered: Offered) -> int:
    """CPU time of all the generator's threads on the CPUs that send, ns."""
    receiving_ms = offered.receivers_run_ms if _sends_and_receives_together(bench) else 0.0
    return int(1e6 * (offered.senders_run_ms + receiving_ms))


def _sends_and_receives_together(bench: Bench) -> bool:
    cpus = bench.bed.placement.cpus
    return bool(set(cpus["tester tx"]) & set(cpus["tester rx"]))


def taken_from_senders(offered: Offered, cpus: Collection[int], *, together: bool) -> dict[str, float]:
    """The host record's sender_foreign_pct, where the senders know how long they waited for their CPUs.

    It is better than the CPUs' books, which hold the controller's own work before and after the sending too, and
    not the host's stalls. together: the receivers run on the senders' CPUs; waiting for them is the tester's
    ceiling, nobody's fault.
    """
    if offered.senders_wait_ms is None:
        return {}
    taken_ms = max(0.0, offered.senders_wait_ms - (offered.receivers_run_ms if together else 0.0))
    taken_ms += sum(offered.host_stall_ms_total.get(str(cpu), 0.0) for cpu in cpus)
    sending_ms = 1e3 * offered.intended_duration_s * max(1, len(cpus))
    return {"sender_foreign_pct": round(100 * taken_ms / max(1e-3, sending_ms), 2)}


def _tester_cpus(bench: Bench) -> set[int]:
    cpus = bench.bed.placement.cpus
    return {c for role, used in cpus.items() if role.startswith("tester") for c in used}


def blame(bench: Bench, error: EspbenchError, when: str = "during the trial") -> str:
    """The error, or which gateway it was that died and its last words."""
    for side, gateway in bench.bed.gateways.items():
        if not gateway.alive():
            words = gateway.last_words().strip()
            return f"gateway {side} died {when}" + (f"; its last words:\n{words}" if words else "")
    return str(error)


def _record(
    bench: Bench,
    traffic: Traffic,
    request: Request,
    offered: Offered,
    delta: counters.Counters,
    cpu: dict[Side, int],
    host_record: dict[str, Any],
    *,
    case: str,
    sequence: int,
    goals: list[float],
    resolution: float,
    fragments: bool,
    performed: list[Performed],
    upset: bool,
) -> Trial:
    streams = offered.streams
    tx, rx = sum(s.tx_frames for s in streams), sum(s.rx_frames for s in streams)
    lost = sum(s.lost for s in streams)
    overruns = _overruns(bench, offered, delta)
    overrun = sum(overruns.values())
    # A load that is not steady may be stored: that is what its test is about.
    steady = request.shape.burst_frames is None and not request.shape.steps and not upset
    judged = [backlog.judge(s.slices if steady else [], offered.duration_s, resolution) for s in streams]
    sustained = all(b.sustained for b in judged)
    books = one_gateway if bench.bed.ciphertext else path
    found = books.crossings(offered, delta, tester_rings=bench.bed.tester_rings)

    reasons = tester_faults(offered, overrun, host_record) + untimely(performed, offered.start_ns)
    reasons += [f"counter ran backwards: {name}" for name in (() if upset else counters.backwards(delta))]
    if not upset and (replaced := counters.rekeyed(delta)):
        reasons.append(f"the SAs of {' and '.join(replaced)} were replaced during the trial (rekeying)")
    proof: dict[str, Any] = {"kind": _proof_kind(bench, upset=upset)}
    if bench.encrypts and not upset:
        problems = [p for c in found for p in books.proof_of_encryption(c, fragments=fragments)]
        if (opened := esp_peer.told(offered)) is not None:
            problems += esp_peer.problems(opened)
            proof["opened by the tester"] = opened.model_dump()
        proof |= {"proven": not problems, "problems": problems}
        reasons += [f"encryption not proven: {p}" for p in problems]

    windows = stalls.windows(offered.host_stalls, [t for s in streams for t in s.tx_stalls])
    in_stalls = sum(stalls.lost_in_stalls(s, windows) for s in streams)
    failed = tx > rx or not sustained
    if bench.bed.virtual_time:
        reasons += virtual_faults(offered, traffic)
    elif failed and not reasons:
        if upset:
            reasons += outage_faults(streams, offered)
        reasons += host_faults(
            tx, rx, 0 if upset else in_stalls, goals, host_record, offered, judged if not sustained else []
        )
    valid = not reasons
    if valid and not sustained:
        worst = max(judged, key=lambda b: b.excess)
        reasons.append(
            f"stored, not forwarded: the backlog grew by {worst.growth_ms:.0f} ms, "
            f"{100 * worst.excess:.1f} % of the offered rate"
        )
    loss_at: dict[str, int] = {}
    # An attack's frames are in the gateways' counters too, and those of an SA or a gateway that was replaced are gone.
    untold = "beside an attack" if offered.noise else "while SAs came and went" if upset else ""
    if untold and tx > rx:
        loss_at[f"{untold}, place not known"] = tx - rx
    for crossing in () if untold else found:
        for place, n in books.loss_places(
            crossing, encrypts=bench.encrypts, receiver_overrun=overruns[crossing.stream.to]
        ).items():
            loss_at[place] = loss_at.get(place, 0) + n
    if unsent := sum(s.unsent for s in streams):
        loss_at["generator, not sent"] = unsent
    return Trial(
        case=case,
        sequence=sequence,
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
        frame_loss_ratio=(tx - rx) / tx if tx else 0.0,
        sustained=sustained,
        validity="VALID" if valid else "INVALID",
        reasons=reasons,
        loss_at=loss_at,
        latency_us=_joint_latency(streams),
        per_direction={f"{s.from_}-{s.to}": _direction(s, offered, request, len(streams)) for s in streams},
        gateways={str(side): _gateway(bench, side, delta, cpu[side], offered, upset=upset) for side in cpu},
        proof=proof,
        warnings=offered.warnings,
        not_measured=offered.not_measured,
        measured=_measured(performed, offered),
        host=host_record
        | {
            "lost_in_stalls": in_stalls,
            "tester_run_queue_delay_ms": round(
                (offered.senders_wait_ms or 0.0) + offered.receivers_wait_ms, 3
            ),
            "stalls": len(offered.host_stalls) + sum(len(s.tx_stalls) for s in streams),
            "stall_ms": {k: round(v, 3) for k, v in offered.host_stall_ms_total.items()},
            "lateness_us": {f"{s.from_}-{s.to}": s.lateness_us for s in streams},
            "late_frames": _sum(s.late_frames for s in streams),
            "backlog_excess": [
                round(b.excess, 6) if s.slices else None for s, b in zip(streams, judged, strict=True)
            ],
        },
    )


def shaped(streams: list[Stream], shape: Shape) -> list[Stream]:
    """The streams, their load in this shape."""
    if shape == Shape():
        return streams
    return [
        stream.model_copy(
            update={
                "steps": [
                    RateStep(at_s=at_s, rate_fps=share * (stream.rate_fps or 0.0))
                    for at_s, share in shape.steps
                ],
                "burst_frames": shape.burst_frames,
                "tag_at_s": shape.tag_at_s,
            }
        )
        for stream in streams
    ]


def _measured(performed: list[Performed], offered: Offered) -> dict[str, Any]:
    """What was done in mid-trial, its times from the first frame, s."""
    noise = [
        {"from": n.from_, "tx_frames": n.tx_frames, "departure_fps": n.departure_fps} for n in offered.noise
    ]
    told: dict[str, Any] = {"noise": noise} if noise else {}
    if not performed:
        return told

    return told | {
        "actions": [
            {
                "name": p.action.name,
                "began_s": _since(offered, p.began_ns),
                "ended_s": _since(offered, p.ended_ns),
                **p.told,
            }
            for p in performed
        ]
    }


def _overruns(bench: Bench, offered: Offered, delta: counters.Counters) -> dict[PortName, int]:
    """Frames that reached a tester's port and were dropped there, by port."""
    found = {p.name: p.rx_overrun for p in offered.ports}
    if bench.bed.tester_rings:
        single = bench.bed.ciphertext is not None
        facing = {
            "west": delta["home"].lan,
            "east": delta["home"].wan if single else delta["office"].lan,
        }
        for name in found:
            found[name] += facing[name].tx_dropped
    return found


def _proof_kind(bench: Bench, *, upset: bool) -> str:
    if bench.encrypts and upset:
        return "blocked cleartext alone: the SAs' counters began anew in the trial"
    if not bench.bed.gateways:
        return "not proven: the boxes' counters cannot be read"
    if not bench.encrypts:
        return "baseline: nothing to encrypt"
    opened = "; the tester is the ESP peer" if bench.peer else ""
    return f"SA counters and blocked cleartext{opened}"


def tester_faults(offered: Offered, overrun: int, host_record: dict[str, Any]) -> list[str]:
    """What the tester did wrong; any of it makes the trial INVALID, lossless or not."""
    reasons = []
    intended = sum(s.intended_frames or s.tx_frames for s in offered.streams)
    sent = sum(s.tx_frames for s in offered.streams)
    if sent < OFFERED_LIMIT * intended:
        why = f": {offered.shortfall}" if offered.shortfall else ""
        reasons.append(f"{UNSENT} {sent} of {intended} frames ({100 * sent / max(1, intended):.2f} %){why}")
        taken = host_record.get("sender_foreign_pct", 0.0)
        if taken > TAKEN_LIMIT_PCT:
            reasons.append(f"host starvation: others, or the host, had {taken:.1f} % of the sender's CPU")
    reasons += [_lateness(s) for s in offered.streams if _is_late(s, offered)]
    reasons += offered.faults
    for n in offered.noise:
        if n.intended_frames and n.tx_frames < OFFERED_LIMIT * n.intended_frames:
            reasons.append(f"noise {n.id}: {n.tx_frames} of {n.intended_frames} frames left: a weaker attack")
    if offered.stopped_early:
        reasons.append("generator stopped early")
    if overrun:
        reasons.append(f"receiver overrun: {overrun} frames reached the tester and were dropped there")
    for s in offered.streams:
        if s.rx_frames > s.tx_frames:
            reasons.append(f"{s.from_}-{s.to}: more received ({s.rx_frames}) than sent ({s.tx_frames})")
    if abs(offered.clock_step_ns) > CLOCK_STEP_LIMIT_MS * 1e6:
        reasons.append(f"the system clock stepped by {offered.clock_step_ns / 1e6:.1f} ms during the trial")
    return reasons


def _falling_behind_s(offered: Offered) -> float:
    """How late a sender becomes that is just fast enough, s."""
    return (1 - OFFERED_LIMIT) * offered.duration_s


def _is_late(s: StreamCounts, offered: Offered) -> bool:
    """Whether half of a stream's frames left too late; never of a flood, which has no times."""
    if not s.intended_frames or s.lateness_us is None or s.tx_frames < OFFERED_LIMIT * s.intended_frames:
        return False
    interval_s = offered.intended_duration_s / s.intended_frames
    return s.lateness_us["p50"] / 1e6 > HALF_LATE_S + interval_s + _falling_behind_s(offered)


def _lateness(s: StreamCounts) -> str:
    late = s.lateness_us or {}
    return (
        f"{LATE}: half of the frames left {late['p50'] / 1e3:.1f} ms after their time or later, "
        f"1 % {late['p99'] / 1e3:.1f} ms"
    )


def virtual_faults(offered: Offered, traffic: Traffic) -> list[str]:
    """In virtual time no host makes a frame late. Where all are of one size none waits for another, either."""
    if len({size for size, *_ in traffic.frames}) > 1:
        return []
    late = [s for s in offered.streams if s.intended_frames and (s.lateness_us or {}).get("max", 0.0) > 1.0]
    return [
        f"{LATE}: up to {(s.lateness_us or {})['max']:.1f} µs in virtual time, beyond the rate of the link"
        for s in late
    ]


def outage_faults(streams: list[StreamCounts], offered: Offered) -> list[str]:
    """Where an outage is what is measured, its loss is the DUT's; the host must have had no part in its length."""
    shares = [stalls.share_of_outage(s, offered.host_stalls) for s in streams]
    worst = max(shares, default=0.0)
    if worst <= OUTAGE_STALLS:
        return []
    return [f"host stall: {100 * worst:.0f} % of the time without traffic the host stood still"]


def host_faults(
    tx: int,
    rx: int,
    in_stalls: int,
    goals: list[float],
    host_record: dict[str, Any],
    offered: Offered,
    unsustained: list[backlog.Backlog],
) -> list[str]:
    """Why a trial that failed may be the host's fault rather than the DUT's.

    Only asked of trials that failed: a disturbed host cannot make a DUT look better.
    """
    reasons = []
    ratio, without = (tx - rx) / tx, (tx - rx - in_stalls) / tx
    if in_stalls and any(without <= goal < ratio for goal in goals):
        reasons.append(
            f"host stall: {in_stalls} of {tx - rx} lost frames were due while the host stood still"
        )
    stalled_ms = stalls.longest_sum_ms(offered.host_stalls)
    if any(b.growth_ms <= stalled_ms for b in unsustained if not b.sustained):
        reasons.append(f"host stall: {stalled_ms:.1f} ms of stalls explain the backlog")
    foreign = host_record.get("foreign_pct") or 0.0
    steal = max(host_record.get("steal_pct", {}).values(), default=0.0)
    starved = max(foreign, steal)
    missed = max([ratio, *(b.excess for b in unsustained)])
    late_s = _late_s(offered)
    if late_s > LATE_LIMIT_S + _falling_behind_s(offered) and missed * offered.duration_s <= 2 * late_s:
        reasons.append(f"{LATE}: 1 % of the frames left {1e3 * late_s:.0f} ms after their time, or later")
    # Taking s % of a CPU can cost about s % of the frames; far more than that is the DUT's own.
    if starved > STARVATION_LIMIT_PCT and missed <= 2 * starved / 100:
        reasons.append(
            f"host starvation: others used {foreign:.1f} % of the gateways' CPU, "
            f"the hypervisor stole up to {steal:.1f} %"
        )
    return reasons


def _late_s(offered: Offered) -> float:
    """How late 1 % of a direction's frames departed at least, s; 0 where it was not measured."""
    return max(((s.lateness_us or {}).get("p99", 0.0) for s in offered.streams), default=0.0) / 1e6


def _direction(s: StreamCounts, offered: Offered, request: Request, directions: int) -> DirectionReading:
    return DirectionReading(
        intended_fps=round(request.load_fps / directions, 3),
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
    )


def _since(offered: Offered, ns: int | None) -> float | None:
    """Seconds from the start of the trial."""
    return None if ns is None else round((ns - offered.start_ns) / 1e9, 9)


def _gap(offered: Offered, s: StreamCounts) -> tuple[float, float] | None:
    if s.longest_gap is None:
        return None
    return round((s.longest_gap.from_ns - offered.start_ns) / 1e9, 9), round(
        (s.longest_gap.to_ns - offered.start_ns) / 1e9, 9
    )


def _sum(counts: Iterable[int | None]) -> int | None:
    """None where one of them is not known."""
    listed = [*counts]
    known = [n for n in listed if n is not None]
    return sum(known) if len(known) == len(listed) else None


def _joint_latency(streams: list[StreamCounts]) -> Latency:
    """Both directions in one line: means weighted by frames, percentiles of the worse direction."""
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


def _gateway(
    bench: Bench, side: Side, delta: counters.Counters, cpu_ns: int, offered: Offered, *, upset: bool
) -> GatewayReading:
    """CPU over exactly the time in which the gateway had frames: sending and draining."""
    told = bench.encrypts and not upset
    moved = delta[side]
    working_s = offered.duration_s + max((s.drain_s or 0.0 for s in offered.streams), default=0.0)
    frames = 0
    if told:
        frames = moved.sas.encrypted + moved.sas.decrypted
    elif not upset:
        frames = moved.lan.rx_packets + moved.wan.rx_packets
    return GatewayReading(
        cpu_pct=round(100 * cpu_ns / 1e9 / working_s, 2) if working_s > 0 else None,
        cpu_us_per_frame=round(cpu_ns / 1e3 / frames, 3) if frames else None,
        encrypted_frames=moved.sas.encrypted if told else None,
        decrypted_frames=moved.sas.decrypted if told else None,
        xfrm_errors={} if upset else moved.sas.errors,
    )
