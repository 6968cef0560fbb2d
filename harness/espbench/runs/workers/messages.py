# SPDX-License-Identifier: Apache-2.0
"""Defines the messages between the driver of a run and its workers: tasks there, records back as they are made.

Messages are pickled. Both ends are one program of one user, started by the other end.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from espbench.plan import Case, Profile, ResolvedPlan
from espbench.platforms.base import Placement
from espbench.procedures.procedure import Known
from espbench.results.accelerator import Figure, name_of
from espbench.terms import Finding, Manifest, Outcome, Trial


@dataclass(frozen=True)
class RunFacts:
    """The facts that are the same for all tasks of a run; cases: all of them, in the order of measuring.

    placement: in virtual time it does not matter who runs where, but the record says so; None in real time, where each
    machine has its own. profiled: as of a Workspace.
    copies: as of `Workers`.
    """

    resolved: ResolvedPlan
    devices: tuple[tuple[str, Profile | None], ...]
    cases: tuple[Case, ...]
    placement: Placement | None
    profiled: bool = False
    copies: Mapping[str, str] = field(default_factory=dict)

    def pickled(self) -> bytes:
        """Pickle it for tasks to carry: a worker reads it again only where it differs from the last."""
        return pickle.dumps(self)


@dataclass(frozen=True)
class CaseTask:
    """Make the trials that a case still wants. trials: those that are on disk."""

    run: bytes
    manifest: Manifest
    case: Case
    known: Known
    trials: list[Trial]

    @property
    def name(self) -> str:
        """The case's key in the run."""
        return self.case.id


@dataclass(frozen=True)
class AcceleratorTask:
    """Make one figure of the driver-level accelerator test."""

    run: bytes
    manifest: Manifest
    figure: Figure
    operations: int

    @property
    def name(self) -> str:
        """The name that distinguishes it from the run's other tasks."""
        return name_of(self.figure)


@dataclass(frozen=True)
class ShareTask:
    """Measure a share of a run in real time, which is of one machine; manifest: as that machine sees it (machines.py).

    trials: those on disk of each of its cases, by their ids. attempt: from 1; what an earlier one still tells is not
    heard.
    """

    run: bytes
    manifest: Manifest
    share: str
    cases: frozenset[str]
    trials: Mapping[str, list[Trial]]
    attempt: int

    @property
    def name(self) -> str:
        """The name that distinguishes it from the run's other tasks, and from itself when it is begun again."""
        return self.share if self.attempt == 1 else f"{self.share} (attempt {self.attempt})"


Task = CaseTask | AcceleratorTask | ShareTask


@dataclass(frozen=True)
class Hello:
    """A worker's first words: where its logs are while it works."""

    logs: Path


@dataclass(frozen=True)
class TrialMade:
    """A record; the worker goes on when the driver says that it is on disk."""

    trial: Trial


@dataclass(frozen=True)
class Learnt:
    """Keys of the manifest, as RunDirectory.update_manifest takes them; of tables, only new rows."""

    changes: dict[str, Any]


@dataclass(frozen=True)
class ResultsMade:
    """All results of a share so far; trials: the number of trials, by case, that they rest on."""

    results: list[Outcome | Finding]
    trials: Mapping[str, int]


@dataclass(frozen=True)
class ObserverCall:
    """A call of the observer's method of that name."""

    method: str
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Kept:
    """The driver's answer to a TrialMade."""


@dataclass(frozen=True)
class Done:
    """The task's last message: its result, and the contents of its logs, by their names."""

    result: Any = None
    logs: dict[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Failed:
    """The last message of a task that failed: why the run cannot go on; `fault`: a traceback, if it is unexpected."""

    error: BaseException | None
    fault: str = ""
    logs: dict[str, bytes] = field(default_factory=dict)


News = TrialMade | Learnt | ResultsMade | ObserverCall
