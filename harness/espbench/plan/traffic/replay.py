# SPDX-License-Identifier: Apache-2.0
"""A recording as traffic: the headers, sizes and order of its frames are kept, everything else is the tester's."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from espbench.plan.traffic.headers import (
    ETHERNET_BYTES,
    Header,
    NotAHeader,
    header_of,
    ip_bytes,
    without_connection,
)
from espbench.plan.traffic.pcap import NotARecording, frames
from espbench.terms import FCS_BYTES

MOST_HEADERS = 64
MOST_FRAMES = 4096
LARGEST_FRAME = 9000


@dataclass(frozen=True)
class Replay:
    """The frames of a recording.

    shares: (size with FCS, 1, index into headers) for each frame, in order; notes: how they differ from the
    recording.
    """

    headers: tuple[Header, ...]
    shares: tuple[tuple[int, int, int], ...]
    notes: tuple[str, ...]


def replay(recording: bytes, ip_version: int) -> Replay:
    """Return the frames of one IP version. Raise NotARecording, also if no frames or too many are left."""
    headers: dict[Header, int] = {}
    shares: list[tuple[int, int, int]] = []
    left_out: Counter[str] = Counter()
    lengthened = 0
    for frame in frames(recording):
        try:
            header = header_of(frame)
        except NotAHeader as reason:
            left_out[str(reason)] += 1
            continue
        if header.ip_version != ip_version:
            left_out[f"IPv{header.ip_version}"] += 1
            continue
        packet = ip_bytes(frame, header)
        if packet < len(header.data) - header.ip:
            left_out["without a length (recorded before the port cut it into frames)"] += 1
            continue
        bare = without_connection(header)
        recorded = max(64, ETHERNET_BYTES + len(header.tags) + packet + FCS_BYTES)
        size = max(recorded, bare.smallest_frame)
        if size > LARGEST_FRAME:
            left_out[f"larger than {LARGEST_FRAME} B (merged by the recorder's offloads?)"] += 1
            continue
        lengthened += size > recorded
        shares.append((size, 1, headers.setdefault(bare, len(headers))))
        if len(headers) > MOST_HEADERS or len(shares) > MOST_FRAMES:
            break
    if not shares:
        why = "; ".join(f"{count} {reason}" for reason, count in left_out.most_common(3)) or "it is empty"
        raise NotARecording(f"without a frame of UDP or TCP in IPv{ip_version}: {why}")
    if len(headers) > MOST_HEADERS:
        raise NotARecording(
            f"of more than {MOST_HEADERS} different headers within its first {len(shares)} frames; keep a part of "
            "it, such as: tcpdump -r IN -w OUT -c 500 host 192.0.2.1"
        )
    if len(shares) > MOST_FRAMES:
        raise NotARecording(
            f"of more than {MOST_FRAMES} frames; keep a part of it, such as: tcpdump -r IN -w OUT -c {MOST_FRAMES}"
        )
    kinds = f"{len(headers)} different headers" if len(headers) > 1 else "one header"
    notes = [
        f"{_frames(len(shares))} with {kinds} replayed again and again, at the offered rate and not the "
        "recording's; addresses, TTL and payload are the tester's"
    ]
    notes += [
        f"{_frames(count)} of the recording left out: {reason}" for reason, count in left_out.most_common()
    ]
    if lengthened:
        notes.append(f"{_frames(lengthened)} lengthened to hold the test header")
    return Replay(tuple(headers), tuple(shares), tuple(notes))


def _frames(count: int) -> str:
    return "1 frame" if count == 1 else f"{count} frames"
