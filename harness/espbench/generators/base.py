# SPDX-License-Identifier: Apache-2.0
"""What a generator is asked to offer and what it counted: one interface for all of them.

Times are CLOCK_MONOTONIC nanoseconds, so that the host's monitors can be laid beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, Field

from espbench.platforms.base import Port, PortName
from espbench.terms import Latency


class FrameShare(BaseModel):
    """One frame size (bytes, with FCS) and its share in a mix."""

    model_config = ConfigDict(frozen=True)

    size: int
    weight: int = 1


class Stream(BaseModel):
    """One direction's traffic; rate None = as fast as the generator can."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    id: int
    from_: PortName = Field(serialization_alias="from")
    to: PortName
    rate_fps: float | None
    burst_frames: int | None = None
    frames: list[FrameShare]
    src_mac: str
    dst_mac: str
    ip_version: int
    src: str
    dst: str
    dont_fragment: bool = False
    ttl: int
    src_port: int
    dst_port: int
    networks: int = 1
    # Frame k comes from src and goes to dst plus (k mod tunnels) subnets of this prefix length.
    tunnels: int = 1
    tunnel_bits: int = 0
    ports: int = 1


class Slice(BaseModel):
    """Latency of the frames sent in one of 20 equal parts of a trial."""

    t_s: float
    rx_frames: int
    min_us: float | None
    mean_us: float | None


class LossEpisode(BaseModel):
    """Consecutive frames that never arrived, placed by the time they were sent."""

    from_ns: int
    to_ns: int
    frames: int


class Stall(BaseModel):
    """A time in which a CPU did not run what it should have."""

    at_ns: int
    ms: float
    cpu: int | None = None


class StreamCounts(BaseModel):
    """What became of one stream's frames; definitions as in terms.Trial."""

    model_config = ConfigDict(populate_by_name=True)

    id: int
    from_: PortName = Field(validation_alias="from")
    to: PortName
    intended_frames: int | None  # None: a flood has no plan
    tx_frames: int
    tx_refused: int = 0  # of those, refused at once by the full ring of the device behind the port
    unsent: int
    tx_retries: int = 0
    rx_frames: int
    lost: int
    duplicated: int
    reordered: int
    corrupted: int
    rx_after_stop: int
    drain_s: float
    latency_us: Latency | None
    slices: list[Slice] = []
    loss_episodes: list[LossEpisode] = []
    loss_episodes_more: int = 0
    late_frames: int = 0
    lateness_us: dict[str, float] | None = None
    tx_stalls: list[Stall] = []


class PortCounts(BaseModel):
    """What one tester port saw beside the streams."""

    name: PortName
    rx_overrun: int
    foreign: int
    rx_total: int = 0
    merged: int = 0


class Offered(BaseModel):
    """The generator's account of one trial."""

    start_ns: int
    last_tx_ns: int
    duration_s: float
    intended_duration_s: float
    streams: list[StreamCounts]
    ports: list[PortCounts]
    host_stalls: list[Stall] = []
    host_stall_ms_total: dict[str, float] = {}
    senders_run_ms: float = 0.0
    senders_wait_ms: float = 0.0  # runnable, but not on a CPU
    receivers_run_ms: float = 0.0
    receivers_wait_ms: float = 0.0
    clock_step_ns: int = 0
    stopped_early: bool = False


OnProgress = Callable[[dict[str, Any]], None]


class Generator(Protocol):
    """Makes the traffic and counts what returns."""

    name: str

    def open(self, ports: list[Port], watch_cpus: list[int]) -> list[dict[str, Any]]:
        """Attach to the ports; returns what it found of each (mac, mtu, path taken, notes)."""

    def resolve(self, port: PortName, address: str, gateway: str, timeout_s: float) -> str:
        """The gateway's MAC, asked for on the wire; from then on the tester answers for `address`."""

    def offer(
        self,
        streams: list[Stream],
        duration_s: float,
        residue_s: float,
        quiet_s: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> Offered:
        """One burst of traffic: send, wait for the residue, count."""

    def ping(self) -> None:
        """EspbenchError if it is dead."""

    def pid(self) -> int: ...

    def close(self) -> None: ...
