# SPDX-License-Identifier: Apache-2.0
"""Puts the gateways into their own control group, and measures how long other programs kept all of them from a CPU.

Gateways that share a CPU wait for each other, and a task's scheduler statistics do not say for which task it waited.
The group's CPU pressure does: it is "full" while tasks of the group could run but none of them does (`full` in
cpu.pressure, Documentation/accounting/psi.rst of Linux; in control groups since 5.13).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from pathlib import Path

from espbench.this_machine.processes import descendants
from espbench.this_machine.registry import Registry

_PROCS, _THREADS, _PRESSURE = "cgroup.procs", "cgroup.threads", "cpu.pressure"


class CpuGroup:
    """A control group; processes that its members start are in it, too."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def make(cls, registry: Registry, role: str) -> CpuGroup | None:
        """Return a new group, which the registry removes; None if this kernel has or permits no such groups."""
        for root in _hierarchies(Path("/proc/mounts").read_text()):
            with contextlib.suppress(OSError):
                group = cls(registry.control_group(root, role))
                if group.kept_waiting_ns() is not None:
                    return group
        return None

    def take(self, pids: Iterable[int]) -> None:
        """Put these processes and their descendants into the group; skip processes that have ended."""
        for pid in pids:
            for one in (pid, *descendants(pid)):
                with contextlib.suppress(ProcessLookupError):
                    (self._folder / _PROCS).write_text(str(one))

    def kept_waiting_ns(self) -> int | None:
        """Return the waiting time since the group was made, ns, with a resolution of 1 µs; None if it is not known."""
        return read_full_ns((self._folder / _PRESSURE).read_text())

    def turns(self) -> int:
        """Return how often the members' threads were given a CPU (/proc/TID/schedstat); only those that still live."""
        turns = 0
        for thread in (self._folder / _THREADS).read_text().split():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                turns += int(Path(f"/proc/{thread}/schedstat").read_text().split()[2])
        return turns


def read_full_ns(pressure: str) -> int | None:
    """Return the total of `full` in the text of cpu.pressure, ns; None if it has no such line."""
    total = re.search(r"^full .*\btotal=(\d+)$", pressure, re.M)
    return 1000 * int(total[1]) if total else None


def _hierarchies(mounts: str) -> list[Path]:
    """Return the mount points of control groups of version 2; mounts: the text of /proc/mounts."""
    fields = [line.split() for line in mounts.splitlines()]
    return [Path(where) for _, where, kind, *_ in fields if kind == "cgroup2"]
