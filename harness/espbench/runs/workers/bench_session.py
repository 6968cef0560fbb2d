# SPDX-License-Identifier: Apache-2.0
"""Makes a run in real time on several machines: gives out shares of the plan, and keeps their records.

Each machine measures one share at a time. A share is measured on one machine only: if that machine is gone for good,
the share begins anew on another one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from espbench.errors import EspbenchError, MachineLacks
from espbench.plan.resolved.cases import Case
from espbench.plan.resolved.resolved_plan import ResolvedPlan
from espbench.results import RunDirectory
from espbench.runs.book import Book
from espbench.runs.paired_run import rivals
from espbench.runs.parts import Devices
from espbench.runs.platform_kinds.shared import users_files
from espbench.runs.workers.benches import Bench, Machines
from espbench.runs.workers.loop import Job, Loop, ObserverOfMany
from espbench.runs.workers.machines import as_seen_on, begun_on, merged, warned, without
from espbench.runs.workers.messages import Learnt, ResultsMade, RunFacts, ShareTask
from espbench.runs.workers.process import WorkerLost
from espbench.runs.workers.shares import Share, shares
from espbench.terms import PAIRED, Finding, Outcome, at_fixed_loads

# A machine counts as gone when it was not seen for this time, s: a worker that ended may be started again before.
GONE_AFTER_S = 30.0


@dataclass(eq=False, kw_only=True)
class _Job(Job):
    """A share that is to be measured."""

    share: Share
    bench: Bench | None = None
    last_there: float = 0.0  # when its worker was seen last, by the monotonic clock


class OnBenches:
    """One run in real time over a list of cases; call `run` once."""

    plural = "shares"
    look_each_s: float | None = 1.0

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
        own = users_files.digests(resolved, [profile for _, profile in devices])
        # A relative path would start in another folder there.
        there = replace(resolved, path=resolved.path and resolved.path.absolute())
        self._run = RunFacts(there, tuple(devices), tuple(cases), None, own=own).pickled()
        self._loop: Loop[_Job] = Loop(self, directory, observer)
        self._unfit: dict[str, MachineLacks] = {}  # machine → what it lacks
        self._seen: dict[str, float] = {}  # machine → when, by the monotonic clock
        self._results: dict[str, list[Outcome | Finding]] = {}
        self._started = time.monotonic()

    def run(self) -> list[Outcome | Finding]:
        """Measure every share that is not complete; return the results in the plan's order.

        MachineLacks if no machine can carry the plan. EspbenchError if a share's worker was lost again and again
        (raised when all other shares are finished), or if no machine is left (raised at once).
        """
        for result in self._directory.results():
            self._results.setdefault(result.case, []).append(result)
        wanted = shares(self._resolved.plan, [*self._cases.values()])
        jobs = [
            _Job(share.name, self._observer.of(share.name), share=share)
            for share in wanted
            if not self._is_complete(share)
        ]
        self._observer.note(
            f"real time: {len(wanted)} shares, {len(jobs)} to be measured; each stays on one machine"
        )
        try:
            self._loop.run(jobs)
        finally:
            self._machines.close()
        Book(self._resolved, [*self._cases.values()], self._directory).arrange()
        if changes := warned(self._directory.manifest, self._cases):
            self._directory.update_manifest(**changes)
        if self._loop.given_up:
            raise EspbenchError("\n".join(self._loop.given_up))
        return self._save()

    def _is_complete(self, share: Share) -> bool:
        points = rivals(self._resolved, [self._cases[case] for case in share.cases])
        return all(name in self._results for name in (*share.cases, *(point.id for point in points)))

    # -- giving out -----------------------------------------------------------------------------

    def give_out(self) -> bool:
        """Give a share to each idle machine; MachineLacks or EspbenchError if no machine can ever take one."""
        loop, now = self._loop, time.monotonic()
        if not loop.waiting and not loop.running:
            return False
        present = self._machines.present()
        self._seen.update(dict.fromkeys(present, now))
        if not loop.has_messages:  # messages that a worker sent before it ended come first
            self._miss(now)
        busy = {job.bench.name for job in loop.running if job.bench is not None}
        for name, bench in present.items():
            if name not in busy and name not in self._unfit and (job := self._next_for(name, now)):
                self._begin(job, bench)
        if not loop.waiting or loop.running:
            return True
        if present and all(name in self._unfit for name in present):
            raise next(iter(self._unfit.values()))
        if now - max([self._started, *self._seen.values()]) > self._gone_after_s:
            raise EspbenchError("no machine is left that measures in real time; none came back")
        return True

    def _miss(self, now: float) -> None:
        """Begin shares again whose worker ended before it took them, because the cluster never reports those."""
        for job in list(self._loop.running):
            assert job.bench is not None
            if self._machines.is_there(job.bench):
                job.last_there = now
            elif now - job.last_there > self._gone_after_s:
                self._loop.lost(job, WorkerLost(f"{job.name}: its worker at {job.bench.address} is gone"))

    def _next_for(self, machine: str, now: float) -> _Job | None:
        """Return the next share for a machine; None if there is none.

        Shares that this machine began come first, then new shares, then shares whose machine is gone.
        """
        # The cluster takes some seconds to notice that a worker ended; until then a share could go there again.
        ready = [job for job in self._loop.waiting if job.lost_at + self._gone_after_s / 10 <= now]
        waiting = [(job, self._machine_of(job)) for job in ready]
        own = [job for job, of in waiting if of == machine]
        new = [job for job, of in waiting if not of]
        left = [job for job, of in waiting if of and of != machine and self._is_gone(of, now)]
        return next(iter([*own, *new, *left]), None)

    def _machine_of(self, job: _Job) -> str:
        return self._directory.manifest.machine_of_case.get(job.share.cases[0], "")

    def _is_gone(self, machine: str, now: float) -> bool:
        seen = self._seen.get(machine, self._started)
        return machine in self._unfit or now - seen > self._gone_after_s

    def _begin(self, job: _Job, bench: Bench) -> None:
        cases = job.share.cases
        before = self._machine_of(job)
        if before != bench.name:
            if before:
                self._leave(job, f"its machine, {before}, is gone; begun anew on {bench.host}")
            self._directory.update_manifest(**begun_on(self._directory.manifest, bench.facts, cases))
        else:  # raises UsageError if the machine has changed
            begun_on(self._directory.manifest, bench.facts, cases)
        job.bench = bench
        job.last_there = time.monotonic()
        task = ShareTask(
            self._run,
            as_seen_on(self._directory.manifest, bench.name, [self._cases[case] for case in cases]),
            job.name,
            frozenset(cases),
            {name: self._directory.trials_of(name) for name in self._directory.filed(cases)},
            job.attempt + 1,
        )
        job.observer.note(f"on {bench.host}, machine {bench.name}")
        if other := self._machines.busy_with(bench):
            job.observer.note(
                f"waits: {bench.host} still measures {other} for another run; if that run's driver was killed, "
                "this ends within a minute"
            )
        self._loop.begin(job, partial(self._machines.submit, bench, task))

    def _leave(self, job: _Job, why: str) -> None:
        """Remove what a machine that is gone measured of a share: all figures of a share are of one machine."""
        cases = job.share.cases
        copy = self._directory.begin_anew(cases)
        for name in (*cases, *map(at_fixed_loads, cases)):
            self._results.pop(name, None)
        self._directory.update_manifest(**without(self._directory.manifest, cases))
        job.observer.note(why + (f"; the trials so far are kept as {copy}" if copy else ""))

    # -- answers of the workers -----------------------------------------------------------------

    def keep(self, job: _Job, news: Learnt | ResultsMade) -> None:
        """Put a machine's entries into the manifest, or results on disk."""
        if isinstance(news, ResultsMade):
            self._keep_results(news)
            return
        assert job.bench is not None
        self._directory.update_manifest(**merged(self._directory.manifest, job.bench.name, news.changes))

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

    def failed(self, job: _Job, error: BaseException) -> None:
        """Give a share back to the other machines if its machine lacks something for it; else raise the error."""
        if not isinstance(error, MachineLacks):
            raise error
        assert job.bench is not None
        self._unfit[job.bench.name] = error
        self._observer.note(f"{job.bench.host} cannot measure this plan, and gets no more of it: {error}")
        if not self._directory.filed(job.share.cases):
            self._directory.update_manifest(**without(self._directory.manifest, job.share.cases))
        self._loop.waiting.insert(0, job)

    def finish(self, job: _Job, result: None) -> None:
        """Verify that a share is complete: its results are on disk already."""
        if not self._is_complete(job.share):
            raise EspbenchError(f"{job.name}: its worker ended without an answer; a fault of espbench's own")

    def time_left(self, running_s: list[float], waiting_s: float) -> float:
        """Estimate the time left, s: of the slowest share, and of those that wait for one of the busy machines."""
        return max(running_s, default=0.0) + waiting_s / max(1, len(self._loop.running))

    def _save(self) -> list[Outcome | Finding]:
        """Write all results in the plan's order and return them; those at fixed loads come last."""
        of_cases = [result for case in self._cases for result in self._results.get(case, [])]
        paired = [result for results in self._results.values() for result in results if result.test == PAIRED]
        results = [*of_cases, *paired]
        self._directory.save_results(results)
        return results
