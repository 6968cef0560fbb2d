# SPDX-License-Identifier: Apache-2.0
"""Summarises the repeats of one arm at one point: their figures, their bounds, and the repeats without either."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from espbench.comparison.deciding import statistics
from espbench.comparison.deciding.statistics import Reading
from espbench.comparison.sorting.model import ArmPoint, Estimate
from espbench.comparison.sorting.samples import Sample
from espbench.terms import WITH_FIGURE, Outcome

Pair = tuple[str, int]  # run, repeat


@dataclass(frozen=True)
class Side:
    """The repeats of one arm at one point.

    ok: the repeats with a figure. below: the repeats that missed the loss goal even at the minimum load. left_out: the
    number of repeats that say nothing (INVALID, UNRESOLVABLE), by status. is_capped: some figure is a lower bound
    (LOWER_BOUND, or it reached the tester's limit or the search's maximum), and so is the mean. violated: the number
    of repeats in which frames crossed without encryption; if there are any, ok and below are empty. slowed: the number
    of repeats that slow CPUs may have lowered, if the arms were not measured in turns; they are bounds too.
    """

    ok: dict[Pair, Outcome]
    below: dict[Pair, Outcome]
    left_out: Counter[str]
    is_capped: bool
    violated: int = 0
    slowed: int = 0

    @property
    def unjudged(self) -> int:
        """The number of repeats whose figure is a bound because the loads above could not be judged."""
        return sum(o.status == "LOWER_BOUND" for o in self.ok.values())

    @property
    def is_in_doubt(self) -> bool:
        """True if some repeat's figure is a bound for a reason other than a limit of the tester or of the search."""
        return bool(self.unjudged or self.slowed)

    @property
    def is_mixed(self) -> bool:
        """True if some repeats have a figure and others are below the minimum: then there is no mean."""
        return bool(self.ok and self.below)

    @property
    def has_figure(self) -> bool:
        """True if every repeat that says anything has a figure, and no figure is a bound."""
        return bool(self.ok) and not self.below and not self.is_capped

    @property
    def readings(self) -> dict[Pair, Reading]:
        """The known range of the logarithm of each repeat's throughput; an end that is not known is infinite.

        A repeat below the minimum has a throughput below the lowest rate that missed. The result is empty if some
        repeats are below the minimum and others are not.
        """
        if self.is_mixed:
            return {}
        if self.below:
            ends = {pair: math.log(o.upper_fps) for pair, o in self.below.items() if o.upper_fps}
            return {pair: Reading(-math.inf, end, end) for pair, end in ends.items()}
        readings = {pair: reading(o) for pair, o in self.ok.items()}
        if self.is_capped:
            return {pair: Reading(r.low, r.value, math.inf) for pair, r in readings.items()}
        return readings


def side(samples: Sequence[Sample], *, in_turns: bool = True) -> Side:
    """Sort the repeats of one arm at one point by their status.

    in_turns: one run measured the arms in turns. Then slow CPUs strike both alike, and the interval includes them. If
    not, a figure that slow CPUs may have lowered is a bound.
    """
    if violated := sum(s.outcome.status == "VIOLATED" for s in samples):
        return Side({}, {}, Counter(s.outcome.status for s in samples), is_capped=False, violated=violated)
    ok = {s.pair: s.outcome for s in samples if s.outcome.status in WITH_FIGURE and s.outcome.throughput_fps}
    below = {s.pair: s.outcome for s in samples if s.outcome.status == "BELOW_MINIMUM"}
    others = Counter[str](s.outcome.status for s in samples if s.pair not in ok | below)
    capped = [pair for pair, outcome in ok.items() if is_capped(outcome)]
    slowed = [] if in_turns else [pair for pair, o in ok.items() if o.is_lower_bound and pair not in capped]
    return Side(ok, below, others, bool(capped or slowed), slowed=len(slowed))


def is_capped(outcome: Outcome) -> bool:
    """Return whether a figure is a bound: no load above it missed, or what missed does not count."""
    return outcome.upper_fps is None or outcome.is_capped


def reading(outcome: Outcome) -> Reading:
    """Return the log throughput of an outcome with a figure, between the rates shown to meet and to miss the goal."""
    fps = outcome.throughput_fps
    assert fps is not None
    low = min(outcome.lower_fps or fps, fps)
    high = max(outcome.upper_fps or fps, fps)
    return Reading(math.log(low), math.log(fps), math.log(high))


def are_in_turns(one: Sequence[Sample], other: Sequence[Sample], interleaved: Collection[str]) -> bool:
    """Return whether one run measured both in turns; interleaved: the runs that measured their arms in turns."""
    runs = {s.run for s in one}
    return runs == {s.run for s in other} and runs <= set(interleaved)


def arm_point(samples: Sequence[Sample], *, in_turns: bool = True) -> ArmPoint:
    """Return what a report shows of one arm at one point; in_turns: as `side` has it.

    If some repeats are below the minimum, the others' figures are no figure of the arm.
    """
    here = side(samples, in_turns=in_turns)
    ok = [] if here.is_mixed else list(here.ok.values())
    fps = statistics.geometric([reading(o) for o in ok]) if ok else None
    return ArmPoint(
        fps=fps,
        mbps=_in_mbps(fps, ok),
        statuses=dict(Counter(s.outcome.status for s in samples)),
        cpu_home_us=_mean([o.cpu_home_us_per_frame for o in ok]),
        cpu_office_us=_mean([o.cpu_office_us_per_frame for o in ok]),
        cpu_us=_mean([cpu_us(o) for o in ok]),
        proven=all(o.encryption != "not proven" for o in ok),
        at_least=bool(ok) and here.is_capped,
        instructions_home=_mean([o.instructions_home_per_frame for o in ok]),
        instructions_office=_mean([o.instructions_office_per_frame for o in ok]),
        slowed=bool(ok) and here.slowed > 0,
    )


def costs_us(side: Side) -> dict[Pair, float]:
    """Return µs of CPU per frame of the repeats; none if some are below the minimum, since they are missing there."""
    known = {} if side.is_mixed else {pair: cpu_us(o) for pair, o in side.ok.items()}
    return {pair: us for pair, us in known.items() if us is not None}


def _mean(values: Sequence[float | None]) -> Estimate | None:
    """Return the mean of the values that are known; None if none is."""
    return statistics.arithmetic([value for value in values if value is not None])


def cpu_us(outcome: Outcome) -> float | None:
    """Return µs of CPU per frame of both gateways; None where one of them is not known."""
    home, office = outcome.cpu_home_us_per_frame, outcome.cpu_office_us_per_frame
    return home + office if home is not None and office is not None else None


def _in_mbps(fps: Estimate | None, ok: Sequence[Outcome]) -> Estimate | None:
    """Return a frame rate in Mbit/s; one factor fits all repeats, since they have the same frame sizes."""
    one = next((o for o in ok if o.throughput_mbps is not None and o.throughput_fps), None)
    if fps is None or one is None or one.throughput_mbps is None or one.throughput_fps is None:
        return None
    scale = one.throughput_mbps / one.throughput_fps
    return Estimate(fps.value * scale, fps.low * scale, fps.high * scale, fps.n)
