# SPDX-License-Identifier: Apache-2.0
"""What /proc says about processes: when one started, which are below it, how much CPU they used."""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from collections.abc import Collection
from pathlib import Path

NS_PER_TICK = 10**9 // os.sysconf("SC_CLK_TCK")
# Fields of proc(5) stat after the name in parentheses.
STATE, PPID, CUTIME, CSTIME, STARTTIME = 0, 1, 13, 14, 19


def start_time(pid: int) -> int | None:
    """When a process was started, clock ticks since boot; None: there is none, or only its zombie.

    With the pid it names a process for good: pids are used again.
    """
    stat = _stat(pid)
    return None if stat is None or stat[STATE] in "ZX" else int(stat[STARTTIME])


def descendants(root: int) -> list[int]:
    """Every process below `root`, its children first."""
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


def _below(root: int, stats: dict[int, list[str]]) -> list[int]:
    children: dict[int, list[int]] = defaultdict(list)
    for pid, stat in stats.items():
        children[int(stat[PPID])].append(pid)
    found = list(children[root])
    for pid in found:  # grows while it is walked
        found += children[pid]
    return found


def _all() -> dict[int, list[str]]:
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return {pid: stat for pid in pids if (stat := _stat(pid)) is not None}


def _threads(root: int) -> set[int]:
    """Of `root` and all below it."""
    found: set[int] = set()
    for pid in [root, *descendants(root)]:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found |= {int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()}
    return found


def _stat(pid: int) -> list[str] | None:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def _threads_ns(pid: int) -> int:
    total = 0
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[0])
    except (FileNotFoundError, ProcessLookupError):
        pass  # ended while we looked: its parent's count has it next time
    return total
