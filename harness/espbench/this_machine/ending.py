# SPDX-License-Identifier: Apache-2.0
"""Handles the signals that end a command: the first one interrupts it, later ones do not interrupt its clean-up."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_AGAIN_S = 0.02
_PR_SET_PDEATHSIG = 1
_heard: list[int] = []


def listen() -> None:
    """Make the first signal of ENDING raise KeyboardInterrupt from now on, and ignore all later ones.

    If SIGHUP is ignored already, as under nohup(1), it stays ignored. Call it in the main thread only.
    """
    _heard.clear()
    _arm()
    _say_again_what_was_dropped()


def with_parent(parent: int) -> None:
    """Ask for SIGTERM when the parent's thread that started this process ends, however it ends.

    parent: the process that started this one; in a container it may be process 1. KeyboardInterrupt if it is gone
    already.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    if os.getppid() != parent:
        raise KeyboardInterrupt


def deaf() -> None:
    """Ignore all signals of ENDING, since the remaining work is short and must be completed.

    Programs that are started from now on inherit this.
    """
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


def heard() -> bool:
    """Return whether a signal of ENDING has arrived since `listen`."""
    return bool(_heard)


def _arm() -> None:
    for number in ENDING:
        if number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN and not _heard:
            continue
        signal.signal(number, _end)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    _heard.append(number)
    deaf()
    raise KeyboardInterrupt


def _say_again_what_was_dropped() -> None:
    """Send a signal again if Python dropped its exception in a destructor; otherwise the command would not end."""
    former = sys.unraisablehook

    def dropped(unraisable: sys.UnraisableHookArgs) -> None:
        if unraisable.exc_type is KeyboardInterrupt and _heard:
            _arm()
            # The signal must come later: Python would drop an exception in this hook too.
            threading.Timer(_AGAIN_S, os.kill, (os.getpid(), _heard[0])).start()
        else:
            former(unraisable)

    sys.unraisablehook = dropped


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay the signals of ENDING until the block is done. It does nothing except in the main thread.

    Programs that the block starts inherit blocked signals. They need this from the start, because a terminal's Ctrl-C
    also reaches a program that is not yet in a session of its own.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []

    def hold(number: int, frame: FrameType | None) -> None:
        held.append(number)

    before = {}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        for number in ENDING:
            # The kernel may deliver the signal to another thread, which does not block it. Python would then run the
            # handler in this thread.
            if (handler := signal.getsignal(number)) not in (signal.SIG_IGN, None):
                before[number] = handler
                signal.signal(number, hold)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in before.items():
            signal.signal(number, handler)
        if held:
            signal.raise_signal(held[0])
