# SPDX-License-Identifier: Apache-2.0
"""Defines the result of a check: a row for each figure, the problems with judging it, and the exit code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Figure = Literal["instructions", "throughput", "CPU per frame"]
# same: within the band. moved: outside it, within the limit. not judged: the base itself says nothing of it.
Word = Literal["same", "moved", "improved", "regressed", "not judged", "no verdict"]
PASSED, NOT_JUDGED, REGRESSED = 0, 3, 5


@dataclass(frozen=True)
class Row:
    """One figure of one case at one load. base is the median of the band from low to high, of so many repeats.

    side: which gateway, of instructions. now and change are None of a throughput in virtual time, which is tried and
    not searched again. allowed: what the limit allows, in the figure's unit. goal and load_fps are None, and the
    figure is a ratio of which the base is 1, where the statistics of a comparison judged it.
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
    """One plan held against one base.

    subjects: key → (the base's value, the value now) of what was under test. notes: what a reader must know besides.
    virtual: judged by instructions at the base's loads; else by the statistics of a comparison.
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
        """The rows beyond their limit, the worst share first."""
        worse = [row for row in self.rows if row.word == "regressed"]
        return sorted(worse, key=lambda row: -(row.share or 0.0))

    @property
    def exit_code(self) -> int:
        """0 only where something was judged and nothing is worse than its limit or could not be judged."""
        if self.regressed:
            return REGRESSED
        judged = [row for row in self.rows if row.word not in ("not judged", "no verdict")]
        unjudged = any(row.word == "no verdict" for row in self.rows)
        return NOT_JUDGED if self.problems or unjudged or not judged else PASSED

    @property
    def word(self) -> str:
        """The verdict in a word or two."""
        return {PASSED: "passed", NOT_JUDGED: "not judged", REGRESSED: "regressed"}[self.exit_code]

    @property
    def moved(self) -> list[Row]:
        """The rows that are not the same, in the order of the points."""
        return [row for row in self.rows if row.word != "same"]

    @property
    def sentence(self) -> str:
        """The verdict in a sentence."""
        cases = len({row.case for row in self.rows})
        text = f"{len(self.rows)} figures of {cases} cases held against {self.base}"
        words = [
            (word, sum(row.word == word for row in self.rows)) for word in ("regressed", "improved", "moved")
        ]
        counts = [f"{n} {word}" for word, n in words if n]
        problems = [f"{len(self.problems)} problems: not judged as a whole"] if self.problems else []
        return f"{self.word}: {text}: " + ", ".join([*counts, *problems] or ["all the same"])
