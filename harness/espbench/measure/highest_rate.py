# SPDX-License-Identifier: Apache-2.0
"""The highest rate at which the DUT may have seen a stream's frames: the rate that a miss is evidence for.

A frame that was lost was lost at the rate of its own moment, and a sender that paused, or a stream that was done before
the other, makes the mean of a trial smaller than that. A pass at the mean is a pass; a miss at the mean may be none.
"""

from __future__ import annotations

from espbench.generators.base import Offered, StreamCounts
from espbench.measure.validity.faults import stalls_are_cut


def highest_fps(stream: StreamCounts, offered: Offered, intended_fps: float, still: float) -> float:
    """Return a bound from above, frames/s: what was intended, and less only where the sender surely never did that.

    still: the share of the trial in which host or sender stood still. Loss in that time is not counted as the DUT's,
    nor are the frames that made a pause good, so that all frames together left in the rest of the trial at the latest.
    What was sent faster than intended, as no espbench sender does, is taken as fast as it was.
    """
    took_s = stream.duration_s or offered.duration_s
    if took_s <= 0 or stream.tx_frames <= 0:
        return intended_fps
    own_fps = max(stream.tx_frames / took_s, _faster_half_fps(stream, offered))
    if stream.tx_frames / took_s > intended_fps:
        return max(own_fps, stream.departure_fps or 0.0)
    if stalls_are_cut(offered) or still >= 1:
        return intended_fps
    return min(intended_fps, own_fps / (1 - still))


def _faster_half_fps(stream: StreamCounts, offered: Offered) -> float:
    """Return the mean rate in the faster half of the frames of a sender that fell behind, frames/s; 0 if not known.

    A sender that is steadily too slow is half as late in the middle as at the end. One that became slow, or was slow
    only at first, had its own rate in neither half, and the stalls do not tell.
    """
    late_us = stream.lateness_us
    if not late_us or not {"p50", "max"} <= late_us.keys() or offered.intended_duration_s <= 0:
        return 0.0
    half_s = offered.intended_duration_s / 2
    middle_s, end_s = late_us["p50"] / 1e6, late_us["max"] / 1e6
    faster_s = min(half_s + middle_s, half_s + max(end_s - middle_s, 0.0))
    return stream.tx_frames / 2 / faster_s
