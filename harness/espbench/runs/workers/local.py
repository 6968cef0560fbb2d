# SPDX-License-Identifier: Apache-2.0
"""Uses worker processes of this machine behind an executor; each has a thread that gives it tasks and listens to it."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import Protocol

from espbench.runs.workers.messages import Done, Failed, Task
from espbench.runs.workers.process import OnNews, WorkerProcess


class Workers(Protocol):
    """Workers that do up to `at_once` tasks at a time: processes of this machine, or of others.

    submit: returns a future of the task's last message, or WorkerLost. close: ends all running tasks, and undoes what
    they made. copies: path of a user's file on this machine → its place in the workers' caches. problem: why no task is
    being done at the moment, and what the user can do; empty if some are.
    """

    @property
    def copies(self) -> Mapping[str, str]: ...
    @property
    def at_once(self) -> int: ...
    @property
    def problem(self) -> str: ...
    def submit(self, task: Task, on_news: OnNews) -> Future[Done | Failed]: ...
    def close(self) -> None: ...


class LocalWorkers:
    """Has at most `at_once` processes; each is started when there is a task for it, and again if it was lost.

    Each has its own share of the CPUs, so that no case takes a CPU of which another one's gateways wait for an answer.
    """

    problem = ""

    def __init__(self, at_once: int, command: Sequence[str] | None = None) -> None:
        self.at_once = at_once
        self.copies: Mapping[str, str] = {}  # these processes read the user's files where they are
        self._command = command
        self._executor = ThreadPoolExecutor(at_once, "worker")
        self._lock = threading.Lock()
        self._idle: list[WorkerProcess] = []
        self._all: list[WorkerProcess] = []
        self._shares = cpu_shares(sorted(os.sched_getaffinity(0)), at_once)
        self._share_of: dict[WorkerProcess, list[int]] = {}
        self._closing = False

    def submit(self, task: Task, on_news: OnNews) -> Future[Done | Failed]:
        """Have a task done; on_news is called in a thread of this process."""
        return self._executor.submit(self._do, task, on_news)

    def close(self) -> None:
        """End all processes at the same time; what they made is undone when this returns."""
        with self._lock:
            self._closing = True
            enders = [threading.Thread(target=worker.end) for worker in self._all]
        for ender in enders:
            ender.start()
        for ender in enders:
            ender.join()
        self._executor.shutdown(cancel_futures=True)

    def _do(self, task: Task, on_news: OnNews) -> Done | Failed:
        worker = self._taken()
        try:
            done = worker.do(task, on_news)
        except BaseException:
            with self._lock:
                self._all.remove(worker)
                self._shares.append(self._share_of.pop(worker))
            raise
        self._idle.append(worker)
        return done

    def _taken(self) -> WorkerProcess:
        with self._lock:
            if self._closing:
                raise RuntimeError("no task is taken any more")
            if self._idle:
                return self._idle.pop()
            # The process starts under the lock, because `close` must know every process.
            worker = WorkerProcess(self._command, self._shares[0])
            self._share_of[worker] = self._shares.pop(0)
            self._all.append(worker)
            return worker


def cpu_shares(cpus: Sequence[int], workers: int) -> list[list[int]]:
    """Return the CPUs of each worker: equal shares of neighbours; if they are too few, several workers have one CPU."""
    if workers > len(cpus):
        return [[cpus[number % len(cpus)]] for number in range(workers)]
    ends = [len(cpus) * number // workers for number in range(workers + 1)]
    return [list(cpus[begin:end]) for begin, end in pairwise(ends)]
