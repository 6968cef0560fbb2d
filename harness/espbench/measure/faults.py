# SPDX-License-Identifier: Apache-2.0
"""Whose fault it is that a trial may not be trusted, or failed: the tester's, the host's, or the DUT's after all."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from espbench.generators.base import Offered, StreamCounts
from espbench.measure import backlog, stalls
from espbench.measure.traffic import Traffic

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
