# SPDX-License-Identifier: Apache-2.0
"""The highest rate at which the DUT may have received a stream's frames. A trial that misses its goal is evidence for
this rate.

A lost frame was lost at the rate of that moment. If a sender paused, or one stream ended before the other, the mean
rate of the trial is lower than that. So a pass is evidence for the mean rate, but a miss may not be.
"""

from __future__ import annotations

from espbench.generators.base import Offered, StreamCounts
from espbench.measure.validity.faults import stalls_are_cut


def highest_fps(stream: StreamCounts, offered: Offered, intended_fps: float, still: float) -> float:
    """Return an upper bound of the rate at which the DUT received this stream, frames/s.

    The bound is the intended rate. It is lower only if the sender certainly never reached the intended rate. If
    frames were sent faster than intended, which no sender of espbench does, the bound is the rate at which they were
    sent.

    still: the share of the trial (0 to 1) in which the host or the sender stood still. Loss in that time is not
    counted as the DUT's loss, and the frames sent to catch up after a pause are not counted either. So all frames
    left, at the latest, in the rest of the trial.
    """
    took_s = stream.duration_s or offered.duration_s
    if took_s <= 0 or stream.tx_frames <= 0:
        return intended_fps
    # If sending ended early, the mean over the trial is less than the rate at which the frames left until then.
    own_fps = max(stream.tx_frames / took_s, stream.departure_fps or 0.0, _faster_half_fps(stream, offered))
    if stream.tx_frames / took_s > intended_fps:
        return own_fps
    if stalls_are_cut(offered) or still >= 1:
        return intended_fps
    return min(intended_fps, own_fps / (1 - still))


def _faster_half_fps(stream: StreamCounts, offered: Offered) -> float:
    """Return the mean rate of the faster half of the frames, for a sender that fell behind, frames/s; 0 if not known.

    A sender that is steadily too slow is half as late in the middle of the trial as at its end. A sender that became
    slow, or was slow only at first, has a different rate in each half, and its stalls do not show this.
    """
    late_us = stream.lateness_us
    if not late_us or not {"p50", "max"} <= late_us.keys() or offered.intended_duration_s <= 0:
        return 0.0
    half_s = offered.intended_duration_s / 2
    middle_s, end_s = late_us["p50"] / 1e6, late_us["max"] / 1e6
    faster_s = min(half_s + middle_s, half_s + max(end_s - middle_s, 0.0))
    return stream.tx_frames / 2 / faster_s
