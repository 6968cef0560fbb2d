# SPDX-License-Identifier: Apache-2.0
"""Marks throughputs of a run that contradict each other, so that a reader distrusts them although each is OK.

ESP seldom forwards faster than no IPsec, and large frames seldom faster than small ones. A neighbour on the same host
who comes and goes makes figures that say so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain
from statistics import median
from typing import TypeVar

from espbench.sentences import Code
from espbench.terms import WITH_FIGURE, Finding, Outcome, Remark, for_median

_PLAIN = "plain"
# Figures of one throughput differ by this much without a reason; a step of most searches is greater.
_LEAST = 1.02
_CODES = (Code.FASTER_THAN_PLAIN, Code.SLOWER_THAN_LARGER)
_Result = TypeVar("_Result", Outcome, Finding, Outcome | Finding)
_Point = tuple[object, ...]
_Series = tuple[str, str]


class Marking:
    """Marks the results of a run again and again, and makes a new copy of one only if its remarks have changed."""

    def __init__(self) -> None:
        # The key is the id of the first outcome of a pair. The pair keeps it, so that no other object gets this id.
        self._copies: dict[int, tuple[Outcome, Outcome]] = {}

    def __call__(self, results: Sequence[Outcome | Finding]) -> list[Outcome | Finding]:
        return [self._kept(one, copy) for one, copy in zip(results, marked(results), strict=True)]

    def _kept(self, one: Outcome | Finding, copy: Outcome | Finding) -> Outcome | Finding:
        if one is copy or not isinstance(one, Outcome) or not isinstance(copy, Outcome):
            return copy
        known = self._copies.get(id(one))
        if known is None or known[0] is not one or known[1].warnings != copy.warnings:
            known = self._copies[id(one)] = (one, copy)
        return known[1]


def marked(results: Sequence[_Result]) -> list[_Result]:
    """Return the results; the throughputs that contradict others have these remarks, and none of an earlier call."""
    outcomes = [result for result in results if isinstance(result, Outcome)]
    remarks: defaultdict[int, list[Remark]] = defaultdict(list)  # by the id of an outcome
    for number, remark in chain(_faster_than_plain(outcomes), _slower_than_larger(outcomes)):
        remarks[number].append(remark)
    return [_with(result, remarks.get(id(result), [])) for result in results]


def _with(result: _Result, remarks: list[Remark]) -> _Result:
    if not isinstance(result, Outcome):
        return result
    warnings = [*(remark for remark in result.warnings if remark.code not in _CODES), *remarks]
    return result if warnings == result.warnings else result.model_copy(update={"warnings": warnings})


def _faster_than_plain(outcomes: Sequence[Outcome]) -> Iterable[tuple[int, Remark]]:
    """Yield a remark for each outcome of a stack whose median throughput is above that of plain at the same point.

    A lower bound of plain contradicts nothing, since plain may be faster.
    """
    plain: defaultdict[_Point, list[Outcome]] = defaultdict(list)
    own: defaultdict[tuple[_Series, _Point], list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.stack == _PLAIN:
            plain[_point(outcome)].append(outcome)
        else:
            own[(outcome.stack, outcome.suite), _point(outcome)].append(outcome)
    for (_, point), repeats in own.items():
        baseline = for_median(plain.get(point, []))
        mine = [o.throughput_fps for o in for_median(repeats) if o.throughput_fps]
        theirs = [o.throughput_fps for o in baseline if o.throughput_fps and not o.is_capped]
        if mine and theirs and len(theirs) == len(baseline) and median(mine) > _LEAST * median(theirs):
            pct = 100 * (median(mine) / median(theirs) - 1)
            remark = Remark.of(Code.FASTER_THAN_PLAIN, fps=median(theirs), pct=pct)
            yield from ((id(outcome), remark) for outcome in repeats if outcome.throughput_fps)


def _slower_than_larger(outcomes: Sequence[Outcome]) -> Iterable[tuple[int, Remark]]:
    """Yield a remark for each outcome that missed the goal at a load that larger frames of its repeat exceeded."""
    of_series: defaultdict[_Point, list[tuple[int, float, Outcome]]] = defaultdict(list)
    for o in outcomes:
        if isinstance(o.frame_size, int) and o.status in WITH_FIGURE and o.throughput_fps:
            series = (o.stack, o.suite, o.dut, o.ip_version, o.direction, o.test, o.loss_goal, o.repeat)
            of_series[series].append((o.frame_size, o.throughput_fps, o))
    for points in of_series.values():
        for size, _, outcome in points:
            if outcome.status != "OK" or outcome.upper_fps is None:
                continue
            larger = [(fps, other) for other, fps, _ in points if other > size]
            if larger and (best := max(larger))[0] > _LEAST * outcome.upper_fps:
                fps, other = best
                yield (
                    id(outcome),
                    Remark.of(Code.SLOWER_THAN_LARGER, size=other, fps=fps, missed_fps=outcome.upper_fps),
                )


def _point(outcome: Outcome) -> _Point:
    return (
        outcome.dut, outcome.ip_version, outcome.frame_size, outcome.direction, outcome.test, outcome.loss_goal,
    )  # fmt: skip
