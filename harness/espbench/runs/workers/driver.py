# SPDX-License-Identifier: Apache-2.0
"""Defines a worker's view of the driver: the observer of its trials, and the run directory, which it cannot write."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from espbench.measure.inputs.setup import Request
from espbench.plan import Case
from espbench.runs.workers.messages import Kept, Learnt, News, ObserverCall, ResultsMade, TrialMade
from espbench.terms import Finding, Manifest, Outcome, Trial

# The shortest interval between two messages of trial_progress, s.
_PROGRESS_EACH_S = 0.25


class Driver:
    """A worker's view of the driver: the observer of its trials, and the run directory, by messages."""

    def __init__(self, connection: Connection, logs: Path) -> None:
        self.logs = logs
        self.manifest: Manifest
        self.connection = connection
        self._last_progress = 0.0

    def append(self, trial: Trial) -> None:
        """Have the driver put a trial on disk; return when it is there."""
        self.connection.send(TrialMade(trial))
        answer = self.connection.recv()
        assert isinstance(answer, Kept)

    def update_manifest(self, **changes: Any) -> None:
        """Send the driver the new values of these keys; of tables, only the new rows."""
        changed = {}
        for key, value in changes.items():
            before = getattr(self.manifest, key)
            if isinstance(value, dict):
                changed[key] = {name: row for name, row in value.items() if before.get(name) != row}
            elif value != before:
                changed[key] = value
        self.manifest = self.manifest.model_copy(update=changes)
        if changed := {key: value for key, value in changed.items() if value or not isinstance(value, dict)}:
            self.connection.send(Learnt(changed))

    def note(self, text: str) -> None:
        self.connection.send(ObserverCall("note", (text,)))

    def trial_started(self, request: Request, bounds: list[tuple[float, float | None, float | None]]) -> None:
        self.connection.send(ObserverCall("trial_started", (request, bounds)))

    def trial_progress(self, event: dict[str, Any]) -> None:
        now = time.monotonic()
        if now - self._last_progress >= _PROGRESS_EACH_S:
            self._last_progress = now
            self.connection.send(ObserverCall("trial_progress", (event,)))

    def trial_done(self, record: Trial) -> None:
        """Do nothing: the driver got the trial by `append`."""

    def time_left(self, seconds: float) -> None:
        self.connection.send(ObserverCall("time_left", (seconds,)))

    def tell(self, news: News) -> None:
        """Send a message that needs no answer."""
        self.connection.send(news)


class ShareRecords(Driver):
    """A share's view of the run directory: the trials on disk, and the driver, which gets the new ones."""

    def __init__(self, driver: Driver, trials: Mapping[str, list[Trial]]) -> None:
        """trials: the trials on disk, by case; this object keeps a copy and adds new ones to it."""
        super().__init__(driver.connection, driver.logs)
        self.manifest = driver.manifest
        self._trials = {case: list(of_case) for case, of_case in trials.items()}

    def trials_of(self, case: str) -> list[Trial]:
        """Return the trials of one case, in order."""
        return list(self._trials.get(case, []))

    def append(self, trial: Trial) -> None:
        """Have the driver put a trial on disk; return when it is there."""
        super().append(trial)
        self._trials.setdefault(trial.case, []).append(trial)

    def save_results(self, results: Sequence[Outcome | Finding]) -> None:
        """Have the driver put the results of the share so far on disk."""
        counts = {case: len(of_case) for case, of_case in self._trials.items()}
        self.tell(ResultsMade(list(results), counts))

    def arrange(self, cases: Sequence[str]) -> None:
        """Do nothing: the driver arranges the trials of all shares at the end of the run."""

    def case_started(self, case: Case, number: int, of: int, done_trials: int) -> None:
        self.tell(ObserverCall("case_started", (case, number, of, done_trials)))

    def case_done(self, results: list[Outcome | Finding]) -> None:
        self.tell(ObserverCall("case_done", (results,)))
