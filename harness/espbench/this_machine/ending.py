# SPDX-License-Identifier: Apache-2.0
"""Hears what ends a command from outside once, then leaves the tidying up alone, however often it comes again."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_AGAIN_S = 0.02
_heard: list[int] = []


def listen() -> None:
    """Make the first signal of ENDING raise KeyboardInterrupt from here on, and ignore all that follow.

    Under nohup(1) a SIGHUP is ignored already, and stays so. Main thread only.
    """
    _heard.clear()
    _arm()
    _say_again_what_was_dropped()


def deaf() -> None:
    """Ignore all of them: what is left to do is short, and must be whole. Programs started now ignore them too."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


def heard() -> bool:
    """Return whether a signal has come since `listen`."""
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
    """Repeat a signal whose exception Python dropped in a destructor: else nobody would hear of the ending."""
    former = sys.unraisablehook

    def dropped(unraisable: sys.UnraisableHookArgs) -> None:
        if unraisable.exc_type is KeyboardInterrupt and _heard:
            _arm()
            # The signal must not come at once: this hook is such a place too.
            threading.Timer(_AGAIN_S, os.kill, (os.getpid(), _heard[0])).start()
        else:
            former(unraisable)

    sys.unraisablehook = dropped


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold back what ends a command until the block is done, then deliver it. Main thread only; else does nothing.

    Programs that the block starts inherit that these signals are blocked. It must be so from their first
    moment: a terminal's Ctrl-C also reaches a program that is not yet in a session of its own.
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
            # The kernel may give it to another thread, which does not block it: Python would still tell us.
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
