# SPDX-License-Identifier: Apache-2.0
"""Reads the state of a daemon's process inside its gateway, given the daemon's PID file."""

from __future__ import annotations

import re

from espbench.platforms.base import Gateway


def resident_kib(gateway: Gateway, pid_file: str) -> int | None:
    """Return the process's resident memory, KiB; None if the process has ended, or was never started."""
    pid = (gateway.read([pid_file])[pid_file] or "").strip()
    path = f"/proc/{pid}/status"
    # A zombie process still has that file, but no memory.
    memory = re.search(r"^VmRSS:\s+(\d+) kB", (pid and gateway.read([path])[path]) or "", re.MULTILINE)
    return int(memory[1]) if memory else None
