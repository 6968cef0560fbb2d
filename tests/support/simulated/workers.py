# SPDX-License-Identifier: Apache-2.0
"""Simulates workers by threads with simulated gateways, for tests of the driver of parallel cases."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from espbench.cli import run as command
from espbench.plan import Case, ResolvedPlan, cases
from espbench.platforms.virtual import virtual_pair
from espbench.results import RunDirectory
from espbench.runs.beds import Beds, choose
from espbench.runs.procedure_kinds import procedure_for
from espbench.runs.workers.local import Workers
from espbench.runs.workers.loop import MAXIMUM_RETRIES
from espbench.runs.workers.messages import CaseTask, Done, Failed, Learnt, Task, TrialMade
from espbench.runs.workers.process import OnNews, WorkerLost
from espbench.runs.workers.session import SideBySide
from support.simulated.queue import QueueDut


class Silent:
    """An observer that counts its calls by method, and keeps the notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.heard: dict[str, int] = {}

    def __getattr__(self, name: str) -> Any:
        def hear(*_: object) -> None:
            self.heard[name] = self.heard.get(name, 0) + 1

        return hear

    def note(self, text: str) -> None:
        self.notes.append(text)

    def of(self, name: str) -> Silent:
        return self


class Threads:
    """Workers with simulated gateways; each trial takes a random time.

    trial_s: the mean time of a trial. lose: the probability that an attempt at a case loses its worker, at most as
    often as the driver begins it again. These attempts, and the trial before which the worker is lost, depend only on
    the seed and the case, and not on the order of threads. faults: part of a case's id → the error of its task. queue:
    returns the gateways of a case.
    """

    def __init__(
        self,
        at_once: int,
        seed: int = 0,
        lose: float = 0.0,
        faults: dict[str, BaseException] | None = None,
        trial_s: float = 0.00025,
        queue: Callable[[Case], QueueDut] | None = None,
    ) -> None:
        self.at_once = at_once
        self.problem = ""
        self.copies: dict[str, str] = {}
        self.most = 0
        self.made = 0
        self.slept_s = 0.0
        self._trial_s = trial_s
        self._queue = queue or queue_of
        self.closed = False
        self._random = random.Random(seed)
        self._seed = seed
        self._lose = lose
        self._attempts: Counter[str] = Counter()
        self._counting = threading.Lock()
        self._faults = faults or {}
        self._running = 0
        self._executor = ThreadPoolExecutor(at_once)

    def submit(self, task: Task, on_news: OnNews) -> Future[Done | Failed]:
        return self._executor.submit(self._do, task, on_news)

    def close(self) -> None:
        self.closed = True
        self._executor.shutdown(cancel_futures=True)

    def _do(self, task: Task, on_news: OnNews) -> Done | Failed:
        assert isinstance(task, CaseTask)
        with self._counting:
            self._running += 1
            self.most = max(self.most, self._running)
        try:
            return self._measured(task, on_news)
        finally:
            with self._counting:
                self._running -= 1

    def _lost_before(self, case: Case) -> int | None:
        """Return the number of this attempt's trial before which its worker is lost; None if it is not lost."""
        self._attempts[case.id] += 1
        attempt = self._attempts[case.id]
        chance = random.Random(f"{self._seed} {case.id} {attempt}")
        if attempt > MAXIMUM_RETRIES or chance.random() >= self._lose:
            return None
        return chance.randrange(4)

    def _measured(self, task: CaseTask, on_news: OnNews) -> Done | Failed:
        case = task.case
        for name, fault in self._faults.items():
            if name in case.id:
                if isinstance(fault, WorkerLost):
                    raise fault
                return Failed(fault)
        context = {"of": case.stack.shown, "last read in": case.id}
        name = f"{case.stack.shown}-{case.suite}"
        on_news(Learnt({"contexts": {name: context}, "context_of_case": {case.id: name}}), lambda: None)
        dut = self._queue(case)
        running = procedure_for(case, task.known, task.trials)
        lost_before = self._lost_before(case)
        own = 0
        while (request := running.next()) is not None:
            moment_s = 2 * self._trial_s * self._random.random()
            time.sleep(moment_s)
            self.slept_s += moment_s
            if own == lost_before:
                raise WorkerLost(
                    f"{task.name}: its worker, process 7, ended by SIGKILL", {"home.log": b"lost\n"}
                )
            record = dut.trial(request, case.id, len(running.trials))
            kept = threading.Event()
            on_news(TrialMade(record), kept.set)
            while not kept.wait(0.01):
                if self.closed:
                    raise WorkerLost("nobody is there any more")
            own += 1
            self.made += 1
            running.add(record)
        return Done(logs={"home.log": f"{case.id}\n".encode()})


def queue_of(case: Case) -> QueueDut:
    """Return the simulated gateways of a case; the cost of a frame depends on its size and on the stack."""
    cost_us = (10 + case.mean_frame_size / 100) * (1 if case.stack.kind == "plain" else 4)
    return QueueDut(1e6 / cost_us, buffer=4000)


def begun(resolved: ResolvedPlan, folder: Path) -> RunDirectory:
    return RunDirectory.create(folder, "t", command._manifest(resolved, choose(resolved)), resolved.text)


def session(
    resolved: ResolvedPlan, directory: RunDirectory, workers: Workers, observer: Silent | None = None
) -> SideBySide:
    (choice,) = choose(resolved)
    beds = cast(Beds, SimpleNamespace(notes=lambda case: ["a note of its device"], profiled=False))
    return SideBySide(
        resolved, cases(resolved, [choice.dut]), [(choice.dut, choice.profile)], directory, beds,
        virtual_pair.placement(), workers, observer or Silent(),
    )  # fmt: skip
