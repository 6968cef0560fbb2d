# SPDX-License-Identifier: Apache-2.0
"""Defines the words of the standards as types: what a trial is, and what a record may say about it.

Every other part uses these records. Of the other parts this file imports only `sentences`, which words the reasons
and warnings. Frame sizes include the 4-byte FCS (RFC 2544 9). Rates are in frames per second unless a name says
otherwise.

The words of the whole project (RFC 1242, 2285, 2544), each with one meaning:

* device under test (DUT): the pair of gateways, or the single gateway, that is measured; a DUT profile describes it.
* gateway: Home or Office; a platform is where gateways run (namespaces, guests, boards, boxes).
* tester: this machine's traffic generator and its two ports, west and east; a path is how it sends and receives.
* test bed (Testbed, `bed`): a DUT between the tester's ports, as a platform builds it; it has no stack yet.
* test set-up (Setup, RFC 2544 6): a test bed with its stack up and the generator attached, ready for trials.
* case: one point of a plan, with everything that is fixed while one test runs; arm: one side of a comparison.
* trial: sending frames for a time at one load, and counting the frames that arrive (RFC 2544 24); a series: the
  trials of a test.
* intended load, offered load: the rate that was asked for, and the rate that was sent (RFC 2285 3.5); frames/s.
* frame loss: offered frames that did not return intact, for any reason; a loss goal is the ratio that a test allows.
* direction: west to east, or east to west; with a single gateway encryption, or decryption. In records,
  `way` is the direction of one figure. How frames reach the wire is the tester's path.
* baseline: the stack without IPsec (`plain`) or without cryptography (`null`), beside which a stack's cost is shown.
* base: the figures with which `espbench check` compares a plan: of an earlier run, or of the compare's reference.
  `espbench baseline` writes them into a base file, which has nothing to do with `plain`.
* bench: a machine of a cluster that measures a share of a run in real time (a benchmark, in `benchmarks/`, measures
  espbench itself).

docs/method.md defines the measured quantities, such as the throughput, for readers of results.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from espbench import sentences
from espbench.sentences import Code

# A single gateway, whose ESP peer is the tester, encrypts in one direction (west to east) and decrypts in the
# other.
Direction = Literal["one-way", "both-ways", "encryption", "decryption"]
OPERATIONS: tuple[Direction, ...] = ("encryption", "decryption")
Phase = Literal["search", "final", "measure"]  # measure: a trial of a test that is no search
# LOWER_BOUND: the throughput is at least this; no load above it could be judged. VIOLATED: frames crossed
# without encryption.
Status = Literal["OK", "LOWER_BOUND", "BELOW_MINIMUM", "INVALID", "UNRESOLVABLE", "VIOLATED"]
PAIRED = "fixed-load"  # the name of the test in a comparison at fixed loads
ARM_AT_FIXED_LOADS = re.compile(
    r"(.+)-at-([ab])"
)  # the case and the arm in the name that `at_fixed_loads` makes
AT_BASE_LOADS = "at-base-loads"  # the name of the test at the loads of a base (`espbench check`)
WITH_FIGURE: tuple[Status, ...] = ("OK", "LOWER_BOUND")
# If one repeat of a point has such a status, the median of the others is no figure of the point (for_median).
NO_MEDIAN: tuple[Status, ...] = ("VIOLATED", "BELOW_MINIMUM")
Validity = Literal["VALID", "INVALID"]
Encryption = Literal["proven", "not proven", "baseline"]
Better = Literal["more", "less"]

# A key of Trial.host: the mean speed of the gateways' CPUs, in % of their full speed.
GATEWAY_SPEED = "gateway_speed_pct"
# Below this share of their full speed, the gateways' CPUs are called slow beside a figure, %. On a machine with quiet
# neighbours they have 92 to 97 %.
SLOW_PCT = 90.0
LEAST_GATEWAY_SPEED = "gateway_speed_least_pct"
# A key of Trial.host: that full speed as it was known then, in a unit of its own. It can rise during a run: a neighbour
# may slow the CPUs from the beginning, and go later.
FULL_GATEWAY_SPEED = "gateway_speed_full_per_ms"
# Two more, about the first 1000 s of a trial: the share of the sending time in which one of these CPUs was clearly
# slower than in the rest, %, and the share of the lost frames that were lost meanwhile, %. Both include 10 ms before
# and after each slow time.
SLOW_TIME = "gateways_slow_pct_of_time"
LOST_WHILE_SLOW = "lost_while_slow_pct"
# These are keys of Trial.host in virtual time. SAME_EACH_TIME: the trial would have the same figures if it
# were made again. SAME_AS_TRIAL: the sequence of the case's trial that was executed in place of this one.
SAME_EACH_TIME = "same_each_time"
SAME_AS_TRIAL = "same_as_trial"

# A key of Trial.measured in trials of an outage: by direction, which share of the frames that were sent in the last
# twentieth of the trial arrived; None: not known.
ARRIVED_AT_THE_END = "arrived_at_the_end"

FCS_BYTES = 4
CACHE_LINE_BYTES = 32  # of the e500 and the e300 cores
# A key of Trial.proof: what the tester, as the ESP peer of a single gateway, found in the packets that it opened.
# Keys of a Security Context that one module writes and another looks for. Reports show them as they are.
SHOWN_BEFORE = "shown before the first trial"
LIBRARIES_OF_HOST = "libraries of this machine"  # that the user's own daemons need
KERNEL_CONFIGURATION = "configuration of the kernel"  # of the user's own kernel
OPENED_BY_TESTER = "opened by the tester"
goal_name = sentences.goal_name
PREAMBLE_AND_GAP_BYTES = 20
RFC2544_FINAL_TRIAL_S = 60.0  # RFC 2544 24
_AGAIN = re.compile(r"-\d+$")
# These reasons mean that the host disturbed the trial, so it says nothing about the DUT.
_OF_HOST = {
    Code.HOST_STALL,
    Code.HOST_STALL_IN_OUTAGE,
    Code.HOST_STALL_OF_LOSS,
    Code.HOST_STALL_AT_THE_END,
    Code.HOST_STARVATION,
    Code.HOST_SLOW,
    Code.HOST_UNEVEN,
    Code.SENDER_STARVED,
    Code.EARLIER_HOST,
}
# These remarks mean that the figure is a limit of the tester or the search, not of the DUT.
_LIMITS = {Code.TESTER_LIMITED, Code.AT_MAXIMUM, Code.EARLIER_LIMIT}
_MAY_BE_HIGHER = {Code.SLOW_MISS, Code.SLOW_LOSSES}
# These deviations mean that less was measured than the clause on the test asks for (24, 26.x). Deviations in
# frame sizes or in the waits around a trial are not among them.
_SHORTER = {
    Code.SHORT_FINAL_TRIALS,
    Code.SHORT_TRIALS,
    Code.SHORT_TRIAL,
    Code.SHORT_STREAMS,
    Code.EARLY_TAGS,
    Code.FEW_REPEATS,
    Code.SHORT_OVERLOAD,
    Code.FEW_SEARCHES,
    Code.SHORT_BURSTS,
    Code.SHORT_DEPLETION,
    Code.COARSE_STEPS,
    Code.EARLIER_SHORT,
}


def loaded_directions(direction: Direction) -> int:
    """Return the number of directions that are loaded at once: 1 or 2."""
    return 2 if direction == "both-ways" else 1


def line_rate_fps(frame_size: float, bits_per_second: float) -> float:
    """Return the theoretical frame rate of an Ethernet link (RFC 2544 20), frames/s, with preamble and gap for each
    frame.
    """
    return bits_per_second / (8 * (frame_size + PREAMBLE_AND_GAP_BYTES))


def kind_of_test(test: str) -> str:
    """Return the kind of a test: `latency` for `latency-2`, the second latency test of a plan."""
    return _AGAIN.sub("", test)


def at_fixed_loads(case: str, arm: str = "") -> str:
    """Return the name of a comparison at fixed loads, by its arm b's case; with `arm` ("a", "b") that of its trials."""
    return f"{case}-at-{arm}" if arm else f"{case}-at"


def within_goal(frames: int, lost: int, goal: float) -> bool:
    """Return whether one direction lost no more of its frames than a loss goal allows."""
    return lost <= 0 or (frames > 0 and lost / frames <= goal)


def layer2_mbps(fps: float, frame_size: float) -> float:
    """Return the Mbit/s of frames without preamble and gap, the unit of the articles that espbench reproduces."""
    return fps * frame_size * 8 / 1e6


class Record(BaseModel):
    """Base of everything that is written to a run directory."""

    # NaN and infinity stay numbers, so that writing them is refused (results/durable.py).
    model_config = ConfigDict(extra="allow", frozen=True, ser_json_inf_nan="constants")


class Statement(Record):
    """A statement of a record: a code and its values. People read `text`; the program uses the code and the values.

    Values are plain JSON: numbers, text, lists, and other statements as mappings with `code` and `values`.
    """

    code: str
    values: dict[str, Any] = Field(default_factory=dict)

    @classmethod
    def of(cls, code: Code, **values: Any) -> Self:
        """Return the statement with this code and these values; a value may be a statement or a list of statements."""
        return cls(code=code.value, values={name: _plain(value) for name, value in values.items()})

    @classmethod
    def of_text(cls, text: object) -> Self:
        """Return a statement that consists of a text which espbench did not write, or whose kind the program need
        not know.
        """
        return cls.of(Code.NOTE, text=str(text))

    @model_validator(mode="before")
    @classmethod
    def _of_text(cls, data: Any) -> Any:
        return {"code": Code.NOTE.value, "values": {"text": data}} if isinstance(data, str) else data

    @property
    def text(self) -> str:
        """The statement as a sentence."""
        return sentences.text(self.code, self.values)

    def __str__(self) -> str:
        return self.text

    def __hash__(self) -> int:
        return hash((self.code, json.dumps(self.values, sort_keys=True, default=str)))


class Reason(Statement):
    """A reason why a trial is INVALID or not sustained, or why a result has no figure or only a bound."""

    @property
    def of_host(self) -> bool:
        """True if the host, or other programs on it, disturbed the trial."""
        return self.code in _OF_HOST


class Remark(Statement):
    """A remark that a reader of a figure must know; an entry of `warnings`."""

    @property
    def is_limit(self) -> bool:
        """True if the figure is a limit of the tester or of the search."""
        return self.code in _LIMITS


class Deviation(Statement):
    """A clause of a standard that was not kept; wanted and got are values in the clause's unit, None if they are not
    numbers.
    """

    clause: str = ""
    wanted: float | None = None
    got: float | None = None

    @classmethod
    def from_clause(
        cls, code: Code, clause: str, wanted: float | None = None, got: float | None = None, **values: Any
    ) -> Self:
        """Return the deviation from this clause."""
        return cls(code=code.value, clause=clause, wanted=wanted, got=got, values=values)

    @property
    def text(self) -> str:
        return sentences.text(
            self.code, self.values | {"clause": self.clause, "wanted": self.wanted, "got": self.got}
        )

    @property
    def is_short(self) -> bool:
        """True if less was measured than the clause on the test asks for."""
        return self.code in _SHORTER


def _plain(value: Any) -> Any:
    """Return a value as plain JSON, so that a statement that was written and read again is equal to the original."""
    if isinstance(value, Statement):
        return {"code": value.code, "values": value.values}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def problems_recorded(problems: Sequence[Reason]) -> dict[str, Any]:
    """Return the keys of a trial's `proof` that say why encryption is not proven: as text, and as codes with values."""
    codes = {"problem_codes": [_plain(problem) for problem in problems]} if problems else {}
    return {"problems": [problem.text for problem in problems], **codes}


def problems_of(proof: Mapping[str, Any]) -> list[Reason]:
    """Return the problems that `problems_recorded` put into a `proof`. Records of earlier versions only have their
    texts.
    """
    if "problem_codes" in proof:
        return [Reason.model_validate(problem) for problem in proof["problem_codes"]]
    return [Reason.of(Code.PROOF_PROBLEM, text=text) for text in proof.get("problems", [])]


# Each key has texts for people; the key to which it maps has their codes and values, for the program.
CODES = {"reasons": "reason_codes", "warnings": "warning_codes", "rfc2544_deviations": "deviation_codes"}


class Telling(Record):
    """A record with statements. JSON has their texts and, in other keys, their codes and values; only the latter are
    read.

    Records of format 1 only have the texts (results/format_1.py).
    """

    @model_validator(mode="before")
    @classmethod
    def _codes_alone(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        record = dict(data)
        for texts, codes in CODES.items():
            if codes in record:
                record[texts] = record.pop(codes)
        return record

    @model_serializer(mode="wrap")
    def _texts_and_codes(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        record: dict[str, Any] = {}
        for key, value in handler(self).items():
            if key in CODES:
                record |= {key: [item.text for item in getattr(self, key)], CODES[key]: value}
            else:
                record[key] = value
        return record


class Counted(Record):
    """A record with tx_frames, rx_frames and lost; lost is always tx_frames - rx_frames.

    A damaged frame is not received (RFC 2544 10), so it is lost (26.3). Records of earlier versions did not count
    such frames in `lost`; when they are read, `lost` becomes the difference.
    """

    @model_validator(mode="before")
    @classmethod
    def _lost_is_the_difference(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        tx, rx = data.get("tx_frames"), data.get("rx_frames")
        return data | {"lost": tx - rx} if isinstance(tx, int) and isinstance(rx, int) else data


class Latency(Record):
    """The latencies of one trial's frames, µs; `hdr` is the HDR histogram (V2, deflate, base64)."""

    min: float | None = None
    mean: float | None = None
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None
    p999: float | None = None
    max: float | None = None
    hdr: str | None = None


class GatewayReading(Record):
    """The readings of one gateway over exactly one trial; None = cannot be read on this platform.

    cpu_ns is the CPU time that the gateway used, frames the number of frames that it handled meanwhile;
    cpu_us_per_frame is their ratio, rounded.
    """

    cpu_pct: float | None = None
    cpu_us_per_frame: float | None = None
    cpu_ns: int | None = None
    frames: int | None = None
    instructions_per_frame: float | None = None  # in virtual time
    encrypted_frames: int | None = None
    decrypted_frames: int | None = None
    xfrm_errors: dict[str, int] = Field(default_factory=dict)


class DirectionReading(Counted):
    """One direction of a trial (`west-east` or `east-west`); frame counts are defined as in `Trial`. None: not
    measured.
    """

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
    tagged_us: float | None = None  # latency of the tagged frame, if there was one and it arrived
    first_lost_s: float | None = None  # when the first lost frame was sent, from the first frame sent
    last_lost_s: float | None = None
    first_rx_s: float | None = None  # the time when the first frame arrived, from the first frame sent
    longest_gap_s: tuple[float, float] | None = None  # the last arrival before the gap, the first one after
    departure_fps: float | None = None  # the rate at which the frames really left, first to last
    highest_fps: float | None = None  # the DUT received no frames faster than this (Trial.highest_fps)


class Trial(Counted, Telling):
    """One line of `trials.jsonl`.

    rx_frames counts frames received intact, each once; lost = tx_frames - rx_frames, so that a damaged frame is lost
    (RFC 2544 10, 26.3); corrupted counts frames that arrived damaged; frame_loss_ratio = lost / tx_frames. Rates and
    frame counts are sums over both directions. `reasons` says why a trial is INVALID or, if it is valid, why it
    fails a goal although it lost little enough (Code.STORED). `loss_at` counts the lost frames by the place of
    their loss (`sentences.Place`). Counts that the generator cannot measure are None and named in `not_measured`;
    `warnings` apply to every figure taken from the trial. `measured` has further measurements of some tests (a
    burst's length, the actions on a gateway and their times). `waits_s` are the waits of the trial, None where it
    needed none; empty in older records, which did not have them.
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
    sustained: bool = True  # False: part of the rate was stored in a queue, not forwarded
    validity: Validity
    reasons: list[Reason] = Field(default_factory=list)
    loss_at: dict[str, int] = Field(default_factory=dict)
    latency_us: Latency = Field(default_factory=Latency)
    per_direction: dict[str, DirectionReading] = Field(default_factory=dict)
    gateways: dict[str, GatewayReading] = Field(default_factory=dict)
    proof: dict[str, Any] = Field(default_factory=dict)
    warnings: list[Remark] = Field(default_factory=list)
    not_measured: list[str] = Field(default_factory=list)
    measured: dict[str, Any] = Field(default_factory=dict)
    waits_s: dict[str, float | None] = Field(default_factory=dict)  # learning, residue, settle (RFC 2544 23)
    host: dict[str, Any] = Field(default_factory=dict)

    @property
    def problems(self) -> list[Reason]:
        """The reasons why encryption is not proven for each frame that crossed."""
        return problems_of(self.proof)

    @property
    def violated(self) -> bool:
        """True if frames crossed without encryption. Then no later trial makes the case valid."""
        return bool(self.proof.get("violated"))

    @property
    def highest_fps(self) -> float:
        """The highest rate at which the DUT may have received the frames, frames/s. A miss is evidence for this
        load.

        A pass is evidence for the mean, even_fps. They differ if a sender paused or fell behind, or if one
        direction ended before the other (measure/highest_rate.py). For older records it is the intended rate, or the
        offered rate if that is higher: no DUT received more.
        """
        each = [
            max(d.intended_fps, d.offered_fps) if d.highest_fps is None else d.highest_fps
            for d in self.per_direction.values()
        ]
        return max(sum(each) if each else self.intended_fps, self.offered_fps)

    @property
    def even_frames(self) -> int:
        """The number of directions times the frames of the direction that sent fewest; in records without directions
        all frames sent.
        """
        sent = [d.tx_frames for d in self.per_direction.values()]
        return len(sent) * min(sent) if sent else self.tx_frames

    @property
    def even_fps(self) -> float:
        """The offered load of which each direction carried its part, frames/s. A pass is evidence for this load.

        It is offered_fps, unless one direction sent fewer frames than the other.
        """
        return self.offered_fps * (self.even_frames / self.tx_frames if self.tx_frames else 1.0)

    def meets(self, goal: float) -> bool:
        """Return whether no direction lost more than the goal allows, and the rest was forwarded and not stored in a
        queue.

        The record's counts are taken as they are. Whether the frames suffice for a verdict, and whether a stall of
        the host excuses a loss, is decided where another trial can be requested (search/goals.py).
        """
        return self.sustained and self.loses_within(goal)

    def loses_within(self, goal: float) -> bool:
        """Return whether no direction lost more than the goal allows."""
        counts: Iterable[Trial | DirectionReading] = self.per_direction.values() or (self,)
        return all(within_goal(c.tx_frames, c.lost, goal) for c in counts)

    @property
    def only_in_stalls(self) -> bool:
        """True if a search's valid trial lost frames, or stored them in a queue, only while host or sender stood still.
        Such a trial is no miss; if it lost too many frames for the goal, it is repeated.
        """
        if self.validity == "INVALID" or self.phase == "measure":
            return False
        lost = [max(0, d.lost) for d in self.per_direction.values()]
        excused = self.host.get("lost_in_stalls_by_direction") or [0] * len(lost)
        if any(one > within for one, within in zip(lost, excused, strict=True)):
            return False
        return sum(lost) > 0 if self.sustained else bool(self.host.get("backlog_in_stalls"))

    @property
    def disturbed(self) -> bool:
        """True if the trial is INVALID only because of the host, so that its counts are right."""
        return bool(self.host.get("disturbed"))


class CaseIdentity(Record):
    """Identifies a point of the plan; frame_size is a number, or the name of a mix of sizes."""

    case: str
    test: str
    dut: str
    stack: str
    suite: str
    ip_version: int
    frame_size: int | str
    direction: Direction
    repeat: int


class Outcome(CaseIdentity, Telling):
    """The answer for one case and one loss goal: one row of `results.csv`.

    Throughput is None unless status is OK, or LOWER_BOUND, where it is the bound. `words` is the answer as a
    sentence, `answer` its code and values. Rates are sums over both directions. `final_trial` is the `sequence` of
    the trial from which the figures are taken; CPU, instructions and latency are None if that trial is INVALID.
    void_finals counts the final trials at that load that say nothing: INVALID ones, and those whose loss lay in
    stalls. loss_bound is the loss ratio that the trials behind the figure exclude with 95 % confidence (exact
    Poisson bound, the worse direction).
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
    instructions_home_per_frame: float | None = None
    instructions_office_per_frame: float | None = None
    encryption: Encryption
    lower_fps: float | None = None  # highest rate shown to meet the goal
    upper_fps: float | None = None  # lowest rate shown to miss it
    offered_fps: float | None = None
    latency_us: Latency = Field(default_factory=Latency)
    final_trial: int | None = None
    void_finals: int = 0
    loss_bound: float | None = None
    cpu_speed_pct: float | None = None  # of the gateways' CPUs in the final trial, % of their full speed
    words: str = ""
    answer: Statement | None = None  # of `words`; None if only people read it
    reasons: list[Reason] = Field(default_factory=list)
    warnings: list[Remark] = Field(default_factory=list)
    rfc2544_deviations: list[Deviation] = Field(default_factory=list)

    @property
    def is_at_limit(self) -> bool:
        """True if the figure is a limit of the tester or of the search: the DUT may be faster."""
        return any(remark.is_limit for remark in self.warnings)

    @property
    def is_capped(self) -> bool:
        """True if the tester or the search limits the figure, or the loads above it could not be judged."""
        return self.status == "LOWER_BOUND" or self.is_at_limit

    @property
    def is_lower_bound(self) -> bool:
        """True if the DUT may be faster than this figure for any reason that is known, slow CPUs included."""
        return self.is_capped or any(remark.code in _MAY_BE_HIGHER for remark in self.warnings)

    @property
    def is_short(self) -> bool:
        """True if the final trial was shorter than RFC 2544 24 asks for; False without a final trial."""
        # The duration is the measured one: a trial of 60 s may have taken 59.99998 s.
        return self.final_trial is not None and round(self.final_trial_s, 2) < RFC2544_FINAL_TRIAL_S


def for_median(repeats: Sequence[Outcome]) -> list[Outcome]:
    """Return the repeats of one point whose median is a figure of the point; none if one is VIOLATED or
    BELOW_MINIMUM.

    A repeat below the minimum has no number, but it is the slowest: the median of the others would be too high.
    """
    if any(o.status in NO_MEDIAN for o in repeats):
        return []
    return [o for o in repeats if o.status in WITH_FIGURE]


class Quantity(Record):
    """One figure of a finding: the mean, least, greatest and standard deviation of n measurements.

    key identifies the quantity (quantities.py), `label` is its text for people, `name` the label with the direction.
    better: whether more or less is better; None if neither is. way: the direction of the quantity, `west-east` or
    `east-west`; empty: all directions. value is None if nothing was measured. stdev is that of the sample (n − 1);
    None for n = 1.
    """

    key: str = ""
    name: str
    label: str = ""
    way: str = ""
    better: Better | None = None
    unit: str
    value: float | None
    n: int = 1
    minimum: float | None = None
    maximum: float | None = None
    stdev: float | None = None

    @model_validator(mode="before")
    @classmethod
    def _named(cls, data: Any) -> Any:
        """Use the name as the key and the label of a quantity that has only a name."""
        if not isinstance(data, Mapping) or "name" not in data:
            return data
        return {**data, "key": data.get("key") or data["name"], "label": data.get("label") or data["name"]}


class Finding(CaseIdentity, Telling):
    """The answer of a test other than throughput for one case: a row of `results.csv`, with its figures in
    `findings.csv`.

    quantities[0] is the main result of the test. curve is a table where the standard asks for one (frame loss
    against load): one mapping for each row, all with the same keys. load_fps is the sum over both directions. Status
    is as in Outcome; unless it is OK, the quantities may be empty. paired: for a comparison at fixed loads, its arms
    and every pair of trials (docs/comparison.md).
    """

    status: Status
    load_fps: float | None
    quantities: list[Quantity]
    curve: list[dict[str, Any]] = Field(default_factory=list)
    trials: int
    rfc2544: bool
    encryption: Encryption
    words: str = ""
    answer: Statement | None = None  # of `words`; None if only people read it
    reasons: list[Reason] = Field(default_factory=list)
    warnings: list[Remark] = Field(default_factory=list)
    rfc2544_deviations: list[Deviation] = Field(default_factory=list)
    paired: dict[str, Any] = Field(default_factory=dict)

    @property
    def is_short(self) -> bool:
        """True if the trials were shorter or fewer than the standard's clause on this test asks for."""
        return any(deviation.is_short for deviation in self.rfc2544_deviations)


class CaseEntry(CaseIdentity):
    """The facts that identify a case in the manifest.

    stack is its name in reports, stack_kind the stack itself (Home's and Office's if they differ:
    `strongswan+libreswan`); options are the plan's keys of that stack that are not defaults.
    """

    stack_kind: str = ""  # empty in older run directories, which had one kind only
    options: dict[str, Any] = Field(default_factory=dict)
    tunnels: int = 1


class Calibration(Record):
    """The generator's own ceiling at one frame size, measured on the same kind of interfaces without a DUT,
    frames/s.
    """

    frame_size: int | str
    ip_version: int
    direction: Direction = "one-way"
    offered_fps: float
    received_fps: float
    path: str = ""
    note: str = ""
    machine: str = ""  # as of Manifest.machines; empty where all cases were made on one


class BaseLoad(Record):
    """A load at which `espbench check` measures, frames/s: the base's throughput for this loss goal.

    duration_s is the length of the trial. floor_fps is the load to try if the first one misses the goal: the least
    throughput that the check's limit allows.
    """

    goal: float
    load_fps: float
    duration_s: float
    floor_fps: float


MACHINE = "machine"  # the key of Manifest.host that identifies the machine
# If one of these values of Manifest.host changes, the machine is no longer the same: its generator has another ceiling.
OF_SAME_MACHINE = ("cpu", "kernel", "cpus usable")
# Tables of the manifest of which each entry of Manifest.machines has its own; the manifest has what all share.
OF_EACH_MACHINE = ("host", "tools", "placement", "queues")


class Manifest(Record):
    """`manifest.json`: everything about a run that is not a trial or an outcome."""

    format: int
    espbench: str  # the version of espbench
    code: dict[str, str] = Field(default_factory=dict)  # identifies the code of that espbench (own_code.py)
    name: str
    started: str  # ISO 8601, UTC
    plan_path: str = ""  # the plan that was read: relative paths of profiles start beside it
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
    # Case → the load at which its search began, for each loss goal, frames/s: a guess from sizes measured
    # before.
    search_hints: dict[str, list[float | None]] = Field(default_factory=dict)
    warnings: list[str] = Field(default_factory=list)
    resumed: list[str] = Field(default_factory=list)
    conditions: dict[str, Any] = Field(default_factory=dict)  # these must be equal to compare runs
    asked: dict[str, Any] = Field(
        default_factory=dict
    )  # every key of the plan and of what it names; these must be equal to resume a run
    compare: dict[str, Any] = Field(default_factory=dict)  # by, reference, seed, at; empty: no comparison
    # A run in real time on a cluster has each machine that measured, and case → machine; others have None and {}.
    machines: dict[str, dict[str, Any]] | None = None
    machine_of_case: dict[str, str] = Field(default_factory=dict)
    # Case → the loads of a base, which replace its test; empty unless `espbench check` made the run.
    base_loads: dict[str, list[BaseLoad]] = Field(default_factory=dict)
    finished: bool | None = None  # whether all that the plan asks for was tried; None in older runs

    @field_validator("code")
    @classmethod
    def _changes_apart(cls, code: dict[str, str]) -> dict[str, str]:
        """Read code that was recorded before `changed` had its own key: it then followed the commit."""
        commit, _, changed = code.get("commit", "").partition(" ")
        return {**code, "commit": commit, "changed": "yes"} if changed else code

    def machine_of(self, case: str) -> str:
        """Return the machine that measured a case; empty where that is not known, or does not matter (virtual time)."""
        if self.is_virtual:
            return ""
        return self.machine_of_case.get(case, "") or str(self.host.get(MACHINE, ""))

    @property
    def is_virtual(self) -> bool:
        """True if the gateways of all DUTs of the run are in virtual time, where clocks count instructions."""
        profiles = self.conditions.get("profiles")
        if not isinstance(profiles, Mapping):  # anything may be in a manifest that was edited
            return False
        duts = {entry.dut for entry in self.cases} or set(profiles)  # a driver-level test has no cases
        return bool(duts) and all(_counts_instructions(profiles.get(dut, {})) for dut in duts)

    @property
    def made_by(self) -> str:
        """The version of espbench that measured: `0.1.0, commit 0123456789ab, code 0123456789abcdef`; old runs: the
        version.
        """
        changed = " with changes" if "changed" in self.code else ""
        commit = f"commit {self.code['commit'][:12]}{changed}" if "commit" in self.code else ""
        code = f"code {self.code['code']}" if "code" in self.code else ""
        return ", ".join(filter(None, [self.espbench, commit, code]))


def _counts_instructions(profile: object) -> bool:
    """Return whether a DUT profile sets the time of an instruction, and so describes gateways in virtual time."""
    return isinstance(profile, Mapping) and (
        "ns_per_instruction" in profile or any(_counts_instructions(inner) for inner in profile.values())
    )
