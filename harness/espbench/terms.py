# SPDX-License-Identifier: Apache-2.0
"""The standards' words as types: what a trial is, and what may be said about it.

Every other part shares these records; this file imports none of them. Frame sizes
count the 4-byte FCS (RFC 2544 9), rates are frames per second unless a name says otherwise.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

# With a single gateway, whose ESP peer is the tester, encryption is one way (west to east) and decryption the other.
Direction = Literal["one-way", "both-ways", "encryption", "decryption"]
OPERATIONS: tuple[Direction, ...] = ("encryption", "decryption")
Phase = Literal["search", "final", "measure"]  # measure: of a test that searches nothing
# LOWER_BOUND: at least this; above it nothing could be judged. VIOLATED: frames crossed without encryption.
Status = Literal["OK", "LOWER_BOUND", "BELOW_MINIMUM", "INVALID", "UNRESOLVABLE", "VIOLATED"]
PAIRED = "fixed-load"  # what a comparison at fixed loads is called where a test has its name
WITH_FIGURE: tuple[Status, ...] = ("OK", "LOWER_BOUND")
Validity = Literal["VALID", "INVALID"]
Encryption = Literal["proven", "not proven", "baseline"]

FCS_BYTES = 4
PREAMBLE_AND_GAP_BYTES = 20
RFC2544_FINAL_TRIAL_S = 60.0  # RFC 2544 24
# How the warnings of an outcome begin whose figure is the tester's or the search's and not the DUT's.
LIMITED_BY_TESTER, AT_MAXIMUM = "tester-limited", "at the search's maximum"
_AGAIN = re.compile(r"-\d+$")
# A deviation in the measuring itself (24, 26.x), not in the frame sizes or the waits around a trial.
_SHORTER = re.compile(r"(24|26\.\d|RFC \d+ [\d.]+): .* instead of ")


def ways(direction: Direction) -> int:
    """How many directions are loaded at once."""
    return 2 if direction == "both-ways" else 1


def line_rate_fps(frame_size: float, bits_per_second: float) -> float:
    """The theoretical frame rate of an Ethernet link (RFC 2544 20): frame + preamble + gap."""
    return bits_per_second / (8 * (frame_size + PREAMBLE_AND_GAP_BYTES))


def goal_name(goal: float) -> str:
    """A loss goal in per cent: `0 %`, `0.001 %`."""
    return f"{goal * 100:.10f}".rstrip("0").rstrip(".") + " %"


def kind_of_test(test: str) -> str:
    """`latency` of `latency-2`, the second latency test of a plan."""
    return _AGAIN.sub("", test)


def layer2_mbps(fps: float, frame_size: float) -> float:
    """Mbit/s of frames without preamble and gap: the seed articles' unit."""
    return fps * frame_size * 8 / 1e6


class Record(BaseModel):
    """Base of everything written to a run directory."""

    model_config = ConfigDict(extra="allow", frozen=True)


class Counted(Record):
    """A record with tx_frames, rx_frames and lost, which is their difference, always.

    A damaged frame is not received (RFC 2544 10), so it is lost (26.3). Records of earlier versions left such frames
    out of `lost`; they are read as this has it.
    """

    @model_validator(mode="before")
    @classmethod
    def _lost_is_the_difference(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        tx, rx = data.get("tx_frames"), data.get("rx_frames")
        return data | {"lost": tx - rx} if isinstance(tx, int) and isinstance(rx, int) else data


class Latency(Record):
    """Latency of the frames of one trial, µs; `hdr` is the HDR histogram (V2, deflate, base64)."""

    min: float | None = None
    mean: float | None = None
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None
    p999: float | None = None
    max: float | None = None
    hdr: str | None = None


class GatewayReading(Record):
    """What one gateway did during exactly one trial; None = not readable on this platform."""

    cpu_pct: float | None = None
    cpu_us_per_frame: float | None = None
    encrypted_frames: int | None = None
    decrypted_frames: int | None = None
    xfrm_errors: dict[str, int] = Field(default_factory=dict)


class DirectionReading(Counted):
    """One direction of a trial (`west-east` or `east-west`); frame counts as in `Trial`, None: not measured."""

    intended_fps: float
    offered_fps: float
    tx_frames: int
    rx_frames: int
    lost: int
    duplicated: int | None
    reordered: int | None
    corrupted: int | None
    unsent: int = 0
    backlog_frames: int | None = 0  # frames that arrived after the last one was sent
    drain_s: float | None = 0.0  # from the last frame sent to the last received
    latency_us: Latency = Field(default_factory=Latency)
    tagged_us: float | None = None  # latency of the tagged frame, where there was one and it arrived
    first_lost_s: float | None = None  # when it was sent, from the first frame
    last_lost_s: float | None = None
    first_rx_s: float | None = None  # when the first frame arrived, from the first frame sent
    longest_gap_s: tuple[float, float] | None = None  # the last arrival before it, the first one after it
    departure_fps: float | None = None  # how fast the frames really left, first to last


class Trial(Counted):
    """One line of `trials.jsonl`.

    rx_frames counts frames received intact, each once; lost = tx_frames - rx_frames, so that a damaged frame is
    lost (RFC 2544 10, 26.3); corrupted counts those that came damaged; frame_loss_ratio = lost / tx_frames.
    Rates and frame counts are sums over both directions.
    `reasons` says why a trial is INVALID or, where valid, why it failed a goal it looks to
    meet (`stored, not forwarded`). `loss_at` books each lost frame to a place. Counts the generator
    cannot give are None and named in `not_measured`; `warnings` go to every figure taken from the trial.
    `measured` is what a test of its own kind took besides (a burst's length, what was done to a gateway and when).
    `waits_s` are the waits it was made with, None where there was none to make; empty in records of before they were
    kept.
    """

    case: str
    sequence: int  # 0, 1, 2 … within the case
    phase: Phase
    attempt: int = 0  # 0 unless an INVALID trial at this load was repeated
    intended_fps: float
    offered_fps: float
    duration_s: float
    intended_duration_s: float
    tx_frames: int
    rx_frames: int
    lost: int
    duplicated: int | None
    reordered: int | None
    corrupted: int | None
    frame_loss_ratio: float
    sustained: bool = True  # False: the rate was stored in a queue, not forwarded
    validity: Validity
    reasons: list[str] = Field(default_factory=list)
    loss_at: dict[str, int] = Field(default_factory=dict)
    latency_us: Latency = Field(default_factory=Latency)
    per_direction: dict[str, DirectionReading] = Field(default_factory=dict)
    gateways: dict[str, GatewayReading] = Field(default_factory=dict)
    proof: dict[str, Any] = Field(default_factory=dict)
    warnings: list[str] = Field(default_factory=list)
    not_measured: list[str] = Field(default_factory=list)
    measured: dict[str, Any] = Field(default_factory=dict)
    waits_s: dict[str, float | None] = Field(default_factory=dict)  # learning, residue, settle (RFC 2544 23)
    host: dict[str, Any] = Field(default_factory=dict)

    @property
    def violated(self) -> bool:
        """Whether frames crossed without encryption: no later trial heals the case."""
        return bool(self.proof.get("violated"))

    @property
    def disturbed(self) -> bool:
        """Whether it is INVALID for the host's sake alone: what was counted is right."""
        return bool(self.host.get("disturbed"))


class CaseIdentity(Record):
    """Which point of the plan something is of; frame_size is a number, or the name of a mix of sizes."""

    case: str
    test: str
    dut: str
    stack: str
    suite: str
    ip_version: int
    frame_size: int | str
    direction: Direction
    repeat: int


class Outcome(CaseIdentity):
    """The answer for one case and one loss goal: one row of `results.csv`.

    Throughput is None unless status is OK, or LOWER_BOUND, where it is the bound. `words` is the answer as a
    sentence. Rates sum both directions. `final_trial` is the `sequence` of the trial the figures come from.
    void_finals counts the INVALID final trials at that load. loss_bound is the loss ratio that the valid final
    trials at that load exclude with 95 % confidence (exact Poisson bound, the worse direction).
    """

    loss_goal: float
    status: Status
    throughput_fps: float | None
    throughput_mbps: float | None
    line_rate_pct: float | None
    trials: int
    final_trial_s: float
    rfc2544: bool
    cpu_home_pct: float | None
    cpu_office_pct: float | None
    cpu_home_us_per_frame: float | None = None
    cpu_office_us_per_frame: float | None = None
    encryption: Encryption
    lower_fps: float | None = None  # highest rate shown to meet the goal
    upper_fps: float | None = None  # lowest rate shown to miss it
    offered_fps: float | None = None
    latency_us: Latency = Field(default_factory=Latency)
    final_trial: int | None = None
    void_finals: int = 0
    loss_bound: float | None = None
    words: str = ""
    reasons: list[str] = Field(default_factory=list)
    warnings: list[str] = Field(default_factory=list)
    rfc2544_deviations: list[str] = Field(default_factory=list)

    @property
    def is_at_limit(self) -> bool:
        """Whether its figure met the limit of the tester or of the search: the DUT may be faster."""
        return any(text.startswith((LIMITED_BY_TESTER, AT_MAXIMUM)) for text in self.warnings)

    @property
    def is_lower_bound(self) -> bool:
        """Whether the DUT may be faster than its figure, for whatever reason."""
        return self.status == "LOWER_BOUND" or self.is_at_limit

    @property
    def is_short(self) -> bool:
        """Whether its final trial was shorter than RFC 2544 24 wants; there may have been none."""
        # As measured: a trial of 60 s may have taken 59.99998.
        return self.final_trial is not None and round(self.final_trial_s, 2) < RFC2544_FINAL_TRIAL_S


class Quantity(Record):
    """One figure of a finding: of n measurements their mean, least, greatest and standard deviation.

    value is None where nothing was measured. stdev is that of the sample (n − 1); None for n = 1.
    """

    name: str
    unit: str
    value: float | None
    n: int = 1
    minimum: float | None = None
    maximum: float | None = None
    stdev: float | None = None


class Finding(CaseIdentity):
    """The answer of a test other than throughput for one case: a row of `results.csv`, figures in `findings.csv`.

    quantities[0] is what the test is about. curve is a table where the standard asks for one (frame loss against
    load), one mapping a row, alike in their keys. load_fps sums both directions. Status as in Outcome;
    without OK the quantities may be empty. paired: of a comparison at fixed loads, its arms and every pair of
    trials (docs/comparison.md).
    """

    status: Status
    load_fps: float | None
    quantities: list[Quantity]
    curve: list[dict[str, Any]] = Field(default_factory=list)
    trials: int
    rfc2544: bool
    encryption: Encryption
    words: str = ""
    reasons: list[str] = Field(default_factory=list)
    warnings: list[str] = Field(default_factory=list)
    rfc2544_deviations: list[str] = Field(default_factory=list)
    paired: dict[str, Any] = Field(default_factory=dict)

    @property
    def is_short(self) -> bool:
        """Whether its trials were shorter or fewer than the standard's clause on this test asks for."""
        return any(_SHORTER.match(text) for text in self.rfc2544_deviations)


class CaseEntry(CaseIdentity):
    """What identifies a case, as the manifest lists it.

    stack is what reports call it, stack_kind the stack itself (Home's and Office's where they differ:
    `strongswan+libreswan`); options are the plan's keys of that stack that are not defaults.
    """

    stack_kind: str = ""  # empty in run directories of before there were several
    options: dict[str, Any] = Field(default_factory=dict)
    tunnels: int = 1


class Calibration(Record):
    """The generator's own ceiling at one frame size: same kind of interfaces, no DUT, fps."""

    frame_size: int | str
    ip_version: int
    direction: Direction = "one-way"
    offered_fps: float
    received_fps: float
    path: str = ""
    note: str = ""


class Manifest(Record):
    """`manifest.json`: everything about a run that is not a trial or an outcome."""

    format: int
    espbench: str
    name: str
    started: str  # ISO 8601, UTC
    plan_path: str = ""  # where the plan was read: a profile's relative path starts beside it
    platform: str
    platform_reason: str
    topology: str
    line_rate_bps: float
    cases: list[CaseEntry]
    tools: dict[str, str] = Field(default_factory=dict)
    host: dict[str, Any] = Field(default_factory=dict)
    placement: dict[str, Any] = Field(default_factory=dict)
    queues: dict[str, str] = Field(default_factory=dict)
    calibration: list[Calibration] = Field(default_factory=list)
    contexts: dict[str, dict[str, Any]] = Field(default_factory=dict)  # id → Security Context
    context_of_case: dict[str, str] = Field(default_factory=dict)
    # Case → where its search began, for each loss goal, fps: a guess from the sizes measured before.
    search_hints: dict[str, list[float | None]] = Field(default_factory=dict)
    warnings: list[str] = Field(default_factory=list)
    resumed: list[str] = Field(default_factory=list)
    conditions: dict[str, Any] = Field(default_factory=dict)  # what must be equal to compare runs
    asked: dict[str, Any] = Field(
        default_factory=dict
    )  # the plan and what it names, every key: equal to resume
    compare: dict[str, Any] = Field(default_factory=dict)  # by, reference, seed; empty: no comparison
