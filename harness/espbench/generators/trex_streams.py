# SPDX-License-Identifier: Apache-2.0
"""Translates espbench's streams into TRex's: a frame's bytes, the number of frames, and the flows as field-engine
instructions.

TRex replays one frame per stream. A mix becomes one stream for each size and header. Rotating flows become variables
that TRex writes into the frame. A stream that TRex cannot send exactly is refused.
"""

from __future__ import annotations

import base64
import ipaddress
import math
from collections import Counter
from typing import Any

from espbench.errors import UsageError
from espbench.generators.base import FrameShare, Stream
from espbench.generators.trex_frames import TCP, Frame, frame_of

# `flags` of a stream: bit 0 source MAC, bits 1-2 destination MAC; both are taken from the frame.
_MACS_OF_THE_FRAME = 0b011
_LARGEST_COUNT = 2**32 - 1


def frames_of(stream: Stream, duration_s: float) -> int:
    """Return how many frames the stream sends in this time at its rate; at least one."""
    assert stream.rate_fps is not None
    return max(1, round(stream.rate_fps * duration_s))


def trex_streams(stream: Stream, frames: int | None, rate_fps: float) -> list[dict[str, Any]]:
    """Return one TRex stream for each size and header; together they have this rate and number of frames (None: no
    end).

    Raise UsageError if TRex cannot send the stream.
    """
    if stream.burst_frames is not None:
        raise UsageError(
            "generator trex: expected traffic at a rate, got a burst back to back; "
            "TRex spaces frames by its own clock: use generator: native"
        )
    asked = {
        "changes of its rate in mid-trial": stream.steps,
        "a tagged frame": stream.tag_at_s is not None,
        "a list of gaps between arrivals": stream.gaps_over_s is not None,
    }
    for what, wanted in asked.items():
        if wanted:
            raise UsageError(
                f"generator trex: expected a stream at one rate whose frames are counted, got one with {what}: "
                "use generator: native"
            )
    alike: Counter[tuple[int, int]] = Counter()
    for share in stream.frames:
        alike[share.size, share.header] += share.weight
    weights = [*alike.values()]
    total = sum(weights)
    counts: list[int | None] = [None] * len(weights)
    if frames is not None:
        if frames > _LARGEST_COUNT:
            raise UsageError(
                f"generator trex: expected at most {_LARGEST_COUNT} frames a trial, got {frames}; "
                "shorten the trial"
            )
        counts = [*_apportioned(frames, weights)]
    rotates = max(stream.networks, stream.tunnels, stream.ports) > 1
    made = []
    for number, (((size, header), weight), count) in enumerate(zip(alike.items(), counts, strict=True)):
        if count == 0:
            continue
        frame = frame_of(stream, FrameShare(size=size, header=header), rotates=rotates)
        rate = {"type": "pps", "value": rate_fps * weight / total}
        mode: dict[str, Any] = {"type": "continuous", "rate": rate}
        if count is not None:
            mode = {"type": "single_burst", "rate": rate, "total_pkts": count}
        made.append(
            {
                "enabled": True,
                "self_start": True,
                "next_stream_id": -1,
                "action_count": 0,
                "flags": _MACS_OF_THE_FRAME,
                "isg": 1e6 * number / rate_fps,  # µs, so that the sizes of a mix do not all start at once
                "mode": mode,
                "packet": {"binary": base64.b64encode(frame.data).decode(), "meta": ""},
                "vm": {"instructions": _rotation(stream, frame) if rotates else []},
                "flow_stats": {"enabled": False},
            }
        )
    return made


def _rotation(stream: Stream, frame: Frame) -> list[dict[str, Any]]:
    """Return the field-engine instructions that rotate this frame through the stream's flows."""
    if stream.ip_version == 6 or frame.protocol == TCP:
        what = "IPv6" if stream.ip_version == 6 else "TCP"
        raise UsageError(
            f"generator trex: expected one flow with {what}, got several; its checksum over the addresses is "
            "needed there and TRex cannot keep it right in software: use generator: native"
        )
    subnets = max(stream.networks, stream.tunnels)
    if math.gcd(subnets, stream.ports) != 1:
        raise UsageError(
            f"generator trex: expected source ports whose number has no divisor in common with the {subnets} "
            f"networks or tunnels, got {stream.ports}; TRex advances both with each frame and would leave "
            f"flows out: use {_coprime(subnets, stream.ports)} ports, or generator: native"
        )
    instructions: list[dict[str, Any]] = []
    if stream.networks > 1:
        instructions += _address("dst", stream.dst, frame.destination, stream.networks, 256)
    if stream.tunnels > 1:
        step = 1 << (32 - stream.tunnel_bits)
        instructions += _address("src", stream.src, frame.source, stream.tunnels, step)
        instructions += _address("dst", stream.dst, frame.destination, stream.tunnels, step)
    if stream.ports > 1:
        first = int.from_bytes(frame.data[frame.transport : frame.transport + 2], "big")
        instructions += _variable("port", 2, first, stream.ports, 1, frame.transport)
    return [*instructions, {"type": "fix_checksum_ipv4", "pkt_offset": frame.ip}]


def _address(name: str, first: str, at: int, count: int, step: int) -> list[dict[str, Any]]:
    return _variable(name, 4, int(ipaddress.IPv4Address(first)), count, step, at)


def _variable(name: str, size: int, first: int, count: int, step: int, at: int) -> list[dict[str, Any]]:
    """Return instructions that write `first`, `first + step` … `count` times, then again, big-endian at an offset."""
    # The range must be a multiple of the step, or the server extends it.
    last = first + count * step - 1
    if last >= 1 << (8 * size):
        raise UsageError(
            f"generator trex: expected {name} values up to {(1 << 8 * size) - 1}, got {last}; use fewer flows"
        )
    return [
        {
            "type": "flow_var", "name": name, "size": size, "op": "inc", "step": step,
            "init_value": first, "min_value": first, "max_value": last,
        },
        {"type": "write_flow_var", "name": name, "pkt_offset": at, "add_value": 0, "is_big_endian": True},
    ]  # fmt: skip


def _coprime(count: int, ports: int) -> int:
    """Return the next smaller number of ports with which every flow is reached."""
    return next(n for n in range(ports, 0, -1) if math.gcd(count, n) == 1)


def _apportioned(frames: int, weights: list[int]) -> list[int]:
    """Divide `frames` in these proportions into whole numbers with the same sum: the largest remainders are rounded
    up.
    """
    total = sum(weights)
    counts = [frames * weight // total for weight in weights]
    by_remainder = sorted(range(len(weights)), key=lambda i: -(frames * weights[i] % total))
    for i in by_remainder[: frames - sum(counts)]:
        counts[i] += 1
    return counts
