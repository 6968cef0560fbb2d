# SPDX-License-Identifier: Apache-2.0
"""Defines what the index contains: runs, series, their points and their changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class RunRow:
    """One run directory; problem: why it could not be read, else empty. started: ISO 8601, UTC.

    is_exact: in virtual time, so that two runs of the same things give the same to the last bit. statuses: status →
    number of results. facts: all that its manifest says it was measured with.
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


@dataclass(frozen=True)
class Series:
    """One figure of one point of a plan, under equal conditions, from run to run.

    goal: the loss goal as a ratio, None of tests that have none. better: `more`, `less`, or empty where neither is.
    conditions: what the plan asked and the platform, a short digest. runs: how many have it, with or without a figure;
    newest: its last figure, None where no run has one.
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


@dataclass(frozen=True)
class Point:
    """The figure of one run in a series: the median of its repeats, and each of them by number.

    run is the run's name, run_path its directory. value is None if no repeat has a figure; a bound is not a figure.
    status: that of each repeat, each status once.
    """

    run: str
    run_path: str
    value: float | None
    repeats: Mapping[int, float] = field(default_factory=dict)
    status: str = ""


@dataclass(frozen=True)
class Change:
    """A change of a series: from `run` on it differs from `before`, the run before it; both are names.

    was, now: the figures, in the series' unit; exact: of these two runs; else the means of the runs before and from
    there on, up to the changes beside it. exactly: False where the change was found by statistics, so that it is near
    that run. differs: what else differs between the two runs' manifests: (what, was, now).
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
        """The quotient now / was; None where one of them is no figure, or was is zero."""
        return self.now / self.was if self.was and self.now is not None else None

    @property
    def word(self) -> str:
        """`better`, `worse`, or `other` where nobody can say."""
        if self.was is None or self.now is None or not self.series.better or self.was == self.now:
            return "other"
        return "better" if (self.now > self.was) == (self.series.better == "more") else "worse"
