# SPDX-License-Identifier: Apache-2.0
"""Compares trials at the loads of a base with the base: which figures are the same, moved, or worse than the limit.

**Instructions.** They are compared at a tenth of the throughput, or at the throughput if the base has no other load.
The base's repeats form a band, from the least to the greatest figure. Each repeat has random numbers of its own, the
same in base and check, so the band shows the effect of chance in memory layout. With one repeat it has no width. The
new figure is the median over the repeats that were measured: the same ones, or only the first. It is `same` within the
band, or beyond it by at most two instructions in the whole trial; otherwise `moved`. It is `regressed` if it is above
the band by more than the limit, and `improved` if it is below the band by more than the limit.

**Throughput.** No new search is made. If the trial at the base's throughput still meets the loss goal, the figure is
`same`. If not, a trial at the least throughput that the limit allows decides: it meets the goal (`moved`) or does not
(`regressed`).

**Frame loss**, at the loads below the throughput. If the base's trial there met the loss goal and the new one does not,
the figure is `regressed`, without any limit: a gateway that is idle has no reason to lose frames.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from espbench.gate.base import AT_THROUGHPUT, Base, BaseCase, Point, Sample
from espbench.gate.instructions import DIGITS
from espbench.gate.limits import Limit, Quantity
from espbench.gate.verdict import Row, Word
from espbench.sentences import goal_name


@dataclass(frozen=True)
class Measured:
    """A new measurement of one of the base's samples.

    instructions: per frame, by gateway. met: the trial met the loss goal. floor_met: the trial at the least throughput
    that the limit allows met it; None: it was not tried, because the first one met the goal. loss: the share of the
    frames that the trial lost.
    """

    instructions: Mapping[str, float]
    met: bool
    floor_met: bool | None
    loss: float = 0.0


# Reading a gateway's CPU time before and after a trial may cost so many instructions more or less.
_READING = 2
# The key of a measurement is its point, repeat, loss goal and load.
Measurements = Mapping[tuple[Point, int, float, float], Measured]


def judge(base: Base, measured: Measurements, limits: Mapping[Quantity, Limit]) -> list[Row]:
    """Return a row for each gateway, for the throughput and for the loss below it, at each point and goal measured."""
    rows: list[Row] = []
    for point in sorted(base.cases, key=lambda point: point.order):
        case = base.cases[point]
        for goal in sorted({sample.goal for sample in case.samples}):
            of_goal = [s for s in case.samples if s.goal == goal]
            pairs = [
                (s, measured[key])
                for s in of_goal
                if (key := (point, s.repeat, goal, s.load_fps)) in measured
            ]
            shares = sorted({s.share for s, _ in pairs})
            for share in shares:
                samples = [s for s in of_goal if s.share == share]
                made = [(s, now) for s, now in pairs if s.share == share]
                # Instructions at the throughput itself are used only if the base has no lower load.
                if share == shares[0]:
                    measurements = [now for _, now in made]
                    rows += _of_gateways(case, goal, samples, measurements, limits["instructions"])
                judged = [now for s, now in made if s.met]
                if share == AT_THROUGHPUT:
                    rows.append(_throughput(case, goal, samples, judged, limits["throughput"]))
                else:
                    rows.append(_loss(case, goal, samples, judged))
    return rows


def _of_gateways(
    case: BaseCase, goal: float, samples: Sequence[Sample], measurements: Sequence[Measured], limit: Limit
) -> list[Row]:
    """Return a row for each gateway. samples: those of all repeats, the band; measurements: of those measured now."""
    rows = []
    for side in samples[0].instructions:
        band = [s.instructions[side] for s in samples]
        now = [m.instructions[side] for m in measurements if side in m.instructions]
        if len(now) == len(measurements):
            rows.append(_instructions(case, goal, side, samples, band, now, limit))
    return rows


def _instructions(
    case: BaseCase,
    goal: float,
    side: str,
    samples: Sequence[Sample],
    band: Sequence[float],
    figures: Sequence[float],
    limit: Limit,
) -> Row:
    low, middle, high = min(band), round(median(band), DIGITS), max(band)
    now = round(median(figures), DIGITS)
    allowed = limit.allowance(middle)
    # The difference is rounded to the figures' decimal places. Otherwise 0.1 above 0.3 would exceed a limit of 0.1.
    excess = round(now - high if now > high else min(0.0, now - low), DIGITS)
    frames = median(s.load_fps * s.duration_s for s in samples)
    if round(abs(excess) * frames) <= _READING:  # figures per frame are rounded
        excess = 0.0
    return Row(
        case=str(case.point),
        goal=goal,
        load_fps=median(s.load_fps for s in samples),
        quantity="instructions",
        side=side,
        base=middle,
        low=low,
        high=high,
        repeats=len(band),
        now=now,
        change=round(now - middle, DIGITS),
        limit=str(limit),
        allowed=allowed,
        word=_word(excess, allowed),
    )


def _word(excess: float, allowed: float) -> Word:
    if excess == 0:
        return "same"
    if abs(excess) <= allowed:
        return "moved"
    return "regressed" if excess > 0 else "improved"


def _throughput(
    case: BaseCase, goal: float, samples: Sequence[Sample], judged: Sequence[Measured], limit: Limit
) -> Row:
    """Return the row of the throughput. judged: the new measurements of those samples that met the goal in the base."""
    loads = [s.load_fps for s in samples]
    fps = median(loads)
    allowed = limit.allowance(fps)
    word: Word = "same"
    why = f"it still meets {goal_name(goal)} at the base's throughput"
    if not judged:
        word, why = "not judged", "the base's own final trial lost more than the goal, as its search allows"
    elif any(m.floor_met is False for m in judged):
        word, why = "regressed", f"it misses {goal_name(goal)} at {fps - allowed:,.0f} frames/s too"
    elif not all(m.met for m in judged):
        word, why = "moved", f"it meets {goal_name(goal)} at {fps - allowed:,.0f} frames/s, not at the base's"
    return Row(
        case=str(case.point),
        goal=goal,
        load_fps=fps,
        quantity="throughput",
        side="",
        base=fps,
        low=min(loads),
        high=max(loads),
        repeats=len(loads),
        now=None,
        change=None,
        limit=str(limit),
        allowed=allowed,
        word=word,
        why=why,
    )


def _loss(case: BaseCase, goal: float, samples: Sequence[Sample], judged: Sequence[Measured]) -> Row:
    """Return the row of the loss at a load below the throughput; judged: as in `_throughput`."""
    fps = median(s.load_fps for s in samples)
    word: Word = "same"
    why = f"it meets {goal_name(goal)} at {fps:,.0f} frames/s, as in the base"
    if not judged:
        word, why = "not judged", f"the base's own trial at {fps:,.0f} frames/s lost more than the goal"
    elif not all(m.met for m in judged):
        word, why = "regressed", f"it misses {goal_name(goal)} at {fps:,.0f} frames/s, which the base met"
    return Row(
        case=str(case.point),
        goal=goal,
        load_fps=fps,
        quantity="frame loss",
        side="",
        base=goal,
        low=0.0,
        high=goal,
        repeats=len(samples),
        now=max((m.loss for m in judged), default=None),
        change=None,
        limit=goal_name(goal),
        allowed=0.0,
        word=word,
        why=why,
    )
