# SPDX-License-Identifier: Apache-2.0
"""Uses workers on other machines: those of a Dask cluster, behind Dask's executor.

Each Dask worker has one worker process (process.py), which does its tasks. Its messages arrive as the cluster's events.
Events can be lost, so the task's last message repeats all records.
"""

from __future__ import annotations

import contextlib
import logging
import pickle
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from espbench.errors import EspbenchError, MachineLacks, UsageError, install_extra
from espbench.platforms.virtual.own.own_files import OwnFiles
from espbench.platforms.virtual.parts.build import Kit
from espbench.platforms.virtual.parts.copies import packed
from espbench.runs.workers.messages import Done, Failed, Learnt, News, ResultsMade, ShareTask, Task, TrialMade
from espbench.runs.workers.process import OnNews, WorkerLost, WorkerProcess
from espbench.runs.workers.versions import (
    different_code,
    no_espbench,
    open_to_others,
    too_many_threads,
    version_here,
)

if TYPE_CHECKING:
    from distributed import Client, Worker

_PATIENCE_S = 60.0
_COUNT_EACH_S = 2.0
_LOOK_EACH_S = 2.0


class ClusterWorkers:
    """The workers of a cluster, one task each at once; they may come and go while a run is under way."""

    def __init__(self, client: Client, address: str, name: str, copies: Mapping[str, str]) -> None:
        """name: of this run on the cluster, and of its plug-in. copies: see `Workers`."""
        self.copies = copies
        self.client = client
        self.address = address
        self._executor: Executor = client.get_executor(pure=False)
        self._topic = name
        self._version = version_here()
        self._listeners: dict[str, OnNews] = {}
        self._counted = (0.0, 1)
        client.subscribe_topic(self._topic, self._hear)

    @property
    def at_once(self) -> int:
        """The number of workers, at least 1: more tasks would wait behind others, and be lost with their worker."""
        return max(1, self._count())

    @property
    def problem(self) -> str:
        """Implement `Workers`: the workers may all be gone, or refused since they are not equal to the driver."""
        if self._count():
            return ""
        return (
            f"--cluster {self.address}: it has no workers any more; the run waits for one, whose log says why others "
            f"ended ({worker_command(self.address)}). Ctrl-C ends the run, and --resume continues it"
        )

    def _count(self) -> int:
        when, count = self._counted
        if time.monotonic() - when > _COUNT_EACH_S and self.client.status == "running":
            count = len(self.client.nthreads())
            self._counted = time.monotonic(), count
        return count

    def submit(self, task: Task, on_news: OnNews, executor: Executor | None = None) -> Future[Done | Failed]:
        """Have a task done by any worker, or by this executor; on_news is called in a thread of the Dask client."""
        self._listeners[task.name] = on_news
        last: Future[Done | Failed] = Future()
        try:
            given = (executor or self._executor).submit(
                carried_out, pickle.dumps(task), self._topic, self._version
            )
        except Exception as error:  # whatever Dask raises if it has no scheduler
            raise self._gone() from error
        given.add_done_callback(lambda done: self._ended(task, done, last))
        return last

    def busy_with(self, address: str) -> str:
        """Return the name of the task that the worker at this address does for another run; empty if there is none."""
        answers: dict[str, str] = self.client.run(
            busy_here, self._topic, workers=[address], on_error="ignore"
        )
        return answers.get(address, "")

    def close(self) -> None:
        """End this run's tasks on all machines; the cluster stays up, with the tasks of other runs."""
        if self.client.status == "running":
            with contextlib.suppress(Exception):  # a machine that is gone has nothing to end
                self.client.run(stop, self._topic, on_error="ignore")
            with contextlib.suppress(Exception):
                self.client.unregister_worker_plugin(self._topic)
        with contextlib.suppress(Exception):
            self._executor.shutdown(wait=False)
        with contextlib.suppress(Exception):
            self.client.close(timeout=_PATIENCE_S)

    def _hear(self, event: tuple[float, dict[str, Any]]) -> None:
        _, message = event
        if listener := self._listeners.get(message["task"]):
            listener(pickle.loads(message["message"]), _nothing)

    def _ended(self, task: Task, done: Future[bytes], last: Future[Done | Failed]) -> None:
        """Pass on the records that came with the last message, then the message; the driver ignores known records."""
        try:
            message, records = pickle.loads(done.result())
        except WorkerLost as error:
            last.set_exception(error)
        except BaseException as error:  # whatever Dask raises about a worker, or about itself
            if self.client.status != "running":
                last.set_exception(self._gone())
            else:
                # Dask's message about a killed worker is long, and mostly about Dask.
                killed = getattr(error, "last_worker", None)
                words = (
                    f"the worker at {killed.address} ended" if killed else f"{type(error).__name__}: {error}"
                )
                text = f"{task.name}: its machine was lost: {words}"
                last.set_exception(WorkerLost(text))
        else:
            for record in records:
                self._listeners[task.name](record, _nothing)
            last.set_result(message)

    def _gone(self) -> EspbenchError:
        return EspbenchError(f"--cluster {self.address}: its scheduler is gone")


def connect(address: str, kits: Sequence[Kit[Any]] = (), own: Sequence[OwnFiles] = ()) -> ClusterWorkers:
    """Connect to a cluster's scheduler, and verify that its workers have this espbench and the same parts of guests.

    kits: of the plan's guests; own: the user's files that the guests boot. Workers whose caches lack them get them from
    here. UsageError if others could use the connection, or if a worker differs; MachineLacks if no scheduler answers,
    there is no worker, or Dask is not installed.
    """
    if problem := open_to_others("its scheduler", address):
        raise UsageError(f"--cluster {address}: {problem}")
    try:
        from distributed import Client, Security  # noqa: PLC0415  (an extra)
    except ImportError:
        raise MachineLacks(
            "--cluster: the Python package distributed is not installed", install_extra("cluster")
        ) from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # espbench reports errors itself
    security = Security(require_encryption=True) if address.startswith("tls://") else None
    try:
        client = Client(address, security=security, timeout=_PATIENCE_S, set_as_default=False)
    except (OSError, TypeError, ValueError) as error:
        raise MachineLacks(
            f"--cluster {address}: no scheduler can be reached there: {error}",
            "start one, with certificates for both ends (docs/many-machines.md)",
        ) from error
    name = f"espbench-{secrets.token_hex(6)}"
    try:
        _examine(client, address)
        _make_equal(client, address, name, kits, own)
    except BaseException:
        client.close()
        raise
    return ClusterWorkers(client, address, name, {each.path: each.place for each in own})


def worker_command(address: str) -> str:
    """Return the command that starts a worker of the scheduler at an address. Without certificates, it may listen on
    this machine alone.
    """
    return f"dask worker {address} --nthreads 1" + (" --host 127.0.0.1" if address.startswith("tcp:") else "")


def _examine(client: Client, address: str) -> None:
    """Raise UsageError if a worker differs from the driver, or if others can reach a part of the cluster."""
    scheduler = client.scheduler_info(n_workers=-1)["address"]
    if problem := open_to_others("its scheduler", scheduler):
        raise UsageError(f"--cluster {address}: {problem}")
    threads = client.nthreads()
    if not threads:
        raise MachineLacks(f"--cluster {address}: it has no workers", worker_command(address))
    for where, count in threads.items():
        worker = f"the worker at {where}"
        if problem := open_to_others(worker, where) or too_many_threads(worker, count):
            raise UsageError(f"--cluster {address}: {problem}")
    here = version_here()
    for where, version in client.run(version_here, on_error="return").items():
        worker = f"the worker at {where}"
        if isinstance(version, OSError):  # it has ended meanwhile
            continue
        if isinstance(version, Exception):
            raise UsageError(f"--cluster {address}: {no_espbench(worker, here, version)}")
        if version != here:
            raise UsageError(f"--cluster {address}: {different_code(worker, here, version)}")


def _make_equal(
    client: Client, address: str, name: str, kits: Sequence[Kit[Any]], own: Sequence[OwnFiles]
) -> None:
    """Send each worker, also those that join later, the files that it lacks; UsageError if a worker differs."""
    from espbench.runs.workers.equal import EqualWorkers, Unequal  # noqa: PLC0415  (an extra)

    parts = {kit.name: packed(kit) for kit in kits}
    plugin = EqualWorkers(version_here(), parts, own, frozenset(client.nthreads()))
    try:
        client.register_plugin(plugin, name)
    except Unequal as error:
        client.unregister_worker_plugin(name)
        raise UsageError(f"--cluster {address}: {error}") from None
    except OSError as error:  # a worker ended meanwhile
        client.unregister_worker_plugin(name)
        raise MachineLacks(
            f"--cluster {address}: one of its workers cannot be reached: {error}",
            "see that its workers run, then start this again",
        ) from error


# -- code that runs in the Dask workers ------------------------------------------------------------

_lock = threading.Lock()
_process: WorkerProcess | None = None
_topic: str | None = None  # of the run whose task the process has, or had last
_doing = ""  # the name of the task that is being done


def carried_out(pickled: bytes, topic: str, version: str) -> bytes:
    """Do a task in this machine's worker process; return its last message and all its records, pickled.

    version: of the driver's espbench. The process ends if nobody waits for the task any more.
    """
    global _doing  # noqa: PLW0603
    from distributed import get_worker  # noqa: PLC0415  (an extra)

    task: Task = pickle.loads(pickled)
    here = get_worker()
    records: list[News] = []

    def tell(message: News, kept: Callable[[], None]) -> None:
        if isinstance(message, ResultsMade):  # the newest one contains all results
            records[:] = [record for record in records if not isinstance(record, ResultsMade)]
        if isinstance(message, TrialMade | Learnt | ResultsMade):
            records.append(message)
        here.log_event(topic, {"task": task.name, "message": pickle.dumps(message)})
        kept()

    done = threading.Event()
    watched = (here, here.get_current_task(), topic, done)
    threading.Thread(target=_end_if_unwanted, args=watched, daemon=True).start()
    _doing = task.name
    try:
        message = _standing(topic).do(task, tell, version)
    except WorkerLost as error:
        stop(topic)
        raise WorkerLost(f"{error} (on {socket.gethostname()})", error.logs) from None
    finally:
        done.set()
        if isinstance(task, ShareTask):
            # Its process is bound to the tester's CPUs; the next share needs a process that is not.
            stop(topic)
        _doing = ""
    if isinstance(message, Failed):
        on = f"on {socket.gethostname()}"
        if message.error is not None:
            message.error.add_note(on)
        else:
            message = replace(message, fault=f"{on}:\n{message.fault}")
    return pickle.dumps((message, records))


def _end_if_unwanted(worker: Worker, key: str, topic: str, done: threading.Event) -> None:
    """End this machine's worker process when Dask cancels its task: the driver is gone, or wants it no more.

    Dask itself lets a task go on to its end, for hours, and drops its result.
    """
    while not done.wait(_LOOK_EACH_S):
        task = worker.state.tasks.get(key)
        if task is None or task.state == "cancelled":
            stop(topic)
            return


def busy_here(topic: str) -> str:
    """Return the name of the task that this worker does for another run; empty if there is none."""
    return _doing if _topic != topic else ""


def stop(topic: str) -> None:
    """End this machine's worker process if its last task is of this run; the next task starts another. A process that
    works for another run by now goes on.
    """
    global _process
    with _lock:
        if _topic != topic:
            return
        process, _process = _process, None
    if process is not None:
        process.end()


def _standing(topic: str) -> WorkerProcess:
    """Return this machine's worker process, which from now on works for this run."""
    global _process, _topic  # noqa: PLW0603
    with _lock:
        if _process is None:
            _process = WorkerProcess()
        _topic = topic
        return _process


def _nothing() -> None:
    """Do nothing: no worker waits for this answer, because lost records are sent again."""
