# SPDX-License-Identifier: Apache-2.0
"""The times of a trial in which the host, or the sender, stood still (docs/method.md, rule 7).

These windows in time are the same whether the trial passed or missed. Loss within them says nothing about the DUT. If
they cover more of a trial than a limit, the whole trial says nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from espbench.generators.base import LossEpisode, Offered, Stall, StreamCounts

# A queue that filled during a stall keeps losing frames while it drains, and a sender that was late offers
# 1.1 times its rate until it has caught up (traffic/: ten times the length of the stall).
# A DUT that forwards in softirq may itself keep its CPU for 2 ms at a time (MAX_SOFTIRQ_TIME,
# kernel/softirq.c), and it reads the clock only after each poll of 64 frames. So only longer stalls are
# certainly the host's.
SOFTIRQ_MS = 2.5
# A sender that held back fewer frames than this, and then caught up at 1.1 times its rate, made no burst that
# a DUT could notice: the smallest rings have 64 places. (With 32, a DUT without a buffer had a throughput 1.6
# % too low in the null experiment.)
_HELD_BACK = 8
_SOFTIRQ_TIME_MS, _POLL_FRAMES, _MARGIN_MS = 2.0, 64, 0.5
_CATCH_UP = 1.1  # traffic/src/send/pace.rs
# A list shows how many frames are lost outside stalls if so many of the unlisted ones, spread evenly, would be on it.
_SEEN = 3
_BEFORE_NS = 1_000_000
_AFTER_NS = 2_000_000


def own_ms(us_per_frame: float | None) -> float:
    """Return how long a DUT may keep its CPU by itself, ms; us_per_frame: CPU time that it needs for a frame."""
    poll_ms = _POLL_FRAMES * (us_per_frame or 0.0) / 1e3
    return max(SOFTIRQ_MS, _SOFTIRQ_TIME_MS + poll_ms + _MARGIN_MS)


def windows(
    host_stalls: list[Stall], tx_stalls: list[Stall], longest_own_ms: float = SOFTIRQ_MS
) -> list[tuple[int, int]]:
    """Return the merged time windows, rising (CLOCK_MONOTONIC, ns), in which the host may have caused a frame loss.

    A stall begins at its `at_ns`. A sender's stall lasts until the sender has caught up. If that time is not known,
    the sender is assumed to catch up at 1.1 times its rate; if it stalls again before, it has to catch up for both.
    """
    spans = [
        (s.at_ns - _BEFORE_NS, s.at_ns + 2 * int(s.ms * 1e6))
        for s in of_the_host(host_stalls, longest_own_ms)
    ]
    caught_up = 0
    for stall in sorted(tx_stalls, key=lambda s: s.at_ns):
        length = int(stall.ms * 1e6)
        made_good = max(caught_up, stall.at_ns + length) + 10 * length
        caught_up = made_good if stall.until_ns is None else stall.until_ns
        spans.append((stall.at_ns - _BEFORE_NS, caught_up))
    return merged((start, end + _AFTER_NS) for start, end in spans)


def merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans of time (start, end) that rise and do not overlap, and cover the same time."""
    apart: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if apart and start <= apart[-1][1]:
            apart[-1] = (apart[-1][0], max(end, apart[-1][1]))
        else:
            apart.append((start, end))
    return apart


def of_the_sender(stream: StreamCounts, duration_s: float) -> list[Stall]:
    """Return the pauses of a stream's sender that held back enough frames to make a burst."""
    per_ms = stream.tx_frames / max(1e-9, duration_s) / 1e3
    return [stall for stall in stream.tx_stalls if stall.ms * per_ms >= _HELD_BACK]


def covered(spans: list[tuple[int, int]], start_ns: int, end_ns: int) -> float:
    """Return the share of the time from start to end that lies in these windows (0 to 1)."""
    inside = sum(max(0, min(end, end_ns) - max(start, start_ns)) for start, end in spans)
    return inside / max(1, end_ns - start_ns)


def share_of_trial(
    offered: Offered,
    host_stalls: list[Stall],
    tx_stalls: list[Stall],
    longest_own_ms: float,
    streams: Sequence[StreamCounts],
) -> float:
    """Return the share of a trial that the windows of these stalls cover, including stalls that were too many to be
    listed.

    streams: the streams to which tx_stalls belong. Only the total length of unlisted stalls is known. Each ms of them
    is assumed to cover as much as one ms of the listed stalls, beyond what stalls of the other kind cover anyway.
    """
    end_ns = offered.start_ns + int(offered.duration_s * 1e9)

    def share(host: list[Stall], tx: list[Stall]) -> float:
        return covered(windows(host, tx, longest_own_ms), offered.start_ns, end_ns)

    listed = share(host_stalls, tx_stalls)
    of_host = (listed - share([], tx_stalls)) * _unlisted(
        offered.host_stalls_more_ms, sum(stall.ms for stall in host_stalls)
    )
    of_tx = (listed - share(host_stalls, [])) * _unlisted(
        sum(s.tx_stalls_more_ms for s in streams),
        sum(_until_made_good_ms(stall) for s in streams for stall in s.tx_stalls),
    )
    return min(1.0, listed + of_host + of_tx)


def _unlisted(more_ms: float, listed_ms: float) -> float:
    """Return the length of the unlisted stalls as a multiple of the length of the listed ones."""
    return more_ms / listed_ms if listed_ms > 0 else 0.0


def _until_made_good_ms(stall: Stall) -> float:
    return stall.ms if stall.until_ns is None else (stall.until_ns - stall.at_ns) / 1e6


def of_the_host(host_stalls: list[Stall], longest_own_ms: float = SOFTIRQ_MS) -> list[Stall]:
    """Return the stalls that are too long to be caused by the DUT itself."""
    return [s for s in host_stalls if s.ms > longest_own_ms]


def share_of_outage(stream: StreamCounts, host_stalls: list[Stall]) -> float:
    """Return the share of the time from the first to the last lost frame in which a CPU or the sender stood still.

    It is 0 without loss.
    """
    if stream.first_lost_ns is None or stream.last_lost_ns is None:
        return 0.0
    start, end = stream.first_lost_ns, stream.last_lost_ns + 1
    still: dict[int | None, float] = {}
    for stall in [*of_the_host(host_stalls), *(s.model_copy(update={"cpu": None}) for s in stream.tx_stalls)]:
        within = min(end, stall.at_ns + int(stall.ms * 1e6)) - max(start, stall.at_ns)
        still[stall.cpu] = still.get(stall.cpu, 0.0) + max(0, within)
    return max(still.values(), default=0.0) / (end - start)


def lost_within(stream: StreamCounts, spans: list[tuple[int, int]]) -> int:
    """Return how many of a stream's listed losses were sent inside these spans of time, which do not overlap."""
    return sum(_overlap(episode, spans) for episode in stream.loss_episodes)


def lost_in_all(stream: StreamCounts, spans: list[tuple[int, int]], start_ns: int, end_ns: int) -> int:
    """Return how many of all lost frames of a stream were sent inside these spans; start and end of the trial, ns.

    The generator lists the first losses only. If there are spans after the end of a full list, the unlisted losses
    outside of them are assumed to be as many, for their time, as the listed ones. The others were inside, if so many
    frames left then. Nothing is assumed if the list was full too early to show how many frames are lost outside.
    """
    listed = stream.loss_episodes
    inside = lost_within(stream, spans)
    if not stream.loss_episodes_more or not listed:
        return inside
    known = sum(episode.frames for episode in listed)
    full_ns = max(episode.to_ns for episode in listed)
    unlisted, later_ns = stream.never_came - known, end_ns - full_ns
    seen_ns = (full_ns - start_ns) * (1 - covered(spans, start_ns, full_ns))
    if unlisted * seen_ns < _SEEN * later_ns:
        return inside
    covered_later = covered(spans, full_ns, end_ns)
    outside = (known - inside) * (1 - covered_later) * later_ns / seen_ns
    per_ns = _CATCH_UP * stream.tx_frames / max(1, 1e9 * (stream.duration_s or 0.0))
    could_be = min(unlisted - outside, per_ns * covered_later * later_ns)
    return inside + max(0, math.floor(could_be))


def _overlap(episode: LossEpisode, spans: list[tuple[int, int]]) -> int:
    length = max(episode.to_ns - episode.from_ns, 1)
    inside = sum(
        max(0, min(episode.to_ns, end) - max(episode.from_ns, start))
        for start, end in spans
        if start <= episode.to_ns and end >= episode.from_ns
    )
    if episode.to_ns == episode.from_ns:
        hit = any(start <= episode.from_ns <= end for start, end in spans)
        return episode.frames if hit else 0
    return round(episode.frames * min(1.0, inside / length))
