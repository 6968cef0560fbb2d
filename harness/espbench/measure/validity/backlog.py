# SPDX-License-Identifier: Apache-2.0
"""Decides whether the offered rate was forwarded, or a queue only stored part of it (docs/method.md, rule 6).

A deep queue absorbs a short overload without losing a frame. So loss alone cannot distinguish a rate that the DUT
sustains from a rate whose excess it stores. While a queue fills, no frame of a later part of the trial can be as fast
as the fastest frame of an earlier part: the *lowest* latency of each part grows at (offered − forwarded) / forwarded
seconds per second. A stall of the host raises the latency of a few parts only. So the slope is the median of all
pairs' slopes (Theil–Sen), which up to 29 % of disturbed parts cannot move.

The flows of a stream may take different queues of the DUT. The fastest frames then come from a queue that is not full,
and tell nothing of the others. So with several flows the *mean* latency decides: while some queues fill, it grows by
their share of the frames times their growth.

Stalls explain a backlog only if it grew during the stalls. Between parts without a stall, the lowest latency stays
the same or falls if stalls filled the queue; if the DUT is overloaded, it continues to grow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

from espbench.generators.base import Slice

# Growth below this comes from the host's scheduling and not from a queue, however short the trial is.
_NOISE_MS = 2.0
# Four parts have this many slopes; with fewer parts, one disturbed part would move the median.
_FEWEST_SLOPES = 6


@dataclass(frozen=True)
class Backlog:
    """The frames of one stream that a queue stored.

    excess: share of the offered rate that was stored (0.02 = 2 %); growth_ms: growth of the latency over the trial.
    flows: the number of flows of the stream.
    """

    excess: float
    growth_ms: float
    sustained: bool
    flows: int = 1


def judge(
    slices: list[Slice],
    duration_s: float,
    resolution: float,
    still_s: Sequence[tuple[float, float]] = (),
    *,
    flows: int = 1,
) -> Backlog:
    """Return the backlog of one stream; `resolution` is the search's relative step, and half of it is tolerated.

    still_s: stalls, from and to in seconds from the start of the trial; growth across one of them is left out.
    """
    latencies = [(s, s.min_us if flows == 1 else s.mean_us) for s in slices if s.rx_frames > 0]
    points = [(s.t_s, us / 1e6) for s, us in latencies if us is not None]
    part_s = slices[1].t_s - slices[0].t_s if len(slices) > 1 else duration_s
    slopes = [
        (b - a) / (t - s)
        for (s, a), (t, b) in combinations(points, 2)
        if t > s and not any(start < t + part_s and end > s for start, end in still_s)
    ]
    if len(slopes) < _FEWEST_SLOPES:
        return Backlog(0.0, 0.0, True, flows)
    slope = median(slopes)
    growth_ms = max(0.0, slope * duration_s * 1e3)
    excess = max(0.0, slope / (1 + slope)) if slope > -1 else 0.0
    sustained = excess <= resolution / 2 or growth_ms <= _NOISE_MS
    return Backlog(excess, growth_ms, sustained, flows)
