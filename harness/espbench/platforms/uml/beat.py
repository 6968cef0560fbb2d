# SPDX-License-Identifier: Apache-2.0
"""A beat from outside for a guest's kernel, which has one timer and stands still for good when its signal is lost.

User-Mode Linux sets one timer of the host for the next thing it has to do. Once it fires without the kernel taking
notice, no timer inside is served and none is set again: frames are forwarded and requests read, but whatever sleeps
never wakes, and the idle kernel spins. One more SIGALRM mends that: the kernel's handler serves what is overdue and
sets the timer anew. Where nothing is overdue it does nothing.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading

# A lost signal costs a guest this much at most. A beat costs it some 20 µs.
BEAT_S = 0.25


class Beat:
    """Sends a guest's kernel SIGALRM every BEAT_S, from begin() to stop()."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, kernel: int) -> None:
        """Beat for this process, which must have its handler by now: SIGALRM would end it."""
        # The pid may be another process's once this one has ended; a descriptor of it never is.
        process = os.pidfd_open(kernel)
        self._thread = threading.Thread(target=self._go_on, args=(process,), name=self._name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the beats; none comes after this returns."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _go_on(self, process: int) -> None:
        try:
            with contextlib.suppress(ProcessLookupError):
                while not self._over.wait(BEAT_S):
                    signal.pidfd_send_signal(process, signal.SIGALRM)
        finally:
            os.close(process)
