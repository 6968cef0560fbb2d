# SPDX-License-Identifier: Apache-2.0
"""Turns the results of runs into points, which are selected by device, behaviour, suite, frame size and direction."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any, Literal, get_args

from espbench.catalogue.suites import suites
from espbench.claims.model import Behaviour, Configuration
from espbench.plan.reading.units import parse_resolution
from espbench.plan.resolved.frame_sizes import FRAMING_BYTES
from espbench.results.accelerator import AcceleratorResult, PublicKeyResult
from espbench.results.kernels import KernelResult
from espbench.terms import Direction, Manifest, Outcome, kind_of_test, layer2_mbps, line_rate_fps

MOST_LOSS = 1e-5
"""The articles' `zero loss` is less than 0.001 %; the loosest measured goal up to this one is used."""
BUSY_PCT = 97.0
"""The CPU is the limit from this load on, since a search may end below the limit by up to its resolution."""
_FULL = 0.97  # of a link's capacity
_JUDGED_OPTIONS = {"crypto", "policies"}  # of a stack: what claims distinguish
IN_CLEAR = "frames passed in clear"

Limit = Literal["CPU", "link", "accelerator", "other"]
Key = tuple[str, Behaviour, str, Direction, int, float]
"""DUT, behaviour, suite, direction, frame size, loss goal."""
CaseKey = tuple[str, Behaviour, str, Direction, int]
"""A Key without its loss goal."""


@dataclass(frozen=True)
class Point:
    """One measured throughput: medians over the outcomes of the finest resolution, rates of all directions together."""

    dut: str
    behaviour: Behaviour
    suite: str
    direction: Direction
    frame_size: int
    loss_goal: float
    fps: float
    mbps: float
    cpu_pct: float | None  # of the busier gateway
    us_per_frame: float | None  # CPU time of the busier gateway
    limit: Limit
    is_short: bool


@dataclass(frozen=True)
class BusBytes:
    """Bytes over the bus per frame, as devices counted them; of_account: their ratio to the article's own account."""

    counted: float  # of the kinds that the article counts: frames, data and keys
    frames: float  # received and sent
    engine: float
    descriptors: float
    of_account: float | None


@dataclass(frozen=True)
class Points:
    """The measurements of runs, from which the measures select."""

    points: tuple[Point, ...]
    accelerator: tuple[AcceleratorResult, ...] = ()
    failed: Mapping[Key, str] = field(default_factory=dict)  # status of cases that have no figure
    cores: Mapping[str, str] = field(default_factory=dict)  # DUT → the core that was emulated
    kernels: tuple[KernelResult, ...] = ()
    bus: Mapping[CaseKey, BusBytes] = field(default_factory=dict)
    # The ratio of forwarding rate to throughput; a text says why there is none.
    flood: Mapping[CaseKey, float | str] = field(default_factory=dict)
    public_keys: tuple[PublicKeyResult, ...] = ()
    # Cause of the end of SAs → whether they were replaced, and a text.
    lifetimes: Mapping[str, tuple[bool, str]] = field(default_factory=dict)
    # DUT → `processor` of its profile, as recorded by the last run that has it.
    processors: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    left_out: Sequence[str] = ()  # sentences: which measurements of the runs are not among these, and why

    @property
    def duts(self) -> list[str]:
        """Every DUT that has any measurement."""
        return list(
            dict.fromkeys(
                [p.dut for p in self.points]
                + [a.dut for a in self.accelerator]
                + [p.dut for p in self.public_keys]
                + [k.dut for k in self.kernels]
            )
        )

    def curve(self, dut: str, configuration: Configuration, goal: float | None = None) -> dict[int, Point]:
        """Return frame size → point, in ascending order; goal None: of each size the loosest goal up to 0.001 %."""
        by_size: dict[int, Point] = {}
        for p in sorted(self.points, key=lambda p: (p.frame_size, p.loss_goal)):
            same = case_key(dut, configuration, p.frame_size) == (
                p.dut, p.behaviour, p.suite, p.direction, p.frame_size,
            )  # fmt: skip
            if same and (p.loss_goal <= MOST_LOSS if goal is None else p.loss_goal == goal):
                by_size[p.frame_size] = p
        return by_size

    def at_one_goal(
        self, sides: Sequence[tuple[str, Configuration]], sizes: Sequence[int]
    ) -> list[list[Point]] | None:
        """Return the points of each side (DUT and configuration) at these sizes, all for one loss goal.

        It is the loosest goal up to 0.001 % for which every side has a figure at every size; None if there is none.
        """
        goals = {p.loss_goal for p in self.points if p.loss_goal <= MOST_LOSS}
        for goal in sorted(goals, reverse=True):
            curves = [self.curve(dut, of, goal) for dut, of in sides]
            if all(size in curve for curve in curves for size in sizes):
                return [[curve[size] for size in sizes] for curve in curves]
        return None

    def without_figure(
        self, dut: str, configuration: Configuration, goal: float | None = None
    ) -> dict[int, set[str]]:
        """Return frame size → statuses, of sizes that were tried and are not in the curve."""
        curve = self.curve(dut, configuration, goal)
        tried: dict[int, set[str]] = {}
        for key, status in self.failed.items():
            size, of_goal = key[4:]
            same = key[:5] == case_key(dut, configuration, size)
            if same and size not in curve and (goal is None or of_goal == goal):
                tried.setdefault(size, set()).add(status)
        return tried


def case_key(dut: str, configuration: Configuration, frame_size: int) -> CaseKey:
    """Return the key of a configuration's cases: in clear and with NULL/NULL, the suite is not the configuration's."""
    suite = {"plain": "none", "null": "null-null"}.get(configuration.behaviour, configuration.suite)
    return dut, configuration.behaviour, suite, configuration.direction, frame_size


@dataclass(frozen=True)
class _Measured:
    """An outcome with a figure, the line rate of its run, bit/s, and the relative resolution of its search."""

    outcome: Outcome
    line_rate: float
    resolution: float


def points(
    runs: Iterable[tuple[Manifest, Sequence[Outcome]]],
    accelerator: Iterable[AcceleratorResult] = (),
    kernels: Iterable[KernelResult] = (),
    bus: Mapping[CaseKey, BusBytes] | None = None,
    flood: Mapping[CaseKey, float | str] | None = None,
    public_keys: Iterable[PublicKeyResult] = (),
    lifetimes: Mapping[str, tuple[bool, str]] | None = None,
    in_clear: Iterable[CaseKey] = (),
) -> Points:
    """Return the points of all runs: IPv4, frames of one size, with proven encryption (or of a baseline).

    in_clear: cases of other tests in which frames passed in clear. Such a case has no figure of any test or loss goal.
    """
    groups: dict[Key, list[_Measured]] = {}
    failed: dict[Key, str] = {}
    cores: dict[str, str] = {}
    processors: dict[str, Mapping[str, Any]] = {}
    for manifest, outcomes in runs:
        erring = said_of_links(manifest)
        for dut, profile in manifest.conditions.get("profiles", {}).items():
            cores[dut + erring] = str((profile.get("board") or {}).get("core", ""))
        for dut, profile in manifest.asked.get("profiles", {}).items():
            if profile.get("processor"):
                processors[dut] = profile["processor"]
        settings = settings_of_tests(manifest)
        for key, o in _of_claims(manifest, outcomes):
            if not (why := _why_not(o, key, manifest.line_rate_bps)):
                resolution = _resolution(settings.get(o.test, {}))
                groups.setdefault(key, []).append(_Measured(o, manifest.line_rate_bps, resolution))
            elif failed.get(key) != "VIOLATED":
                failed[key] = why
    # If frames passed in clear in one trial, the others of this case are not figures of IPsec either.
    violated = {key[:5] for key, status in failed.items() if status == "VIOLATED"} | {*in_clear}
    failed |= {key: "VIOLATED" for key in groups if key[:5] in violated}
    figures = tuple(_point(key, _finest(group)) for key, group in groups.items() if key[:5] not in violated)
    return Points(
        figures,
        tuple(accelerator),
        failed,
        cores,
        tuple(kernels),
        {key: moved for key, moved in (bus or {}).items() if key not in violated},
        {key: IN_CLEAR if key in violated else ratio for key, ratio in (flood or {}).items()},
        tuple(public_keys),
        lifetimes or {},
        processors,
    )


def _of_claims(manifest: Manifest, outcomes: Sequence[Outcome]) -> Iterator[tuple[Key, Outcome]]:
    """Yield the outcomes that claims can be about: known behaviour, frames of one size, IPv4."""
    behaviours, erring = behaviours_of(manifest), said_of_links(manifest)
    for o in outcomes:
        behaviour = behaviours.get(o.case)
        if behaviour is not None and isinstance(o.frame_size, int) and o.ip_version == 4:
            yield (o.dut + erring, behaviour, o.suite, o.direction, o.frame_size, o.loss_goal), o


def settings_of_tests(manifest: Manifest) -> dict[str, Mapping[str, Any]]:
    """Return the settings of each test that offered traffic, by its name in the cases (`throughput-2`: the second)."""
    settings: dict[str, Mapping[str, Any]] = {}
    for test in manifest.conditions.get("tests", []):
        for kind, of_test in test.items():
            before = sum(kind_of_test(name) == kind for name in settings)
            settings[f"{kind}-{before + 1}" if before else kind] = of_test
    return settings


def _resolution(settings: Mapping[str, Any]) -> float:
    """Return the relative resolution of a search; infinite if the run does not record it."""
    recorded = settings.get("resolution")
    return math.inf if recorded is None else parse_resolution(recorded)


def _finest(group: list[_Measured]) -> list[_Measured]:
    """Return the outcomes of the finest resolution: a coarser search ends at other loads."""
    finest = min(m.resolution for m in group)
    return [m for m in group if m.resolution == finest]


def behaviours_of(manifest: Manifest) -> dict[str, Behaviour | None]:
    """Return how the stack of each case uses the accelerator; None for stacks that no claim is about."""
    return {case.case: behaviour_of(case.stack_kind, case.options) for case in manifest.cases}


def said_of_links(manifest: Manifest) -> str:
    """Return a suffix for the name of a DUT whose links have errors, such as ` with middle: loss 1e-05`.

    A DUT with such links counts as another DUT.
    """
    links = {name: said for name, said in manifest.conditions.get("links", {}).items() if name != "seed"}
    return "".join(f"; {name}: {said}" for name, said in links.items()).replace(";", " with", 1)


def _why_not(o: Outcome, key: Key, line_rate: float) -> str:
    """Say why an outcome has no figure that a claim could be compared with; return "" if it has one."""
    if o.status == "LOWER_BOUND":
        return f"only a lower bound, {o.throughput_mbps or 0.0:,.0f} Mbps"
    if o.status != "OK":
        return o.status
    if o.encryption == "not proven":
        return "encryption not proven"
    if o.is_at_limit and not _fills_the_link(o.throughput_fps or 0.0, key, line_rate):
        return "the plan's maximum, no limit of the DUT"
    return ""


def behaviour_of(kind: str, options: Mapping[str, object]) -> Behaviour | None:
    """Return how a case's stack uses the accelerator; None for stacks that no claim is about.

    The articles' plain forwarding had no IPsec at all, so the baseline with ESP's policies does not count as `plain`.
    No claim is about a stack with another option, such as 200 tunnels or ESP in UDP: its figures are not the stack's.
    """
    if options.keys() - _JUDGED_OPTIONS:
        return None
    plain = "plain" if options.get("policies") == "none" else ""
    crypto = str(options.get("crypto", "async"))
    lean = {"async": "lean", "software": "lean-software"}.get(crypto, "")
    named = {"plain": plain, "null": "null", "xfrm": crypto, "lean-esp": lean}.get(kind)
    return next((b for b in get_args(Behaviour) if b == named), None)


def _point(key: Key, group: list[_Measured]) -> Point:
    dut, behaviour, suite, direction, frame_size, goal = key
    outcomes = [m.outcome for m in group]
    fps = _median([o.throughput_fps for o in outcomes]) or 0.0
    cpu = _median([_busier(o.cpu_home_pct, o.cpu_office_pct) for o in outcomes])
    point = Point(
        dut=dut,
        behaviour=behaviour,
        suite=suite,
        direction=direction,
        frame_size=frame_size,
        loss_goal=goal,
        fps=fps,
        mbps=layer2_mbps(fps, frame_size),
        cpu_pct=cpu,
        us_per_frame=None if cpu is None or not fps else cpu / 100 / fps * 1e6,
        limit="other",
        is_short=any(o.is_short for o in outcomes),
    )
    return replace(point, limit=_limit(point, key, group[0].line_rate))


def _limit(p: Point, key: Key, line_rate: float) -> Limit:
    """Return the limit of the throughput: the CPU or the link if it is fully used, else the engine if there is one."""
    if p.cpu_pct is not None and p.cpu_pct >= BUSY_PCT:
        return "CPU"
    if _fills_the_link(p.fps, key, line_rate):
        return "link"
    return "accelerator" if p.behaviour in ("async", "polling", "dual-pass", "lean") else "other"


def _fills_the_link(fps: float, key: Key, line_rate: float) -> bool:
    _, _, suite, direction, frame_size, _ = key
    each_way = fps / (2 if direction == "both-ways" else 1)
    return line_rate > 0 and each_way >= _FULL * link_fps(frame_size, suite, line_rate)


def link_fps(frame_size: int, suite: str, line_rate: float) -> float:
    """Return the cleartext frames/s that a link of this rate carries within the tunnel (suite none: in clear)."""
    return line_rate_fps(tunnelled_size(frame_size, suite), line_rate)


def tunnelled_size(frame_size: int, suite: str) -> int:
    """Return the size of the frame on the middle link, bytes with FCS, without fragmentation (ESP tunnel, IPv4)."""
    listed = suites().get(suite)
    if listed is None:
        return frame_size
    return listed.esp_packet_size(frame_size - FRAMING_BYTES, "tunnel", 4) + FRAMING_BYTES


def _busier(home: float | None, office: float | None) -> float | None:
    return max((pct for pct in (home, office) if pct is not None), default=None)


def _median(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
