# SPDX-License-Identifier: Apache-2.0
"""Computes how much more an arm costs than the baselines `plain` and `null` at the same point.

The cost is a factor (the seed articles' `3.2x`), and CPU time per frame in µs and in cycles.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from statistics import fmean

from espbench.comparison.deciding import statistics
from espbench.comparison.deciding.points import Side, are_in_turns, costs_us, side
from espbench.comparison.deciding.statistics import CONFIDENCE, FEWEST_REPEATS, Prior, Reading, Term
from espbench.comparison.deciding.verdicts import bare_ratio, ratio_terms
from espbench.comparison.sorting.axes import Group, X
from espbench.comparison.sorting.model import Estimate, Overhead
from espbench.comparison.sorting.samples import Run, Sample

Curve = Mapping[X, list[Sample]]


def overheads(groups: Sequence[Group], cpu_mhz: float | None, interleaved: Collection[str]) -> list[Overhead]:
    """Return the overhead of every arm over every baseline, at every point where both were measured.

    interleaved: the runs that measured their arms in turns; in others, a figure that slow CPUs may have lowered is a
    bound.
    """
    costs = []
    for index, group in enumerate(groups):
        if group.baseline:
            continue
        for arm, own in group.arms.items():
            if _is_baseline(own):
                continue
            for baseline, theirs in _baselines(group, arm, groups).items():
                for x in (x for x in own if x in theirs):
                    in_turns = are_in_turns(own[x], theirs[x], interleaved)
                    sides = side(own[x], in_turns=in_turns), side(theirs[x], in_turns=in_turns)
                    if overhead := _at(index, arm, baseline, x, sides, cpu_mhz):
                        costs.append(overhead)
    return costs


def cpu_mhz(runs: Sequence[Run]) -> float | None:
    """Return the clock rate of the hosts' CPUs at the start, MHz; None if it is not recorded or not the same."""
    rates = {run.manifest.host.get("cpu_mhz") for run in runs}
    rate = rates.pop() if len(rates) == 1 else None
    return float(rate) if isinstance(rate, (int, float)) and rate > 0 else None


def _baselines(group: Group, arm: str, groups: Sequence[Group]) -> dict[str, Curve]:
    """Return an arm's baselines: those in its panel; if there are none, the arm's own curves in panels of baselines.

    Baselines have panels of their own if runs, DUTs or kernels are compared.
    """
    here = {name: by_x for name, by_x in group.arms.items() if _is_baseline(by_x)} | group.baselines
    return dict(here) or {
        other.baseline: other.arms[arm]
        for other in groups
        if other.baseline and arm in other.arms and _alike(group, other)
    }


def _is_baseline(by_x: Curve) -> bool:
    return all(s.is_baseline for samples in by_x.values() for s in samples)


def _alike(group: Group, baseline: Group) -> bool:
    """Return whether two conditions are equal in everything but stack and suite."""
    return all(
        baseline.conditions.get(key) == value
        for key, value in group.conditions.items()
        if key not in ("stack", "suite")
    )


def _at(
    panel: int, arm: str, baseline: str, x: X, sides: tuple[Side, Side], cpu_mhz: float | None
) -> Overhead | None:
    own, theirs = sides
    slowdown, at_least, at_most = _slowdown(own, theirs)
    extra = _extra_us(own, theirs)
    if slowdown is None and at_least is None and at_most is None and extra is None:
        return None
    cycles = extra.value * cpu_mhz if extra and cpu_mhz else None
    return Overhead(panel, arm, baseline, x, slowdown, extra, cycles, at_least, at_most)


def _slowdown(own: Side, theirs: Side) -> tuple[Estimate | None, float | None, float | None]:
    """Return baseline / arm, or its lower and upper bound: a figure at the tester's limit may be higher in truth."""
    terms = ratio_terms(own, theirs)
    if not terms:
        return bare_ratio(own, theirs) if own.has_figure and theirs.has_figure else None, None, None
    reading = statistics.interval(terms, [Prior()] * 2, 1 - CONFIDENCE)
    is_low, is_high = math.isfinite(reading.low), math.isfinite(reading.high)
    if is_low and is_high:
        return statistics.ratio(reading, min(len(t.readings) for t in terms)), None, None
    return None, math.exp(reading.low) if is_low else None, math.exp(reading.high) if is_high else None


def _extra_us(own: Side, theirs: Side) -> Estimate | None:
    """Return CPU time per frame above the baseline's, µs; with an interval if the repeats are enough for a verdict."""
    ours, base = (list(costs_us(side).values()) for side in (own, theirs))
    if not ours or not base:
        return None
    n = min(len(ours), len(base))
    if n < FEWEST_REPEATS:
        value = fmean(ours) - fmean(base)
        return Estimate(value, value, value, 1)
    terms = [Term(tuple(Reading(us, us, us) for us in values)) for values in (ours, [-us for us in base])]
    reading = statistics.interval(terms, [Prior()] * 2, 1 - CONFIDENCE)
    return Estimate(reading.value, reading.low, reading.high, n)
