# SPDX-License-Identifier: Apache-2.0
"""Our value for each kind of quantity, from points alone: pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import singledispatch
from itertools import pairwise
from statistics import median

from espbench.claims.computed import computed
from espbench.claims.kernel_measures import answer
from espbench.claims.model import (
    Accelerator,
    AcceleratorSpread,
    BusCount,
    Claim,
    Computed,
    Configuration,
    CostRatio,
    Cpu,
    CpuFalls,
    GoalGain,
    Kernels,
    Measure,
    Ratio,
    SaturatesFirst,
    Saturation,
    Throughput,
)
from espbench.claims.our_value import OurValue, lacking, of, ranged, statement
from espbench.claims.points import Point, Points

_SAME_LOAD = 2.0  # % of CPU: what the search's resolution alone can make two loads differ by


def our_value(claim: Claim, found: Points) -> OurValue:
    """Our side of a claim; `missing` where the runs have not got it."""
    return lacking(claim.cannot) if claim.ours is None else _measure(claim.ours, claim, found)


@singledispatch
def _measure(m: Measure, claim: Claim, found: Points) -> OurValue:
    raise TypeError(f"{claim.id}: no way to measure {m.quantity}")


def _at(
    dut: str, configuration: Configuration, sizes: Sequence[int], found: Points
) -> list[Point] | OurValue:
    """The points at these sizes that were measured; what is missing, where that is one of the two ends."""
    curve = found.curve(dut, configuration)
    if absent := [size for size in (min(sizes), max(sizes)) if size not in curve]:
        absent = list(dict.fromkeys(absent))
        return lacking(
            f"{dut}, {name(configuration)}: {sizes_in_words(absent)}{_why(dut, configuration, absent, found)}"
        )
    return [curve[size] for size in sizes if size in curve]


def _both(m: Ratio | CostRatio, claim: Claim, found: Points) -> tuple[list[Point], list[Point]] | OurValue:
    """The points of both setups at the sizes that both have."""
    above = _at(claim.dut(m.of), m.of, m.frame_sizes, found)
    below = _at(claim.dut(m.to), m.to, m.frame_sizes, found)
    if isinstance(above, OurValue):
        return above
    if isinstance(below, OurValue):
        return below
    shared = {p.frame_size for p in above} & {p.frame_size for p in below}
    return [p for p in above if p.frame_size in shared], [p for p in below if p.frame_size in shared]


def _why(dut: str, configuration: Configuration, sizes: Sequence[int], found: Points) -> str:
    """The status of cases that were tried and have no figure."""
    tried = {
        status
        for key, status in found.failed.items()
        if key[:4] == (dut, configuration.behaviour, configuration.suite, configuration.direction)
        and key[4] in sizes
    }
    return f" ({', '.join(sorted(tried))})" if tried else ""


def name(configuration: Configuration) -> str:
    """`async 3des-sha1, both ways`."""
    suite = "" if configuration.behaviour in ("plain", "null") else f" {configuration.suite}"
    return f"{configuration.behaviour}{suite}, {configuration.direction.replace('-', ' ')}"


def sizes_in_words(sizes: Sequence[int]) -> str:
    """`64, 128 B`."""
    return f"{', '.join(map(str, sizes))} B"


@_measure.register
def _throughput(m: Throughput, claim: Claim, found: Points) -> OurValue:
    points = _at(claim.dut(m.of), m.of, [m.frame_size], found)
    return (
        points if isinstance(points, OurValue) else ranged([p.mbps for p in points], points, _on(points[0]))
    )


def _on(point: Point) -> str:
    cpu = "" if point.cpu_pct is None else f" at {point.cpu_pct:.0f} % CPU"
    return f"{point.mbps:,.0f} Mbps{cpu}, limit: {point.limit}"


@_measure.register
def _cpu(m: Cpu, claim: Claim, found: Points) -> OurValue:
    points = _at(claim.dut(m.of), m.of, m.frame_sizes, found)
    if isinstance(points, OurValue):
        return points
    loads = [p.cpu_pct for p in points if p.cpu_pct is not None]
    if len(loads) < len(points):
        return lacking(f"{claim.dut(m.of)}: CPU not readable")
    return ranged(loads, points, _loads(points))


def _loads(points: Sequence[Point]) -> str:
    return "CPU " + ", ".join(f"{p.cpu_pct or 0:.0f} % at {p.frame_size} B" for p in points)


@_measure.register
def _cpu_falls(m: CpuFalls, claim: Claim, found: Points) -> OurValue:
    points = [p for size, p in found.curve(claim.dut(m.of), m.of).items() if size >= m.start]
    loads = [p.cpu_pct for p in points if p.cpu_pct is not None]
    if len(loads) < 3:
        return lacking(f"{claim.dut(m.of)}, {name(m.of)}: three frame sizes from {m.start} B on")
    never_rises = all(after <= before + _SAME_LOAD for before, after in pairwise(loads))
    falls = loads[-1] < loads[0] - _SAME_LOAD
    return statement(points, _loads(points), holds=never_rises and falls)


@_measure.register
def _ratio(m: Ratio, claim: Claim, found: Points) -> OurValue:
    both = _both(m, claim, found)
    if isinstance(both, OurValue):
        return both
    above, below = both
    ratios = [a.mbps / b.mbps for a, b in zip(above, below, strict=True)]
    return ranged(ratios, [*above, *below], _ratios(ratios, above))


def _ratios(ratios: Sequence[float], points: Sequence[Point]) -> str:
    return ", ".join(f"{ratio:.2f} at {p.frame_size} B" for ratio, p in zip(ratios, points, strict=True))


@_measure.register
def _cost_ratio(m: CostRatio, claim: Claim, found: Points) -> OurValue:
    both = _both(m, claim, found)
    if isinstance(both, OurValue):
        return both
    above, below = both
    ratios = []
    for a, b in zip(above, below, strict=True):
        if not a.us_per_frame or not b.us_per_frame:
            return lacking(f"{a.dut}: CPU not readable")
        ratios.append(a.us_per_frame / b.us_per_frame)
    return ranged(ratios, [*above, *below], _ratios(ratios, above))


@_measure.register
def _saturation(m: Saturation, claim: Claim, found: Points) -> OurValue:
    """Between the largest size from which on the CPU limits no more, and the one before it."""
    points = list(found.curve(claim.dut(m.of), m.of).values())
    if len(points) < 2:
        return lacking(f"{claim.dut(m.of)}, {name(m.of)}: two frame sizes")
    by_cpu = [p.frame_size for p in points if p.limit == "CPU"]
    low = max(by_cpu, default=0)
    after = [p.frame_size for p in points if p.frame_size > low]
    high = min(after, default=math.inf)
    text = (
        f"the CPU limits up to {low} B, the largest measured"
        if not after
        else f"{low} B: CPU; {high:g} B: {points[-len(after)].limit}; {_loads(points)}"
        if low
        else f"never the CPU from {high:g} B on; {_loads(points)}"
    )
    return replace(of(points), low=low, high=high, bracket=True, text=text)


@_measure.register
def _saturates_first(m: SaturatesFirst, claim: Claim, found: Points) -> OurValue:
    own = _at(claim.dut(m.of), m.of, m.frame_sizes, found)
    if isinstance(own, OurValue):
        return own
    told, holds = [_loads(own)], True
    used = list(own)
    for dut in m.others:
        theirs = _at(dut, m.of, m.frame_sizes, found)
        if isinstance(theirs, OurValue):
            return theirs
        loads = {p.frame_size: p.cpu_pct or 0.0 for p in theirs}
        gaps = [loads[p.frame_size] - (p.cpu_pct or 0.0) for p in own if p.frame_size in loads]
        holds = holds and min(gaps) >= -_SAME_LOAD and max(gaps) > _SAME_LOAD
        told.append(f"{dut}: {_loads(theirs)}")
        used += theirs
    return statement(used, "; ".join(told), holds=holds)


@_measure.register
def _goal_gain(m: GoalGain, claim: Claim, found: Points) -> OurValue:
    loose, strict = (found.curve(claim.dut(m.of), m.of, goal) for goal in (m.goal, m.to))
    shared = [size for size in loose if size in strict]
    if not shared:
        return lacking(f"{claim.dut(m.of)}, {name(m.of)}: both loss goals at one frame size")
    gains = [100 * (loose[size].fps / strict[size].fps - 1) for size in shared]
    used = [curve[size] for size in shared for curve in (loose, strict)]
    text = ", ".join(f"{gain:+.1f} % at {size} B" for gain, size in zip(gains, shared, strict=True))
    return ranged(gains, used, text)


@_measure.register
def _accelerator(m: Accelerator, claim: Claim, found: Points) -> OurValue:
    gains = [a.gain for a in found.accelerator if (a.dut, a.suite, a.size) == (claim.dut(m), m.suite, m.size)]
    if not gains:
        return lacking(f"{claim.dut(m)}: accelerator test of {m.suite} at {m.size} B")
    return ranged([median(gains)], text=f"{m.suite}, {m.size} B")


@_measure.register
def _bus_count(m: BusCount, claim: Claim, found: Points) -> OurValue:
    dut, of = claim.dut(m.of), m.of
    suite = "none" if of.behaviour == "plain" else of.suite
    ratios = {size: found.bus.get((dut, of.behaviour, suite, of.direction, size)) for size in m.frame_sizes}
    if absent := [size for size, ratio in ratios.items() if ratio is None]:
        return lacking(f"{dut}, {name(of)}: bus test at {sizes_in_words(absent)}")
    known = {size: ratio for size, ratio in ratios.items() if ratio is not None}
    return ranged(
        [*known.values()], text=", ".join(f"{ratio:.3f} at {size} B" for size, ratio in known.items())
    )


@_measure.register
def _computed(m: Computed, claim: Claim, found: Points) -> OurValue:
    return computed(m)


@_measure.register
def _kernels(m: Kernels, claim: Claim, found: Points) -> OurValue:
    return answer(m.what, claim.dut(), found.kernels)


@_measure.register
def _accelerator_spread(m: AcceleratorSpread, claim: Claim, found: Points) -> OurValue:
    times = {
        a.suite: a.after_ns / a.operations
        for a in found.accelerator
        if (a.dut, a.size) == (claim.dut(m), m.size)
    }
    if len(times) < 2:
        return lacking(f"{claim.dut(m)}: accelerator test of two suites at {m.size} B")
    text = ", ".join(f"{suite} {ns / 1e3:.2f} µs" for suite, ns in times.items())
    return ranged([max(times.values()) / min(times.values())], text=text)
