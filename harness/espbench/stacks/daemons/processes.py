# SPDX-License-Identifier: Apache-2.0
"""Looks at a daemon's process inside its gateway, by the file that has its number."""

from __future__ import annotations

import re

from espbench.platforms.base import Gateway


def resident_kib(gateway: Gateway, pid_file: str) -> int | None:
    """Return its resident memory, KiB; None if it has ended, or was never started."""
    pid = (gateway.read([pid_file])[pid_file] or "").strip()
    path = f"/proc/{pid}/status"
    # One that nobody has waited for yet still has that file, but no memory.
    memory = re.search(r"^VmRSS:\s+(\d+) kB", (pid and gateway.read([path])[path]) or "", re.MULTILINE)
    return int(memory[1]) if memory else None
