# SPDX-License-Identifier: Apache-2.0
"""Makes streams as espbench gives them to a generator, and counts as a generator reports them."""

from __future__ import annotations

from typing import Any

from espbench.generators.base import FrameShare, Stream, StreamCounts
from espbench.platforms.base import PortName
from espbench.terms import Latency


def stream(**changes: Any) -> Stream:
    """Return a stream of 64-byte frames from west to east; changes: other fields."""
    usual: dict[str, Any] = {
        "id": 0, "from_": "west", "to": "east", "rate_fps": 5000.0, "frames": [FrameShare(size=64)],
        "src_mac": "02:00:00:00:00:01", "dst_mac": "02:00:00:00:00:11", "ip_version": 4,
        "src": "198.18.0.2", "dst": "198.19.0.2", "ttl": 10, "src_port": 49184, "dst_port": 7,
    }  # fmt: skip
    return Stream.model_validate(usual | changes)


def counts(
    tx: int, rx: int, *, source: PortName = "west", corrupted: int = 0, **changes: Any
) -> StreamCounts:
    """Return the counts of a stream; sent frames that arrived neither intact nor corrupted are lost."""
    usual: dict[str, Any] = {
        "id": 0, "from": source, "to": "east" if source == "west" else "west", "intended_frames": tx,
        "tx_frames": tx, "unsent": 0,
        "rx_frames": rx, "lost": max(0, tx - rx - corrupted), "duplicated": 0, "reordered": 0,
        "corrupted": corrupted, "rx_after_stop": 0, "drain_s": 0.0, "latency_us": Latency(),
    }  # fmt: skip
    return StreamCounts.model_validate(usual | changes)
