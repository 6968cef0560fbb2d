# SPDX-License-Identifier: Apache-2.0
"""Defines the messages between the driver of a run and its workers: tasks to workers, and records back to the driver.

Messages are pickled. Both ends are the same program of the same user.
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

    placement: the CPUs that the records name, although CPUs do not matter in virtual time; None in real time, where
    each machine has its own. profiled: see Workspace. copies: see Workers. own: in real time, the digests of the
    user's files that the plan names, by path (users_files.py).
    """

    resolved: ResolvedPlan
    devices: tuple[tuple[str, Profile | None], ...]
    cases: tuple[Case, ...]
    placement: Placement | None
    profiled: bool = False
    copies: Mapping[str, str] = field(default_factory=dict)
    own: Mapping[str, str] = field(default_factory=dict)

    def pickled(self) -> bytes:
        """Pickle the facts for tasks to carry: a worker unpickles them only if they differ from those before."""
        return pickle.dumps(self)


@dataclass(frozen=True)
class CaseTask:
    """A request for the trials that a case still needs. trials: those that are on disk."""

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
    """A request for one figure of the driver-level accelerator test."""

    run: bytes
    manifest: Manifest
    figure: Figure
    operations: int

    @property
    def name(self) -> str:
        """The name that distinguishes this task from the run's other tasks."""
        return name_of(self.figure)


@dataclass(frozen=True)
class ShareTask:
    """A request to measure a share of a run in real time on one machine; manifest: that machine's view (machines.py).

    trials: the trials on disk of each of its cases, by the cases' ids. attempt: from 1; messages of an earlier attempt
    are ignored.
    """

    run: bytes
    manifest: Manifest
    share: str
    cases: frozenset[str]
    trials: Mapping[str, list[Trial]]
    attempt: int

    @property
    def name(self) -> str:
        """The name that distinguishes this task from the run's other tasks, and from its own earlier attempts."""
        return self.share if self.attempt == 1 else f"{self.share} (attempt {self.attempt})"


Task = CaseTask | AcceleratorTask | ShareTask


@dataclass(frozen=True)
class Hello:
    """A worker's first message: the folder of its logs while it works, and which espbench it is (version_here)."""

    logs: Path
    version: str


@dataclass(frozen=True)
class TrialMade:
    """A trial's record; the worker continues when the driver answers that it is on disk."""

    trial: Trial


@dataclass(frozen=True)
class Learnt:
    """Changes of the manifest, as RunDirectory.update_manifest takes them; of tables, only new rows."""

    changes: dict[str, Any]


@dataclass(frozen=True)
class ResultsMade:
    """All results of a share so far; trials: case → the number of trials from which they are computed."""

    results: list[Outcome | Finding]
    trials: Mapping[str, int]


@dataclass(frozen=True)
class ObserverCall:
    """A call of the observer's method with this name."""

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
    """The last message of a task that failed.

    error: why the run cannot continue; None if the error was unexpected: then fault is its traceback.
    """

    error: BaseException | None
    fault: str = ""
    logs: dict[str, bytes] = field(default_factory=dict)


News = TrialMade | Learnt | ResultsMade | ObserverCall
