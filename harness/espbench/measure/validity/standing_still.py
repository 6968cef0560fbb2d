# SPDX-License-Identifier: Apache-2.0
"""Determines for which share of a trial the host or a sender stood still, and how many frames were lost meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from espbench.generators.base import Offered
from espbench.measure.inputs.setup import Request
from espbench.measure.validity import backlog, stalls
from espbench.measure.validity.backlog import Backlog
from espbench.measure.validity.faults import (
    OF_LOSS_LIMIT,
    disturbance,
    outage_faults,
    stalls_are_cut,
)
from espbench.sentences import Code
from espbench.terms import Reason


@dataclass(frozen=True)
class StandingStill:
    """The part of stalls in a trial.

    lost: frames of each stream that were lost in the windows of stalls. share: the share of the trial that the
    windows cover (0 to 1). explains_backlog: the queues grew only during stalls, and by no more than these account
    for. Such a backlog says nothing about the DUT: the trial is repeated, and never counts as a pass
    (search/goals.py). reasons: why the trial is void.
    """

    lost: list[int]
    share: float = 0.0
    explains_backlog: bool = False
    reasons: list[Reason] = field(default_factory=list)


def standing_still(
    request: Request,
    offered: Offered,
    host_record: dict[str, Any],
    us_per_frame: float | None,
    backlogs: Sequence[Backlog],
    resolution: float,
    *,
    outage: bool,
) -> StandingStill:
    """Return how stalls explain a trial's loss and backlogs.

    us_per_frame: CPU time of a frame on the slowest gateway. backlogs: of each stream, judged at this resolution.
    outage: the test itself interrupts the traffic, or sends it before there are SAs. Then all loss of the outage is the
    DUT's, and its length must not come from the host. Otherwise most of the loss must not.
    """
    streams = offered.streams
    # The longest burst is searched with trials of phase "measure"; its length may rest on each of them.
    burst = request.shape.burst_frames is not None
    # A burst is sent as fast as possible. Frames that its sender sends to catch up arrive no faster than the
    # rest of it. So only the host's stalls count for a burst.
    paused = [] if burst else streams
    tx_stalls = [t for s in paused for t in stalls.of_the_sender(s, offered.duration_s)]
    host_stalls = offered.host_stalls if offered.stalls_watched else []
    own_ms = stalls.own_ms(us_per_frame)
    spans = stalls.windows(host_stalls, tx_stalls, own_ms)
    cut = stalls_are_cut(offered)
    end_ns = offered.start_ns + int(offered.duration_s * 1e9)
    lost = [0 if cut else stalls.lost_in_all(stream, spans, offered.start_ns, end_ns) for stream in streams]
    share = stalls.share_of_trial(offered, host_stalls, tx_stalls, own_ms, paused)
    by_host = stalls.share_of_trial(offered, host_stalls, [], own_ms, paused)
    reasons = disturbance(share, by_host, host_record, final=burst or request.phase == "final")
    if outage:
        reasons += outage_faults(streams, host_stalls)
    searched = burst or request.phase != "measure"
    missing = sum(stream.lost for stream in streams)
    if not searched and not outage and not reasons and sum(lost) > OF_LOSS_LIMIT * missing:
        reasons.append(Reason.of(Code.HOST_STALL_OF_LOSS, frames=sum(lost)))
    if not reasons and _ends_in_a_stall(request, offered, spans, cut=cut):
        reasons.append(Reason.of(Code.HOST_STALL_AT_THE_END))
    explained = _in_stalls(offered, backlogs, spans, resolution)
    return StandingStill(lost, share, explained, reasons)


def _ends_in_a_stall(
    request: Request, offered: Offered, spans: Sequence[tuple[int, int]], *, cut: bool
) -> bool:
    """Return whether a direction lost its last frame in a stall after the load had changed.

    A recovery is measured until the last lost frame (RFC 2544 26.5). cut: some stalls are not known.
    """
    if not request.shape.steps:
        return False
    changed_ns = offered.start_ns + int(request.shape.steps[-1][0] * 1e9)
    last = [s.last_lost_ns for s in offered.streams if s.last_lost_ns is not None]
    return any(ns >= changed_ns and (cut or any(start <= ns <= end for start, end in spans)) for ns in last)


def _in_stalls(
    offered: Offered, backlogs: Sequence[Backlog], spans: Sequence[tuple[int, int]], resolution: float
) -> bool:
    """Return whether each queue that grew did so only in the windows of stalls, and by no more time than these
    lasted.
    """
    still_ms = sum(end - start for start, end in spans) / 1e6
    still_s = [((start - offered.start_ns) / 1e9, (end - offered.start_ns) / 1e9) for start, end in spans]
    stored = [(s, b) for s, b in zip(offered.streams, backlogs, strict=True) if not b.sustained]
    return bool(stored) and all(
        b.growth_ms <= still_ms
        and backlog.judge(s.slices, offered.duration_s, resolution, still_s, flows=b.flows).sustained
        for s, b in stored
    )
