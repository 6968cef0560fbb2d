# SPDX-License-Identifier: Apache-2.0
"""Makes the parts of a trial's record: the readings of each direction, of both together, and of each gateway."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from espbench.generators.base import Offered, StreamCounts
from espbench.measure.highest_rate import highest_fps
from espbench.measure.inputs.setup import Request, Setup
from espbench.measure.proof import counters
from espbench.platforms.base import Side
from espbench.terms import DirectionReading, GatewayReading, Latency


def direction(
    s: StreamCounts, offered: Offered, request: Request, directions: int, still: float
) -> DirectionReading:
    """Return the reading of one stream.

    directions: number of directions that share the load. still: share of the trial in which host or sender stood
    still (0 to 1).
    """
    intended_fps = request.load_fps / directions
    return DirectionReading(
        intended_fps=round(intended_fps, 3),
        offered_fps=round(s.tx_frames / offered.duration_s, 3) if offered.duration_s > 0 else 0.0,
        tx_frames=s.tx_frames,
        rx_frames=s.rx_frames,
        lost=s.lost,
        duplicated=s.duplicated,
        reordered=s.reordered,
        corrupted=s.corrupted,
        unsent=s.unsent,
        backlog_frames=s.rx_after_stop,
        drain_s=None if s.drain_s is None else round(s.drain_s, 6),
        latency_us=s.latency_us or Latency(),
        tagged_us=s.tagged.latency_us if s.tagged else None,
        first_lost_s=since(offered, s.first_lost_ns),
        last_lost_s=since(offered, s.last_lost_ns),
        longest_gap_s=_gap(offered, s),
        first_rx_s=since(offered, s.first_rx_ns),
        departure_fps=None if s.departure_fps is None else round(s.departure_fps, 3),
        highest_fps=round(highest_fps(s, offered, intended_fps, still), 3),
    )


def since(offered: Offered, ns: int | None) -> float | None:
    """Return the seconds from the start of the trial to `ns` (CLOCK_MONOTONIC or virtual time); None for None."""
    return None if ns is None else round((ns - offered.start_ns) / 1e9, 9)


def _gap(offered: Offered, s: StreamCounts) -> tuple[float, float] | None:
    if s.longest_gap is None:
        return None
    return round((s.longest_gap.from_ns - offered.start_ns) / 1e9, 9), round(
        (s.longest_gap.to_ns - offered.start_ns) / 1e9, 9
    )


def arrived_at_the_end(s: StreamCounts) -> float | None:
    """Return the share of the frames sent in the last slice of a trial that arrived; None if not known."""
    if not s.slices or not s.tx_frames:
        return None
    return round(min(1.0, s.slices[-1].rx_frames * len(s.slices) / s.tx_frames), 6)


def total(counts: Iterable[int | None]) -> int | None:
    """Return the sum; None if one of the values is not known."""
    listed = [*counts]
    known = [n for n in listed if n is not None]
    return sum(known) if len(known) == len(listed) else None


def joint_latency(streams: list[StreamCounts]) -> Latency:
    """Return one latency for both directions: the mean weighted by frames, the percentiles of the worse direction."""
    parts = [(s.latency_us, s.rx_frames) for s in streams if s.latency_us is not None]
    if not parts:
        return Latency()
    if len(streams) == 1:
        return parts[0][0].model_copy(update={"hdr": None})  # per_direction has the histogram
    frames = sum(n for _, n in parts) or 1

    def worst(name: str) -> float | None:
        return max((v for part, _ in parts if (v := getattr(part, name)) is not None), default=None)

    return Latency(
        min=min((p.min for p, _ in parts if p.min is not None), default=None),
        mean=round(sum((p.mean or 0.0) * n for p, n in parts) / frames, 3),
        p50=worst("p50"), p90=worst("p90"), p99=worst("p99"), p999=worst("p999"), max=worst("max"),
    )  # fmt: skip


def _frames(setup: Setup, delta: counters.Counters, side: Side, *, upset: bool) -> int | None:
    """Return how many frames a gateway handled: those its SAs encrypted or decrypted; without ESP, those it received.

    None if not known, because SAs or gateways were replaced (upset).
    """
    moved = delta[side]
    if upset:
        return None
    if setup.encrypts:
        return moved.sas.encrypted + moved.sas.decrypted
    return moved.lan.rx_packets + moved.wan.rx_packets


def _us_per_frame(
    setup: Setup, delta: counters.Counters, side: Side, cpu_ns: int | None, *, upset: bool
) -> float | None:
    """Return the CPU time of a gateway for each frame that it handled, µs; None if frames or CPU time are not known."""
    frames = _frames(setup, delta, side, upset=upset)
    return cpu_ns / 1e3 / frames if frames and cpu_ns is not None else None


def _instructions(us_per_frame: float | None, ns_each: Fraction | None) -> float | None:
    return None if us_per_frame is None or ns_each is None else round(1e3 * us_per_frame / float(ns_each), 3)


def slowest_us_per_frame(
    setup: Setup, delta: counters.Counters, cpu: dict[Side, int | None], *, upset: bool
) -> float | None:
    """Return the CPU time of a frame on the gateway that needs most, µs; None if not known for any gateway."""
    each = [_us_per_frame(setup, delta, side, ns, upset=upset) for side, ns in cpu.items()]
    return max((us for us in each if us is not None), default=None)


def gateway(
    setup: Setup, side: Side, delta: counters.Counters, cpu_ns: int | None, offered: Offered, *, upset: bool
) -> GatewayReading:
    """Return the reading of one gateway. Its CPU share is relative to the time in which it had frames."""
    counted = setup.encrypts and not upset
    moved = delta[side]
    working_s = offered.duration_s + max((s.drain_s or 0.0 for s in offered.streams), default=0.0)
    us_per_frame = _us_per_frame(setup, delta, side, cpu_ns, upset=upset)
    return GatewayReading(
        cpu_pct=round(100 * cpu_ns / 1e9 / working_s, 2) if cpu_ns is not None and working_s > 0 else None,
        cpu_us_per_frame=None if us_per_frame is None else round(us_per_frame, 3),
        cpu_ns=cpu_ns,
        frames=_frames(setup, delta, side, upset=upset),
        instructions_per_frame=_instructions(us_per_frame, setup.bed.ns_per_instruction),
        encrypted_frames=moved.sas.encrypted if counted else None,
        decrypted_frames=moved.sas.decrypted if counted else None,
        xfrm_errors={} if upset else moved.sas.errors,
    )
