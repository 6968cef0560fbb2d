# SPDX-License-Identifier: Apache-2.0
"""Describes the machine on which a run was made, so that a reader can judge the figures."""

from __future__ import annotations

import hashlib
import hmac
import os
import platform
import shutil
import socket
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from espbench.terms import MACHINE

_MACHINE_ID = Path("/etc/machine-id")
_DIGITS = 16
_LIBRARIES = ("pydantic", "pandas", "pyroute2", "vl-convert-python", "MLRsearch")
_PROGRAMS = {"ip": ["ip", "-V"], "linux.uml": ["linux.uml", "--version"]}


def describe() -> dict[str, Any]:
    """Return CPU, memory, kernel, virtualisation: one value per line of the report's host table."""
    info = Path("/proc/cpuinfo").read_text()
    models = sorted(
        {line.partition(":")[2].strip() for line in info.splitlines() if line.startswith("model name")}
    )
    memory_kib = int(Path("/proc/meminfo").read_text().split()[1])
    flags = next((line for line in info.splitlines() if line.startswith("flags")), "")
    return {
        MACHINE: fingerprint(),
        "cpu": ", ".join(models) or platform.machine(),
        "cpu_mhz": _mhz(info),
        "cpus": os.cpu_count(),
        "cpus usable": sorted(os.sched_getaffinity(0)),
        "memory_mib": memory_kib // 1024,
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "virtual machine": "yes" if " hypervisor" in flags else "no sign of one",
        "clock source": _text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "cpu frequency governor": _text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
        or "none visible",
        "load average at start": f"{os.getloadavg()[0]:.2f}",
    }


def fingerprint() -> str:
    """Return digits that only this machine has; they do not tell its machine-id, which is confidential (machine-id(5)).

    Without a machine-id, as in some containers, they are made from the host's name.
    """
    return fingerprint_of(_text(str(_MACHINE_ID)) or socket.gethostname())


def fingerprint_of(machine_id: str) -> str:
    """Return the fingerprint of a machine with this machine-id."""
    return hmac.new(machine_id.encode(), b"espbench", hashlib.sha256).hexdigest()[:_DIGITS]


def _mhz(cpuinfo: str) -> float | None:
    """Return the present clock of the first CPU as the kernel reports it, MHz; None if it does not."""
    for line in cpuinfo.splitlines():
        if line.startswith("cpu MHz"):
            return float(line.partition(":")[2])
    return None


def free_memory_mb() -> float:
    """Return how much memory programs can get without swapping (MemAvailable), MiB."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) / 1024
    return 0.0


def tools() -> dict[str, str]:
    """Return the versions of Python, of the libraries that matter, and of the programs that are installed."""
    versions = {"python": sys.version.split()[0]}
    versions |= {name: metadata.version(name) for name in _LIBRARIES}
    for name, argv in _PROGRAMS.items():
        if shutil.which(argv[0]):
            done = subprocess.run(argv, capture_output=True, text=True, check=False)
            versions[name] = (
                (done.stdout or done.stderr).strip().splitlines()[0] if done.stdout or done.stderr else "?"
            )
    return versions


def _text(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
