# SPDX-License-Identifier: Apache-2.0
"""Defines the result of a check: a row for each figure, the problems with judging it, and the exit code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Figure = Literal["instructions", "throughput", "frame loss", "CPU per frame"]
# same: within the band. moved: outside the band, but within the limit. improved, regressed: beyond the limit.
# not judged: the base's own trial does not allow a verdict. no verdict: a comparison could not decide.
Word = Literal["same", "moved", "improved", "regressed", "not judged", "no verdict"]
UNJUDGED: tuple[Word, ...] = ("not judged", "no verdict")
PASSED, NOT_JUDGED, REGRESSED = 0, 3, 5


@dataclass(frozen=True)
class Row:
    """One figure of one case at one load.

    base: the median of the base's band, which goes from low to high and has this many repeats. side: the gateway, for
    instructions. now and change are None for a throughput in virtual time, because no new search is made. allowed: by
    how much the figure may be worse, in its unit. A frame loss is a share of the frames. Of the base's it is only known
    that it met the goal, which is in `base` and `high`; change is None. If the statistics of a comparison judged the
    figure, goal and load_fps are None, and the figure is a ratio to the base, which is 1.
    """

    case: str
    goal: float | None
    load_fps: float | None
    quantity: Figure
    side: str
    base: float
    low: float
    high: float
    repeats: int
    now: float | None
    change: float | None
    limit: str
    allowed: float
    word: Word
    why: str = ""

    @property
    def share(self) -> float | None:
        """The change as a share of the base."""
        return None if self.change is None or not self.base else self.change / self.base

    @property
    def name(self) -> str:
        """The name of the figure in a table."""
        return self.quantity if not self.side else f"{self.quantity}, {self.side}"


@dataclass(frozen=True)
class Problem:
    """A case that could not be judged, and why."""

    case: str
    why: str


@dataclass(frozen=True)
class Check:
    """The check of one plan against one base.

    subjects: key → (the base's value, the value now) of the software under test. notes: further remarks for the reader.
    virtual: True: judged by instructions at the base's loads; False: by the statistics of a comparison.
    """

    plan: str
    base: str
    provenance: Sequence[str]
    run: str
    espbench: str
    virtual: bool
    rows: Sequence[Row]
    problems: Sequence[Problem]
    subjects: Mapping[str, tuple[str, str]]
    allowed_differences: Sequence[tuple[str, str, str]]
    notes: Sequence[str]

    @property
    def regressed(self) -> list[Row]:
        """The rows that are worse than their limit allows, the largest share first."""
        worse = [row for row in self.rows if row.word == "regressed"]
        return sorted(worse, key=lambda row: -(row.share or 0.0))

    @property
    def exit_code(self) -> int:
        """0 only if figures were judged, none is worse than its limit, and no case or figure lacks a verdict."""
        if self.regressed:
            return REGRESSED
        judged = [row for row in self.rows if row.word not in UNJUDGED]
        return NOT_JUDGED if self.problems or not judged or len(judged) < len(self.rows) else PASSED

    @property
    def word(self) -> str:
        """The verdict in one or two words."""
        return {PASSED: "passed", NOT_JUDGED: "not judged", REGRESSED: "regressed"}[self.exit_code]

    @property
    def moved(self) -> list[Row]:
        """The rows whose word is not `same`, in the order of the points."""
        return [row for row in self.rows if row.word != "same"]

    @property
    def sentence(self) -> str:
        """The verdict in a sentence."""
        cases = len({row.case for row in self.rows})
        text = f"{len(self.rows)} figures of {cases} cases held against {self.base}"
        words = ("regressed", "improved", "moved", "no verdict", "not judged")
        counts = [f"{n} {word}" for word in words if (n := sum(row.word == word for row in self.rows))]
        problems = [f"{len(self.problems)} problems: not judged as a whole"] if self.problems else []
        return f"{self.word}: {text}: " + ", ".join([*counts, *problems] or ["all the same"])
