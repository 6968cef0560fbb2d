# SPDX-License-Identifier: Apache-2.0
"""Loss that coincides with a stall of the host is not the DUT's (DESIGN, rule of measurement 7)."""

from __future__ import annotations

from espbench.generators.base import LossEpisode, Stall, StreamCounts

# A stall of length d: a queue that filled during it keeps losing while it drains, and a sender
# that was late offers 1.1 times its rate until it has caught up (traffic/: ten times d).
# A CPU on which a DUT forwards in softirq may be kept for 2 ms at a time by the DUT itself
# (MAX_SOFTIRQ_TIME, kernel/softirq.c): only longer stalls are surely the host's.
SOFTIRQ_MS = 2.5
_BEFORE_NS = 1_000_000
_AFTER_NS = 2_000_000


def windows(host_stalls: list[Stall], tx_stalls: list[Stall]) -> list[tuple[int, int]]:
    """The times (CLOCK_MONOTONIC, ns) in which a lost frame may be the host's doing, merged.

    A stall's `at_ns` is its beginning. A sender that stalls while it catches up has both to make good.
    """
    spans = [(s.at_ns - _BEFORE_NS, s.at_ns + 2 * int(s.ms * 1e6)) for s in of_the_host(host_stalls)]
    caught_up = 0
    for stall in sorted(tx_stalls, key=lambda s: s.at_ns):
        length = int(stall.ms * 1e6)
        caught_up = max(caught_up, stall.at_ns + length) + 10 * length
        spans.append((stall.at_ns - _BEFORE_NS, caught_up))
    merged: list[tuple[int, int]] = []
    for start, end in sorted((start, end + _AFTER_NS) for start, end in spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def of_the_host(host_stalls: list[Stall]) -> list[Stall]:
    """Those too long to be the DUT's own doing."""
    return [s for s in host_stalls if s.ms > SOFTIRQ_MS]


def longest_sum_ms(host_stalls: list[Stall]) -> float:
    """How long the CPU that stood still longest did so in sum, ms."""
    by_cpu: dict[int | None, float] = {}
    for stall in of_the_host(host_stalls):
        by_cpu[stall.cpu] = by_cpu.get(stall.cpu, 0.0) + stall.ms
    return max(by_cpu.values(), default=0.0)


def share_of_outage(stream: StreamCounts, host_stalls: list[Stall]) -> float:
    """How much of the time from the first to the last lost frame a CPU, or the sender, stood still; 0 without loss."""
    if stream.first_lost_ns is None or stream.last_lost_ns is None:
        return 0.0
    start, end = stream.first_lost_ns, stream.last_lost_ns + 1
    still: dict[int | None, float] = {}
    for stall in [*of_the_host(host_stalls), *(s.model_copy(update={"cpu": None}) for s in stream.tx_stalls)]:
        within = min(end, stall.at_ns + int(stall.ms * 1e6)) - max(start, stall.at_ns)
        still[stall.cpu] = still.get(stall.cpu, 0.0) + max(0, within)
    return max(still.values(), default=0.0) / (end - start)


def lost_in_stalls(stream: StreamCounts, stall_windows: list[tuple[int, int]]) -> int:
    """How many of a stream's lost frames were due inside a stall's window."""
    return sum(_overlap(episode, stall_windows) for episode in stream.loss_episodes)


def _overlap(episode: LossEpisode, stall_windows: list[tuple[int, int]]) -> int:
    length = max(episode.to_ns - episode.from_ns, 1)
    inside = sum(
        max(0, min(episode.to_ns, end) - max(episode.from_ns, start))
        for start, end in stall_windows
        if start <= episode.to_ns and end >= episode.from_ns
    )
    if episode.to_ns == episode.from_ns:
        hit = any(start <= episode.from_ns <= end for start, end in stall_windows)
        return episode.frames if hit else 0
    return round(episode.frames * min(1.0, inside / length))
