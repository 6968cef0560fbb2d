# SPDX-License-Identifier: Apache-2.0
"""A cluster's workers may be refused; a stand-in for Dask's client asks them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from espbench.errors import EspbenchError, UsageError
from espbench.runs.workers import cluster
from espbench.runs.workers.versions import version_here

HERE = version_here()


class Client:
    """A cluster whose workers say these versions of themselves."""

    status = "running"

    def __init__(self, *versions: str, threads: int = 1) -> None:
        self._threads = threads
        self._versions = {f"tls://192.0.2.{n}:1": version for n, version in enumerate(versions, start=1)}

    def nthreads(self) -> dict[str, int]:
        """Workers and their threads."""
        return dict.fromkeys(self._versions, self._threads)

    def run(self, function: Callable[[], Any]) -> dict[str, Any]:
        """Return what the function gives on each."""
        assert function is version_here
        return self._versions


def test_workers_with_the_same_code_are_taken() -> None:
    """Nothing is said."""
    cluster._examine(Client(HERE, HERE), "tls://192.0.2.9:8786")


@pytest.mark.parametrize("other", ["0.0.9", HERE.partition(",")[0], HERE[:-1] + "x"])
def test_one_with_another_version_or_other_code_is_refused(other: str) -> None:
    """The message has its address, what is here and what is there."""
    with pytest.raises(UsageError) as refused:
        cluster._examine(Client(HERE, other), "tls://192.0.2.9:8786")
    for words in ("the worker at tls://192.0.2.2:1", f"expected: espbench {HERE}", f"got: espbench {other}"):
        assert words in str(refused.value)


def test_a_worker_with_several_threads_is_refused() -> None:
    """Two tasks would share one worker process, and each would get the other's messages."""
    with pytest.raises(UsageError) as refused:
        cluster._examine(Client(HERE, threads=2), "tls://192.0.2.9:8786")
    for words in ("the worker at tls://192.0.2.1:1", "expected: 1 thread", "got: 2 threads", "--nthreads 1"):
        assert words in str(refused.value)


@pytest.mark.needs("distributed")
@pytest.mark.parametrize(("threads", "problem"), [(1, ""), (2, "got: 2 threads")])
def test_a_worker_that_joins_later_with_several_threads_is_closed(threads: int, problem: str) -> None:
    """Dask would give it tasks all the same."""
    from espbench.runs.workers.equal import EqualWorkers, Unequal  # noqa: PLC0415  (an extra)

    closed: list[str] = []
    worker: Any = SimpleNamespace(
        address="tls://192.0.2.1:1",
        state=SimpleNamespace(nthreads=threads),
        loop=SimpleNamespace(add_callback=lambda close, reason: closed.append(reason)),
        close=None,
    )
    with pytest.raises(Unequal, match=problem) if problem else nullcontext():
        asyncio.run(EqualWorkers(HERE, {}, [], frozenset()).setup(worker))
    assert len(closed) == bool(problem)


def test_a_cluster_without_workers_is_refused() -> None:
    """The message has the command that starts one."""
    with pytest.raises(EspbenchError, match="dask worker"):
        cluster._examine(Client(), "tls://192.0.2.9:8786")


def test_a_cluster_whose_workers_are_gone_says_so() -> None:
    """The run waits for others, and goes on with them."""
    client = Client(HERE)
    workers = cluster.ClusterWorkers.__new__(cluster.ClusterWorkers)
    workers.client, workers.address, workers._counted = client, "tls://192.0.2.9:8786", (float("-inf"), 1)
    assert (workers.problem, workers.at_once) == ("", 1)
    client._versions.clear()
    workers._counted = (float("-inf"), 1)
    assert workers.problem.startswith(
        "--cluster tls://192.0.2.9:8786: it has no workers any more; the run waits for one"
    )
    assert workers.at_once == 1


class Process:
    """A worker process that notes that it was ended."""

    def __init__(self) -> None:
        self.ended = False

    def end(self) -> None:
        self.ended = True


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> list[Process]:
    """The processes of a machine on which none has been started yet."""
    started: list[Process] = []

    def start() -> Process:
        started.append(Process())
        return started[-1]

    monkeypatch.setattr(cluster, "WorkerProcess", start)
    monkeypatch.setattr(cluster, "_process", None)
    monkeypatch.setattr(cluster, "_topic", None)
    return started


def test_the_end_of_a_run_leaves_other_runs_alone(processes: list[Process]) -> None:
    """A machine's process may have worked for the run before; what counts is whose task it has now."""
    cluster._standing("espbench-a")
    cluster._standing("espbench-b")
    cluster.stop("espbench-a")
    assert [process.ended for process in processes] == [False]
    cluster.stop("espbench-b")
    assert [process.ended for process in processes] == [True]
    cluster.stop("espbench-b")
    cluster._standing("espbench-a")
    assert [process.ended for process in processes] == [True, False]


def test_a_run_names_itself_when_it_ends() -> None:
    """Each worker is told whose process to end."""
    told: list[tuple[Any, ...]] = []
    workers = cluster.ClusterWorkers.__new__(cluster.ClusterWorkers)
    workers._topic = "espbench-a"
    workers.client = SimpleNamespace(status="running", run=lambda *asked, on_error: told.append(asked))
    workers.close()
    assert told == [(cluster.stop, "espbench-a")]
