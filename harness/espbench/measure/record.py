# SPDX-License-Identifier: Apache-2.0
"""The record of a trial: what was counted, what it is worth, where frames were lost, what is proven."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from espbench.generators.base import Offered, StreamCounts
from espbench.measure import backlog, counters, esp_peer, one_gateway, path, stalls
from espbench.measure.actions import Performed, untimely
from espbench.measure.bench import Bench, Request
from espbench.measure.faults import host_faults, outage_faults, tester_faults, virtual_faults
from espbench.measure.traffic import Traffic
from espbench.platforms.base import PortName, Side
from espbench.terms import DirectionReading, GatewayReading, Latency, Trial


def record(
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
    """Of what was offered, by how the counters moved meanwhile (delta) and the gateways' CPU time (cpu, ns).

    host_record: host.compare's and the senders'. upset: SAs or gateways were replaced in the trial, so that counters
    before and after do not belong together.
    """
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

    # A burst is sent as fast as can be: what its sender has to make good arrives no faster than the rest of it.
    tx_stalls = [] if request.shape.burst_frames else [t for s in streams for t in s.tx_stalls]
    windows = stalls.windows(offered.host_stalls, tx_stalls)
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
