# SPDX-License-Identifier: Apache-2.0
"""Permits one writer per run, by an flock that the kernel releases when the process dies."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType

from espbench.errors import UsageError

NAME = ".lock"


def writer_of(run: Path) -> int | None:
    """Return the id of the process that writes a run directory, or wrote it last; None if there was none yet."""
    try:
        return int((run / NAME).read_text())
    except (OSError, ValueError):
        return None


class RunLock:
    """The lock of a run, held from construction until `release` (or the end of the `with` block).

    Raise UsageError with the process id if another process is writing to the run.
    """

    def __init__(self, path: Path) -> None:
        self._fd: int | None = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._fd, 32, 0).decode(errors="replace").strip() or "unknown"
            self.release()
            raise UsageError(
                f"{path.parent}: this run is being written by process {holder}\n"
                "  expected: a run no other espbench is working on\n"
                f"  what to do: wait until it ends, or stop it (`kill -INT {holder}`), then resume"
            ) from None
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Let other processes write; a second call does nothing."""
        if self._fd is not None:
            os.close(self._fd)  # closing the only descriptor drops the flock
            self._fd = None

    @property
    def held(self) -> bool:
        """True until `release`."""
        return self._fd is not None

    def __enter__(self) -> RunLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
