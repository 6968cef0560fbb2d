# SPDX-License-Identifier: Apache-2.0
"""Computes the cost of sampled functions per frame, and its statistical error."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from espbench.errors import EspbenchError
from espbench.profile.attribution import Where
from espbench.profile.samples import Sample, Samples
from espbench.profile.symbols import UNNAMED, Function

_Z = 1.959964  # the normal quantile of a two-sided 95 % interval
_SOFTIRQ = frozenset({"__do_softirq", "handle_softirqs", "__softirqentry_text_start"})
_INTERRUPT = (
    "asm_common_interrupt", "common_interrupt", "asm_sysvec_", "sysvec_", "el1h_64_irq", "el0t_64_irq",
    "gic_handle_irq", "do_IRQ",
)  # fmt: skip
# The CPU time that the samples stand for may differ from the record's by this share, and by this many standard errors.
_AGREE, _SIGMAS = 0.25, 4.0
_LOST_AT_MOST = 0.01


class Place(NamedTuple):
    """A function, the process in which it ran, and the context in which it ran."""

    process: str
    function: Function
    where: Where


@dataclass(frozen=True)
class Share:
    """A share of the gateway's CPU time, with the half-width of its 95 % interval."""

    value: float
    error: float


@dataclass(frozen=True)
class SampledProfile:
    """The samples of one gateway in one trial, and the CPU time in the trial's record.

    frames: the number of frames that the gateway forwarded in it. samples: the number of samples at each place.
    weights: the sum of these samples' periods; shares are computed from weights. equal: the effective number of
    samples: so many of equal weight have the same statistical error. lost: samples that perf could not keep. stacks: ns
    of CPU time by the chain of callers, the outermost first.
    """

    case: str
    side: str
    frames: int
    cpu_ns: int
    event: str
    samples: Mapping[Place, int]
    weights: Mapping[Place, float]
    equal: float
    lost: int = 0
    stacks: Mapping[tuple[str, ...], int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """The number of samples in which the gateway was not idle."""
        return sum(self.samples.values())

    @property
    def ns_per_frame(self) -> float:
        """The gateway's CPU time per frame, from the record and not from the samples, ns."""
        return self.cpu_ns / self.frames

    def share(self, places: Iterable[Place]) -> Share:
        """Return the share of the CPU time that was spent at these places."""
        value = sum(self.weights.get(place, 0.0) for place in places) / sum(self.weights.values())
        return Share(value, half_width(value, self.equal))

    def by_where(self) -> dict[Where, Share]:
        """Return the share of each context."""
        of: defaultdict[Where, list[Place]] = defaultdict(list)
        for place in self.samples:
            of[place.where].append(place)
        return {where: self.share(places) for where, places in of.items()}


def half_width(share: float, looks: float) -> float:
    """Return half the width of the 95 % interval of a share of so many samples (Wilson); 1 without samples.

    It is larger than 0 for a function that is in no sample, because that function may have run too.
    """
    if looks <= 0:
        return 1.0
    inside = share * (1 - share) / looks + _Z * _Z / (4 * looks * looks)
    return _Z / (1 + _Z * _Z / looks) * math.sqrt(max(0.0, inside))


def attribute(case: str, side: str, frames: int, cpu_ns: int, read: Samples) -> SampledProfile:
    """Return the profile of a gateway; samples of an idle CPU are left out, because they are no CPU time.

    EspbenchError if the samples do not fit the record: there are none, many are lost, or their CPU time differs.
    """
    busy = [(sample, where) for sample in read.samples if (where := where_of(sample)) != "idle"]
    if not busy:
        raise EspbenchError(f"{case}, {side}: perf took no sample of this gateway at work")
    if read.lost > _LOST_AT_MOST * (read.lost + len(read.samples)):
        raise EspbenchError(
            f"{case}, {side}: perf lost {read.lost:,} of its samples, and has {len(read.samples):,}; what is left may "
            "not be a fair choice: measure with less load, or on a machine with less to do"
        )
    samples: defaultdict[Place, int] = defaultdict(int)
    weights: defaultdict[Place, float] = defaultdict(float)
    stacks: defaultdict[tuple[str, ...], float] = defaultdict(float)
    for sample, where in busy:
        function = sample.calls[-1] if sample.calls else UNNAMED
        place = Place(sample.process, function, where)
        samples[place] += 1
        weights[place] += sample.period
        stacks[(f"[{sample.process}]", *map(str, sample.calls or (UNNAMED,)))] += sample.period
    periods = [sample.period for sample, _ in busy]
    total = sum(periods)
    equal = total * total / sum(period * period for period in periods)
    if "clock" in read.event:
        _demand_the_records(case, side, cpu_ns, total, equal)
    return SampledProfile(
        case, side, frames, cpu_ns, read.event, dict(samples), dict(weights), equal, read.lost,
        {path: round(weight * cpu_ns / total) for path, weight in stacks.items()},
    )  # fmt: skip


def _demand_the_records(case: str, side: str, cpu_ns: int, sampled_ns: int, looks: float) -> None:
    """Raise EspbenchError unless the samples of a clock event add up to about the CPU time of the record."""
    if abs(sampled_ns - cpu_ns) > (_AGREE + _SIGMAS / math.sqrt(looks)) * max(cpu_ns, sampled_ns):
        raise EspbenchError(
            f"{case}, {side}: the samples stand for {sampled_ns / 1e6:,.0f} ms of CPU time, the trial's record has "
            f"{cpu_ns / 1e6:,.0f} ms; they are not those of this trial, so there is no profile"
        )


def where_of(sample: Sample) -> Where:
    """Return the context in which a sample's function ran."""
    names = [function.name for function in sample.calls]
    if any(name in _SOFTIRQ for name in names):
        return "softirq"
    if any(name.startswith(_INTERRUPT) for name in names):
        return "hard interrupt"
    if sample.idle:
        return "idle"
    return "process" if sample.in_kernel or not sample.calls else "user space"


@dataclass(frozen=True)
class Change:
    """The cost of a process's function in two profiles, ns of CPU time per frame.

    error: half the width of the 95 % interval of the difference.
    """

    process: str
    function: Function
    was: float
    now: float
    error: float

    @property
    def change(self) -> float:
        """The increase of the function's cost, ns per frame."""
        return self.now - self.was

    @property
    def is_certain(self) -> bool:
        """True if the change is larger than its error: by chance that happens to 1 of 20 functions without a change."""
        return abs(self.change) > self.error


def difference(was: SampledProfile, now: SampledProfile) -> list[Change]:
    """Return the change of each function of either profile, the largest change first."""
    before, after = _costs(was), _costs(now)
    nothing = {side: half_width(0.0, p.equal) * p.ns_per_frame for side, p in (("was", was), ("now", now))}
    changes = [
        Change(process, function, b, a, math.hypot(b_error, a_error))
        for process, function in before.keys() | after.keys()
        for b, b_error in [before.get((process, function), (0.0, nothing["was"]))]
        for a, a_error in [after.get((process, function), (0.0, nothing["now"]))]
    ]
    return sorted(changes, key=lambda row: (-abs(row.change), row.process, row.function))


def by_function(profile: SampledProfile) -> dict[tuple[str, Function], list[Place]]:
    """Return the places of each function in each process, the most expensive function first."""
    places: defaultdict[tuple[str, Function], list[Place]] = defaultdict(list)
    for place in profile.samples:
        places[place.process, place.function].append(place)
    return dict(sorted(places.items(), key=lambda item: (-profile.share(item[1]).value, item[0])))


def _costs(profile: SampledProfile) -> dict[tuple[str, Function], tuple[float, float]]:
    """Return the cost of each function with its error, ns per frame."""
    each = profile.ns_per_frame
    return {
        key: (each * share.value, each * share.error)
        for key, places in by_function(profile).items()
        for share in [profile.share(places)]
    }
