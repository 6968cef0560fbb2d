# SPDX-License-Identifier: Apache-2.0
"""Keeps the CPUs of this machine busy during a measurement in virtual time, which must not change its results."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def busy_loops(*, wanted: bool) -> Iterator[None]:
    """Run two busy loops for each CPU while the context lasts; none if they are not wanted."""
    loops = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(2 * (os.cpu_count() or 1) if wanted else 0)
    ]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
