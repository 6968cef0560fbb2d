# SPDX-License-Identifier: Apache-2.0
"""Uses workers behind the executor of the Python program that started this run; tasks and answers cross a socket.

The process at the other end (espbench.frames.lending) gives each task to its executor, which does it in a worker
process of its own. Trials arrive only with the task's last message; if the driver is killed before, they are measured
again.
"""

from __future__ import annotations

import contextlib
import pickle
import socket
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from multiprocessing.connection import Connection

from espbench.errors import EspbenchError, UsageError
from espbench.runs.workers.messages import Done, Failed, Learnt, News, Task, TrialMade
from espbench.runs.workers.process import OnNews, WorkerLost, WorkerProcess
from espbench.runs.workers.versions import different_code, version_here


@dataclass(frozen=True)
class _Answer:
    """The answer to a task: its last message with the records before it, or the error if there is none."""

    message: Done | Failed | None
    records: tuple[News, ...] = ()
    error: EspbenchError | None = None


class LentWorkers:
    """Gives up to `at_once` tasks at a time to the process at the other end of a socket."""

    problem = ""

    def __init__(self, descriptor: int, at_once: int) -> None:
        """descriptor: of the socket with which this process was started."""
        self.at_once = at_once
        self.copies: Mapping[str, str] = {}  # no files are sent to these workers
        self._connection = Connection(descriptor)
        self._version = version_here()
        self._lock = threading.Lock()
        self._given: dict[int, tuple[Future[Done | Failed], OnNews]] = {}
        self._number = 0
        threading.Thread(target=self._listen, daemon=True).start()

    def submit(self, task: Task, on_news: OnNews) -> Future[Done | Failed]:
        """Have a task done; on_news is called in a thread of this process."""
        future: Future[Done | Failed] = Future()
        with self._lock:
            self._number += 1
            self._given[self._number] = (future, on_news)
            try:
                self._connection.send((self._number, pickle.dumps(task), self._version))
            except OSError as error:
                raise _gone() from error
        return future

    def close(self) -> None:
        """Close the socket; the other end notices that and ends the tasks that it can end."""
        with contextlib.suppress(OSError):
            same = socket.socket(fileno=self._connection.fileno())
            try:
                same.shutdown(socket.SHUT_RDWR)  # a close alone would not wake the thread that reads
            finally:
                same.detach()
        with contextlib.suppress(OSError):
            self._connection.close()

    def _listen(self) -> None:
        try:
            while True:
                number, pickled = self._connection.recv()
                answer: _Answer = pickle.loads(pickled)
                with self._lock:
                    future, on_news = self._given.pop(number)
                for record in answer.records:
                    on_news(record, _nothing)
                if answer.message is not None:
                    future.set_result(answer.message)
                else:
                    future.set_exception(answer.error or _gone())
        except (EOFError, OSError):
            self._give_up(_gone())
        except Exception as error:  # pickle raises any; without this thread the driver would wait for ever
            self._give_up(
                EspbenchError(f"executor: an answer cannot be read: {type(error).__name__}: {error}")
            )

    def _give_up(self, error: EspbenchError) -> None:
        """End every task that was given with this error."""
        with self._lock:
            left, self._given = self._given, {}
        for future, _ in left.values():
            future.set_exception(error)


def _gone() -> EspbenchError:
    return EspbenchError("executor: the process that lends it is gone")


# -- code that runs at the other end ---------------------------------------------------------------

_running: dict[WorkerProcess, str] = {}  # process → its lender; used by threads of this process


def carried_out(pickled: bytes, version: str, whose: str) -> bytes:
    """Do a task in a worker process of its own, and return its _Answer, pickled; an executor calls this somewhere.

    version: the driver's espbench; a machine with another version refuses the task. whose: the lender, see `end_all`.
    """
    here = version_here()
    if version != here:
        where = f"executor: {socket.gethostname()}"
        return pickle.dumps(_Answer(Failed(UsageError(different_code(where, version, here)))))
    records: list[News] = []

    def tell(message: News, kept: Callable[[], None]) -> None:
        if isinstance(message, TrialMade | Learnt):
            records.append(message)
        kept()

    process = WorkerProcess()
    _running[process] = whose
    try:
        answer = _Answer(process.do(pickle.loads(pickled), tell, version), tuple(records))
    except WorkerLost as error:
        answer = _Answer(None, tuple(records), WorkerLost(f"{error} (on {socket.gethostname()})", error.logs))
    finally:
        del _running[process]
        process.end()
    return pickle.dumps(answer)


def end_all(whose: str) -> None:
    """End the tasks of one lender that run in threads of this process."""
    for process, of in list(_running.items()):
        if of == whose:
            process.end()


def lost(error: BaseException) -> bytes:
    """Return the answer for a task that an executor did not finish; the driver begins the task again."""
    return pickle.dumps(_Answer(None, (), WorkerLost(f"executor: {type(error).__name__}: {error}")))


def refused(error: Exception) -> bytes:
    """Return the answer for a task that an executor did not accept; it ends the run."""
    words = f"executor: it takes no more tasks: {type(error).__name__}: {error}"
    return pickle.dumps(_Answer(Failed(EspbenchError(words))))


def _nothing() -> None:
    """Do nothing: no worker waits for this answer."""
