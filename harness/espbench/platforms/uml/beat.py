# SPDX-License-Identifier: Apache-2.0
"""Sends regular timer signals to a guest's kernel, which would hang for good if the signal of its only timer were lost.

User-Mode Linux sets one timer of the host for its next timer event. If the kernel misses the signal of this timer, it
serves no timer event any more and does not set the timer again: it still forwards frames and reads requests, but
sleeping processes never wake, and the idle kernel spins. One more SIGALRM repairs this: the kernel's handler serves
the overdue events and sets the timer. If no event is overdue, the signal has no effect.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading

# The time between two beats, s: a guest loses at most this much when a signal is lost. A beat costs it about 20 µs.
BEAT_S = 0.25


class Beat:
    """Sends a guest's kernel SIGALRM every BEAT_S, from begin() to stop()."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, kernel: int) -> None:
        """Start to send the signal to this process; it must have its handler already, because SIGALRM would end it."""
        # Another process may get the PID after this one has ended; a descriptor stays with the process.
        process = os.pidfd_open(kernel)
        self._thread = threading.Thread(target=self._go_on, args=(process,), name=self._name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the beats; no signal is sent after this method returns."""
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
