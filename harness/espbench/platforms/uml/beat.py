# SPDX-License-Identifier: Apache-2.0
"""Sends regular signals to a guest's kernel, which would miss a timer or a frame for good if a signal came to nothing.

*The timer.* User-Mode Linux sets one timer of the host for its next timer event. If the kernel misses the signal of
this timer, it serves no timer event any more and does not set the timer again: it still forwards frames and reads
requests, but sleeping processes never wake, and the idle kernel spins. One more SIGALRM repairs this: the kernel's
handler serves the overdue events and sets the timer. If no event is overdue, the signal has no effect.

*A frame.* When a frame is put into a tap, the host's kernel sends SIGIO first, and only then tells epoll (tun_net_xmit
in drivers/net/tun.c). A guest on another CPU can be faster: it asks epoll which device has something, hears of none,
and sleeps until its next SIGIO. The frame waits in the tap until another one comes. About one of 1,000 frames that come
one by one does so; if it is the last one of a trial, it would be lost. One more SIGIO repairs this: the handler asks
epoll again.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading

# The time between two beats, s: a guest loses at most this much. A beat costs it about 40 µs, 0.1 % of its CPU. The
# wait for the residue of a trial must be longer.
BEAT_S = 0.05
SIGNALS = (signal.SIGALRM, signal.SIGIO)


class Beat:
    """Sends a guest's kernel SIGNALS every BEAT_S, from begin() to stop()."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, kernel: int) -> None:
        """Start to send the signals to this process; it must have its handlers already, because they would end it.

        Raise ProcessLookupError if there is no such process.
        """
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
                    for each in SIGNALS:
                        signal.pidfd_send_signal(process, each)
        finally:
            os.close(process)
