# SPDX-License-Identifier: Apache-2.0
"""Makes a run in virtual time whose cases are measured side by side: gives out cases, and keeps their records.

The earlier results that a case starts from depend on the plan alone (`book`). So the run's files are the same, byte for
byte, as with one job, except for `host` in the records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

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
from espbench.runs.setups import same_as_before
from espbench.runs.workers.local import Workers
from espbench.runs.workers.loop import Job, Loop, ObserverOfMany
from espbench.runs.workers.messages import AcceleratorTask, CaseTask, Learnt, ResultsMade, RunFacts, Task
from espbench.terms import Finding, Outcome

_LOOK_EACH_S = 10.0  # a cluster's workers may have gone meanwhile


@dataclass(eq=False, kw_only=True)
class _Job(Job):
    """A case, or a figure of the accelerator test, that is to be measured."""

    case: Case | None = None
    figure: Figure = ("", "", "", 0, Variant())
    behind: int = 0  # the length of the longest chain of jobs that wait for this one


class SideBySide:
    """One run over a list of cases, and over the figures of the accelerator test; call `run` once."""

    plural = "cases"
    look_each_s: float | None = _LOOK_EACH_S

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
        self._loop: Loop[_Job] = Loop(self, directory, observer)
        self._problem = ""  # of the workers, as it was last reported
        # Security Context → the position, in the order of measuring, of the case in which it was read.
        self._read_in: dict[str, int] = {}

    def run(self) -> list[Outcome | Finding]:
        """Measure every case that is not complete; return the results in the plan's order.

        An error that would end a run with one job ends this run too, with all running cases; records on disk stay.
        EspbenchError if a case's worker was lost again and again (raised when all other cases are finished).
        """
        self._note_contexts()
        self._observer.note(
            f"virtual time: the generator's ceiling is the line rate; {self._workers.at_once} cases side by side"
        )
        try:
            self._loop.run(self._jobs())
        finally:
            self._workers.close()
        self._book.arrange()
        results = self._book.save()
        if self._loop.given_up:
            raise EspbenchError("\n".join(self._loop.given_up))
        return results

    # -- jobs and tasks -------------------------------------------------------------------------

    def _jobs(self) -> list[_Job]:
        """List all jobs; those with the longest chain of cases that wait for their results come first."""
        jobs = {case.id: _Job(case.id, self._observer.of(case.id), case=case) for case in self._book.cases}
        for case in reversed(self._book.cases):
            for needed in self._book.needs(case):
                jobs[needed.id].behind = max(jobs[needed.id].behind, jobs[case.id].behind + 1)
        in_order = sorted(jobs.values(), key=lambda job: -job.behind)
        for figure in self._figures.missing() if self._figures else ():
            name = name_of(figure)
            in_order.append(_Job(name, self._observer.of(name), figure=figure))
        return in_order

    def give_out(self) -> bool:
        """Begin jobs while there are free workers; a case can begin when the cases that it needs are finished."""
        if (problem := self._workers.problem) != self._problem:
            self._problem = problem
            if problem:
                self._observer.note(problem)
        for job in list(self._loop.waiting):
            if len(self._loop.running) >= self._workers.at_once:
                break
            if job.case is None:
                self._submit(job, self._figure_task(job))
            elif all(self._book.has(needed) for needed in self._book.needs(job.case)):
                self._begin_case(job, job.case)
        return bool(self._loop.running)

    def _begin_case(self, job: _Job, case: Case) -> None:
        known = self._book.known(case)
        trials = self._directory.trials_of(case.id)
        running = procedure_for(case, known, trials)
        if running.next() is None:
            self._loop.waiting.remove(job)
            self._finish_case(job, case, running)
            self._loop.count(job)
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
        self._loop.begin(job, partial(self._workers.submit, task))

    # -- answers of the workers -----------------------------------------------------------------

    def failed(self, job: _Job, error: BaseException) -> None:
        """Raise the error of a job's task: it would end a run with one job, too."""
        raise error

    def finish(self, job: _Job, result: Any) -> None:
        """Put the results of a case, or a figure, on disk."""
        if job.case is not None:
            self._finish_case(job, job.case, self._replayed(job.case))
            return
        assert isinstance(result, AcceleratorResult)
        assert self._figures is not None
        self._figures.take(result)

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

    def _replayed(self, case: Case) -> Procedure:
        """Return the case's procedure with the records on disk, which alone decide the results."""
        running = procedure_for(case, self._book.known(case), self._directory.trials_of(case.id))
        if running.next() is not None:
            raise EspbenchError(f"{case.id}: its worker ended without an answer; a fault of espbench's own")
        return running

    def time_left(self, running_s: list[float], waiting_s: float) -> float:
        """Estimate the time left, s, if all workers are busy until the end."""
        return (sum(running_s) + waiting_s) / self._workers.at_once

    # -- Security Contexts that workers read -------------------------------------------------------

    def _note_contexts(self) -> None:
        """Note, for a resumed run, the case in which each Security Context was read last, as far as that is known."""
        known = self._directory.manifest.context_of_case
        counts = self._directory.trial_counts()
        for number, case in enumerate(self._book.cases):
            if case.id in known and counts.get(case.id):
                self._read_in[known[case.id]] = number

    def keep(self, job: _Job, news: Learnt | ResultsMade) -> None:
        """Put a worker's changes into the manifest, so that it is as one job would have left it.

        Of each Security Context, the manifest has the one that was read in the last case.
        """
        assert isinstance(news, Learnt)
        manifest = self._directory.manifest
        number = self._book.number(job.case) - 1 if job.case else len(self._book.cases)
        merged: dict[str, Any] = {}
        for key, value in news.changes.items():
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
