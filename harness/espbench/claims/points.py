# SPDX-License-Identifier: Apache-2.0
"""The results of runs as points that can be asked for: device, behaviour, suite, frame size, direction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Literal, get_args

from espbench import quantities
from espbench.catalogue.suites import suites
from espbench.claims.model import Behaviour, Configuration
from espbench.plan.resolved.frame_sizes import FRAMING_BYTES
from espbench.results.accelerator import AcceleratorResult
from espbench.results.kernels import KernelResult
from espbench.terms import Direction, Finding, Manifest, Outcome, layer2_mbps, line_rate_fps

MOST_LOSS = 1e-5
"""The articles' `zero loss` is less than 0.001 %; of what was measured the goal nearest to it counts."""
BUSY_PCT = 97.0
"""From this load on it is the CPU that limits: a search ends up to its resolution below the limit."""
_FULL = 0.97  # of a link's capacity

Limit = Literal["CPU", "link", "accelerator", "other"]
Key = tuple[str, Behaviour, str, Direction, int, float]
"""DUT, behaviour, suite, direction, frame size, loss goal."""
BusRatios = dict[tuple[str, Behaviour, str, Direction, int], float]
"""Bytes over the bus that devices counted, in those of the article's account; by all of a Key but the loss goal."""


@dataclass(frozen=True)
class Point:
    """One measured throughput: medians over the repeats, rates of all directions together."""

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
class Points:
    """What runs measured, to be asked."""

    points: tuple[Point, ...]
    accelerator: tuple[AcceleratorResult, ...] = ()
    failed: Mapping[Key, str] = field(default_factory=dict)  # status of cases that have no figure
    cores: Mapping[str, str] = field(default_factory=dict)  # DUT → the core that was emulated
    kernels: tuple[KernelResult, ...] = ()
    bus: BusRatios = field(default_factory=dict)

    @property
    def duts(self) -> list[str]:
        """Every DUT there is anything of."""
        return list(
            dict.fromkeys(
                [p.dut for p in self.points]
                + [a.dut for a in self.accelerator]
                + [k.dut for k in self.kernels]
            )
        )

    def curve(self, dut: str, configuration: Configuration, goal: float | None = None) -> dict[int, Point]:
        """Frame size → point, in ascending order. goal None: each size's loosest up to 0.001 %."""
        found: dict[int, Point] = {}
        for p in sorted(self.points, key=lambda p: (p.frame_size, p.loss_goal)):
            suite = {"plain": "none", "null": "null-null"}.get(configuration.behaviour, configuration.suite)
            same = (p.dut, p.behaviour, p.suite, p.direction) == (
                dut, configuration.behaviour, suite, configuration.direction,
            )  # fmt: skip
            if same and (p.loss_goal <= MOST_LOSS if goal is None else p.loss_goal == goal):
                found[p.frame_size] = p
        return found


def points(
    runs: Iterable[tuple[Manifest, Sequence[Outcome]]],
    accelerator: Iterable[AcceleratorResult] = (),
    kernels: Iterable[KernelResult] = (),
    bus: BusRatios | None = None,
) -> Points:
    """The points of all runs: IPv4, frames of one size, shown to be encrypted (or a baseline)."""
    groups: dict[Key, list[tuple[Outcome, float]]] = {}
    failed: dict[Key, str] = {}
    cores: dict[str, str] = {}
    for manifest, outcomes in runs:
        erring = said_of_links(manifest)
        for dut, profile in manifest.conditions.get("profiles", {}).items():
            cores[dut + erring] = str((profile.get("board") or {}).get("core", ""))
        behaviours = {case.case: _behaviour(case.stack_kind, case.options) for case in manifest.cases}
        for o in outcomes:
            behaviour = behaviours.get(o.case)
            if behaviour is None or not isinstance(o.frame_size, int) or o.ip_version != 4:
                continue
            key = (o.dut + erring, behaviour, o.suite, o.direction, o.frame_size, o.loss_goal)
            if o.status != "OK" or o.encryption == "not proven":
                if failed.get(key) != "VIOLATED":
                    failed[key] = _why_not(o)
                continue
            if o.is_at_limit and not _fills_the_link(o.throughput_fps or 0.0, key, manifest.line_rate_bps):
                failed[key] = "the plan's maximum, no limit of the DUT"
                continue
            groups.setdefault(key, []).append((o, manifest.line_rate_bps))
    # One repeat in which frames passed in clear: whatever the others carried is no figure of IPsec.
    found = tuple(_point(key, group) for key, group in groups.items() if failed.get(key) != "VIOLATED")
    return Points(found, tuple(accelerator), failed, cores, tuple(kernels), bus or {})


def bus_counts(runs: Iterable[tuple[Manifest, Sequence[Finding]]]) -> BusRatios:
    """Bytes over the bus for a frame in those of the article's account: DUT, behaviour, suite, direction, size."""
    found: BusRatios = {}
    for manifest, findings in runs:
        behaviours = {case.case: _behaviour(case.stack_kind, case.options) for case in manifest.cases}
        for f in findings:
            behaviour = behaviours.get(f.case)
            ratio = next((q.value for q in f.quantities if q.key == quantities.Key.BUS_OF_ACCOUNT), None)
            if behaviour is not None and ratio is not None and isinstance(f.frame_size, int):
                found[f.dut + said_of_links(manifest), behaviour, f.suite, f.direction, f.frame_size] = ratio
    return found


def said_of_links(manifest: Manifest) -> str:
    """` with middle: loss 1e-05`, after the name of a DUT whose links err; it is another than the DUT alone."""
    links = {name: said for name, said in manifest.conditions.get("links", {}).items() if name != "seed"}
    return "".join(f"; {name}: {said}" for name, said in links.items()).replace(";", " with", 1)


def _why_not(o: Outcome) -> str:
    """Why an outcome is no figure to hold a claim against."""
    if o.status == "LOWER_BOUND":
        return f"only a lower bound, {o.throughput_mbps or 0.0:,.0f} Mbps"
    return o.status if o.status != "OK" else "encryption not proven"


def _behaviour(kind: str, options: dict[str, object]) -> Behaviour | None:
    """What a case's stack does with the accelerator; None for stacks no claim is about.

    The articles' plain forwarding had no IPsec at all: not the baseline that pays for ESP's policies.
    """
    plain = "plain" if options.get("policies") == "none" else ""
    crypto = str(options.get("crypto", "async"))
    lean = "lean" if crypto == "async" else ""
    named = {"plain": plain, "null": "null", "xfrm": crypto, "lean-esp": lean}.get(kind)
    return next((b for b in get_args(Behaviour) if b == named), None)


def _point(key: Key, group: list[tuple[Outcome, float]]) -> Point:
    dut, behaviour, suite, direction, frame_size, goal = key
    outcomes = [outcome for outcome, _ in group]
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
    return replace(point, limit=_limit(point, key, group[0][1]))


def _limit(p: Point, key: Key, line_rate: float) -> Limit:
    """What held the throughput: the first of CPU, links and crypto engine that was at its end."""
    if p.cpu_pct is not None and p.cpu_pct >= BUSY_PCT:
        return "CPU"
    if _fills_the_link(p.fps, key, line_rate):
        return "link"
    return "accelerator" if p.behaviour in ("async", "polling", "dual-pass") else "other"


def _fills_the_link(fps: float, key: Key, line_rate: float) -> bool:
    _, _, suite, direction, frame_size, _ = key
    each_way = fps / (2 if direction == "both-ways" else 1)
    return line_rate > 0 and each_way >= _FULL * link_fps(frame_size, suite, line_rate)


def link_fps(frame_size: int, suite: str, line_rate: float) -> float:
    """Cleartext frames/s that a link of this rate carries within the tunnel (suite none: in clear)."""
    return line_rate_fps(tunnelled_size(frame_size, suite), line_rate)


def tunnelled_size(frame_size: int, suite: str) -> int:
    """Bytes with FCS of the frame on the middle link, not fragmented (ESP tunnel, IPv4)."""
    found = suites().get(suite)
    if found is None:
        return frame_size
    return found.esp_packet_size(frame_size - FRAMING_BYTES, "tunnel", 4) + FRAMING_BYTES


def _busier(home: float | None, office: float | None) -> float | None:
    return max((pct for pct in (home, office) if pct is not None), default=None)


def _median(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
