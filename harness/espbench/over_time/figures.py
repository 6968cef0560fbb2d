# SPDX-License-Identifier: Apache-2.0
"""Selects the figures of a run that form series: throughput and its cost per frame; of other tests all figures."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from espbench.gate.base import Point as Place
from espbench.results.outcome_files import rounded
from espbench.sentences import goal_name
from espbench.terms import NO_MEDIAN, PAIRED, Finding, Outcome

_IN_REAL_TIME = ("cpu_home_us_per_frame", "cpu_office_us_per_frame")
_IN_VIRTUAL_TIME = ("instructions_home_per_frame", "instructions_office_per_frame")
_THROUGHPUT = "throughput"
_BOUND = "LOWER_BOUND"  # also of an OK result, whose search reached the limit of the tester or of the plan
# Column of results.csv → its name for people, its unit, and whether more or less is better.
_OF_OUTCOME = {
    "throughput_fps": (_THROUGHPUT, "frames/s", "more"),
    "cpu_home_us_per_frame": ("CPU per frame, Home", "µs", "less"),
    "cpu_office_us_per_frame": ("CPU per frame, Office", "µs", "less"),
    "instructions_home_per_frame": ("instructions per frame, Home", "instructions", "less"),
    "instructions_office_per_frame": ("instructions per frame, Office", "instructions", "less"),
}


@dataclass(frozen=True)
class Key:
    """The key of a series: figures with equal keys belong to one series of a plan and its conditions."""

    case: str
    test: str
    goal: float | None
    figure: str
    unit: str
    better: str


@dataclass
class Figures:
    """The figures of one run in one series: one for each repeat that has a figure, and the statuses of all repeats."""

    by_repeat: dict[int, float] = field(default_factory=dict)
    statuses: list[str] = field(default_factory=list)

    @property
    def median(self) -> float | None:
        """The median over repeats; None if no repeat has a figure."""
        return statistics.median(self.by_repeat.values()) if self.by_repeat else None

    @property
    def status(self) -> str:
        """The statuses, each once, `OK` before the others."""
        return ", ".join(sorted(set(self.statuses), key=lambda status: (status != "OK", status)))


def figures(results: Iterable[Outcome | Finding], *, exact: bool) -> dict[Key, Figures]:
    """Return every figure of a run.

    A throughput that is only a bound is left out: it shows what the run could judge, not the DUT. Its cost per frame is
    kept, except with status LOWER_BOUND. If a repeat is VIOLATED or BELOW_MINIMUM, its case has no figure.
    """
    by_key: dict[Key, Figures] = {}
    results = [result for result in results if result.test != PAIRED]
    for result in results:
        of_result = _of_outcome(result, exact=exact) if isinstance(result, Outcome) else _of_finding(result)
        for key, value in of_result:
            of_key = by_key.setdefault(key, Figures())
            is_bound = isinstance(result, Outcome) and key.figure == _THROUGHPUT and result.is_lower_bound
            of_key.statuses.append(_BOUND if is_bound else result.status)
            if value is not None and result.status == "OK" and not is_bound:
                of_key.by_repeat[result.repeat] = value
    without: dict[str, list[str]] = {}
    for result in results:
        if result.status in NO_MEDIAN:
            without.setdefault(_case(result), []).append(result.status)
    for key, of_key in by_key.items():
        if key.case in without:
            of_key.by_repeat.clear()
            of_key.statuses += without[key.case]
    return by_key


def unfit(results: Iterable[Outcome | Finding]) -> dict[str, str]:
    """Return the statuses of each case of which a result is not OK: case, as in its keys → each status once.

    Such a result may lack the figures that the case has in other runs.
    """
    by_case: dict[str, Figures] = {}
    for result in results:
        if result.test != PAIRED:
            by_case.setdefault(_case(result), Figures()).statuses.append(result.status)
    return {case: of_case.status for case, of_case in by_case.items() if of_case.status != "OK"}


def _case(result: Outcome | Finding) -> str:
    """Return the name of a result's case in all runs, with the loss goal if it has one."""
    if isinstance(result, Outcome):
        return f"{Place.of(result)}, loss goal {goal_name(result.loss_goal)}"
    return str(Place.of(result))


def _of_outcome(outcome: Outcome, *, exact: bool) -> Iterator[tuple[Key, float | None]]:
    case = _case(outcome)
    figures = rounded(outcome)
    for column in ("throughput_fps", *(_IN_VIRTUAL_TIME if exact else _IN_REAL_TIME)):
        value = getattr(figures, column)
        if column == "throughput_fps" or value is not None:
            yield Key(case, outcome.test, outcome.loss_goal, *_OF_OUTCOME[column]), value


def _of_finding(finding: Finding) -> Iterator[tuple[Key, float | None]]:
    for quantity in finding.quantities:
        better = quantity.better or ""
        yield (
            Key(_case(finding), finding.test, None, quantity.name, quantity.unit, better),
            quantity.value,
        )
