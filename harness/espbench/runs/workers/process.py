# SPDX-License-Identifier: Apache-2.0
"""Starts a worker process, gives it tasks, listens to it, ends it, and undoes what it leaves behind."""

from __future__ import annotations

import contextlib
import os
import pickle
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from multiprocessing import Pipe
from pathlib import Path

from espbench.errors import EspbenchError, UsageError
from espbench.runs.workers.messages import Done, Failed, Hello, Kept, News, Task, TrialMade
from espbench.runs.workers.versions import different_code
from espbench.this_machine import registry

COMMAND = (sys.executable, "-m", "espbench.runs.workers.worker")
# After SIGTERM a worker undoes what it made; it is killed if that takes longer than this, s.
_GRACE_S = 60.0
_LAST_WORDS_BYTES = 2000

OnNews = Callable[[News, Callable[[], None]], None]
"""Called with each message; after a TrialMade is on disk, the receiver calls the second argument."""


class WorkerLost(EspbenchError):
    """A worker ended during a task; what it had made is undone. logs: the contents of its logs, by name."""

    def __init__(self, text: str, logs: dict[str, bytes] | None = None) -> None:
        super().__init__(text)
        self.logs = logs or {}


class WorkerProcess:
    """One worker process, started at once. The thread that starts it must live longer than the process."""

    def __init__(self, command: Sequence[str] | None = None, cpus: Sequence[int] = ()) -> None:
        """command: of a program that serves tasks as worker.py does; without it, worker.py.

        cpus: the only CPUs that the process, and all that it starts, may use; empty: those of this process.
        """
        self._connection, theirs = Pipe()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (as long as the process)
        self._ended = threading.Lock()
        self._tidied = False
        self._run_id = secrets.token_hex(3)
        with theirs:
            self._process = subprocess.Popen(
                [*(command or COMMAND), str(theirs.fileno()), self._run_id, str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # a terminal's Ctrl-C goes to the driver, which ends its workers
            )
        if cpus:
            # It may have ended, which `do` reports, or a container may forbid it: it then uses all CPUs.
            with contextlib.suppress(OSError):
                os.sched_setaffinity(self._process.pid, cpus)
        self._hello: Hello | None = None

    @property
    def pid(self) -> int:
        """The id of the worker process."""
        return self._process.pid

    def do(self, task: Task, on_news: OnNews, version: str = "") -> Done | Failed:
        """Have a task done and return its last message; WorkerLost if the process ends before that.

        version: of the driver's espbench, if that is on another machine; a process with another one gets no task.
        """
        try:
            if self._hello is None:
                self._hello = self._connection.recv()
            if version and self._hello.version != version:
                where = f"the process that measures on {socket.gethostname()}"
                return Failed(UsageError(different_code(where, version, self._hello.version)))
            self._connection.send(task)
            while True:
                message = self._connection.recv()
                if isinstance(message, Done | Failed):
                    return message
                on_news(message, self._kept if isinstance(message, TrialMade) else _nothing)
        except (EOFError, OSError, pickle.UnpicklingError) as error:
            raise self._lost(task) from error

    def end(self) -> None:
        """Let the process undo what it made and end; if it does not end, kill it, and undo that here."""
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        self._wait()
        self._tidy()

    def _kept(self) -> None:
        with contextlib.suppress(OSError):  # the next receive reports that the process is gone
            self._connection.send(Kept())

    def _wait(self) -> None:
        try:
            self._process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            self._process.wait()

    def _lost(self, task: Task) -> WorkerLost:
        if self._process.poll() is None:
            # It may be about to end. If it closed its connection and does not end, it is of no use.
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()
        self._wait()
        logs = self._written()
        code = self._process.returncode
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        said = self._last_words()
        self._tidy()
        return WorkerLost(
            f"{task.name}: its worker, process {self.pid}, ended {how}" + (f": {said}" if said else ""), logs
        )

    def _written(self) -> dict[str, bytes]:
        """Return the logs of a worker that can no longer report them, by name."""
        if self._hello is None or not self._hello.logs.is_dir():
            return {}
        with contextlib.suppress(OSError):
            return {file.name: file.read_bytes() for file in sorted(self._hello.logs.iterdir())}
        return {}

    def _last_words(self) -> str:
        with self._ended:
            if self._errors.closed:  # `end` was called, so nobody needs the text
                return ""
            size = os.fstat(self._errors.fileno()).st_size
            end = os.pread(self._errors.fileno(), _LAST_WORDS_BYTES, max(0, size - _LAST_WORDS_BYTES))
            return end.decode(errors="replace").strip()

    def _tidy(self) -> None:
        """Undo what a killed worker left; only the first call does it."""
        with self._ended:
            if self._tidied:
                return
            self._tidied = True
            self._connection.close()
            self._errors.close()
            # Anything that cannot be undone stays in its journal, where `espbench clean` finds it.
            with contextlib.suppress(EspbenchError):
                registry.clean(run_id=self._run_id)


def _nothing() -> None:
    """Do nothing: the worker waits for no answer."""


def keep_logs(directory: Path, logs: dict[str, bytes]) -> None:
    """Append a worker's logs (*.log) to the run's logs; replace other files by the worker's."""
    for name, content in logs.items():
        if content:
            with (directory / name).open("ab" if name.endswith(".log") else "wb") as file:
                file.write(content)
