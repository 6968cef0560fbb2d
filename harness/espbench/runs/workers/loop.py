# SPDX-License-Identifier: Apache-2.0
"""Drives a run with workers: puts the records of its jobs on disk, and begins a job again whose worker was lost.

A job is a case or a figure in virtual time (`session`), or a share of a run in real time (`bench_session`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Generic, Protocol, TypeVar

from espbench.errors import EspbenchError
from espbench.results import RunDirectory
from espbench.runs.session import Observer
from espbench.runs.workers.messages import Done, Failed, Learnt, News, ObserverCall, ResultsMade, TrialMade
from espbench.runs.workers.process import OnNews, WorkerLost, keep_logs
from espbench.terms import Trial

# A job whose worker was lost is begun again, from its last trial on disk, at most this many times.
MAXIMUM_RETRIES = 2


class ObserverOfMany(Protocol):
    """Gets the news of a run whose cases are measured side by side. of: returns the observer of one case."""

    def note(self, text: str) -> None: ...
    def of(self, name: str) -> Observer: ...
    def finished(self, tasks: int, of: int) -> None: ...
    def time_left(self, seconds: float) -> None: ...


@dataclass(eq=False)
class Job:
    """A part of a run that one worker measures at a time.

    attempt: the number of the attempt at it, from 1. lost: how often its worker was lost. lost_at: when that happened
    last, and began: when the attempt began, both by the monotonic clock. left_s: its worker's estimate.
    """

    name: str
    observer: Observer
    attempt: int = 0
    lost: int = 0
    lost_at: float = float("-inf")
    began: float = 0.0
    left_s: float | None = None


_Job = TypeVar("_Job", bound=Job)
_Job_contra = TypeVar("_Job_contra", bound=Job, contravariant=True)


class Kind(Protocol[_Job_contra]):
    """Says what is particular to one kind of job.

    plural: of the kind's name, for messages. look_each_s: the longest interval between two calls of `give_out`, s; None
    if only messages can change what it does.
    """

    plural: str
    look_each_s: float | None

    def give_out(self) -> bool:
        """Begin the waiting jobs that can begin now; return whether there is something to wait for."""

    def keep(self, job: _Job_contra, news: Learnt | ResultsMade) -> None:
        """Put on disk what a job's worker learnt, or the results that it made."""

    def failed(self, job: _Job_contra, error: BaseException) -> None:
        """Raise the error, which ends the run; or return, after the job was put back to those that wait."""

    def finish(self, job: _Job_contra, result: Any) -> None:
        """Put the results of a job on disk that its worker has finished; result: of its last message."""

    def time_left(self, running_s: list[float], waiting_s: float) -> float:
        """Estimate the run's time left, s; running_s: of running jobs, waiting_s: the sum for those that wait."""


@dataclass
class _Event(Generic[_Job]):
    """A message from a thread of the workers to the driver; `done` is set only in the last message of an attempt."""

    job: _Job
    attempt: int
    news: News | None = None
    kept: Any = None
    done: Future[Done | Failed] | None = None


class Loop(Generic[_Job]):
    """The jobs of one run, and the messages of their workers.

    waiting: the jobs that are to be begun, in this order. given_up: for each job that is given up, the reason.
    """

    def __init__(self, kind: Kind[_Job], directory: RunDirectory, observer: ObserverOfMany) -> None:
        self.waiting: list[_Job] = []
        self.running: list[_Job] = []
        self.given_up: list[str] = []
        self._kind = kind
        self._directory = directory
        self._observer = observer
        self._events: SimpleQueue[_Event[_Job]] = SimpleQueue()
        self._total = 0
        self._seconds: list[float] = []  # that finished jobs took
        self._finished = 0

    @property
    def has_messages(self) -> bool:
        """True if workers sent messages that were not taken yet."""
        return not self._events.empty()

    def run(self, jobs: list[_Job]) -> None:
        """Measure jobs until each is finished, is given up, or can never begin.

        An error that would end a run with one job ends this run too; records on disk stay.
        """
        self.waiting = jobs
        self._total = len(jobs)
        self._observer.finished(0, self._total)
        while self._kind.give_out():
            try:
                event = self._events.get(timeout=self._kind.look_each_s)
            except Empty:
                continue
            self._take(event)

    def begin(self, job: _Job, submit: Callable[[OnNews], Future[Done | Failed]]) -> None:
        """Begin a job that waits; submit: gives its task to a worker."""
        self.waiting.remove(job)
        job.began = time.monotonic()
        job.attempt += 1
        self.running.append(job)
        attempt = job.attempt
        future = submit(lambda news, kept: self._events.put(_Event(job, attempt, news, kept)))
        future.add_done_callback(lambda done: self._events.put(_Event(job, attempt, done=done)))

    def lost(self, job: _Job, error: WorkerLost) -> None:
        """Put a running job whose worker was lost back to those that wait, or give it up after many times."""
        self.running.remove(job)
        keep_logs(self._directory.logs, error.logs)
        job.lost += 1
        job.lost_at = time.monotonic()
        if job.lost <= MAXIMUM_RETRIES:
            self._observer.note(f"{error}; begun again")
            self.waiting.insert(0, job)
            return
        self._observer.note(f"{error}; given up, the other {self._kind.plural} go on")
        self.given_up.append(f"{error}, {job.lost} times")

    def count(self, job: _Job) -> None:
        """Count a job as finished; one that had all its trials on disk was never begun."""
        if job.began:
            self._seconds.append(time.monotonic() - job.began)
        self._finished += 1
        self._observer.finished(self._finished, self._total)

    def _take(self, event: _Event[_Job]) -> None:
        job, news = event.job, event.news
        if job not in self.running or event.attempt != job.attempt:
            return  # the message is from a worker that was lost
        if event.done is not None:
            self._end(job, event.done)
        elif isinstance(news, TrialMade):
            self._append(job, news.trial)
            event.kept()
        elif isinstance(news, Learnt | ResultsMade):
            self._kind.keep(job, news)
        elif isinstance(news, ObserverCall) and news.method == "time_left":
            (job.left_s,) = news.arguments
            self._observer.time_left(self._time_left())
        elif isinstance(news, ObserverCall):
            getattr(job.observer, news.method)(*news.arguments)

    def _append(self, job: _Job, trial: Trial) -> None:
        """Put a trial on disk, unless it is there already.

        A trial is also skipped if an earlier one has not arrived yet; it is sent again with the task's last message.
        """
        if trial.sequence == self._directory.trial_counts().get(trial.case, 0):
            self._directory.append(trial)
            job.observer.trial_done(trial)

    def _end(self, job: _Job, future: Future[Done | Failed]) -> None:
        try:
            done = future.result()
        except WorkerLost as error:
            self.lost(job, error)
            return
        self.running.remove(job)
        keep_logs(self._directory.logs, done.logs)
        if isinstance(done, Failed):
            fault = EspbenchError(f"{job.name}: a fault of espbench's own:\n{done.fault}")
            self._kind.failed(job, done.error or fault)
            return
        self._kind.finish(job, done.result)
        self.count(job)

    def _time_left(self) -> float:
        """Estimate the time left, s; a waiting job counts with the mean time of a job so far."""
        now = time.monotonic()
        left = [job.left_s for job in self.running if job.left_s is not None]
        spent = [now - job.began + (job.left_s or 0.0) for job in self.running]
        seconds = self._seconds
        typical = sum(seconds) / len(seconds) if seconds else sum(spent) / max(1, len(spent))
        return self._kind.time_left(left, typical * len(self.waiting))
