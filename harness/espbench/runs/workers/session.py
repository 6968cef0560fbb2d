# SPDX-License-Identifier: Apache-2.0
"""Makes a run in virtual time whose cases are measured side by side: gives out cases, and keeps their records.

The earlier results that a case starts from depend on the plan alone (`book`). So the run's files are the same, byte for
byte, as with one job, except for `host` in the records.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, Protocol

from espbench.errors import EspbenchError
from espbench.plan.resolved.cases import Case
from espbench.plan.resolved.resolved_plan import ResolvedPlan
from espbench.platforms.base import Placement
from espbench.procedures.boards import accelerator
from espbench.procedures.procedure import CaseFacts, Procedure
from espbench.results import RunDirectory
from espbench.results.accelerator import AcceleratorResult, Figure, Variant, name_of
from espbench.runs.beds import Beds
from espbench.runs.book import Book
from espbench.runs.one_case import case_warnings, encryption_of
from espbench.runs.parts import Devices
from espbench.runs.procedure_kinds import procedure_for
from espbench.runs.session import Observer
from espbench.runs.setups import same_as_before
from espbench.runs.workers.local import Workers
from espbench.runs.workers.messages import (
    AcceleratorTask,
    CaseTask,
    Done,
    Failed,
    Learnt,
    News,
    ObserverCall,
    RunFacts,
    Task,
    TrialMade,
)
from espbench.runs.workers.process import WorkerLost, keep_logs
from espbench.terms import Finding, Outcome, Trial

# A task whose worker was lost is begun again, from its last trial on disk, at most this many times.
MAXIMUM_RETRIES = 2


class ObserverOfMany(Protocol):
    """Gets the news of a run whose cases are measured side by side. of: returns the observer of one case."""

    def note(self, text: str) -> None: ...
    def of(self, name: str) -> Observer: ...
    def finished(self, tasks: int, of: int) -> None: ...
    def time_left(self, seconds: float) -> None: ...


@dataclass(eq=False)
class _Job:
    """A case, or a figure of the accelerator test, that is to be measured."""

    name: str
    observer: Observer
    case: Case | None = None
    figure: Figure = ("", "", "", 0, Variant())
    behind: int = 0  # the length of the longest chain of jobs that wait for this one
    lost: int = 0
    began: float = 0.0
    left_s: float | None = None


@dataclass
class _Event:
    """A message from a thread of the workers to the driver; `done` is set only in the last message of a job."""

    job: _Job
    news: News | None = None
    kept: Any = None
    done: Future[Done | Failed] | None = None


@dataclass
class _State:
    """The state of a run's jobs."""

    waiting: list[_Job] = field(default_factory=list)
    running: list[_Job] = field(default_factory=list)
    given_up: dict[str, str] = field(default_factory=dict)  # job → why
    finished: int = 0
    seconds: list[float] = field(default_factory=list)  # that finished jobs took


class SideBySide:
    """One run over a list of cases, and over the figures of the accelerator test; call `run` once."""

    def __init__(
        self,
        resolved: ResolvedPlan,
        cases: Sequence[Case],
        devices: Devices,
        directory: RunDirectory,
        beds: Beds,
        placement: Placement,
        workers: Workers,
        observer: ObserverOfMany,
    ) -> None:
        """beds: used only for the remarks on each device; the workers build the test beds."""
        self._resolved = resolved
        self._directory = directory
        self._beds = beds
        self._workers = workers
        self._observer = observer
        self._book = Book(resolved, cases, directory)
        self._run = RunFacts(
            resolved, tuple(devices), tuple(self._book.cases), placement, beds.profiled, workers.copies
        ).pickled()
        asked = resolved.plan.accelerator if not directory.manifest.base_loads else None
        duts = [name for name, _ in devices]
        self._figures = accelerator.kept(asked, duts, directory, observer.note) if asked else None
        self._events: SimpleQueue[_Event] = SimpleQueue()
        self._state = _State()
        self._total = 0
        # Security Context → the position, in the order of measuring, of the case in which it was read.
        self._read_in: dict[str, int] = {}

    def run(self) -> list[Outcome | Finding]:
        """Measure every case that is not complete; return the results in the plan's order.

        An error that would end a run with one job ends this run too, with all running cases; records on disk stay.
        EspbenchError if a case's worker was lost again and again (raised when all other cases are finished).
        """
        self._note_contexts()
        self._state.waiting = self._jobs()
        self._total = len(self._state.waiting)
        self._observer.note(
            f"virtual time: the generator's ceiling is the line rate; {self._workers.at_once} cases side by side"
        )
        self._observer.finished(0, self._total)
        try:
            self._begin()
            while self._state.running:
                self._take(self._events.get())
                self._begin()
        finally:
            self._workers.close()
        self._book.arrange()
        results = self._book.save()
        if self._state.given_up:
            raise EspbenchError("\n".join(self._state.given_up.values()))
        return results

    # -- jobs and tasks -------------------------------------------------------------------------

    def _jobs(self) -> list[_Job]:
        """List all jobs; those with the longest chain of cases that wait for their results come first."""
        jobs = {case.id: _Job(case.id, self._observer.of(case.id), case) for case in self._book.cases}
        for case in reversed(self._book.cases):
            for needed in self._book.needs(case):
                jobs[needed.id].behind = max(jobs[needed.id].behind, jobs[case.id].behind + 1)
        in_order = sorted(jobs.values(), key=lambda job: -job.behind)
        for figure in self._figures.missing() if self._figures else ():
            name = name_of(figure)
            in_order.append(_Job(name, self._observer.of(name), None, figure))
        return in_order

    def _begin(self) -> None:
        """Give out jobs while there are free workers; a job can begin when the cases that it needs are finished."""
        for job in list(self._state.waiting):
            if len(self._state.running) >= self._workers.at_once:
                return
            if job.case is None:
                self._state.waiting.remove(job)
                self._submit(job, self._figure_task(job))
            elif all(self._book.has(needed) for needed in self._book.needs(job.case)):
                self._state.waiting.remove(job)
                self._begin_case(job, job.case)

    def _begin_case(self, job: _Job, case: Case) -> None:
        known = self._book.known(case)
        trials = self._directory.trials_of(case.id)
        running = procedure_for(case, known, trials)
        if running.next() is None:
            self._finish_case(job, case, running)
            return
        job.observer.case_started(case, self._book.number(case), len(self._book.cases), len(trials))
        # Parts of the manifest that a task does not need would only make it larger.
        manifest = self._directory.manifest.model_copy(
            update={"cases": [], "asked": {}, "search_hints": {}, "context_of_case": {}}
        )
        self._submit(job, CaseTask(self._run, manifest, case, known, trials))

    def _figure_task(self, job: _Job) -> AcceleratorTask:
        assert self._figures is not None
        manifest = self._directory.manifest.model_copy(update={"cases": [], "asked": {}})
        return AcceleratorTask(self._run, manifest, job.figure, self._figures.operations)

    def _submit(self, job: _Job, task: Task) -> None:
        job.began = time.monotonic()
        self._state.running.append(job)
        future = self._workers.submit(task, lambda news, kept: self._events.put(_Event(job, news, kept)))
        future.add_done_callback(lambda done: self._events.put(_Event(job, done=done)))

    # -- messages from the workers --------------------------------------------------------------

    def _take(self, event: _Event) -> None:
        job = event.job
        if event.done is not None:
            self._end(job, event.done)
        elif job not in self._state.running:
            return  # its worker was lost before
        elif isinstance(event.news, TrialMade):
            self._keep(job, event.news.trial)
            event.kept()
        elif isinstance(event.news, Learnt):
            self._learn(job, event.news.changes)
        elif isinstance(event.news, ObserverCall) and event.news.method == "time_left":
            (job.left_s,) = event.news.arguments
            self._observer.time_left(self._time_left())
        elif isinstance(event.news, ObserverCall):
            getattr(job.observer, event.news.method)(*event.news.arguments)

    def _keep(self, job: _Job, trial: Trial) -> None:
        """Put a trial on disk, unless it is there already.

        A trial is also skipped if an earlier one has not arrived yet; it is sent again with the task's last message.
        """
        if trial.sequence == self._directory.trial_counts().get(trial.case, 0):
            self._directory.append(trial)
            job.observer.trial_done(trial)

    def _end(self, job: _Job, future: Future[Done | Failed]) -> None:
        self._state.running.remove(job)
        try:
            done = future.result()
        except WorkerLost as error:
            keep_logs(self._directory.logs, error.logs)
            self._begin_again(job, error)
            return
        keep_logs(self._directory.logs, done.logs)
        if isinstance(done, Failed):
            raise done.error or EspbenchError(f"{job.name}: a fault of espbench's own:\n{done.fault}")
        if job.case is not None:
            self._finish_case(job, job.case, self._replayed(job.case))
            return
        assert isinstance(done.result, AcceleratorResult)
        assert self._figures is not None
        self._figures.take(done.result)
        self._finished(job)

    def _begin_again(self, job: _Job, error: WorkerLost) -> None:
        job.lost += 1
        if job.lost <= MAXIMUM_RETRIES:
            self._observer.note(f"{error}; begun again")
            self._state.waiting.insert(0, job)
            return
        self._observer.note(f"{error}; given up, the other cases go on")
        self._state.given_up[job.name] = f"{error}, {job.lost} times"

    def _finish_case(self, job: _Job, case: Case, running: Procedure) -> None:
        external = self._resolved.plan.is_external
        shared = self._directory.manifest.placement.get("shared", [])
        facts = CaseFacts(
            case.dut,
            encryption_of(case, running.trials, external=external),
            case_warnings(case, self._beds.notes(case), shared),
        )
        results = running.results(facts)
        self._book.finish(case, results)
        job.observer.case_done(results)
        self._finished(job)

    def _replayed(self, case: Case) -> Procedure:
        """Return the case's procedure with the records on disk, which alone decide the results."""
        running = procedure_for(case, self._book.known(case), self._directory.trials_of(case.id))
        if running.next() is not None:
            raise EspbenchError(f"{case.id}: its worker ended without an answer; a fault of espbench's own")
        return running

    def _finished(self, job: _Job) -> None:
        if job.began:
            self._state.seconds.append(time.monotonic() - job.began)
        self._state.finished += 1
        self._observer.finished(self._state.finished, self._total)

    # -- Security Contexts that workers read -------------------------------------------------------

    def _note_contexts(self) -> None:
        """Note, for a resumed run, the case in which each Security Context was read last, as far as that is known."""
        known = self._directory.manifest.context_of_case
        counts = self._directory.trial_counts()
        for number, case in enumerate(self._book.cases):
            if case.id in known and counts.get(case.id):
                self._read_in[known[case.id]] = number

    def _learn(self, job: _Job, changes: dict[str, Any]) -> None:
        """Put a worker's changes into the manifest, so that it is as one job would have left it.

        Of each Security Context, the manifest has the one that was read in the last case.
        """
        manifest = self._directory.manifest
        number = self._book.number(job.case) - 1 if job.case else len(self._book.cases)
        merged: dict[str, Any] = {}
        for key, value in changes.items():
            before = getattr(manifest, key)
            if key == "contexts":
                newest = {name: row for name, row in value.items() if self._is_newest(name, row, number)}
                merged[key] = {**before, **newest}
            else:
                merged[key] = {**before, **value} if isinstance(value, dict) else value
        self._directory.update_manifest(**merged)

    def _is_newest(self, name: str, context: dict[str, Any], number: int) -> bool:
        same_as_before(self._directory.manifest.contexts, name, context)
        if self._read_in.get(name, -1) > number:
            return False
        self._read_in[name] = number
        return True

    def _time_left(self) -> float:
        """Estimate the time left, s: of the running jobs, and for each waiting one the mean time of a job so far."""
        state, now = self._state, time.monotonic()
        left = [job.left_s for job in state.running if job.left_s is not None]
        spent = [now - job.began + (job.left_s or 0.0) for job in state.running]
        typical = (
            sum(state.seconds) / len(state.seconds) if state.seconds else sum(spent) / max(1, len(spent))
        )
        return (sum(left) + typical * len(state.waiting)) / self._workers.at_once
