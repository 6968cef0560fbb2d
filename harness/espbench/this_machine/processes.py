# SPDX-License-Identifier: Apache-2.0
"""Reads what /proc says about processes: when one started, which are below it, how much CPU they used."""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

NS_PER_TICK = 10**9 // os.sysconf("SC_CLK_TCK")
# Fields of proc(5) stat after the name in parentheses.
STATE, PPID, CUTIME, CSTIME, STARTTIME = 0, 1, 13, 14, 19


def start_time(pid: int) -> int | None:
    """Return when a process was started, clock ticks since boot; None: there is none, or only its zombie.

    With the pid it names a process for good: pids are used again.
    """
    stat = _stat(pid)
    return None if stat is None or stat[STATE] in "ZX" else int(stat[STARTTIME])


def parent(pid: int) -> int:
    """Return the process that started it, or has taken it over; 0 when there is none."""
    stat = _stat(pid)
    return 0 if stat is None else int(stat[PPID])


def descendants(root: int) -> list[int]:
    """Return every process below `root`, its children first."""
    return _below(root, _all())


def pin(root: int, cpus: Collection[int]) -> None:
    """Have `root`, all below it and what they will start run on these CPUs alone."""
    done: set[int] = set()
    # A process that was started meanwhile by one not yet seen is found the next time.
    while left := _threads(root) - done:
        for thread in left:
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(thread, cpus)
        done |= left


def renice_sessions(root: int, nice: int) -> None:
    """Give the sessions of `root` and all below it this nice value; without the right to, nothing changes.

    With autogrouping (sched(7)) the scheduler weighs sessions against each other, and the nice values of processes
    count only within theirs. A program that makes a session of its own, as User-Mode Linux does, starts it at 0.
    """
    for pid in [root, *descendants(root)]:
        with contextlib.suppress(OSError):
            Path(f"/proc/{pid}/autogroup").write_text(str(nice))


def tree_cpu_ns(root: int) -> int:
    """User and system time of `root` and all its descendants, ns; 0 when it is gone.

    Living threads count in ns (/proc/PID/task/TID/schedstat), children that ended in clock ticks.
    """
    stats = _all()
    if root not in stats:
        return 0
    return sum(
        _threads_ns(pid) + (int(stats[pid][CUTIME]) + int(stats[pid][CSTIME])) * NS_PER_TICK
        for pid in [root, *_below(root, stats)]
    )


class WaitAccount:
    """Adds up how long the threads of some processes, and of all below them, could have run but had no CPU, ns.

    What a thread had waited when it was last seen still counts when it has ended, so that the sum never falls.
    `roots` tells which processes these are, each time it is asked.
    """

    def __init__(self, roots: Callable[[], Iterable[int]]) -> None:
        self._roots = roots
        self._seen: dict[tuple[int, int], int] = {}
        self._ended_ns = 0

    def ns(self) -> int:
        """Return the sum so far (/proc/PID/task/TID/schedstat)."""
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
    for pid in below:  # grows while it is walked
        below += children[pid]
    return below


def _all() -> dict[int, list[str]]:
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return {pid: stat for pid in pids if (stat := _stat(pid)) is not None}


def _threads(root: int) -> set[int]:
    """List the threads of `root` and of all below it."""
    threads: set[int] = set()
    for pid in [root, *descendants(root)]:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            threads |= {int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()}
    return threads


def _stat(pid: int) -> list[str] | None:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def _threads_ns(pid: int) -> int:
    return sum(ran for ran, _ in _schedstats(pid).values())


def _schedstats(pid: int) -> dict[int, tuple[int, int]]:
    """Return how long each thread of a process ran and waited for a CPU, ns."""
    readings = {}
    # It ended while we looked: its parent's count has it next time.
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                ran, waited, _ = (task / "schedstat").read_text().split()
                readings[int(task.name)] = int(ran), int(waited)
    return readings
