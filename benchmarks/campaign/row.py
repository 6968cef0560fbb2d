# SPDX-License-Identifier: Apache-2.0
"""Defines a row of the campaign: one kind of disturbance, its repetitions, and their results."""

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

    moments: the number of disturbances. outcomes: allowed outcome (`right`, `INVALID`, `refused` …) → how often.
    faults: each outcome that is not allowed, as a sentence; without faults the repetition passed. lacks: what this
    machine lacks, so that nothing was tried. messages: what espbench said if it ended early, for readers of the state.
    """

    moments: int = 1
    outcomes: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    lacks: str = ""
    messages: list[str] = field(default_factory=list)


class Row(ABC):
    """One kind of disturbance. As a context, it makes and undoes the things that all its repetitions share."""

    name: str
    """The short name, also used on the command line."""
    what: str
    """The sentence in the table: the disturbance, and the expected behaviour of espbench."""
    repetitions: int
    """The number of repetitions in a whole campaign."""
    side_by_side: bool = False
    """True if repetitions may be made at the same time: they run in virtual time and change nothing they share."""

    @abstractmethod
    def run_one(self, repetition: int, seed: int) -> Verdict:
        """Make one repetition with random numbers of this seed, check it, and leave nothing behind."""

    def missing(self) -> str:
        """Say what this machine lacks for this row; empty if it lacks nothing."""
        return ""

    def __enter__(self) -> Self:
        return self

    def __exit__(  # noqa: B027  (most share nothing)
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Do nothing: by default, repetitions share nothing."""


class FolderRow(Row):
    """A row whose repetitions have their files in one temporary folder, which is deleted at the end."""

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix=f"campaign-{self.name}-"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
