# SPDX-License-Identifier: Apache-2.0
"""Lends the caller's executor to `espbench run`, a separate process: its tasks are executed here, and answers go
back.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Sequence
from concurrent.futures import CancelledError, Executor, Future
from contextlib import suppress
from functools import partial
from multiprocessing import Pipe
from types import TracebackType
from typing import Self


class Lending:
    """Lends an executor to a command from `begin` to the end of the block. None: nothing is lent.

    At the end of the block no further case is begun. A case that runs in a thread of this process is ended. A case
    in another process or on another machine continues to its end, and its answer is dropped.
    """

    def __init__(self, executor: Executor | None) -> None:
        """Take the executor that executes the tasks."""
        self._executor = executor
        self._ours, self._theirs = Pipe()
        self._sending = threading.Lock()
        self._name = secrets.token_hex(6)
        self._under_way: set[Future[bytes]] = set()
        self._closing = False

    @property
    def options(self) -> Sequence[str]:
        """The command-line options for the command."""
        return ["--lent", str(self._theirs.fileno())] if self._executor else []

    @property
    def passed(self) -> Sequence[int]:
        """The file descriptors that the command inherits."""
        return [self._theirs.fileno()] if self._executor else []

    def begin(self) -> None:
        """Serve the command, which has just been started."""
        self._theirs.close()  # otherwise the end of the command is not noticed
        if self._executor is not None:
            threading.Thread(target=self._serve, args=(self._executor,), daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._executor is not None:
            from espbench.runs.workers import lent  # noqa: PLC0415  (only lending needs it)

            self._closing = True
            for future in list(self._under_way):
                future.cancel()
            lent.end_all(self._name)
        self._ours.close()
        self._theirs.close()

    def _serve(self, executor: Executor) -> None:
        from espbench.runs.workers import lent  # noqa: PLC0415  (only lending needs it)

        with suppress(EOFError, OSError):  # the command has ended
            while True:
                number, task, version = self._ours.recv()
                try:
                    future = executor.submit(lent.carried_out, task, version, self._name)
                except Exception as error:  # any error by which this executor refuses tasks
                    self._answer(number, lent.refused(error))
                    continue
                self._under_way.add(future)
                future.add_done_callback(partial(self._done, number))

    def _done(self, number: int, future: Future[bytes]) -> None:
        from espbench.runs.workers import lent  # noqa: PLC0415  (only lending needs it)

        self._under_way.discard(future)
        if future.cancelled():
            # Without an answer to what the executor cancelled, the command would wait for ever.
            if not self._closing:
                self._answer(number, lent.lost(CancelledError("the executor cancelled the task")))
            return
        error = future.exception()
        self._answer(number, future.result() if error is None else lent.lost(error))

    def _answer(self, number: int, answer: bytes) -> None:
        with self._sending, suppress(OSError):  # the command has ended
            self._ours.send((number, answer))
