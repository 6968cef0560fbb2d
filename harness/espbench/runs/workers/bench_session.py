# SPDX-License-Identifier: Apache-2.0
"""Makes a run in real time on several machines: gives out shares of the plan, and keeps their records.

Each machine measures one share at a time. A share is measured on one machine only: if that machine is gone for good,
the share begins anew on another one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any

from espbench.errors import EspbenchError, MachineLacks
from espbench.plan.resolved.cases import Case
from espbench.plan.resolved.resolved_plan import ResolvedPlan
from espbench.results import RunDirectory
from espbench.runs.book import Book
from espbench.runs.paired_run import rivals
from espbench.runs.parts import Devices
from espbench.runs.session import Observer
from espbench.runs.workers.benches import Bench, Machines
from espbench.runs.workers.machines import as_seen_on, begun_on, merged, without
from espbench.runs.workers.messages import (
    Done,
    Failed,
    Learnt,
    News,
    ObserverCall,
    ResultsMade,
    RunFacts,
    ShareTask,
    TrialMade,
)
from espbench.runs.workers.process import WorkerLost, keep_logs
from espbench.runs.workers.session import MAXIMUM_RETRIES, ObserverOfMany
from espbench.runs.workers.shares import Share, shares
from espbench.terms import PAIRED, Finding, Outcome, Trial

# A machine counts as gone when it was not seen for this time, s: a worker that ended may be started again before.
GONE_AFTER_S = 30.0
_LOOK_EACH_S = 1.0


@dataclass(eq=False)
class _Job:
    """A share that is to be measured."""

    share: Share
    observer: Observer
    bench: Bench | None = None
    attempt: int = 0
    lost: int = 0
    not_before: float = 0.0
    began: float = 0.0
    last_there: float = 0.0
    left_s: float | None = None


@dataclass
class _Event:
    """A message from a thread of the cluster's client; `done` is set only in the last message of an attempt."""

    job: _Job
    attempt: int
    news: News | None = None
    kept: Any = None
    done: Future[Done | Failed] | None = None


@dataclass
class _State:
    """The state of a run's shares, and of the machines."""

    waiting: list[_Job] = field(default_factory=list)
    running: list[_Job] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)
    unfit: dict[str, MachineLacks] = field(default_factory=dict)  # machine → what it lacks
    seen: dict[str, float] = field(default_factory=dict)  # machine → when, by the monotonic clock
    seconds: list[float] = field(default_factory=list)  # that finished shares took


class OnBenches:
    """One run in real time over a list of cases; call `run` once."""

    def __init__(
        self,
        resolved: ResolvedPlan,
        cases: Sequence[Case],
        devices: Devices,
        directory: RunDirectory,
        machines: Machines,
        observer: ObserverOfMany,
        gone_after_s: float = GONE_AFTER_S,
    ) -> None:
        self._resolved = resolved
        self._cases = {case.id: case for case in cases}
        self._directory = directory
        self._machines = machines
        self._observer = observer
        self._gone_after_s = gone_after_s
        self._run = RunFacts(resolved, tuple(devices), tuple(cases), None).pickled()
        self._events: SimpleQueue[_Event] = SimpleQueue()
        self._state = _State()
        self._results: dict[str, list[Outcome | Finding]] = {}
        self._total = 0
        self._started = time.monotonic()

    def run(self) -> list[Outcome | Finding]:
        """Measure every share that is not complete; return the results in the plan's order.

        MachineLacks if no machine can carry the plan. EspbenchError if a share's worker was lost again and again
        (raised when all other shares are finished), or if no machine is left (raised at once).
        """
        for result in self._directory.results():
            self._results.setdefault(result.case, []).append(result)
        wanted = shares(self._resolved.plan, [*self._cases.values()])
        self._state.waiting = [
            _Job(share, self._observer.of(share.name)) for share in wanted if not self._is_complete(share)
        ]
        self._total = len(self._state.waiting)
        self._observer.note(
            f"real time: {len(wanted)} shares, {self._total} to be measured; each stays on one machine"
        )
        self._observer.finished(0, self._total)
        try:
            while self._state.waiting or self._state.running:
                self._give_out()
                try:
                    self._take(self._events.get(timeout=_LOOK_EACH_S))
                except Empty:
                    continue
        finally:
            self._machines.close()
        Book(self._resolved, [*self._cases.values()], self._directory).arrange()
        self._note_machines()
        if self._state.given_up:
            raise EspbenchError("\n".join(self._state.given_up))
        return self._save()

    def _is_complete(self, share: Share) -> bool:
        points = rivals(self._resolved, [self._cases[case] for case in share.cases])
        return all(name in self._results for name in (*share.cases, *(point.id for point in points)))

    # -- giving out -----------------------------------------------------------------------------

    def _give_out(self) -> None:
        """Give a share to each idle machine; MachineLacks or EspbenchError if no machine can ever take one."""
        state, now = self._state, time.monotonic()
        present = self._machines.present()
        state.seen.update(dict.fromkeys(present, now))
        if self._events.empty():  # messages that a worker sent before it ended come first
            self._miss(now)
        busy = {job.bench.name for job in state.running if job.bench is not None}
        for name, bench in present.items():
            if name not in busy and name not in state.unfit and (job := self._next_for(name, now)):
                self._begin(job, bench)
        if not state.waiting or state.running:
            return
        if present and all(name in state.unfit for name in present):
            raise next(iter(state.unfit.values()))
        if now - max([self._started, *state.seen.values()]) > self._gone_after_s:
            raise EspbenchError("no machine is left that measures in real time; none came back")

    def _miss(self, now: float) -> None:
        """Begin shares again whose worker ended before it took them, because the cluster never reports those."""
        for job in list(self._state.running):
            assert job.bench is not None
            if self._machines.is_there(job.bench):
                job.last_there = now
            elif now - job.last_there > self._gone_after_s:
                self._state.running.remove(job)
                self._begin_again(
                    job, WorkerLost(f"{job.share.name}: its worker at {job.bench.address} is gone")
                )

    def _next_for(self, machine: str, now: float) -> _Job | None:
        """Return the next share for a machine; None if there is none.

        Shares that this machine began come first, then new shares, then shares whose machine is gone.
        """
        waiting = [(job, self._machine_of(job)) for job in self._state.waiting if job.not_before <= now]
        own = [job for job, of in waiting if of == machine]
        new = [job for job, of in waiting if not of]
        left = [job for job, of in waiting if of and of != machine and self._is_gone(of, now)]
        return next(iter([*own, *new, *left]), None)

    def _machine_of(self, job: _Job) -> str:
        return self._directory.manifest.machine_of_case.get(job.share.cases[0], "")

    def _is_gone(self, machine: str, now: float) -> bool:
        seen = self._state.seen.get(machine, self._started)
        return machine in self._state.unfit or now - seen > self._gone_after_s

    def _begin(self, job: _Job, bench: Bench) -> None:
        self._state.waiting.remove(job)
        cases = job.share.cases
        before = self._machine_of(job)
        if before != bench.name:
            if before:
                self._leave(job, f"its machine, {before}, is gone; begun anew on {bench.host}")
            self._directory.update_manifest(**begun_on(self._directory.manifest, bench.facts, cases))
        else:  # raises UsageError if the machine has changed
            begun_on(self._directory.manifest, bench.facts, cases)
        job.bench = bench
        job.began = job.last_there = time.monotonic()
        job.attempt += 1
        task = ShareTask(
            self._run,
            as_seen_on(self._directory.manifest, bench.name, [self._cases[case] for case in cases]),
            job.share.name,
            frozenset(cases),
            {name: self._directory.trials_of(name) for name in self._directory.filed(cases)},
            job.attempt,
        )
        job.observer.note(f"on {bench.host}, machine {bench.name}")
        self._state.running.append(job)
        attempt = job.attempt
        future = self._machines.submit(
            bench, task, lambda news, kept: self._events.put(_Event(job, attempt, news, kept))
        )
        future.add_done_callback(lambda done: self._events.put(_Event(job, attempt, done=done)))

    def _leave(self, job: _Job, why: str) -> None:
        """Remove what a machine that is gone measured of a share: all figures of a share are of one machine."""
        cases = job.share.cases
        copy = self._directory.begin_anew(cases)
        for name in (*cases, *(f"{case}-at" for case in cases)):
            self._results.pop(name, None)
        self._directory.update_manifest(**without(self._directory.manifest, cases))
        job.observer.note(why + (f"; the trials so far are kept as {copy}" if copy else ""))

    # -- messages from the workers --------------------------------------------------------------

    def _take(self, event: _Event) -> None:
        job, news = event.job, event.news
        if job not in self._state.running or event.attempt != job.attempt:
            return  # the message is from a worker that was lost
        assert job.bench is not None
        if event.done is not None:
            self._end(job, job.bench, event.done)
        elif isinstance(news, TrialMade):
            self._keep(job, news.trial)
            event.kept()
        elif isinstance(news, Learnt):
            changes = merged(self._directory.manifest, job.bench.name, news.changes)
            self._directory.update_manifest(**changes)
        elif isinstance(news, ResultsMade):
            self._keep_results(news)
        elif isinstance(news, ObserverCall) and news.method == "time_left":
            (job.left_s,) = news.arguments
            self._observer.time_left(self._time_left())
        elif isinstance(news, ObserverCall):
            getattr(job.observer, news.method)(*news.arguments)

    def _keep(self, job: _Job, trial: Trial) -> None:
        """Put a trial on disk, unless it is there already.

        A trial is also skipped if an earlier one has not arrived yet; it is sent again with the task's last message.
        """
        if trial.sequence == self._directory.trial_counts().get(trial.case, 0):
            self._directory.append(trial)
            job.observer.trial_done(trial)

    def _keep_results(self, made: ResultsMade) -> None:
        """Put results on disk, unless some of their trials have not arrived yet; then the results are sent again."""
        counts = self._directory.trial_counts()
        if any(counts.get(case, 0) != number for case, number in made.trials.items()):
            return
        by_case: dict[str, list[Outcome | Finding]] = {}
        for result in made.results:
            by_case.setdefault(result.case, []).append(result)
        self._results.update(by_case)
        self._save()

    def _end(self, job: _Job, bench: Bench, future: Future[Done | Failed]) -> None:
        self._state.running.remove(job)
        try:
            done = future.result()
        except WorkerLost as error:
            keep_logs(self._directory.logs, error.logs)
            self._begin_again(job, error)
            return
        keep_logs(self._directory.logs, done.logs)
        if isinstance(done, Failed) and isinstance(done.error, MachineLacks):
            self._cannot(job, bench, done.error)
            return
        if isinstance(done, Failed):
            raise done.error or EspbenchError(f"{job.share.name}: a fault of espbench's own:\n{done.fault}")
        if not self._is_complete(job.share):
            raise EspbenchError(
                f"{job.share.name}: its worker ended without an answer; a fault of espbench's own"
            )
        self._state.seconds.append(time.monotonic() - job.began)
        self._observer.finished(
            self._total - len(self._state.waiting) - len(self._state.running), self._total
        )

    def _begin_again(self, job: _Job, error: WorkerLost) -> None:
        job.lost += 1
        # The cluster takes some seconds to notice that a worker ended; until then the share could go there again.
        job.not_before = time.monotonic() + self._gone_after_s / 10
        if job.lost <= MAXIMUM_RETRIES:
            self._observer.note(f"{error}; begun again")
            self._state.waiting.insert(0, job)
            return
        self._observer.note(f"{error}; given up, the other shares go on")
        self._state.given_up.append(f"{error}, {job.lost} times")

    def _cannot(self, job: _Job, bench: Bench, lack: MachineLacks) -> None:
        """Give a share back to the other machines, because this machine lacks something for it."""
        self._state.unfit[bench.name] = lack
        self._observer.note(f"{bench.host} cannot measure this plan, and gets no more of it: {lack}")
        if not self._directory.filed(job.share.cases):
            self._directory.update_manifest(**without(self._directory.manifest, job.share.cases))
        self._state.waiting.insert(0, job)

    def _save(self) -> list[Outcome | Finding]:
        """Write all results in the plan's order and return them; those at fixed loads come last."""
        of_cases = [result for case in self._cases for result in self._results.get(case, [])]
        paired = [result for results in self._results.values() for result in results if result.test == PAIRED]
        results = [*of_cases, *paired]
        self._directory.save_results(results)
        return results

    def _note_machines(self) -> None:
        """Add a warning to the manifest if the cases were measured on several machines."""
        manifest = self._directory.manifest
        counts: dict[str, int] = {}
        for case in self._cases:
            if machine := manifest.machine_of_case.get(case):
                counts[machine] = counts.get(machine, 0) + 1
        if len(counts) < 2:
            return
        listed = "; ".join(f"{machine}: {number} cases" for machine, number in counts.items())
        text = (
            f"The cases were measured on {len(counts)} machines ({listed}). Figures of different "
            "machines are not comparable; manifest.json says which machine measured which case."
        )
        if text not in manifest.warnings:
            self._directory.update_manifest(warnings=[*manifest.warnings, text])

    def _time_left(self) -> float:
        """Estimate the time left, s: of the slowest running share, and for each waiting one the mean time so far."""
        state, now = self._state, time.monotonic()
        left = [job.left_s for job in state.running if job.left_s is not None]
        spent = [now - job.began + (job.left_s or 0.0) for job in state.running]
        typical = (
            sum(state.seconds) / len(state.seconds) if state.seconds else sum(spent) / max(1, len(spent))
        )
        return max(left, default=0.0) + typical * len(state.waiting) / max(1, len(state.running))
