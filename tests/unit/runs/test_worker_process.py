# SPDX-License-Identifier: Apache-2.0
"""Processes that do tasks: what they say comes through, who dies is named, and nobody is left."""

from __future__ import annotations

import errno
import os
import pickle
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from espbench.errors import CannotWrite, MachineLacks, UsageError
from espbench.measure.proof import readiness
from espbench.runs.workers import local, process, worker
from espbench.runs.workers.local import LocalWorkers, cpu_shares
from espbench.runs.workers.messages import Done, Failed, News, Task, TrialMade
from espbench.runs.workers.process import WorkerLost, WorkerProcess, keep_logs
from espbench.runs.workers.versions import version_here
from espbench.this_machine.processes import start_time
from espbench.this_machine.registry import state_dir

PATIENCE_S = 120  # only ends a hang
# The stub serves as worker.py does, without what a run needs: the task is a word that says what to do.
STUB = """
import os, signal, sys, time
from multiprocessing.connection import Connection
from pathlib import Path
from espbench.this_machine import ending
from espbench.this_machine.registry import Registry
from espbench.runs.workers.messages import Done, Failed, Hello, ObserverCall, TrialMade
ending.listen()
try:
    ending.with_parent(int(sys.argv[3]))
    connection = Connection(int(sys.argv[1]))
    with Registry(sys.argv[2]) as made:
        logs = made.directory("worker")
        connection.send(Hello(logs, "0.1.0, code ab"))
        while True:
            word = connection.recv().name
            (logs / "home.log").write_text(f"{word}\\n")
            if word == "die":
                sys.stderr.write("last words")
                sys.stderr.flush()
                os.kill(os.getpid(), signal.SIGKILL)
            elif word == "trial":
                connection.send(TrialMade("record"))
                connection.recv()
            elif word == "sleep":
                connection.send(ObserverCall("asleep"))
                time.sleep(600)
            connection.send(Done((os.getpid(), made.run_id), {}))
except (KeyboardInterrupt, EOFError):
    sys.exit(130)
"""


def word(name: str) -> Task:
    """A task that says no more than its name."""
    return cast(Task, SimpleNamespace(name=name))


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Nothing of any worker is left at the end."""
    file = tmp_path / "stub.py"
    file.write_text(STUB)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    ids: list[str] = []
    drawn = secrets.token_hex

    def draw(size: int) -> str:
        ids.append(drawn(size))
        return ids[-1]

    monkeypatch.setattr(process, "secrets", SimpleNamespace(token_hex=draw))
    yield [sys.executable, str(file)]
    assert [run_id for run_id in ids if journal(run_id).exists()] == []


def journal(run_id: str) -> Path:
    return state_dir() / f"{run_id}.journal"


def nobody(news: News, kept: Any) -> None:
    raise AssertionError(news)


def test_a_process_serves_many_tasks_and_a_trial_waits_until_it_is_kept(command: list[str]) -> None:
    workers = LocalWorkers(1, command)
    heard: list[News] = []
    release = threading.Event()

    def hear(news: News, kept: Any) -> None:
        heard.append(news)
        threading.Thread(target=lambda: (release.wait(PATIENCE_S), kept())).start()

    first = workers.submit(word("a"), nobody).result(PATIENCE_S)
    second = workers.submit(word("b"), nobody).result(PATIENCE_S)
    trial = workers.submit(word("trial"), hear)
    deadline = time.monotonic() + PATIENCE_S
    while not heard and time.monotonic() < deadline:
        time.sleep(0.01)
    assert isinstance(heard[0], TrialMade)
    assert not trial.done()
    release.set()
    assert trial.result(PATIENCE_S) == first == second
    assert isinstance(first, Done)
    workers.close()
    assert start_time(first.result[0]) is None


def test_one_that_is_killed_is_named_with_its_last_words_and_replaced(command: list[str]) -> None:
    """Its logs are not lost; what it had made is undone."""
    workers = LocalWorkers(1, command)
    before = workers.submit(word("a"), nobody).result(PATIENCE_S)
    with pytest.raises(
        WorkerLost, match=r"die: its worker, process \d+, ended by SIGKILL: last words"
    ) as lost:
        workers.submit(word("die"), nobody).result(PATIENCE_S)
    assert lost.value.logs == {"home.log": b"die\n"}
    after = workers.submit(word("a"), nobody).result(PATIENCE_S)
    assert isinstance(before, Done)
    assert isinstance(after, Done)
    assert before.result != after.result
    workers.close()


def test_two_workers_have_other_cpus_and_a_new_one_takes_those_of_the_lost_one(
    command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    monkeypatch.setattr(local, "cpu_shares", lambda *_: [cpus[:1], cpus[-1:]])
    workers = LocalWorkers(2, command)
    asleep = threading.Semaphore(0)
    for _ in range(2):
        workers.submit(word("sleep"), lambda news, kept: asleep.release())
    assert asleep.acquire(timeout=PATIENCE_S)
    assert asleep.acquire(timeout=PATIENCE_S)
    assert [os.sched_getaffinity(worker.pid) for worker in workers._all] == [{cpus[0]}, {cpus[-1]}]
    first = workers._all[0]
    os.kill(first.pid, signal.SIGKILL)
    done = workers.submit(word("a"), nobody).result(PATIENCE_S)
    assert isinstance(done, Done)
    assert os.sched_getaffinity(done.result[0]) == {cpus[0]}
    workers.close()


@pytest.mark.parametrize(
    ("cpus", "workers", "shares"),
    [
        ([0, 1], 1, [[0, 1]]),
        ([0, 1], 2, [[0], [1]]),
        ([0, 1], 3, [[0], [1], [0]]),
        ([2, 3, 5, 7, 8], 2, [[2, 3], [5, 7, 8]]),
        ([0, 1, 2, 3], 3, [[0], [1], [2, 3]]),
    ],
)
def test_the_cpus_are_shared_out_evenly(cpus: list[int], workers: int, shares: list[list[int]]) -> None:
    assert cpu_shares(cpus, workers) == shares


def test_closing_ends_who_is_in_the_middle(command: list[str]) -> None:
    """Their tasks fail, nobody waits for them."""
    workers = LocalWorkers(2, command)
    asleep = threading.Semaphore(0)
    tasks = [workers.submit(word("sleep"), lambda news, kept: asleep.release()) for _ in range(2)]
    assert asleep.acquire(timeout=PATIENCE_S)
    assert asleep.acquire(timeout=PATIENCE_S)
    pids = [worker.pid for worker in workers._all]
    workers.close()
    assert all(isinstance(task.exception(), WorkerLost) for task in tasks)
    assert [start_time(pid) for pid in pids] == [None, None]
    with pytest.raises(RuntimeError):
        workers.submit(word("a"), nobody).result(1)


def test_one_that_cannot_even_start_says_why() -> None:
    worker = WorkerProcess([sys.executable, "-c", "import nothing_of_that_name"])
    with pytest.raises(WorkerLost, match=r"exit code 1: [\s\S]*nothing_of_that_name"):
        worker.do(word("a"), nobody)


def test_one_with_another_espbench_than_its_driver_gets_no_task(command: list[str]) -> None:
    """The process starts from the disk, where espbench may be another one since the Dask worker was started."""
    worker = WorkerProcess(command)
    assert isinstance(worker.do(word("a"), nobody, "0.1.0, code ab"), Done)
    refused = worker.do(word("die"), nobody, "0.1.0, code cd")
    worker.end()
    assert isinstance(refused, Failed)
    assert isinstance(refused.error, UsageError)
    words = f"the process that measures on {socket.gethostname()}\n  expected: espbench 0.1.0, code cd\n"
    assert str(refused.error).startswith(f"{words}  got: espbench 0.1.0, code ab\n  what to do: ")


def test_espbenchs_own_says_which_espbench_it_is() -> None:
    worker = WorkerProcess()
    refused = worker.do(word("a"), nobody, "0.0.1")
    worker.end()
    assert isinstance(refused, Failed)
    assert f"got: espbench {version_here()}\n" in str(refused.error)


def test_one_whose_driver_is_gone_undoes_all_and_ends(command: list[str], tmp_path: Path) -> None:
    """SIGKILL to the driver, in the middle of a task."""
    driver = tmp_path / "driver.py"
    driver.write_text(
        "import sys\n"
        "from types import SimpleNamespace\n"
        "from espbench.runs.workers.process import WorkerProcess\n"
        f"worker = WorkerProcess({command!r})\n"
        "print(worker.pid, worker._run_id, flush=True)\n"
        "worker.do(SimpleNamespace(name='sleep'), lambda news, kept: print('on', flush=True))\n"
    )
    with subprocess.Popen([sys.executable, str(driver)], stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        pid, run_id = started.stdout.readline().split()
        assert started.stdout.readline() == "on\n"
        assert journal(run_id).exists()
        os.kill(started.pid, signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE_S
    while start_time(int(pid)) is not None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert start_time(int(pid)) is None
    assert not journal(run_id).exists()


def test_logs_follow_each_other_and_other_files_are_the_newest(tmp_path: Path) -> None:
    for number in (b"1", b"2"):
        keep_logs(tmp_path, {"home.log": number, "middle.pcap": number, "empty.log": b""})
    assert (tmp_path / "home.log").read_bytes() == b"12"
    assert (tmp_path / "middle.pcap").read_bytes() == b"2"
    assert not (tmp_path / "empty.log").exists()


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (MachineLacks("no QEMU", "espbench build e500"), MachineLacks, "no QEMU"),
        (readiness.NotReady("no carrier"), readiness.NotReady, "no carrier"),
        (
            OSError(errno.ENOSPC, "No space left on device", "/tmp/home.log"),
            CannotWrite,
            "home.log: cannot write",
        ),
        (ValueError("a mistake"), type(None), "ValueError: a mistake"),
    ],
)
def test_what_ends_a_task_is_told_as_it_was_with_its_logs(
    tmp_path: Path, error: Exception, kind: type[object], words: str
) -> None:
    """An error that nobody foresaw also says where it came from."""
    (tmp_path / "home.log").write_text("last words")

    def fail(task: Task) -> None:
        raise error

    answer = worker._answer(cast(worker.Worker, SimpleNamespace(do=fail)), word("a"), tmp_path)
    again = pickle.loads(pickle.dumps(answer))
    assert isinstance(again, Failed)
    assert type(again.error) is kind
    assert words in (str(again.error) if again.error else again.fault)
    assert again.logs == {"home.log": b"last words"}
    assert (tmp_path / "home.log").read_text() == ""
