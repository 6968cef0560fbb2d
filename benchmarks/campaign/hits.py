# SPDX-License-Identifier: Apache-2.0
"""Hits a process of a run: kills it, stops it for some time, or stops one of its threads."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from espbench.this_machine.processes import start_time

PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17
_WALL = 0x40000000  # __WALL of waitpid(2): wait for threads, too

_libc = ctypes.CDLL(None, use_errno=True)


def kill(pids: Sequence[int]) -> None:
    """Send SIGKILL to each process that is still there."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def stop(pids: Sequence[int], seconds: float) -> None:
    """Send SIGSTOP to each process, wait, and send SIGCONT to those that are still the same processes."""
    before = {pid: start_time(pid) for pid in pids}
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)
    for pid, start in before.items():
        if start is not None and start_time(pid) == start:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def stop_thread(thread: int, seconds: float) -> bool:
    """Stop one thread for a time while the other threads of its process run on; return False if it was gone."""
    if _ptrace(PTRACE_SEIZE, thread) < 0:
        return False
    try:
        if _ptrace(PTRACE_INTERRUPT, thread) < 0:
            return False
        os.waitpid(thread, _WALL)
        time.sleep(seconds)
    except ChildProcessError:
        return False
    finally:
        _ptrace(PTRACE_DETACH, thread)
    return True


def threads(pid: int) -> list[int]:
    """Return a process's threads under SCHED_OTHER, oldest first; those that watch for stalls are real-time threads."""
    ours = []
    with contextlib.suppress(OSError):
        for task in sorted(int(entry.name) for entry in Path(f"/proc/{pid}/task").iterdir()):
            with contextlib.suppress(OSError):
                if os.sched_getscheduler(task) == os.SCHED_OTHER:
                    ours.append(task)
    return ours


def _ptrace(request: int, thread: int) -> int:
    return int(_libc.ptrace(request, thread, None, None))
