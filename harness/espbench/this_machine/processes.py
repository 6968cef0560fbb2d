# SPDX-License-Identifier: Apache-2.0
"""Reads about processes from /proc: when they started, their descendants, and the CPU time that they used."""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

NS_PER_TICK = 10**9 // os.sysconf("SC_CLK_TCK")
# Fields of proc(5) stat after the name in parentheses.
STATE, PPID, CUTIME, CSTIME, STARTTIME = 0, 1, 13, 14, 19
_OWN = Path("/proc/self/schedstat")


def start_time(pid: int) -> int | None:
    """Return when a process was started, clock ticks since boot; None if there is none, or only a zombie.

    The pid and this time identify a process for ever; a pid alone may be used again.
    """
    stat = _stat(pid)
    return None if stat is None or stat[STATE] in "ZX" else int(stat[STARTTIME])


def parent(pid: int) -> int:
    """Return the parent of a process: the one that started it or has adopted it; 0 if there is no such process."""
    stat = _stat(pid)
    return 0 if stat is None else int(stat[PPID])


def descendants(root: int) -> list[int]:
    """Return all descendants of `root`, its children first."""
    return _below(root, _all())


def pin(root: int, cpus: Collection[int]) -> None:
    """Let `root`, its descendants and all processes that they will start run only on these CPUs."""
    done: set[int] = set()
    # A process that was started meanwhile by one not yet seen is found the next time.
    while left := tree_threads(root) - done:
        for thread in left:
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(thread, cpus)
        done |= left


def renice_sessions(root: int, nice: int) -> None:
    """Give the sessions of `root` and of its descendants this nice value; without the right to, nothing changes.

    With autogrouping (sched(7)) the scheduler weighs sessions against each other, and the nice value of a process
    counts only within its session. A new session, such as User-Mode Linux makes, starts with 0.
    """
    for pid in [root, *descendants(root)]:
        with contextlib.suppress(OSError):
            Path(f"/proc/{pid}/autogroup").write_text(str(nice))


def times_unknown() -> str:
    """Return why the kernel does not tell how long threads ran and waited for a CPU; empty if it does.

    Without CONFIG_SCHED_INFO there is no schedstat in /proc/PID; where only delay accounting has it built in, and is
    switched off, all its numbers are 0.
    """
    try:
        ran, *_ = _OWN.read_text().split()
    except OSError:
        return f"the kernel has no {_OWN} (CONFIG_SCHED_INFO)"
    return "" if int(ran) else f"the kernel counts nothing in {_OWN} (CONFIG_SCHEDSTATS)"


def tree_cpu_ns(root: int) -> int | None:
    """Return the user and system time of `root` and all its descendants, ns; 0 if `root` has ended, None if the kernel
    does not report it (`times_unknown`).

    The time of living threads has a resolution of 1 ns (/proc/PID/task/TID/schedstat), that of children that have ended
    one clock tick.
    """
    if times_unknown():
        return None
    stats = _all()
    if root not in stats:
        return 0
    return sum(
        _threads_ns(pid) + (int(stats[pid][CUTIME]) + int(stats[pid][CSTIME])) * NS_PER_TICK
        for pid in [root, *_below(root, stats)]
    )


class WaitAccount:
    """Adds up how long the threads of some processes and their descendants could have run but had no CPU, ns.

    After a thread has ended, the time that it had waited when it was last seen still counts, so that the sum never
    falls. `roots` returns the processes, and is called for each reading.
    """

    def __init__(self, roots: Callable[[], Iterable[int]]) -> None:
        self._roots = roots
        self._seen: dict[tuple[int, int], int] = {}
        self._ended_ns = 0

    def ns(self) -> int | None:
        """Return the sum so far (/proc/PID/task/TID/schedstat); None if the kernel does not tell it."""
        if times_unknown():
            return None
        stats = _all()
        pids = {pid for root in self._roots() if root in stats for pid in [root, *_below(root, stats)]}
        now = {(pid, tid): waited for pid in pids for tid, (_, waited) in _schedstats(pid).items()}
        self._ended_ns += sum(
            was for thread, was in self._seen.items() if thread not in now or now[thread] < was
        )
        self._seen = now
        return self._ended_ns + sum(now.values())


def _below(root: int, stats: dict[int, list[str]]) -> list[int]:
    children: dict[int, list[int]] = defaultdict(list)
    for pid, stat in stats.items():
        children[int(stat[PPID])].append(pid)
    below = list(children[root])
    for pid in below:  # the list grows during the loop
        below += children[pid]
    return below


def _all() -> dict[int, list[str]]:
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return {pid: stat for pid in pids if (stat := _stat(pid)) is not None}


def tree_threads(root: int) -> set[int]:
    """List the threads of `root` and of all below it."""
    threads: set[int] = set()
    for pid in [root, *descendants(root)]:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            threads |= {int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()}
    return threads


def _stat(pid: int) -> list[str] | None:
    """Return the fields of proc(5) stat after the name; None if there is no such process, or it may not be seen."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError, PermissionError):  # the last one with hidepid=1
        return None


def _threads_ns(pid: int) -> int:
    return sum(ran for ran, _ in _schedstats(pid).values())


def _schedstats(pid: int) -> dict[int, tuple[int, int]]:
    """Return how long each thread of a process ran and waited for a CPU, ns."""
    readings = {}
    # If the process has ended meanwhile, its parent's times will include its time.
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                ran, waited, _ = (task / "schedstat").read_text().split()
                readings[int(task.name)] = int(ran), int(waited)
    return readings
