# SPDX-License-Identifier: Apache-2.0
"""Says whether the clock of CPUs changes with their load, as the kernel's cpufreq governors do it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

CPUS = Path("/sys/devices/system/cpu")
# These governors keep the clock where it is; all others follow the load (Linux, admin-guide/pm/cpufreq.rst).
_CONSTANT = ("performance", "userspace")


def follows_load(cpus: Iterable[int], folder: Path = CPUS) -> str:
    """Return the governor by which the clock of one of these CPUs follows its load; empty if none does.

    folder: of the CPUs in sysfs. Virtual machines mostly have no cpufreq; their host may change the clock all the same.
    """
    for cpu in sorted(set(cpus)):
        policy = folder / f"cpu{cpu}" / "cpufreq"
        governor, least, most = (
            _text(policy / f"scaling_{name}") for name in ("governor", "min_freq", "max_freq")
        )
        if governor and governor not in _CONSTANT and least != most:
            return governor
    return ""


def _text(file: Path) -> str:
    with contextlib.suppress(OSError):
        return file.read_text().strip()
    return ""
