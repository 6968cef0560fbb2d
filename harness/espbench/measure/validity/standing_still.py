# SPDX-License-Identifier: Apache-2.0
"""What the host's part in a trial was: for how much of it host or sender stood still, and what was lost meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from espbench.generators.base import Offered
from espbench.measure.inputs.setup import Request
from espbench.measure.validity import stalls
from espbench.measure.validity.backlog import Backlog
from espbench.measure.validity.faults import disturbance, outage_faults, stalls_are_cut
from espbench.sentences import Code
from espbench.terms import Reason


@dataclass(frozen=True)
class StandingStill:
    """lost: of each stream, in the windows of stalls; share: of the trial that they cover (0 to 1).

    reasons say why the trial is void; explains_backlog: that what was stored was no more than stalls account for.
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
    *,
    upset: bool,
) -> StandingStill:
    """Lay the trial's stalls beside its losses.

    us_per_frame: what a frame costs the slowest gateway. upset: SAs or gateways were replaced in the trial.
    """
    streams = offered.streams
    # A burst is sent as fast as can be: what its sender has to make good arrives no faster than the rest of it.
    burst = request.shape.burst_frames is not None
    tx_stalls = [] if burst else [t for s in streams for t in stalls.of_the_sender(s, offered.duration_s)]
    host_stalls = offered.host_stalls if offered.stalls_watched else []
    spans = stalls.windows(host_stalls, tx_stalls, stalls.own_ms(us_per_frame))
    cut = stalls_are_cut(offered)
    lost = [0 if cut else stalls.lost_in_stalls(stream, spans) for stream in streams]
    share, reasons = (0.0, list[Reason]()) if burst else disturbance(offered, spans, host_record)
    if upset:
        reasons += outage_faults(streams, offered)
    # A test that does not search has no other way to ask for a trial again whose loss is the host's.
    missing = sum(stream.tx_frames - stream.rx_frames for stream in streams)
    if request.phase == "measure" and not upset and not reasons and 0 < missing <= sum(lost):
        reasons.append(Reason.of(Code.HOST_STALL_OF_LOSS, frames=sum(lost)))
    still_ms = sum(end - start for start, end in spans) / 1e6
    stored = [backlog for backlog in backlogs if not backlog.sustained]
    explained = bool(stored) and all(backlog.growth_ms <= still_ms for backlog in stored)
    return StandingStill(lost, share, explained, reasons)
