# SPDX-License-Identifier: Apache-2.0
"""Why a trial may not be trusted: what the tester did wrong, and how far the host disturbed it.

None of it depends on whether the trial passed: to excuse only trials that missed would be to draw luck again and again.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from espbench.generators.base import Offered, StreamCounts
from espbench.measure import stalls
from espbench.measure.traffic import Traffic

# Of the load that a test other than a search asked for: with less its figure is another load's.
OFFERED_LIMIT = 0.995
# Of such a test's trial: half of its frames later than this was not the load that it says.
HALF_LATE_S = 0.025
# Share of a trial in which the host or the sender may stand still. It is also the chance that a loss of the DUT's own
# happens to lie in such a time, and so is taken for the host's.
COVERED_LIMIT = 0.1
# CPU time that others took from the gateways, or the hypervisor from gateways and sender, in % of their CPUs.
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


def tester_faults(
    offered: Offered,
    overrun: int,
    host_record: dict[str, Any],
    *,
    as_offered: bool = False,  # noqa: PT028
) -> list[str]:
    """What the tester did wrong; any of it makes the trial INVALID, lossless or not.

    as_offered: the trial is taken for the load that was offered (RFC 2285 3.5.2), whatever was asked for.
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
            f"{UNSENT} {sent} frames in {offered.duration_s:.3f} s instead of {offered.intended_duration_s:.3f} s"
        )
    elif sent < OFFERED_LIMIT * intended:
        why = f": {offered.shortfall}" if offered.shortfall else ""
        reasons.append(f"{UNSENT} {sent} of {intended} frames ({100 * sent / max(1, intended):.2f} %){why}")
        taken = host_record.get("sender_foreign_pct", 0.0)
        if taken > TAKEN_LIMIT_PCT:
            reasons.append(f"host starvation: others, or the host, had {taken:.1f} % of the sender's CPU")
    if not as_offered:
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


def disturbance(
    offered: Offered, spans: list[tuple[int, int]], host_record: dict[str, Any]
) -> tuple[float, list[str]]:
    """(share of the trial in which host or sender stood still, why the trial is void for the host's sake).

    spans: stalls.windows. Where lists of stalls were cut, the sum of all stalls counts as well.
    """
    reasons = []
    end_ns = offered.start_ns + int(offered.duration_s * 1e9)
    share = stalls.covered(spans, offered.start_ns, end_ns)
    if stalls_are_cut(offered) and offered.stalls_watched:
        still_s = max(offered.host_stall_ms_total.values(), default=0.0) / 1e3
        share = max(share, still_s / max(1e-9, offered.duration_s))
    if share > COVERED_LIMIT:
        reasons.append(
            f"host stall: host or sender stood still, or made it good, for {100 * share:.1f} % of the trial"
        )
    starved = host_record.get("starved_pct") or 0.0
    steal = max(host_record.get("steal_pct", {}).values(), default=0.0)
    # Of a short trial one tick of the books is more than the limit: only what is surely stolen counts.
    if max(starved, steal - host_record.get("tick_pct", 0.0)) > STARVATION_LIMIT_PCT:
        reasons.append(
            f"host starvation: others took {starved:.1f} % of the gateways' CPU, "
            f"the hypervisor stole up to {steal:.1f} %"
        )
    return share, reasons


def stalls_are_cut(offered: Offered) -> bool:
    """Whether there were more stalls than are listed: then no loss can be told to be beside all of them."""
    return bool(offered.host_stalls_more or sum(s.tx_stalls_more for s in offered.streams))
