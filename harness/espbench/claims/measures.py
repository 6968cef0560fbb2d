# SPDX-License-Identifier: Apache-2.0
"""Computes our value for each kind of quantity from the points of runs; pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import singledispatch
from itertools import pairwise

from espbench.catalogue.board_crypto import DEFAULT
from espbench.catalogue.board_crypto import Behaviour as EngineUse
from espbench.claims.bus_measures import bus_count, bus_increase, bus_share
from espbench.claims.computed import computed
from espbench.claims.kernel_measures import answer
from espbench.claims.model import (
    Accelerator,
    AcceleratorSpread,
    AcceleratorSuites,
    AcceleratorTimer,
    AcceleratorTrend,
    AcceleratorUses,
    AcceleratorVariant,
    BusCount,
    BusIncrease,
    BusShare,
    Claim,
    Computed,
    Configuration,
    CostRatio,
    Cpu,
    CpuFalls,
    FloodRatio,
    GoalGain,
    Kernels,
    LimitAt,
    Measure,
    PublicKeyCpu,
    PublicKeyGain,
    PublicKeyIntensity,
    PublicKeyOverhead,
    PublicKeyTable,
    PublicKeyTest,
    PublicKeyTime,
    Ratio,
    SaLifetime,
    SaturatesFirst,
    Saturation,
    SlowerOperation,
    Throughput,
    Trend,
)
from espbench.claims.our_value import OurValue, lacking, of, ranged, statement
from espbench.claims.points import Point, Points, case_key
from espbench.claims.public_key_measures import public_key
from espbench.claims.wording import name, sizes_in_words
from espbench.results.accelerator import AcceleratorResult

_SAME_LOAD = 2.0  # % of CPU: two loads may differ by this because of the search's resolution
_SAME_RATIO = 0.04  # a ratio may differ by this share because of the resolution of its throughputs
_APART = 0.02  # least growth of the ratio between the slowest and the fastest suite


def our_value(claim: Claim, points: Points) -> OurValue:
    """Return our value for a claim; it has only `missing` if the runs do not have the figures."""
    return lacking(claim.cannot or claim.lacks) if claim.ours is None else _measure(claim.ours, claim, points)


@singledispatch
def _measure(m: Measure, claim: Claim, points: Points) -> OurValue:
    raise TypeError(f"{claim.id}: no way to measure {m.quantity}")


_Side = tuple[str, Configuration]
"""A DUT, and the configuration in which it was measured."""


def _together(sides: Sequence[_Side], sizes: Sequence[int], points: Points) -> list[list[Point]] | OurValue:
    """Return the points of each side at these sizes, all for one loss goal; else a value that says what is missing.

    If a side has no figure at a size, the value names the size and its status.
    """
    together = points.at_one_goal(sides, sizes)
    if together is not None:
        return together
    for dut, configuration in sides:
        curve = points.curve(dut, configuration)
        if absent := [size for size in sizes if size not in curve]:
            return _without(dut, configuration, absent, points.without_figure(dut, configuration))
    names = " and ".join(f"{dut}, {name(configuration)}" for dut, configuration in sides)
    return lacking(f"{names}: no common loss goal at {sizes_in_words(sizes)}")


def _at(
    dut: str, configuration: Configuration, sizes: Sequence[int], points: Points
) -> list[Point] | OurValue:
    """Return the points of one configuration at these sizes, as `_together` does."""
    together = _together([(dut, configuration)], sizes, points)
    return together if isinstance(together, OurValue) else together[0]


def _both(m: Ratio | CostRatio | Trend, claim: Claim, points: Points) -> list[list[Point]] | OurValue:
    """Return the points of both configurations at the claim's sizes, as `_together` does."""
    return _together([(claim.dut(m.of), m.of), (claim.dut(m.to), m.to)], m.frame_sizes, points)


def _without(
    dut: str, configuration: Configuration, sizes: Sequence[int], tried: Mapping[int, set[str]]
) -> OurValue:
    """Return a value that names the sizes without a figure, with the statuses of those that were tried."""
    statuses = sorted({status for size in sizes for status in tried.get(size, ())})
    why = f" ({', '.join(statuses)})" if statuses else ""
    return lacking(f"{dut}, {name(configuration)}: {sizes_in_words(sizes)}{why}")


@_measure.register
def _throughput(m: Throughput, claim: Claim, measured: Points) -> OurValue:
    points = _at(claim.dut(m.of), m.of, [m.frame_size], measured)
    return (
        points if isinstance(points, OurValue) else ranged([p.mbps for p in points], points, _on(points[0]))
    )


def _on(point: Point) -> str:
    cpu = "" if point.cpu_pct is None else f" at {point.cpu_pct:.0f} % CPU"
    return f"{point.mbps:,.0f} Mbps{cpu}, limit: {point.limit}"


@_measure.register
def _cpu(m: Cpu, claim: Claim, measured: Points) -> OurValue:
    points = _at(claim.dut(m.of), m.of, m.frame_sizes, measured)
    if isinstance(points, OurValue):
        return points
    loads = [p.cpu_pct for p in points if p.cpu_pct is not None]
    if len(loads) < len(points):
        return lacking(f"{claim.dut(m.of)}: CPU not readable")
    return ranged(loads, points, _loads(points))


def _loads(points: Sequence[Point]) -> str:
    return "CPU " + ", ".join(f"{p.cpu_pct or 0:.0f} % at {p.frame_size} B" for p in points)


@_measure.register
def _cpu_falls(m: CpuFalls, claim: Claim, measured: Points) -> OurValue:
    dut = claim.dut(m.of)
    sizes = [size for size in measured.curve(dut, m.of) if m.start <= size <= m.end]
    tried = measured.without_figure(dut, m.of)
    if failed := sorted(size for size in tried if m.start <= size <= m.end):
        return _without(dut, m.of, failed, tried)
    if len(sizes) < 3 or not {m.start, m.end} <= {*sizes}:
        return lacking(f"{dut}, {name(m.of)}: three frame sizes, of which {sizes_in_words([m.start, m.end])}")
    points = _at(dut, m.of, sizes, measured)
    if isinstance(points, OurValue):
        return points
    loads = [p.cpu_pct for p in points if p.cpu_pct is not None]
    if len(loads) < len(points):
        return lacking(f"{dut}: CPU not readable")
    holds = all(after < before - _SAME_LOAD for before, after in pairwise(loads))
    return statement(points, _loads(points), holds=holds)


@_measure.register
def _ratio(m: Ratio, claim: Claim, measured: Points) -> OurValue:
    both = _both(m, claim, measured)
    if isinstance(both, OurValue):
        return both
    above, below = both
    ratios = _quotients(above, below)
    return ranged(ratios, [*above, *below], _ratios(ratios, above))


def _quotients(above: Sequence[Point], below: Sequence[Point]) -> list[float]:
    return [a.mbps / b.mbps for a, b in zip(above, below, strict=True)]


def _ratios(ratios: Sequence[float], points: Sequence[Point]) -> str:
    return ", ".join(f"{ratio:.2f} at {p.frame_size} B" for ratio, p in zip(ratios, points, strict=True))


@_measure.register
def _trend(m: Trend, claim: Claim, measured: Points) -> OurValue:
    """Return whether the ratio changes between first and last size by more than the resolution, and never goes back."""
    both = _both(m, claim, measured)
    if isinstance(both, OurValue):
        return both
    above, below = both
    ratios = _quotients(above, below)
    sign = 1 if m.goes == "rises" else -1
    steps = [sign * (after / before - 1) for before, after in pairwise(ratios)]
    holds = sign * (ratios[-1] / ratios[0] - 1) > _SAME_RATIO and min(steps, default=0) > -_SAME_RATIO
    text = _ratios(ratios, above)
    if m.constant_first:
        by_cpu = [r for r, a, b in zip(ratios, above, below, strict=True) if a.limit == b.limit == "CPU"]
        holds = holds and len(by_cpu) > 1 and max(by_cpu) / min(by_cpu) - 1 <= _SAME_RATIO
        text += f"; sizes at which the CPU limits both: {len(by_cpu)}"
    return statement([*above, *below], text, holds=holds)


@_measure.register
def _slower_operation(m: SlowerOperation, claim: Claim, measured: Points) -> OurValue:
    sides = [
        (claim.dut(m.of), m.of.model_copy(update={"direction": direction}))
        for direction in ("one-way", "encryption", "decryption")
    ]
    together = _together(sides, m.frame_sizes, measured)
    if isinstance(together, OurValue):
        return together
    both, encryption, decryption = together
    ratios = [b.fps / min(e.fps, d.fps) for b, e, d in zip(both, encryption, decryption, strict=True)]
    return ranged(ratios, [*both, *encryption, *decryption], _ratios(ratios, both))


@_measure.register
def _limit_at(m: LimitAt, claim: Claim, measured: Points) -> OurValue:
    together = _together([(dut, m.of) for dut in m.duts], [m.frame_size], measured)
    if isinstance(together, OurValue):
        return together
    limits = {dut: point for dut, (point,) in zip(m.duts, together, strict=True)}
    text = ", ".join(f"{dut}: {p.limit}" for dut, p in limits.items())
    holds = all(p.limit == m.by for p in limits.values())
    return statement([*limits.values()], text, holds=holds)


@_measure.register
def _flood_ratio(m: FloodRatio, claim: Claim, measured: Points) -> OurValue:
    dut, of = claim.dut(m.of), m.of
    ratios = {size: measured.flood.get(case_key(dut, of, size)) for size in m.frame_sizes}
    known = {size: ratio for size, ratio in ratios.items() if isinstance(ratio, float)}
    if absent := [size for size in ratios if size not in known]:
        reasons = dict.fromkeys(why for size in absent if isinstance(why := ratios[size], str))
        why = f" ({'; '.join(reasons)})" if reasons else ""
        return lacking(f"{dut}, {name(of)}: flood and throughput at {sizes_in_words(absent)}{why}")
    return ranged(
        [*known.values()], text=", ".join(f"{ratio:.3f} at {size} B" for size, ratio in known.items())
    )


@_measure.register
def _sa_lifetime(m: SaLifetime, claim: Claim, measured: Points) -> OurValue:
    if m.ends not in measured.lifetimes:
        return lacking(
            "a test time_to_first_packet with idle"
            if m.ends == "idle"
            else f"a test rekey_loss with a lifetime in {m.ends}"
        )
    replaced, text = measured.lifetimes[m.ends]
    return statement([], text, holds=replaced)


@_measure.register
def _cost_ratio(m: CostRatio, claim: Claim, measured: Points) -> OurValue:
    both = _both(m, claim, measured)
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
def _saturation(m: Saturation, claim: Claim, measured: Points) -> OurValue:
    """Return the bracket of the size from which on the CPU is not the limit: above the last size at which it is."""
    dut = claim.dut(m.of)
    sizes = [*measured.curve(dut, m.of)]
    if len(sizes) < 2:
        return lacking(f"{dut}, {name(m.of)}: two frame sizes")
    points = _at(dut, m.of, sizes, measured)
    if isinstance(points, OurValue):
        return points
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
def _saturates_first(m: SaturatesFirst, claim: Claim, measured: Points) -> OurValue:
    together = _together([(dut, m.of) for dut in (claim.dut(m.of), *m.others)], m.frame_sizes, measured)
    if isinstance(together, OurValue):
        return together
    own, *others = together
    texts, holds = [_loads(own)], True
    for dut, theirs in zip(m.others, others, strict=True):
        gaps = [(t.cpu_pct or 0.0) - (p.cpu_pct or 0.0) for t, p in zip(theirs, own, strict=True)]
        holds = holds and min(gaps) >= -_SAME_LOAD and max(gaps) > _SAME_LOAD
        texts.append(f"{dut}: {_loads(theirs)}")
    return statement([p for points in together for p in points], "; ".join(texts), holds=holds)


@_measure.register
def _goal_gain(m: GoalGain, claim: Claim, measured: Points) -> OurValue:
    dut = claim.dut(m.of)
    loose, strict = (measured.curve(dut, m.of, goal) for goal in (m.goal, m.to))
    of_loose, of_strict = (measured.without_figure(dut, m.of, goal) for goal in (m.goal, m.to))
    tried = of_loose | of_strict
    if failed := sorted(tried.keys() & (loose.keys() | of_loose.keys()) & (strict.keys() | of_strict.keys())):
        return _without(dut, m.of, failed, tried)
    shared = [size for size in loose if size in strict]
    if not shared:
        return lacking(f"{dut}, {name(m.of)}: both loss goals at one frame size")
    gains = [100 * (loose[size].fps / strict[size].fps - 1) for size in shared]
    used = [curve[size] for size in shared for curve in (loose, strict)]
    text = ", ".join(f"{gain:+.1f} % at {size} B" for gain, size in zip(gains, shared, strict=True))
    return ranged(gains, used, text)


def _accelerated(dut: str, measured: Points, crypto: EngineUse = DEFAULT) -> list[AcceleratorResult]:
    """Return the device's results of the usual accelerator test, without a variant; by default asynchronous use."""
    return [a for a in _of_articles(dut, measured, crypto) if not a.variant.words]


def _of_articles(dut: str, measured: Points, crypto: EngineUse = DEFAULT) -> list[AcceleratorResult]:
    """Return the device's results of all variants, sorted by operations: of several, the last counts."""
    of_dut = (a for a in measured.accelerator if (a.dut, a.crypto) == (dut, crypto))
    return sorted(of_dut, key=lambda a: a.operations)


@_measure.register
def _accelerator(m: Accelerator, claim: Claim, measured: Points) -> OurValue:
    gains = [
        a.gain
        for a in _of_articles(claim.dut(m), measured)
        if (a.suite, a.size, " ".join(a.variant.words)) == (m.suite, m.size, m.variant)
    ]
    if not gains:
        return lacking(f"{claim.dut(m)}: accelerator test of {m.suite} at {m.size} B")
    return ranged([gains[-1]], text=f"{m.suite}, {m.size} B")


@_measure.register
def _accelerator_variant(m: AcceleratorVariant, claim: Claim, measured: Points) -> OurValue:
    """Return the ratios of the speed of a variant to that of the usual test with as many operations."""
    ratios, texts = [], []
    for size in m.sizes:
        by_operations: dict[int, dict[bool, float]] = {}
        for a in _of_articles(claim.dut(m), measured):
            if (a.suite, a.size) == (m.suite, size) and a.variant.words in ([], [m.variant]):
                each = a.at_once_ns if m.way == "all at once" else a.after_ns
                by_operations.setdefault(a.operations, {})[bool(a.variant.words)] = each / a.operations
        both = [times for times in by_operations.values() if len(times) == 2]
        if not both:
            return lacking(
                f"{claim.dut(m)}: accelerator test of {m.suite} at {size} B with and without {m.variant}"
            )
        with_it, without = both[-1][True], both[-1][False]
        ratios.append(without / with_it)
        texts.append(f"{size} B: {with_it / 1e3:.2f} µs, without {m.variant} {without / 1e3:.2f} µs")
    return ranged(ratios, text=f"{m.way}, {'; '.join(texts)}")


@_measure.register
def _bus_count(m: BusCount, claim: Claim, measured: Points) -> OurValue:
    return bus_count(m, claim, measured)


@_measure.register
def _bus_share(m: BusShare, claim: Claim, measured: Points) -> OurValue:
    return bus_share(m, claim, measured)


@_measure.register
def _bus_increase(m: BusIncrease, claim: Claim, measured: Points) -> OurValue:
    return bus_increase(m, claim, measured)


@_measure.register
def _computed(m: Computed, claim: Claim, measured: Points) -> OurValue:
    return computed(m)


@_measure.register
def _kernels(m: Kernels, claim: Claim, measured: Points) -> OurValue:
    return answer(m.what, claim.dut(), measured.kernels, measured.processors)


@_measure.register
def _accelerator_spread(m: AcceleratorSpread, claim: Claim, measured: Points) -> OurValue:
    times = {
        a.suite: a.after_ns / a.operations for a in _accelerated(claim.dut(m), measured) if a.size == m.size
    }
    if len(times) < 2:
        return lacking(f"{claim.dut(m)}: accelerator test of two suites at {m.size} B")
    text = ", ".join(f"{suite} {ns / 1e3:.2f} µs" for suite, ns in times.items())
    return ranged([max(times.values()) / min(times.values())], text=text)


@_measure.register
def _accelerator_suites(m: AcceleratorSuites, claim: Claim, measured: Points) -> OurValue:
    times = {
        a.suite: a.at_once_ns / a.operations
        for a in _accelerated(claim.dut(m), measured, m.crypto)
        if a.size == m.size and a.suite in (m.of, m.to)
    }
    if absent := [suite for suite in (m.of, m.to) if suite not in times]:
        return lacking(f"{claim.dut(m)}: accelerator test of {', '.join(absent)} at {m.size} B, {m.crypto}")
    text = ", ".join(f"{suite} {ns / 1e3:.2f} µs" for suite, ns in times.items())
    return ranged([times[m.of] / times[m.to]], text=text)


def _each_ns(
    m: AcceleratorUses | AcceleratorTimer, dut: str, use: EngineUse, measured: Points
) -> float | None:
    """Return the time of an operation with this use of the engine, `n+1 after n`, ns; None if it was not measured."""
    times = [
        a.after_ns / a.operations
        for a in _accelerated(dut, measured, use)
        if (a.suite, a.size) == (m.suite, m.size)
    ]
    return times[-1] if times else None


@_measure.register
def _accelerator_uses(m: AcceleratorUses, claim: Claim, measured: Points) -> OurValue:
    of, to = (_each_ns(m, claim.dut(m), use, measured) for use in (m.of, m.to))
    if of is None or to is None:
        absent = m.of if of is None else m.to
        return lacking(f"{claim.dut(m)}: accelerator test of {m.suite} at {m.size} B, {absent}")
    return ranged([of / to], text=f"{m.of} {of / 1e3:.2f} µs, {m.to} {to / 1e3:.2f} µs")


@_measure.register
def _accelerator_timer(m: AcceleratorTimer, claim: Claim, measured: Points) -> OurValue:
    each = _each_ns(m, claim.dut(m), DEFAULT, measured)
    if each is None:
        return lacking(f"{claim.dut(m)}: accelerator test of {m.suite} at {m.size} B")
    text = f"an operation takes {each / 1e3:.2f} µs, a step of the timer {m.tick_ns / 1e3:,.6g} µs"
    return statement((), text, holds=each < m.tick_ns)


@_measure.register
def _accelerator_trend(m: AcceleratorTrend, claim: Claim, measured: Points) -> OurValue:
    times: dict[str, dict[int, float]] = {}
    for a in _accelerated(claim.dut(m), measured):
        if a.size in m.sizes:
            times.setdefault(a.suite, {})[a.size] = a.after_ns / a.operations
    whole = {suite: by_size for suite, by_size in times.items() if len(by_size) == len(m.sizes)}
    if len(whole) < (2 if m.what == "suites drift apart" else 1):
        return lacking(f"{claim.dut(m)}: accelerator test of two suites at {sizes_in_words(m.sizes)}")
    if m.what == "suites drift apart":
        spreads = [
            max(of[size] for of in whole.values()) / min(of[size] for of in whole.values())
            for size in m.sizes
        ]
        text = ", ".join(f"{spread:.3f} at {size} B" for spread, size in zip(spreads, m.sizes, strict=True))
        return statement((), text, holds=spreads[-1] > spreads[0] + _APART)
    each = {suite: [of[size] / size for size in m.sizes] for suite, of in whole.items()}
    holds = all(after < before for of in each.values() for before, after in pairwise(of))
    text = "; ".join(f"{suite} {', '.join(f'{ns:.1f}' for ns in of)} ns a byte" for suite, of in each.items())
    return statement((), text, holds=holds)


@_measure.register(PublicKeyTime)
@_measure.register(PublicKeyTable)
@_measure.register(PublicKeyOverhead)
@_measure.register(PublicKeyGain)
@_measure.register(PublicKeyCpu)
@_measure.register(PublicKeyIntensity)
def _public_key(m: PublicKeyTest, claim: Claim, measured: Points) -> OurValue:
    return public_key(m, claim, measured)
