# SPDX-License-Identifier: Apache-2.0
"""A case's traffic as streams for the generator: who sends what to whom at which rate."""

from __future__ import annotations

from dataclasses import dataclass

from espbench.generators.base import FrameShare, Stream
from espbench.platforms.base import Port, PortName, Testbed
from espbench.terms import Direction


@dataclass(frozen=True)
class Traffic:
    """frames: (size with FCS, weight); networks or tunnels × source ports make the flows.

    tunnel_bits is the prefix length of one tunnel's subnet on either side (stacks.base.split).
    """

    frames: tuple[tuple[int, int], ...]
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

    @property
    def mean_frame_size(self) -> float:
        weights = sum(w for _, w in self.frames)
        return sum(size * w for size, w in self.frames) / weights

    @property
    def directions(self) -> int:
        return 1 if self.direction == "one-way" else 2

    def streams(self, bed: Testbed, next_hops: dict[PortName, str], load_fps: float | None) -> list[Stream]:
        """Streams that offer `load_fps` in sum over the directions (None: flood)."""
        west, east = bed.ports["west"], bed.ports["east"]
        pairs = [(west, east)] if self.direction == "one-way" else [(west, east), (east, west)]
        rate = None if load_fps is None else load_fps / len(pairs)
        return [self._stream(n, a, b, next_hops[a.name], rate) for n, (a, b) in enumerate(pairs)]

    def _stream(self, number: int, sender: Port, receiver: Port, next_hop: str, rate: float | None) -> Stream:
        return Stream(
            id=number,
            from_=sender.name,
            to=receiver.name,
            rate_fps=rate,
            frames=[FrameShare(size=size, weight=weight) for size, weight in self.frames],
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
        )
