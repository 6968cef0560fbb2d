# SPDX-License-Identifier: Apache-2.0
"""Defines the requests to a generator and its counts: one interface for all generators.

Times are CLOCK_MONOTONIC nanoseconds, so that they can be compared with those of the host's monitors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from espbench.platforms.base import Port, PortName
from espbench.terms import Latency, Remark

# A trial sends all its frames. If that takes longer than intended, a generator continues for at most LONGEST times the
# duration plus LONGEST_MORE_S (traffic/src/send/pace.rs, deadline_ns); in virtual time for much less
# (virtual_time/virtual_trial.rs). A flood has no schedule, and ends on time.
LONGEST, LONGEST_MORE_S = 1.5, 0.5


def longest_s(duration_s: float) -> float:
    """Return the longest time, in seconds, for which a trial with this intended duration may send."""
    return LONGEST * duration_s + LONGEST_MORE_S


@dataclass(frozen=True)
class WirePath:
    """A path between the generator and the wire, by its name; receives: False if only frames to send use it."""

    name: str
    receives: bool = True

    def __str__(self) -> str:
        """Return the path as in notes and the manifest: `af_xdp`, or `tx af_xdp` for sending only."""
        return self.name if self.receives else f"tx {self.name}"

    @classmethod
    def of_record(cls, path: str) -> WirePath | None:
        """Return the path recorded in a manifest; None if the generator had no choice."""
        name = path.removeprefix("tx ")
        return cls(name, receives=name == path) if path else None


class FrameShare(BaseModel):
    """One frame size (bytes, with FCS) and its share in a mix; header is an index into Stream.headers.

    If all weights are equal, the frames leave in the given order, again and again. So an exact sequence (RFC 6985)
    is written as shares of weight 1, with sizes repeated as often as they occur (up to 4,096).
    """

    model_config = ConfigDict(frozen=True)

    size: int
    weight: int = 1
    header: int = 0


class RateStep(BaseModel):
    """A change of the rate, at_s seconds after the start; rate 0: nothing is sent until the next step."""

    model_config = ConfigDict(frozen=True)

    at_s: float
    rate_fps: float


class Association(BaseModel):
    """An ESP SA in tunnel mode: SPI, outer addresses, suite (catalogue/suites.yaml), keys in hexadecimal.

    An AEAD's key ends with its salt. Keys go to the generator through its pipe and are shown nowhere.
    """

    model_config = ConfigDict(frozen=True)

    spi: int
    source: str
    destination: str
    suite: str
    esn: bool = False
    encryption_key: str = Field(repr=False)
    integrity_key: str = Field(default="", repr=False)


class Stream(BaseModel):
    """The traffic of one direction; rate None = as fast as the generator can (a flood).

    steps change the rate during the trial (system recovery, RFC 2544 26.5), each at exactly its time, without a gap.
    burst_frames: send this many frames at the rate, and no more (26.4). tag_at_s: report the latency of the first
    frame that departs at this time or later (26.2). gaps_over_s: list the times without arrivals that are longer
    than this. leeway: the share of the trial's duration for which the sender need not catch up after pauses. Beyond
    it, the sender catches up at 1.1 times the rate. A generator may ignore the leeway and catch up after every
    pause.

    headers are base64, each the bytes from the destination MAC to the end of the UDP or TCP header: Ethernet, up to
    two VLAN tags (types 8100 and 88a8), IPv4 (options allowed) or IPv6 (no extension headers), UDP or TCP (options
    allowed), and nothing after it; the offsets follow from that. Empty: the RFC 2544 test frame, whose ports are
    src_port and dst_port. These parts of a header are sent unchanged: VLAN tags, TOS or traffic class and flow
    label, IPv4 options, both ports, and all of TCP but its checksum. The generator writes the rest: MAC and IP
    addresses, lengths, TTL, identification, DF and no fragment, checksums; port flow p adds p to the header's source
    port. The test payload follows directly.
    """

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    id: int
    from_: PortName = Field(serialization_alias="from")
    to: PortName
    rate_fps: float | None
    steps: list[RateStep] = []
    burst_frames: int | None = None
    leeway: float = 0.0
    tag_at_s: float | None = None
    gaps_over_s: float | None = None
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
    # Frame k has source and destination addresses (k mod tunnels) subnets of this prefix length after src and
    # dst.
    tunnels: int = 1
    tunnel_bits: int = 0
    ports: int = 1
    headers: list[str] = []
    # Frames leave as ESP (seal) or arrive as ESP (open), with one SA for each tunnel; sizes are those of the
    # frames inside. Streams without a fault share no SA to seal. fault: makes the packets that leave wrong.
    # bad-icv: forged, with sequence numbers never used; replay: with numbers used before.
    seal: list[Association] = []
    open: list[Association] = []
    fault: Literal["bad-icv", "replay"] | None = None


class Noise(BaseModel):
    """Other traffic besides the streams, such as an attack, sent unchanged. It is in no figure of a stream.

    packets are complete IPv4 or IPv6 packets in base64, at most 4,096, sent in turn; id is unique among the streams.
    They should end at the DUT: if one arrives at a tester's port, it counts as a foreign frame. counter_at: the offset
    in each packet, bytes, of 8 bytes that differ whenever the packet is sent again (the number of the round, XORed with
    them); None: the packets repeat unchanged.
    """

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    id: int
    from_: PortName = Field(serialization_alias="from")
    rate_fps: float | None
    steps: list[RateStep] = []
    burst_frames: int | None = None
    src_mac: str
    dst_mac: str
    packets: list[str]
    counter_at: int | None = None


class OpenedPort(BaseModel):
    """A port to which a generator is attached; sender and receiver: how its frames leave and arrive.

    notes: what a reader of the figures should know about this. speed_mbps None: the interface does not report it.
    """

    name: PortName
    interface: str
    driver: str
    mac: str
    mtu: int
    carrier: bool
    speed_mbps: int | None = None
    sender: str
    receiver: str
    notes: list[str] = []

    @property
    def path(self) -> str:
        """The path of frames through the port, in words."""
        return f"{self.sender}; {self.receiver}"


def paths_in_words(opened: Sequence[OpenedPort]) -> str:
    """Return how frames leave and arrive at all ports; once if it is the same for all, since each frame uses two
    ports.
    """
    different = dict.fromkeys(port.path for port in opened)
    if len(different) == 1:
        return next(iter(different))
    return "; ".join(f"{port.name}: {port.path}" for port in opened)


class Slice(BaseModel):
    """Latency of the frames sent in one of 20 equal parts of a trial."""

    t_s: float
    rx_frames: int
    min_us: float | None
    mean_us: float | None


class LossEpisode(BaseModel):
    """Consecutive frames that never arrived, with the time at which they were sent."""

    from_ns: int
    to_ns: int
    frames: int


class Stall(BaseModel):
    """A time of `ms` in which a CPU did not run what it should have run.

    until_ns: the time when a sender had caught up. From at_ns until then, its frames were late, or followed each
    other up to a tenth faster than intended. A sender that is too slow for its rate has no stall.
    """

    at_ns: int
    ms: float
    cpu: int | None = None
    until_ns: int | None = None


class SlowTime(BaseModel):
    """A time in which a CPU was clearly slower than in most of its trial; CLOCK_MONOTONIC, ns."""

    from_ns: int
    to_ns: int


class CpuSpeed(BaseModel):
    """The number of times per millisecond that a CPU could do a fixed piece of work: the mean of a trial, and
    the highest of all trials of the generator's process so far (over five samples), taken for the CPU's full speed.
    """

    mean_per_ms: float
    fastest_per_ms: float
    slow_times: list[SlowTime] = []


class Tagged(BaseModel):
    """The frame of Stream.tag_at_s: when it departed, and its latency; None: the frame was lost or damaged."""

    at_ns: int
    latency_us: float | None


class StepCounts(BaseModel):
    """The frames due at one of a stream's rates; lost None: the generator does not know which frames were lost."""

    at_ns: int
    rate_fps: float
    intended_frames: int
    tx_frames: int
    lost: int | None


class Gap(BaseModel):
    """The time from one arrival of an intact frame to the next."""

    from_ns: int
    to_ns: int

    @property
    def seconds(self) -> float:
        return (self.to_ns - self.from_ns) / 1e9


class StreamCounts(BaseModel):
    """The counts of one stream's frames, defined as in terms.Trial. None: the generator cannot measure it.

    duration_s is the time that sending took, with the interval of the last frame: tx_frames / duration_s is the
    offered load. unsent: frames that had not left after the longest time of the trial (longest_s), or found no room
    at the port. lateness_us and late_frames (later than 100 µs) are relative to the intended times. departure_fps is
    the rate at which the frames really left, from the first to the last. first_lost_ns and last_lost_ns are the
    departures of those frames, whether their episode is listed or not; first_rx_ns, last_rx_ns and the gaps are
    arrivals. They are also None if there is no such frame.
    """

    model_config = ConfigDict(populate_by_name=True)

    id: int
    from_: PortName = Field(validation_alias="from")
    to: PortName
    intended_frames: int | None  # None: a flood has no schedule
    tx_frames: int
    tx_refused: int = 0  # of tx_frames: refused at once by the full ring of the device behind the port
    unsent: int
    tx_retries: int = 0
    duration_s: float | None = None
    departure_fps: float | None = None
    rx_frames: int
    # The frames of tx_frames that did not arrive at all. The generators call this "lost", but here damaged
    # frames are lost too.
    never_came: int = Field(validation_alias="lost")
    duplicated: int | None
    reordered: int | None
    corrupted: int | None
    rx_after_stop: int | None
    drain_s: float | None
    latency_us: Latency | None
    tagged: Tagged | None = None
    slices: list[Slice] = []
    steps: list[StepCounts] = []
    first_lost_ns: int | None = None
    last_lost_ns: int | None = None
    loss_episodes: list[LossEpisode] = []
    loss_episodes_more: int = 0
    first_rx_ns: int | None = None
    last_rx_ns: int | None = None
    longest_gap: Gap | None = None
    gaps: list[Gap] = []
    gaps_more: int = 0
    late_frames: int | None = 0
    lateness_us: dict[str, float] | None = None
    tx_stalls: list[Stall] = []
    tx_stalls_more: int = 0  # beyond those listed
    tx_stalls_more_ms: float = 0.0  # in sum, each until the sender had caught up
    sealed_before: bool | None = None  # True: before the trial, as the cipher is too slow; None: in clear

    @property
    def lost(self) -> int:
        """The number of frames that were not received intact, as in a trial's record (terms.Trial)."""
        return self.tx_frames - self.rx_frames

    @property
    def lost_damaged(self) -> int:
        """The number of lost frames that arrived, but damaged."""
        return max(0, self.lost - self.never_came)


class EspCounts(BaseModel):
    """The packets that arrived, as the SAs of a port judged them. Each packet is in the first count that applies.

    gaps: sequence numbers between the lowest and the highest of this trial that never arrived: lost after
    encryption.
    """

    packets: int = 0  # ESP with an SPI and the addresses of an SA
    authentic: int = 0  # of these: the ICV and the trailer are right
    bad_icv: int = 0
    malformed: int = 0
    unknown_spi: int = 0
    cleartext: int = 0  # frames of the streams that arrived in clear
    repeated: int = 0  # authentic, with a sequence number that arrived before in this trial
    old: int = 0  # authentic, with a sequence number not higher than those of earlier trials
    not_rising: int = 0
    gaps: int = 0
    opened_after: bool = False  # True: after the trial, as the cipher is too slow while frames arrive


class NoiseCounts(BaseModel):
    """The frames sent of one noise; the counts are as for a stream."""

    model_config = ConfigDict(populate_by_name=True)

    id: int
    from_: PortName = Field(validation_alias="from")
    intended_frames: int | None
    tx_frames: int
    tx_refused: int
    unsent: int
    duration_s: float
    departure_fps: float | None


class LinkErrors(BaseModel):
    """Frames of a link in virtual time that were lost, damaged (wrong FCS) or late, in both directions."""

    lost: int = 0
    damaged: int = 0
    late: int = 0


class BusBytes(BaseModel):
    """Bytes that an emulated board's devices moved over its memory's bus during a trial.

    port_*: its Ethernet ports, descriptors included; port_frame_*: frames alone. sec_*: its security engine, with
    everything that it fetches. sec_descriptors: the number of requests that the engine completed.
    """

    port_read: int = 0
    port_written: int = 0
    port_frame_read: int = 0
    port_frame_written: int = 0
    sec_read: int = 0
    sec_written: int = 0
    sec_descriptors: int = 0


class LinkCounts(LinkErrors, BusBytes):
    """Counts of a port's link in virtual time, and of the gateway at its other end."""


class PortCounts(BaseModel):
    """Counts of one tester port that do not belong to a stream."""

    name: PortName
    rx_overrun: int
    foreign: int | None
    rx_total: int = 0
    merged: int = 0
    esp: EspCounts | None = None
    link: LinkCounts | None = None


class Offered(BaseModel):
    """The generator's account of one trial.

    duration_s is that of the longest stream. If a sender was held up, it is longer than intended. faults make the
    trial INVALID. shortfall says why frames were not sent, if the generator knows. warnings apply to every figure
    from this trial. not_measured names what this generator cannot measure.
    """

    start_ns: int
    last_tx_ns: int
    duration_s: float
    intended_duration_s: float
    streams: list[StreamCounts]
    noise: list[NoiseCounts] = []
    ports: list[PortCounts]
    between: list[LinkErrors] = []  # of the links between guests, in virtual time
    host_stalls: list[Stall] = []
    host_stalls_more: int = 0  # beyond those listed
    host_stalls_more_ms: float = 0.0  # in sum
    host_stall_ms_total: dict[str, float] = {}
    # False: nobody watched the CPUs, or a watcher had no real-time priority and saw its own waits as stalls
    stalls_watched: bool
    cpu_speed: dict[str, CpuSpeed] = {}  # of each watched CPU that is not the generator's own
    senders_run_ms: float = 0.0
    senders_wait_ms: float | None = None  # runnable, but not on a CPU; None: not known
    receivers_run_ms: float = 0.0
    receivers_wait_ms: float = 0.0
    clock_step_ns: int = 0
    stopped_early: bool = False
    faults: list[str] = []
    shortfall: str = ""
    warnings: list[Remark] = []
    notes: list[str] = []
    not_measured: list[str] = []


# It is called with the events of a trial: elapsed_s from its first frame, and whether frames are (still)
# `sending`. In real time there is an event just before the first frame, with 0 s, and one when all have been
# sent.
OnProgress = Callable[[dict[str, Any]], None]


class Generator(Protocol):
    """Sends traffic and counts the frames that return."""

    name: str

    def paths(self) -> list[str]:
        """Return the names of the paths from which a measurement chooses; empty: there is no choice."""

    def take(self, path: WirePath) -> None:
        """Use this path from the next `open` on, which raises EspbenchError if the ports cannot use it.

        If the path is for sending only, frames are received by the default path.
        """

    def open(self, ports: list[Port], watch_cpus: list[int]) -> list[dict[str, Any]]:
        """Attach to the ports; return the facts about each, as OpenedPort has them (mac, mtu, sender, receiver,
        notes).
        """

    def resolve(self, port: PortName, address: str, gateway: str, timeout_s: float, tags: bytes = b"") -> str:
        """Return the gateway's MAC address, resolved on the wire; from then on the tester answers for `address`.

        tags: VLAN tags of the request as on the wire (8100 0007: VLAN 7); an answer has the tags of its request.
        """

    def offer(
        self,
        streams: list[Stream],
        duration_s: float,
        residue_s: float,
        quiet_s: float | None = None,
        on_progress: OnProgress | None = None,
        noise: Sequence[Noise] = (),
    ) -> Offered:
        """Send the traffic of one trial, wait for late frames, and return the counts. Raise UsageError for traffic
        it cannot send.

        residue_s: the wait after the last frame. quiet_s: end it earlier, after so long without a frame, if all have
        arrived.
        """

    def ping(self) -> None:
        """Raise EspbenchError if the generator has died."""

    def pid(self) -> int: ...

    def close(self) -> None: ...
