# SPDX-License-Identifier: Apache-2.0
"""Finds the faults that make a trial void: faults of the tester, and disturbances by the host.

In a search for the throughput, no fault depends on whether the trial passed. If only missed trials were excused, a
search could repeat a load until a trial passes by luck. A trial of another test is also void if most of its
loss was in stalls (OF_LOSS_LIMIT), or if the host made a measured outage longer (OUTAGE_STALLS).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from espbench.generators.base import Offered, Stall, StreamCounts
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.validity import stalls
from espbench.measure.validity.slow_cpu import slowness
from espbench.sentences import Code
from espbench.terms import Reason

# A test other than a search needs at least this share of its intended load; with less, its figure is that of
# another load.
OFFERED_LIMIT = 0.995
# If half of the frames of such a test's trial are later than this, the trial did not have the load of its
# record.
HALF_LATE_S = 0.025
# The host or the sender may stand still for at most this share of a trial. It is also the probability that a
# loss of the DUT's own happens to lie in such a time and is taken for the host's. A sender that pauses for a
# millisecond catches up at 1.1 times its rate for ten. In the null experiment (docs/search.md) no figure
# moves with this many pauses.
COVERED_LIMIT = 0.25
# This is the same limit for the host alone. The limit of a final trial, on which a figure rests, is lower:
# with 10 %, a DUT that loses frames at every load had a figure for 0 % by luck in 27 instead of 19 of 100
# cases.
COVERED_BY_HOST_LIMIT, COVERED_BY_HOST_LIMIT_FINAL = 0.1, 0.05
# A test that does not search has no other way to have a trial repeated whose loss is the host's. So its trial is void
# if more than this share of the lost frames was lost in stalls. Chance puts at most COVERED_LIMIT of a DUT's own losses
# there. Without this rule, or if it asked for all of the loss, the host's loss is in the figures of the DUT
# (benchmarks/judgement/null_frame_loss.py).
OF_LOSS_LIMIT = 0.5
# Limit of the CPU time that others took from the gateways, or the hypervisor from gateways and sender, in %
# of their CPUs.
STARVATION_LIMIT_PCT = 5.0
# This is the limit after the last frame was sent: half of the wait for the residue is enough for a DUT to
# empty its queues.
RESIDUE_LIMIT_PCT = 50.0
# The same limit on a CPU that sends: beyond it, a lack of frames does not show the generator's ceiling.
TAKEN_LIMIT_PCT = 2.0
# The largest share of a measured outage that the host may have caused.
OUTAGE_STALLS = 0.1
# The generator reports steps above this limit; smaller differences are the noise of reading two clocks. A step shifts
# the latencies of all frames after it.
CLOCK_STEP_LIMIT_MS = 0.02


def taken_from_senders(offered: Offered, cpus: Collection[int], *, together: bool) -> dict[str, float]:
    """Return the host record's sender_foreign_pct, if the senders know how long they waited for their CPUs; else
    empty.

    This value is better than the kernel's CPU accounting, which includes the controller's own work before and after
    the sending, and leaves out the host's stalls. together: the receivers run on the senders' CPUs; waiting for them
    is a limit of the tester, not a fault.
    """
    if offered.senders_wait_ms is None:
        return {}
    taken_ms = max(0.0, offered.senders_wait_ms - (offered.receivers_run_ms if together else 0.0))
    if offered.stalls_watched:
        taken_ms += sum(offered.host_stall_ms_total.get(str(cpu), 0.0) for cpu in cpus)
    sending_ms = 1e3 * offered.intended_duration_s * max(1, len(cpus))
    return {"sender_foreign_pct": round(100 * taken_ms / max(1e-3, sending_ms), 2)}


def tester_faults(
    offered: Offered,
    overrun: int,
    host_record: dict[str, Any],
    *,
    as_offered: bool = False,  # noqa: PT028
) -> list[Reason]:
    """Return the tester's faults; any of them makes the trial INVALID, whether it lost frames or not.

    as_offered: the trial counts for the load that was offered (RFC 2285 3.5.2), whatever the intended load was.
    """
    reasons = []
    intended = sum(s.intended_frames or s.tx_frames for s in offered.streams)
    sent = sum(s.tx_frames for s in offered.streams)
    took_longer = offered.duration_s * OFFERED_LIMIT > offered.intended_duration_s and not any(
        s.intended_frames is None for s in offered.streams
    )
    if as_offered:
        pass
    elif sent >= OFFERED_LIMIT * intended and took_longer:
        reasons.append(
            Reason.of(
                Code.SENT_SLOWLY,
                sent=sent,
                took_s=offered.duration_s,
                intended_s=offered.intended_duration_s,
            )
        )
    elif sent < OFFERED_LIMIT * intended:
        pct = 100 * sent / max(1, intended)
        reasons.append(
            Reason.of(Code.SENT_FEWER, sent=sent, intended=intended, pct=pct, why=offered.shortfall)
        )
        taken = host_record.get("sender_foreign_pct", 0.0)
        if taken > TAKEN_LIMIT_PCT:
            reasons.append(Reason.of(Code.SENDER_STARVED, pct=taken))
    if not as_offered:
        reasons += [_lateness(s) for s in offered.streams if _is_late(s, offered)]
    reasons += [Reason.of(Code.GENERATOR_FAULT, text=fault) for fault in offered.faults]
    for n in offered.noise:
        if n.intended_frames and n.tx_frames < OFFERED_LIMIT * n.intended_frames:
            reasons.append(
                Reason.of(Code.NOISE_WEAK, stream=n.id, sent=n.tx_frames, intended=n.intended_frames)
            )
    if offered.stopped_early:
        reasons.append(Reason.of(Code.STOPPED_EARLY))
    if overrun:
        reasons.append(Reason.of(Code.RECEIVER_OVERRUN, frames=overrun))
    reasons += [reason for s in offered.streams for reason in _impossible(s)]
    if abs(offered.clock_step_ns) > CLOCK_STEP_LIMIT_MS * 1e6:
        reasons.append(Reason.of(Code.CLOCK_STEPPED, ms=offered.clock_step_ns / 1e6))
    return reasons


def _impossible(s: StreamCounts) -> list[Reason]:
    """Return why the counts of a direction are no result: nothing was sent, or more came than was sent."""
    way = f"{s.from_}-{s.to}"
    reasons = [] if s.tx_frames else [Reason.of(Code.SENT_NOTHING, way=way)]
    if s.rx_frames > s.tx_frames:
        reasons.append(Reason.of(Code.MORE_RECEIVED, way=way, received=s.rx_frames, sent=s.tx_frames))
    return reasons


def _falling_behind_s(offered: Offered) -> float:
    """Return how late a sender may be at the end of a trial if it is just fast enough, s."""
    return (1 - OFFERED_LIMIT) * offered.duration_s


def _is_late(s: StreamCounts, offered: Offered) -> bool:
    """Return whether half of a stream's frames left too late; always False for a flood, which has no schedule."""
    if not s.intended_frames or s.lateness_us is None or s.tx_frames < OFFERED_LIMIT * s.intended_frames:
        return False
    interval_s = offered.intended_duration_s / s.intended_frames
    return s.lateness_us["p50"] / 1e6 > HALF_LATE_S + interval_s + _falling_behind_s(offered)


def _lateness(s: StreamCounts) -> Reason:
    late = s.lateness_us or {}
    return Reason.of(Code.LATE, half_ms=late["p50"] / 1e3, slowest_ms=late["p99"] / 1e3)


def virtual_faults(offered: Offered, traffic: Traffic) -> list[Reason]:
    """Return a reason for each late stream in virtual time, where no host can make a frame late.

    A frame may have to wait for a frame of another size, or for noise, that is on the wire when it is due. This is no
    fault, so such trials have none.
    """
    if len({size for size, *_ in traffic.frames}) > 1 or offered.noise:
        return []
    late = [s for s in offered.streams if s.intended_frames and (s.lateness_us or {}).get("max", 0.0) > 1.0]
    return [Reason.of(Code.LATE_IN_VIRTUAL_TIME, most_us=(s.lateness_us or {})["max"]) for s in late]


def outage_faults(streams: list[StreamCounts], host_stalls: list[Stall]) -> list[Reason]:
    """Return a reason if the host contributed too much to the length of a measured outage.

    host_stalls: the stalls that count as evidence. All loss of an outage is taken for the DUT's, so its length must
    not come from the host.
    """
    shares = [stalls.share_of_outage(s, host_stalls) for s in streams]
    worst = max(shares, default=0.0)
    if worst <= OUTAGE_STALLS:
        return []
    return [Reason.of(Code.HOST_STALL_IN_OUTAGE, pct=100 * worst)]


def disturbance(share: float, by_host: float, host_record: dict[str, Any], *, final: bool) -> list[Reason]:
    """Return why the host makes the trial void; final: a figure may rest on the trial.

    share: the share of the trial in which host or sender stood still (stalls.share_of_trial). by_host: the same
    without the sender's pauses. host_record: the record of the time in which frames were sent; its `residue` is of
    the time after (measure/looks.py).
    """
    reasons = []
    most_by_host = COVERED_BY_HOST_LIMIT_FINAL if final else COVERED_BY_HOST_LIMIT
    if share > COVERED_LIMIT or by_host > most_by_host:
        reasons.append(Reason.of(Code.HOST_STALL, pct=100 * share))
    of_residue = host_record.get("residue") or {}
    for record, limit_pct in ((host_record, STARVATION_LIMIT_PCT), (of_residue, RESIDUE_LIMIT_PCT)):
        starved = record.get("starved_pct") or 0.0
        steal = max(record.get("steal_pct", {}).values(), default=0.0)
        # One tick of the kernel's accounting exceeds a short trial's limit, so only what is certainly stolen
        # counts.
        if max(starved, steal - record.get("tick_pct", 0.0)) > limit_pct:
            reasons.append(Reason.of(Code.HOST_STARVATION, starved_pct=starved, stolen_pct=steal))
            break
    return reasons + slowness(host_record)


def stalls_are_cut(offered: Offered) -> bool:
    """Return whether some stalls are not listed because there were too many. Then a loss may lie in an unlisted
    stall.
    """
    return bool(offered.host_stalls_more or sum(s.tx_stalls_more for s in offered.streams))
