# SPDX-License-Identifier: Apache-2.0
"""Simulates machines that measure in real time by threads with simulated gateways, for tests of their driver."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from espbench.cli import run as command
from espbench.errors import EspbenchError
from espbench.plan import ResolvedPlan, cases
from espbench.procedures.procedure import CaseFacts
from espbench.results import RunDirectory
from espbench.runs.beds import choose
from espbench.runs.book import Book
from espbench.runs.procedure_kinds import procedure_for
from espbench.runs.workers import messages
from espbench.runs.workers.bench_session import OnBenches
from espbench.runs.workers.benches import Bench
from espbench.runs.workers.process import OnNews
from espbench.terms import Calibration, Finding, Outcome, Trial
from support.simulated.workers import Silent, queue_of

BeforeTrial = Callable[[str, messages.ShareTask, int], None]
"""Gets the machine, the task, and the number of trials in this attempt; raises the error that happens to the worker."""


def bench(name: str, **host: Any) -> Bench:
    """Return a machine with this name; host: facts of its `host`."""
    facts = {"cpu": "Q", "kernel": "Linux 6.1", "cpus usable": [0, 1], "cpu_mhz": 2000.0} | host
    tools = {"python": "3.11", "generator": "native"}
    return Bench(name, f"host-{name}", f"tls://{name}", {"host": {"machine": name, **facts}, "tools": tools})


class _Records:
    """A share's view of the run directory on a simulated machine."""

    def __init__(self, task: messages.ShareTask, on_news: OnNews) -> None:
        self.manifest = task.manifest
        self._trials = {case: list(trials) for case, trials in task.trials.items()}
        self._on_news = on_news

    def tell(self, news: messages.News) -> None:
        self._on_news(news, lambda: None)

    def update_manifest(self, **changes: Any) -> None:
        self.manifest = self.manifest.model_copy(update=changes)
        self.tell(messages.Learnt(changes))

    def trials_of(self, case: str) -> list[Trial]:
        return list(self._trials.get(case, []))

    def append(self, trial: Trial) -> None:
        self._trials.setdefault(trial.case, []).append(trial)
        self.tell(messages.TrialMade(trial))

    def save_results(self, results: Sequence[Outcome | Finding]) -> None:
        self.tell(
            messages.ResultsMade(list(results), {case: len(trials) for case, trials in self._trials.items()})
        )

    def arrange(self, cases: Sequence[str]) -> None:
        """Do nothing: the driver arranges the trials."""


class SimulatedBenches:
    """Simulated machines with these names; `befalls` is called before each trial, and may raise an error.

    tasks: (machine, task), in the order in which they were given. measured: share → its cases, in the order of
    measuring. busy: machine → the share of another run that it measures.
    """

    def __init__(self, *names: str, befalls: BeforeTrial = lambda machine, task, made: None) -> None:
        self.machines = {name: bench(name) for name in names}
        self.tasks: list[tuple[str, messages.ShareTask]] = []
        self.measured: dict[str, list[str]] = {}
        self.closed = False
        self.busy: dict[str, str] = {}
        self._befalls = befalls
        self._executor = ThreadPoolExecutor(max(1, len(names)))

    def present(self) -> Mapping[str, Bench]:
        return dict(self.machines)

    def is_there(self, bench: Bench) -> bool:
        return bench.name in self.machines

    def busy_with(self, bench: Bench) -> str:
        return self.busy.get(bench.name, "")

    def submit(
        self, bench: Bench, task: messages.ShareTask, on_news: OnNews
    ) -> Future[messages.Done | messages.Failed]:
        self.tasks.append((bench.name, task))
        return self._executor.submit(self._measured, bench.name, task, on_news)

    def close(self) -> None:
        self.closed = True
        self._executor.shutdown(cancel_futures=True)

    def _measured(
        self, machine: str, task: messages.ShareTask, on_news: OnNews
    ) -> messages.Done | messages.Failed:
        facts: messages.RunFacts = pickle.loads(task.run)
        records = _Records(task, on_news)
        try:
            self._befalls(machine, task, 0)
        except EspbenchError as error:
            if type(error).__name__ != "WorkerLost":
                return messages.Failed(error)
            raise
        book = Book(facts.resolved, facts.cases, records, task.cases)
        if not records.manifest.calibration:
            records.update_manifest(calibration=[_ceiling(case.frame_size) for case in book.cases])
        made = 0
        for case in book.cases:
            self.measured.setdefault(task.share, []).append(case.id)
            running = procedure_for(case, book.known(case), records.trials_of(case.id))
            name = f"{case.stack.shown}-{case.suite}"
            records.update_manifest(
                contexts={**records.manifest.contexts, name: {"kernel": f"of {machine}"}},
                context_of_case={**records.manifest.context_of_case, case.id: name},
            )
            while (request := running.next()) is not None:
                self._befalls(machine, task, made)
                records.append(trial := queue_of(case).trial(request, case.id, len(running.trials)))
                running.add(trial)
                made += 1
            results = running.results(CaseFacts(case.dut, "baseline", []))
            book.finish(case, results)
            records.tell(messages.ObserverCall("case_done", (results,)))
        return messages.Done(logs={"home.log": f"{machine}\n".encode()})


def _ceiling(frame_size: int | str) -> Calibration:
    return Calibration(frame_size=frame_size, ip_version=4, offered_fps=1e6, received_fps=1e6)


def begun(resolved: ResolvedPlan, folder: Path) -> RunDirectory:
    manifest = command._manifest(resolved, choose(resolved), on_benches=True)
    return RunDirectory.create(folder, "t", manifest, resolved.text)


def session(
    resolved: ResolvedPlan, directory: RunDirectory, benches: SimulatedBenches, observer: Silent | None = None
) -> OnBenches:
    """Return the driver of a run; a machine counts as gone after 0.2 s."""
    (choice,) = choose(resolved)
    return OnBenches(
        resolved, cases(resolved, [choice.dut]), [(choice.dut, choice.profile)], directory, benches,
        observer or Silent(), gone_after_s=0.2,
    )  # fmt: skip
