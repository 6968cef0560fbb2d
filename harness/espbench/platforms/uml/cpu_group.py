# SPDX-License-Identifier: Apache-2.0
"""Gateways in a control group of their own: how long other programs kept all of them from a CPU that they wanted.

Gateways that share a CPU wait for each other, and the scheduler's books of a task do not say for whom it waited. The
group's pressure does: its CPU is "full" while some of the group could run and none of it does (`full` in cpu.pressure,
Documentation/accounting/psi.rst of Linux; in control groups since 5.13).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from pathlib import Path

from espbench.this_machine.processes import descendants
from espbench.this_machine.registry import Registry

_PROCS, _PRESSURE = "cgroup.procs", "cpu.pressure"


class CpuGroup:
    """A group; what its processes start is in it, too."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def make(cls, registry: Registry, role: str) -> CpuGroup | None:
        """Make a group that the registry undoes; None if this kernel has no such groups, or denies them to us."""
        for root in _hierarchies(Path("/proc/mounts").read_text()):
            with contextlib.suppress(OSError):
                group = cls(registry.control_group(root, role))
                if group.kept_waiting_ns() is not None:
                    return group
        return None

    def take(self, pids: Iterable[int]) -> None:
        """Put processes and all that they have started into it; one that has ended is passed over."""
        for pid in pids:
            for one in (pid, *descendants(pid)):
                with contextlib.suppress(ProcessLookupError):
                    (self._folder / _PROCS).write_text(str(one))

    def kept_waiting_ns(self) -> int | None:
        """Return the waiting time since the group was made, ns, exact to 1 µs; None if the kernel does not say."""
        return read_full_ns((self._folder / _PRESSURE).read_text())


def read_full_ns(pressure: str) -> int | None:
    """Read the ns from the text of cpu.pressure."""
    total = re.search(r"^full .*\btotal=(\d+)$", pressure, re.M)
    return 1000 * int(total[1]) if total else None


def _hierarchies(mounts: str) -> list[Path]:
    """List where control groups of version 2 are mounted."""
    fields = [line.split() for line in mounts.splitlines()]
    return [Path(where) for _, where, kind, *_ in fields if kind == "cgroup2"]
