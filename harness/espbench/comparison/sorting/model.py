# SPDX-License-Identifier: Apache-2.0
"""Defines a comparison: arms, curves with intervals, ratios with verdicts, overheads, words.

A is always the reference arm, B the other; a ratio is B / A, so above 1 means B is faster.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from espbench.terms import Status

Axis = Literal["stack", "suite", "dut", "kernel", "version", "frame_size", "run"]
# The part of a run's records that a condition is in. The key of a kind, a version or options is the stack's label.
Part = Literal[
    "espbench", "platform", "topology", "line rate", "host", "placement", "queues", "tools", "guests", "profile",
    "settings", "final trial", "kind", "version", "options", "kernel",
]  # fmt: skip
# `no difference shown` is a finding of enough repeats; `no verdict` says there was too little to judge by.
Word = Literal["A faster", "B faster", "no difference shown", "no verdict"]


class Name(StrEnum):
    """A condition that a panel holds fixed or has along x, by its name in titles and in comparison.json."""

    TEST = "test"
    DUT = "DUT"
    STACK = "stack"
    SUITE = "suite"
    DIRECTION = "direction"
    IP_VERSION = "IP version"
    LOSS_GOAL = "loss goal"
    FRAME_SIZE = "frame size"


IP_VERSIONS = {4: "IPv4", 6: "IPv6"}


@dataclass(frozen=True)
class Estimate:
    """A mean over repeats and its confidence interval, in the unit of what is estimated.

    If there is only one repeat (`n` is 1), there is no interval: low and high equal value, and nothing is concluded.
    """

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Arm:
    """One of the compared configurations: its value on the axis, and the versions that its gateways reported."""

    name: str
    # such as `strongSwan 5.9.8, Linux 6.1.176; tunnels=100`; versions are read back, not taken from the plan
    detail: str = ""


@dataclass(frozen=True)
class ArmPoint:
    """One arm at one point: its throughput (frames/s, both directions summed) over the repeats.

    fps is None if no repeat has a figure, if one is VIOLATED, or if one is BELOW_MINIMUM: then the others alone would
    say too much. statuses is the number of repeats by status.
    cpu_home_us and cpu_office_us are µs of CPU per frame at the throughput; cpu_us is their sum, if both are known.
    """

    fps: Estimate | None
    mbps: Estimate | None
    statuses: dict[Status, int]
    cpu_home_us: Estimate | None = None
    cpu_office_us: Estimate | None = None
    cpu_us: Estimate | None = None
    proven: bool = True  # False: some figure is of boxes whose encryption is not proven
    at_least: bool = False  # fps is a lower bound: some repeat's figure is one
    instructions_home: Estimate | None = None  # per frame, in virtual time
    instructions_office: Estimate | None = None
    slowed: bool = (
        False  # fps is a lower bound because slow CPUs may have lowered it, at another time than other arms
    )


@dataclass(frozen=True)
class PointVerdict:
    """A against B at one point.

    ratio is B / A; its interval holds together with those of all points of the family, and includes the resolution of
    the search. It is None if an arm has no figure. why says in words on which repeats the verdict is based, or why
    none was possible. bound_by says why B / A is only a bound: a figure is a lower bound (limit), or an arm missed the
    goal even at the minimum load (minimum).
    """

    x: int | str  # frame size; a suite or a stack if frame sizes are the axis
    ratio: Estimate | None
    word: Word
    why: str
    cpu_ratio: Estimate | None = None  # of cpu_us, B / A; interval of this point alone, not used by verdicts
    # If one figure is only a bound, ratio is None and one of these is the bound of B / A. It holds together with the
    # intervals of all other verdicts.
    at_least: float | None = None
    at_most: float | None = None
    bound_by: Literal["", "limit", "minimum"] = ""


@dataclass(frozen=True)
class PairVerdicts:
    """B against the reference A over the points of one panel, in the order of x."""

    a: str
    b: str
    points: list[PointVerdict]
    words: str  # a few sentences: who, where, by how much, crossovers, at what CPU cost
    paired: bool = False  # whether repeats were compared in pairs


@dataclass(frozen=True)
class Panel:
    """The points that share every condition except the axis and x: one chart and one table of a report.

    conditions are those that are fixed here, in words, for the title (such as suite: aes128gcm16, direction: one-way,
    loss goal: 0 %). Conditions that are the same in every panel are in Comparison.common instead.
    """

    conditions: dict[str, str]
    loss_goal: float
    x_name: Name  # FRAME_SIZE, unless frame sizes are the axis
    x: list[int | str]
    curves: dict[str, dict[int | str, ArmPoint]]  # arm name → x → point; baselines too, by their stack's name
    pairs: list[PairVerdicts]
    baselines: list[str] = field(default_factory=list)  # of the curves: `plain`, `null`


@dataclass(frozen=True)
class FixedLoad:
    """Both arms at one load (a share of the slower arm's throughput): CPU per frame and frame loss.

    cpu is B / A with the interval of this load alone; cpu_a_us and cpu_b_us are medians, µs per frame; loss_a and
    loss_b are mean loss ratios. speeds_pct: the least and the greatest speed of the gateways' CPUs in these trials, in
    % of their full speed; None if no speed is known. On slow CPUs, a frame costs more and more frames are lost.
    """

    share: float
    fps: float
    cpu: Estimate | None
    cpu_a_us: float | None
    cpu_b_us: float | None
    loss_a: float | None
    loss_b: float | None
    pairs: int
    speeds_pct: tuple[float, float] | None = None


@dataclass(frozen=True)
class FixedLoadVerdict:
    """A against B at one point, by trials at the same loads (paired_ratios.py).

    cpu and throughput are ratios B / A with intervals that hold together over all points; None: there is no verdict.
    If one arm met the highest load, throughput is None, and at_least or at_most is the bound of B / A.
    """

    conditions: dict[str, str]
    x: int | str
    a: str
    b: str
    cpu: Estimate | None
    cpu_word: Literal["B costs less", "B costs more", "no difference shown", "no verdict"]
    throughput: Estimate | None
    word: Word
    loads: list[FixedLoad]
    pairs: int
    void: int  # trials that were left out with their pairs
    trials: int
    rounds: int
    together: bool  # False: one arm's gateways ran after the other's
    why: str
    loss_goal: float | None = None  # that a load of the ladder met to count as passed; None in older runs
    proven: bool = True  # False: the trials may have been of cleartext
    at_least: float | None = None
    at_most: float | None = None


@dataclass(frozen=True)
class Overhead:
    """The cost of one arm beside a baseline at one point (the seed articles' `3.2x`).

    slowdown is baseline fps / arm fps. If one of them is a bound, it is None, and at_least or at_most has what is
    known. extra_us is the CPU time per frame (Home + Office, µs) above the baseline's; extra_cycles is the same in
    cycles at Comparison.cpu_mhz. Intervals are of this point alone; with fewer than three repeats there is none (`n` is
    1).
    """

    panel: int  # index into Comparison.panels
    arm: str
    baseline: str  # `plain` or `null`
    x: int | str
    slowdown: Estimate | None
    extra_us: Estimate | None
    extra_cycles: float | None = None
    at_least: float | None = None
    at_most: float | None = None


@dataclass(frozen=True)
class Condition:
    """A condition that must be equal to compare runs: a part of the records, and a key in it (empty: the whole part).

    title is the condition for people; the program never reads it.
    """

    part: Part
    key: str
    title: str

    def is_within(self, part: Part, key: str = "") -> bool:
        """Return whether the condition is in this part, and has this key or one below it (empty: any key)."""
        return self.part == part and (key in ("", self.key) or self.key.startswith(f"{key}."))


@dataclass(frozen=True)
class Difference:
    """A condition that differs between the runs."""

    what: str  # for people
    values: dict[str, str]  # run → its value
    condition: Condition | None = None


@dataclass(frozen=True)
class Comparison:
    """Everything a comparison report shows."""

    axis: Axis
    arms: list[Arm]  # the reference first
    confidence: float  # such as 0.95, simultaneous over `family` verdicts
    family: int
    method: str  # in words: which pairs by paired t or Welch, interval, resolution, multiplicity, order
    runs: list[str]  # paths or names of the runs compared
    common: dict[str, str]  # conditions that all panels share
    panels: list[Panel]
    overheads: list[Overhead]
    words: list[str]  # the summary, for readers who read nothing else
    differences: list[Difference] = field(default_factory=list)  # not of the axis; allowed by the user
    warnings: list[str] = field(default_factory=list)
    is_virtual: bool = False  # of runs in virtual time
    is_short: bool = False  # some final trial was shorter than RFC 2544 24 wants
    seed: int | None = None  # of the order; None where no pair was measured in turns
    facts: dict[str, str] = field(default_factory=dict)  # of the machine: platform, CPU, kernels
    cpu_mhz: float | None = None  # as read at the start of the runs; a CPU's clock may change
    fixed_loads: list[FixedLoadVerdict] = field(default_factory=list)
