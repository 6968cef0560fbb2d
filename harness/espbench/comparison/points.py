# SPDX-License-Identifier: Apache-2.0
"""One arm at one point: what its repeats say, and what they cannot say."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from espbench.comparison import statistics
from espbench.comparison.model import ArmPoint, Estimate
from espbench.comparison.samples import Sample
from espbench.comparison.statistics import Reading
from espbench.terms import Outcome

# How `procedures/throughput` begins its warnings about a figure that is the tester's and not the DUT's.
AT_LIMIT = ("tester-limited", "at the search's maximum")


@dataclass(frozen=True)
class Side:
    """The repeats of one arm at one point.

    ok holds those with a figure by pair (run, repeat); below counts those that missed the goal at
    the minimum; left_out those that say nothing (INVALID, UNRESOLVABLE), by status.
    is_capped: some figure met the tester's limit or the search's maximum, so the mean is a lower bound.
    """

    ok: dict[tuple[str, int], Outcome]
    below: int
    left_out: Counter[str]
    is_capped: bool

    @property
    def valid(self) -> int:
        """Repeats that say something of the DUT."""
        return len(self.ok) + self.below

    @property
    def is_mixed(self) -> bool:
        """Whether some repeats have a figure and others are below the minimum: then there is no mean."""
        return bool(self.ok) and self.below > 0


def side(samples: Sequence[Sample]) -> Side:
    """Sort the repeats of one arm at one point."""
    ok = {s.pair: s.outcome for s in samples if s.outcome.status == "OK" and s.outcome.throughput_fps}
    others = Counter[str](s.outcome.status for s in samples if s.pair not in ok)
    below = others.pop("BELOW_MINIMUM", 0)
    return Side(ok, below, others, any(map(is_capped, ok.values())))


def is_capped(outcome: Outcome) -> bool:
    """Whether the DUT may be faster than its figure."""
    return outcome.upper_fps is None or any(text.startswith(AT_LIMIT) for text in outcome.warnings)


def reading(outcome: Outcome) -> Reading:
    """The log throughput of an outcome with a figure, between the rates shown to meet and to miss the goal.

    A capped figure has no upper end that means anything; it is then its own.
    """
    fps = outcome.throughput_fps
    assert fps is not None
    low = min(outcome.lower_fps or fps, fps)
    high = max(outcome.upper_fps or fps, fps)
    return Reading(math.log(low), math.log(fps), math.log(high))


def arm_point(samples: Sequence[Sample]) -> ArmPoint:
    """What a report shows of one arm at one point."""
    here = side(samples)
    ok = list(here.ok.values())
    fps = statistics.geometric([reading(o) for o in ok]) if ok else None
    return ArmPoint(
        fps=fps,
        mbps=_in_mbps(fps, ok),
        statuses=dict(Counter(s.outcome.status for s in samples)),
        cpu_home_us=statistics.arithmetic([c for o in ok if (c := o.cpu_home_us_per_frame) is not None]),
        cpu_office_us=statistics.arithmetic([c for o in ok if (c := o.cpu_office_us_per_frame) is not None]),
        cpu_us=statistics.arithmetic([c for o in ok if (c := cpu_us(o)) is not None]),
        proven=all(o.encryption != "not proven" for o in ok),
        at_least=here.is_capped,
    )


def cpu_us(outcome: Outcome) -> float | None:
    """µs of CPU per frame of both gateways; None where one of them is not known."""
    home, office = outcome.cpu_home_us_per_frame, outcome.cpu_office_us_per_frame
    return home + office if home is not None and office is not None else None


def _in_mbps(fps: Estimate | None, ok: Sequence[Outcome]) -> Estimate | None:
    """The same in Mbit/s; all repeats of a point have the same frames."""
    one = next((o for o in ok if o.throughput_mbps is not None and o.throughput_fps), None)
    if fps is None or one is None or one.throughput_mbps is None or one.throughput_fps is None:
        return None
    scale = one.throughput_mbps / one.throughput_fps
    return Estimate(fps.value * scale, fps.low * scale, fps.high * scale, fps.n)
