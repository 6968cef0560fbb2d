# SPDX-License-Identifier: Apache-2.0
"""A plan measured on an executor of the caller: the same files whatever it is, gone on with, workers lost."""

from __future__ import annotations

import os
import pickle
import socket
import sys
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

import pytest

import espbench
from espbench.errors import EspbenchError, UsageError
from espbench.frames import measuring
from espbench.frames.lending import Lending
from espbench.runs.workers import lent, process
from support.simulated.command import PROGRAM

PLAN = """\
name: lent
topology: gateway-to-gateway
dut: mpc8548e
stacks: [plain, xfrm]
suites: [aes128-sha1]
frame_sizes: [64, 1024]
directions: [one-way]
tests:
  - throughput: {loss_goals: [0], trial: 1s, final_trial: 1s, resolution: 10%}
"""


@pytest.fixture(autouse=True)
def simulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver without gateways of its own, and worker processes whose gateways are arithmetic."""
    monkeypatch.setenv("PYTHONPATH", ":".join(filter(None, sys.path)))
    monkeypatch.setattr(measuring, "PROGRAM", PROGRAM)
    monkeypatch.setattr(process, "COMMAND", (sys.executable, "-m", "support.simulated.worker_process", "0"))
    (tmp_path / "plan.yaml").write_text(PLAN)


class Breaks(Executor):
    """Loses the first task that it gets, as a pool does whose process was killed; refuses all, if it is told to."""

    def __init__(self, *, refuses: bool = False) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._refuses = refuses
        self.given = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        if self._refuses:
            raise RuntimeError("shut down long ago")
        self.given += 1
        if self.given == 1:
            lost: Future[Any] = Future()
            lost.set_exception(BrokenProcessPool("a process was killed"))
            return lost
        return self._pool.submit(fn, *args, **kwargs)


def files(run: espbench.Run) -> list[bytes]:
    trials = (run.path / "trials.jsonl").read_bytes().splitlines()
    assert trials
    return [(run.path / "results.csv").read_bytes(), *(line.partition(b',"host":')[0] for line in trials)]


@pytest.mark.slow
def test_the_files_do_not_depend_on_the_executor_or_on_interruptions(tmp_path: Path) -> None:
    plan = espbench.Plan(tmp_path / "plan.yaml")
    with ThreadPoolExecutor(3) as threads:
        whole = plan.run(tmp_path / "whole", executor=threads, jobs=3)

        class Enough(Exception):
            pass

        def stop(progress: espbench.Progress) -> None:
            if progress.cases_done:
                raise Enough

        with pytest.raises(Enough):
            plan.run(tmp_path / "parts", executor=threads, jobs=1, on_progress=stop)
    breaking = Breaks()
    seen: list[espbench.Progress] = []
    parts = plan.run(tmp_path / "parts", executor=breaking, jobs=1, on_progress=seen.append)
    assert [path.name for path in (tmp_path / "parts").iterdir()] == [parts.path.name]
    assert seen[-1].cases_done == seen[-1].cases == 4
    assert breaking.given > 1
    assert files(parts) == files(whole)
    assert set(whole.results["status"]) == {"OK"}


class Cancels(Executor):
    """Never begins a task; cancels each at once, if it is told to."""

    def __init__(self, *, at_once: bool) -> None:
        self._at_once = at_once
        self.given: list[Future[Any]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.given.append(future)
        if self._at_once:
            future.cancel()
        return future


def test_a_task_that_the_executor_cancels_is_lost_and_not_waited_for() -> None:
    """The driver begins it again or gives it up, as if a worker had been lost."""
    with Lending(Cancels(at_once=True)) as lending, Connection(os.dup(lending.passed[0])) as driver:
        lending.begin()
        driver.send((7, b"task", "version"))
        assert driver.poll(30), "no answer: the driver would wait for ever"
        number, pickled = driver.recv()
    answer = pickle.loads(pickled)
    assert (number, answer.message) == (7, None)
    assert isinstance(answer.error, process.WorkerLost)
    assert "the executor cancelled the task" in str(answer.error)


def test_at_the_end_a_task_that_was_not_begun_has_no_answer() -> None:
    executor = Cancels(at_once=False)
    with Lending(executor) as lending:
        driver = Connection(os.dup(lending.passed[0]))
        lending.begin()
        driver.send((7, b"task", "version"))
        deadline = time.monotonic() + 30
        while not lending._under_way:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert executor.given[0].cancelled()
    with driver:
        assert not driver.poll()


def test_an_executor_that_takes_nothing_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(EspbenchError, match="takes no more tasks: RuntimeError: shut down long ago"):
        espbench.Plan(tmp_path / "plan.yaml").run(tmp_path / "out", executor=Breaks(refuses=True))


@pytest.mark.slow
def test_an_interrupted_run_ends_what_is_under_way_in_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their trials take 1,000 s."""
    worker = (sys.executable, "-m", "support.simulated.worker_process", "1000")
    monkeypatch.setattr(process, "COMMAND", worker)

    def stop_when_it_runs(_: espbench.Progress) -> None:
        deadline = time.monotonic() + 120
        while not lent._running:
            assert time.monotonic() < deadline, "nothing was begun"
            time.sleep(0.01)
        raise KeyError("enough")

    with ThreadPoolExecutor(1) as threads:
        with pytest.raises(KeyError):
            espbench.Plan(tmp_path / "plan.yaml").run(
                tmp_path / "out", executor=threads, jobs=1, on_progress=stop_when_it_runs
            )
        assert threads.submit(int).result(timeout=60) == 0


@pytest.mark.slow
def test_real_time_is_no_matter_of_an_executor(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN.replace("mpc8548e", "netns"))
    with pytest.raises(UsageError, match="executor: expected cases in virtual time alone"):
        espbench.Plan(tmp_path / "plan.yaml").run(tmp_path / "out", executor=Breaks())


def test_a_machine_with_another_espbench_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lent, "WorkerProcess", None)
    answer = pickle.loads(lent.carried_out(b"", "0.0.1, code abc", "me"))
    assert isinstance(answer.message.error, UsageError)
    assert "0.0.1, code abc" in str(answer.message.error)


def test_an_answer_that_cannot_be_read_ends_the_run() -> None:
    """The thread that reads must not die silently: the driver would wait for ever."""
    ours, theirs = socket.socketpair()
    workers = lent.LentWorkers(theirs.detach(), 1)
    future = workers.submit(cast(Any, "task"), lambda record, kept: None)
    with Connection(ours.detach()) as connection:
        number, _, _ = connection.recv()
        connection.send((number, b"no pickle"))
        with pytest.raises(EspbenchError, match="executor: an answer cannot be read: UnpicklingError"):
            future.result(60)
    workers.close()
