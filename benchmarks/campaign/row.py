# SPDX-License-Identifier: Apache-2.0
"""A row of the campaign: one way to disturb espbench, repeated, and what came of each repetition."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self


@dataclass
class Verdict:
    """What one repetition showed.

    moments: how often it disturbed. outcomes: what came of it → how often (`right`, `INVALID`, `refused` …), each of
    them allowed. faults: what is not allowed, a sentence each; none = the repetition passed. lacks: what this machine
    has not got, so that nothing was tried. told: what espbench said where it ended early; for whoever reads the state.
    """

    moments: int = 1
    outcomes: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    lacks: str = ""
    told: list[str] = field(default_factory=list)


class Row(ABC):
    """One kind of disturbance. Used as a context, which makes and undoes what all its repetitions share."""

    name: str
    """Short, and a word on the command line."""
    what: str
    """What is done, and what is expected of espbench: a sentence for the table."""
    repetitions: int
    """How many a whole campaign makes."""

    @abstractmethod
    def run_one(self, repetition: int, seed: int) -> Verdict:
        """Disturb once, with random numbers of this seed, and check; leaves nothing behind."""

    def missing(self) -> str:
        """What this machine lacks for it; empty: nothing."""
        return ""

    def __enter__(self) -> Self:
        return self

    def __exit__(  # noqa: B027  (most share nothing)
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing is shared unless a row says so."""
