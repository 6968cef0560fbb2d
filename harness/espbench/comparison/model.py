# SPDX-License-Identifier: Apache-2.0
"""What a comparison holds: arms, curves with intervals, ratios with verdicts, overheads, words.

A is always the reference arm, B the other; a ratio is B / A, so above 1 means B is faster.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from espbench.terms import Status

Axis = Literal["stack", "suite", "dut", "kernel", "version", "frame_size", "run"]
Word = Literal["A faster", "B faster", "no difference shown"]


@dataclass(frozen=True)
class Estimate:
    """A mean over repeats and its confidence interval, in the unit of what is estimated.

    low and high equal value where one repeat alone gives no interval (`n` 1): then nothing is concluded.
    """

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Arm:
    """One of the things compared: its value on the axis, and what the gateways said they run."""

    name: str
    detail: str = ""  # such as `strongSwan 5.9.8, Linux 6.1.176`; read back, not the plan's


@dataclass(frozen=True)
class ArmPoint:
    """One arm at one point: its throughput (frames/s, both directions summed) over the repeats.

    statuses counts every repeat by its status; fps is None where no repeat is OK. cpu_us is µs of
    CPU per frame at the throughput, of Home, Office, and their sum (where both are known).
    """

    fps: Estimate | None
    mbps: Estimate | None
    statuses: dict[Status, int]
    cpu_home_us: Estimate | None = None
    cpu_office_us: Estimate | None = None
    cpu_us: Estimate | None = None
    proven: bool = True  # False: some figure is of boxes whose encryption is not proven
    at_least: bool = False  # fps is a lower bound: some repeat met the limit of the tester or of the search


@dataclass(frozen=True)
class PointVerdict:
    """A against B at one point.

    ratio is B / A with its simultaneous interval (together over all points of the family, the
    resolution of the search included); None where one of them has no figure. why says in words
    what the verdict rests on, or why none was possible.
    """

    x: int | str  # frame size, or what stands in its place when that is the axis
    ratio: Estimate | None
    word: Word
    why: str
    cpu_ratio: Estimate | None = None  # of cpu_us, B / A; per-point interval, no verdict rests on it
    # Where one figure is only a lower bound (ArmPoint.at_least), ratio is None and one of these is what is
    # known of B / A, as simultaneous as the ratio would be.
    at_least: float | None = None
    at_most: float | None = None


@dataclass(frozen=True)
class PairVerdicts:
    """B against the reference A over the points of one panel, in the order of x."""

    a: str
    b: str
    points: list[PointVerdict]
    words: str  # one or two sentences: who, where, by how much, crossovers


@dataclass(frozen=True)
class Panel:
    """All that shares every condition but the axis and x: one picture, one table.

    conditions are what is fixed here (such as suite: aes128gcm16, direction: one-way, loss goal: 0 %),
    in words, for its title; where they are the same in every panel they stand in Comparison.common.
    """

    conditions: dict[str, str]
    loss_goal: float
    x_name: str  # `frame size` unless that is the axis
    x: list[int | str]
    curves: dict[str, dict[int | str, ArmPoint]]  # arm name → x → point; baselines too, by their stack's name
    pairs: list[PairVerdicts]
    baselines: list[str] = field(default_factory=list)  # of the curves: `plain`, `null`


@dataclass(frozen=True)
class Overhead:
    """What one arm costs beside a baseline at one point (the seed articles' `3.2x`).

    slowdown is baseline fps / arm fps; extra_us is µs of CPU per frame (Home + Office) above the
    baseline's, cycles the same in CPU cycles where the host's clock rate is known.
    """

    panel: int  # index into Comparison.panels
    arm: str
    baseline: str  # `plain` or `null`
    x: int | str
    slowdown: float | None
    extra_us: float | None
    extra_cycles: float | None = None
    bound: str = ""  # `at least`, `at most`: what slowdown is where one of the two is a lower bound


@dataclass(frozen=True)
class Difference:
    """A condition that differs between the runs though it is not the axis, and was allowed to."""

    what: str
    values: dict[str, str]  # run → its value


@dataclass(frozen=True)
class Comparison:
    """Everything a comparison report shows."""

    axis: Axis
    arms: list[Arm]  # the reference first
    confidence: float  # such as 0.95, simultaneous over `family` verdicts
    family: int
    method: str  # in words: paired or Welch, interval, resolution, multiplicity, order and seed
    runs: list[str]  # paths or names of the runs compared
    common: dict[str, str]  # conditions that all panels share
    panels: list[Panel]
    overheads: list[Overhead]
    words: list[str]  # the paragraph: what a reader who reads nothing else should know
    differences: list[Difference] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    is_short: bool = False  # some final trial was shorter than RFC 2544 24 wants
    seed: int | None = None
