# SPDX-License-Identifier: Apache-2.0
"""A worker process as the one who started it sees it: given tasks, listened to, ended, tidied up after."""

from __future__ import annotations

import contextlib
import os
import pickle
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from multiprocessing import Pipe
from pathlib import Path

from espbench.errors import EspbenchError
from espbench.runs.workers.messages import Done, Failed, Hello, Kept, News, Task, TrialMade
from espbench.this_machine import registry

COMMAND = (sys.executable, "-m", "espbench.runs.workers.worker")
# A worker that is told to end undoes what it made; one that takes longer is killed, s.
_GRACE_S = 60.0
_LAST_WORDS_BYTES = 2000

OnNews = Callable[[News, Callable[[], None]], None]
"""News of each message; of a TrialMade, the second argument is called once it is on disk."""


class WorkerLost(EspbenchError):
    """A worker ended in mid-task; what it had made is undone. logs: what it had written into them."""

    def __init__(self, text: str, logs: dict[str, bytes] | None = None) -> None:
        super().__init__(text)
        self.logs = logs or {}


class WorkerProcess:
    """One worker, started at once, from a thread that outlives it."""

    def __init__(self, command: Sequence[str] | None = None) -> None:
        """command: of a program that serves as worker.py does; without it, that one."""
        self._connection, theirs = Pipe()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (as long as the process)
        self._ended = threading.Lock()
        self._tidied = False
        self._run_id = secrets.token_hex(3)
        with theirs:
            self._process = subprocess.Popen(
                [*(command or COMMAND), str(theirs.fileno()), self._run_id],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # a terminal's Ctrl-C is the driver's to tell
            )
        self._hello: Hello | None = None

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def do(self, task: Task, on_news: OnNews) -> Done | Failed:
        """Have a task done; its last message. WorkerLost where the process ends before that."""
        try:
            if self._hello is None:
                self._hello = self._connection.recv()
            self._connection.send(task)
            while True:
                message = self._connection.recv()
                if isinstance(message, Done | Failed):
                    return message
                on_news(message, self._kept if isinstance(message, TrialMade) else _nothing)
        except (EOFError, OSError, pickle.UnpicklingError) as error:
            raise self._lost(task) from error

    def end(self) -> None:
        """Have it undo what it made and end; kill it where it does not, and undo that in its place."""
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        self._wait()
        self._tidy()

    def _kept(self) -> None:
        with contextlib.suppress(OSError):  # whoever listens to it hears that it is gone
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
            # It may be about to end; one that hung up and does not is of no use.
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
        """Return the logs of a worker that can report no more, by name."""
        if self._hello is None or not self._hello.logs.is_dir():
            return {}
        with contextlib.suppress(OSError):
            return {file.name: file.read_bytes() for file in sorted(self._hello.logs.iterdir())}
        return {}

    def _last_words(self) -> str:
        with self._ended:
            if self._errors.closed:  # whoever ended it does not ask
                return ""
            size = os.fstat(self._errors.fileno()).st_size
            end = os.pread(self._errors.fileno(), _LAST_WORDS_BYTES, max(0, size - _LAST_WORDS_BYTES))
            return end.decode(errors="replace").strip()

    def _tidy(self) -> None:
        """Undo what a worker left that was killed; for once, whoever finds it gone first."""
        with self._ended:
            if self._tidied:
                return
            self._tidied = True
            self._connection.close()
            self._errors.close()
            # Things that cannot be undone stay in its journal, where `espbench clean` finds them.
            with contextlib.suppress(EspbenchError):
                registry.clean(run_id=self._run_id)


def _nothing() -> None:
    """Do nothing: no answer is awaited."""


def keep_logs(directory: Path, logs: dict[str, bytes]) -> None:
    """Put what a worker wrote behind what is there: logs in their own file, all else replaced by the newest."""
    for name, content in logs.items():
        if content:
            with (directory / name).open("ab" if name.endswith(".log") else "wb") as file:
                file.write(content)
