# SPDX-License-Identifier: Apache-2.0
"""The traffic of a case, from which the generator's streams are made: sender, receiver, frames and rate."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from espbench.generators.base import FrameShare, Stream
from espbench.platforms.base import Port, PortName, Testbed
from espbench.terms import Direction, loaded_directions

_SHARE = ("size", "weight", "header")


@dataclass(frozen=True)
class Traffic:
    """The traffic of a case.

    frames: (size with FCS, weight[, index into headers]). The flows are networks × ports, or tunnels × ports. headers
    are those of generators.base.Stream, as bytes; without headers, frames are the RFC 2544 test frame. tunnel_bits:
    the prefix length of the subnet of one tunnel on either side (stacks.base.split).
    """

    frames: tuple[tuple[int, ...], ...]
    ip_version: int
    direction: Direction
    networks: int = 1
    tunnels: int = 1
    tunnel_bits: int = 0
    ports: int = 1
    dont_fragment: bool = False
    ttl: int = 64
    src_port: int = 49184
    dst_port: int = 7
    headers: tuple[bytes, ...] = ()

    @property
    def flows(self) -> int:
        """The number of flows of each stream."""
        return self.networks * self.tunnels * self.ports

    @property
    def mean_frame_size(self) -> float:
        """The mean size of the frames by their weights, bytes with FCS."""
        weights = sum(w for _, w, *_ in self.frames)
        return sum(size * w for size, w, *_ in self.frames) / weights

    @property
    def directions(self) -> int:
        return loaded_directions(self.direction)

    def streams(self, bed: Testbed, next_hops: dict[PortName, str], load_fps: float | None) -> list[Stream]:
        """Return streams that together offer `load_fps`, divided equally among the directions (None: flood)."""
        west, east = bed.ports["west"], bed.ports["east"]
        pairs = {
            "both-ways": [(west, east), (east, west)],
            "decryption": [(east, west)],
        }.get(self.direction, [(west, east)])
        rate = None if load_fps is None else load_fps / len(pairs)
        return [self._stream(n, a, b, next_hops[a.name], rate) for n, (a, b) in enumerate(pairs)]

    def _stream(self, number: int, sender: Port, receiver: Port, next_hop: str, rate: float | None) -> Stream:
        return Stream(
            id=number,
            from_=sender.name,
            to=receiver.name,
            rate_fps=rate,
            frames=[FrameShare(**dict(zip(_SHARE, frame, strict=False))) for frame in self.frames],
            src_mac=sender.mac,
            dst_mac=next_hop,
            ip_version=self.ip_version,
            src=sender.address[self.ip_version],
            dst=receiver.address[self.ip_version],
            dont_fragment=self.dont_fragment,
            ttl=self.ttl,
            src_port=self.src_port,
            dst_port=self.dst_port,
            networks=self.networks,
            tunnels=self.tunnels,
            tunnel_bits=self.tunnel_bits,
            ports=self.ports,
            headers=[base64.b64encode(header).decode() for header in self.headers],
        )
