# SPDX-License-Identifier: Apache-2.0
"""A cluster's workers may be refused; a stand-in for Dask's client asks them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from espbench.errors import EspbenchError, MachineLacks, UsageError
from espbench.runs.workers import cluster
from espbench.runs.workers.versions import version_here

HERE = version_here()


SCHEDULER = "tls://192.0.2.9:8786"


class Client:
    """A cluster whose workers say these versions of themselves; an error is what happens to the question."""

    status = "running"

    def __init__(
        self,
        *versions: str | Exception,
        threads: int = 1,
        at: str = "tls://192.0.2",
        scheduler: str = SCHEDULER,
    ) -> None:
        self._threads = threads
        self._versions = {f"{at}.{n}:1": version for n, version in enumerate(versions, start=1)}
        self._scheduler = scheduler

    def scheduler_info(self, n_workers: int) -> dict[str, Any]:
        """The address that the scheduler advertises."""
        return {"address": self._scheduler}

    def nthreads(self) -> dict[str, int]:
        """Workers and their threads."""
        return dict.fromkeys(self._versions, self._threads)

    def run(self, function: Callable[[], Any], on_error: str) -> dict[str, Any]:
        """Return what the function gives on each."""
        assert function is version_here
        if on_error == "raise":
            for answer in self._versions.values():
                if isinstance(answer, Exception):
                    raise answer
        return self._versions


def test_workers_with_the_same_code_are_taken() -> None:
    """Nothing is said."""
    cluster._examine(Client(HERE, HERE), "tls://192.0.2.9:8786")


def test_the_version_has_the_traffic_generator_of_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its figures depend on it; a Dask worker lives on while its machine's generator is built anew."""
    program = tmp_path / "espbench-traffic"
    program.write_bytes(b"one")
    program.chmod(0o755)
    monkeypatch.setenv("ESPBENCH_TRAFFIC", str(program))
    one = version_here()
    program.write_bytes(b"two")
    assert len({HERE, one, version_here()}) == 3
    assert HERE.partition(", traffic generator")[0] == one.partition(", traffic generator")[0]


def test_a_worker_without_espbench_is_refused_and_one_that_ended_is_left_out() -> None:
    """Dask pickles a function by its name, so the worker has to import espbench."""
    cluster._examine(Client(HERE, OSError("in <TLS ConnectionPool>: Connection refused")), SCHEDULER)
    with pytest.raises(UsageError) as refused:
        cluster._examine(Client(HERE, ModuleNotFoundError("No module named 'espbench'")), SCHEDULER)
    assert f"--cluster {SCHEDULER}: the worker at tls://192.0.2.2:1 cannot import espbench" in str(
        refused.value
    )
    for words in (f"expected: espbench {HERE}", "got: No module named 'espbench'"):
        assert words in str(refused.value)


@pytest.mark.parametrize(
    ("at", "scheduler", "where"),
    [
        ("tcp://127.0.0", "tcp://127.0.0.1:8786", None),
        ("tcp://192.0.2", "tcp://127.0.0.1:8786", "the worker at tcp://192.0.2.1:1"),
        ("tcp://127.0.0", "tcp://192.0.2.9:8786", "its scheduler"),
        ("tcp://192.0.2", "tls://192.0.2.9:8786", "the worker at tcp://192.0.2.1:1"),
    ],
)
def test_without_certificates_all_parts_are_on_this_machine(
    at: str, scheduler: str, where: str | None
) -> None:
    """The address that the user typed is only that of one part, and a scheduler may listen on several addresses."""
    with pytest.raises(UsageError) if where else nullcontext() as refused:
        cluster._examine(Client(HERE, at=at, scheduler=scheduler), "tcp://127.0.0.1:8786")
    if refused is not None:
        got = scheduler if where == "its scheduler" else f"{at}.1:1"
        assert f"--cluster tcp://127.0.0.1:8786: {where}\n  expected: tls://" in str(refused.value)
        assert f"got: {got}, by which anybody" in str(refused.value)


@pytest.mark.parametrize(
    "address",
    ["tcp://192.0.2.1:8786", "192.0.2.1:8786", "tcp://0.0.0.0:8786", "tcp://name:8786", "ws://127.0.0.1:1"],
)
def test_an_open_scheduler_is_not_even_asked(address: str) -> None:
    with pytest.raises(UsageError, match=r"its scheduler\n  expected: tls://HOST:PORT"):
        cluster.connect(address)


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
@pytest.mark.parametrize(
    ("threads", "listens", "problem"),
    [
        (1, "tls://0.0.0.0:1", ""),
        (1, "tcp://127.0.0.1:1", ""),
        (2, "tls://0.0.0.0:1", "got: 2 threads"),
        (1, "tcp://0.0.0.0:1", "--host 127.0.0.1"),
    ],
)
def test_a_worker_that_joins_later_and_is_refused_is_closed(threads: int, listens: str, problem: str) -> None:
    """Dask would give it tasks all the same. A worker that listens on all addresses may have that of this machine."""
    from espbench.runs.workers.equal import EqualWorkers, Unequal  # noqa: PLC0415  (an extra)

    closed: list[str] = []
    worker: Any = SimpleNamespace(
        address="tcp://127.0.0.1:1",
        listeners=[SimpleNamespace(listen_address=listens)],
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


@pytest.mark.needs("distributed")
def test_a_worker_that_ends_before_it_is_made_equal_is_named() -> None:
    """The scheduler raises what happened when it sent the plug-in."""
    removed: list[str] = []

    def fail(*_: object) -> None:
        raise OSError("Connection refused")

    client: Any = SimpleNamespace(
        nthreads=dict, register_plugin=fail, unregister_worker_plugin=removed.append
    )
    with pytest.raises(MachineLacks, match="one of its workers cannot be reached: Connection refused"):
        cluster._make_equal(client, SCHEDULER, "espbench-a", [], [])
    assert removed == ["espbench-a"]


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


@pytest.mark.parametrize("what", ["cancelled", "forgotten", "done"])
def test_a_task_for_which_nobody_waits_is_ended(
    processes: list[Process], monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Dask cancels the tasks of a driver that is gone, but lets those that run go on."""
    monkeypatch.setattr(cluster, "_LOOK_EACH_S", 0.01)
    tasks = {"key": SimpleNamespace(state="executing")}
    worker: Any = SimpleNamespace(state=SimpleNamespace(tasks=tasks))
    cluster._standing("espbench-a")
    done = threading.Event()
    watched = (worker, "key", "espbench-a", done)
    watching = threading.Thread(target=cluster._end_if_unwanted, args=watched, daemon=True)
    watching.start()
    time.sleep(0.05)
    assert not processes[0].ended
    if what == "cancelled":
        tasks["key"].state = what
    elif what == "forgotten":
        tasks.clear()
    else:
        done.set()
    watching.join(60)
    assert processes[0].ended == (what != "done")


def test_a_worker_says_what_it_does_for_another_run(
    processes: list[Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that comes later waits behind it."""
    cluster._standing("espbench-a")
    monkeypatch.setattr(cluster, "_doing", "netns, one-way, IPv4")
    assert cluster.busy_here("espbench-a") == ""
    assert cluster.busy_here("espbench-b") == "netns, one-way, IPv4"


def test_a_run_names_itself_when_it_ends() -> None:
    """Each worker is told whose process to end."""
    told: list[tuple[Any, ...]] = []
    workers = cluster.ClusterWorkers.__new__(cluster.ClusterWorkers)
    workers._topic = "espbench-a"
    workers.client = SimpleNamespace(status="running", run=lambda *asked, on_error: told.append(asked))
    workers.close()
    assert told == [(cluster.stop, "espbench-a")]
