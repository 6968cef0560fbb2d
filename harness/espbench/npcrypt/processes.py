# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of several threads, each to its end; all are in the registry, so none outlives espbench."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

from espbench.errors import EspbenchError
from espbench.this_machine.registry import Entry, Registry


@dataclass(frozen=True)
class Ended:
    """The end of a program: its exit code (negative: the number of a signal), and its output as text."""

    code: int
    out: str
    err: str


class Processes:
    """Runs programs; a registry itself is for one thread only."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._lock = Lock()
        self._running: list[Entry] = []
        self._is_over = False

    def run(self, argv: Sequence[str], name: str, text: str = "", timeout_s: float | None = None) -> Ended:
        """Run a program on this input, and return how it ended.

        Raise EspbenchError if it takes longer than timeout_s, or after `end`.
        """
        process, entry = self._started(argv, name, subprocess.PIPE if text else subprocess.DEVNULL)
        try:
            out, err = process.communicate(text.encode() if text else None, timeout_s)
        except subprocess.TimeoutExpired:
            raise EspbenchError(f"{name}: did not end within {timeout_s:g} s") from None
        finally:
            self._undo(entry)
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
        return Ended(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))

    def end(self) -> None:
        """End all programs that run, and start no more; `run` returns in its threads."""
        with self._lock:
            self._is_over = True
            self._registry.undo(self._running)
            self._running.clear()

    def _started(self, argv: Sequence[str], name: str, stdin: int) -> tuple[subprocess.Popen[bytes], Entry]:
        with self._lock:
            if self._is_over:
                raise EspbenchError(f"{name}: not started: the run ends")
            process = self._registry.spawn(
                argv, name, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, grace_s=0
            )
            entry = self._registry.entries[-1]
            self._running.append(entry)
        return process, entry

    def _undo(self, entry: Entry) -> None:
        with self._lock:
            if entry in self._running:
                self._running.remove(entry)
                self._registry.undo([entry])
