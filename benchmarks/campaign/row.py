# SPDX-License-Identifier: Apache-2.0
"""A row of the campaign: one way to disturb espbench, repeated, and what came of each repetition."""

from __future__ import annotations

import shutil
import tempfile
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self


@dataclass
class Verdict:
    """The result of one repetition.

    moments: how often it disturbed. outcomes: what came of it → how often (`right`, `INVALID`, `refused` …), each of
    them allowed. faults: what is not allowed, a sentence each; none = the repetition passed. lacks: what this machine
    does not have, so that nothing was tried. told: espbench's messages where it ended early, for readers of the state.
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
    """A sentence for the table: what is done, and what is expected of espbench."""
    repetitions: int
    """The number of repetitions in a whole campaign."""

    @abstractmethod
    def run_one(self, repetition: int, seed: int) -> Verdict:
        """Disturb once, with random numbers of this seed, and check; leaves nothing behind."""

    def missing(self) -> str:
        """Say what this machine lacks for it; empty if it lacks nothing."""
        return ""

    def __enter__(self) -> Self:
        return self

    def __exit__(  # noqa: B027  (most share nothing)
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing is shared unless a row says so."""


class FolderRow(Row):
    """A row whose repetitions have their files in one folder, which is deleted with them."""

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix=f"campaign-{self.name}-"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
