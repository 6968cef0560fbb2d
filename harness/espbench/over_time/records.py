# SPDX-License-Identifier: Apache-2.0
"""Defines what the index contains: runs, series, their points and their changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from espbench.terms import NO_MEDIAN


@dataclass(frozen=True)
class RunRow:
    """One run directory.

    started: ISO 8601, UTC. is_exact: it is in virtual time, so that another run under the same conditions has the same
    figures to the last bit. statuses: status → number of results. facts: the conditions in its manifest; where those of
    several machines differ, each value has its machine's name. problem: why it is in no series: it could not be read,
    or (is_copy) another folder has the same run; else empty.
    """

    path: str
    name: str
    plan: str
    started: str
    espbench: str
    platform: str
    is_exact: bool
    cases: int
    statuses: Mapping[str, int]
    facts: Mapping[str, str]
    problem: str = ""
    is_copy: bool = False


@dataclass(frozen=True)
class Series:
    """One figure of one point of a plan, under equal conditions, from run to run.

    goal: the loss goal as a ratio; None for tests without one. better: `more`, `less`, or empty if neither is better.
    conditions: a short digest of the plan's settings and the platform. runs: the number of runs in the series, with or
    without a figure. newest: the last figure; None if no run has one. newest_status: the status of the newest run if it
    has no figure, so that `newest` is older; otherwise empty. machine: the fingerprint of the one that measured it;
    empty in virtual time, or if it is not known. namesakes: the number of other series with the same plan, case and
    figure, whose conditions or machines differ.
    """

    number: int
    plan: str
    case: str
    test: str
    goal: float | None
    figure: str
    unit: str
    better: str
    is_exact: bool
    conditions: str
    runs: int = 0
    newest: float | None = None
    newest_status: str = ""
    machine: str = ""
    namesakes: int = 0


@dataclass(frozen=True)
class Point:
    """The figure of one run in a series: the median of its repeats, and each of them by number.

    run is the run's name, run_path its directory. value is None if no repeat has a figure, or if one is VIOLATED or
    BELOW_MINIMUM; a bound is not a figure. status: the statuses of the repeats, each once.
    """

    run: str
    run_path: str
    value: float | None
    repeats: Mapping[int, float] = field(default_factory=dict)
    status: str = ""

    @property
    def is_failure(self) -> bool:
        """True if there is no figure because frames were not encrypted, or because the DUT forwards too little."""
        return self.value is None and not {*self.status.split(", ")}.isdisjoint(NO_MEDIAN)


@dataclass(frozen=True)
class Change:
    """A change of a series: from `run` on it differs from `before`, an earlier run; both are names.

    before: the last run with a figure; if no figure differs from it, the run before, with another status. was, now: the
    figures, in the series' unit. In an exact series they are those of the two runs; otherwise they are the means of the
    runs between the change before and this one, and between this one and the next. exactly: False if the change was
    found by statistics, so that it may be at a run nearby. differs: (what, was, now) of everything else that differs
    between the manifests of the two runs; in real time, for the machine of the series.
    """

    series: Series
    run: str
    run_path: str
    started: str
    before: str
    before_path: str
    was: float | None
    now: float | None
    was_status: str
    now_status: str
    exactly: bool
    differs: Sequence[tuple[str, str, str]]

    @property
    def ratio(self) -> float | None:
        """The quotient now / was; None if one of them is not a figure, or if was is zero."""
        return self.now / self.was if self.was and self.now is not None else None

    @property
    def word(self) -> str:
        """`better` or `worse`; `other` if neither can be said."""
        if self.was is None or self.now is None or not self.series.better or self.was == self.now:
            return "other"
        return "better" if (self.now > self.was) == (self.series.better == "more") else "worse"
