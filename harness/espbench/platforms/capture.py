# SPDX-License-Identifier: Apache-2.0
"""A capture of the middle link: tcpdump in the namespace where it can be seen."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from espbench.errors import EspbenchError, MachineLacks
from espbench.platforms.base import Testbed
from espbench.this_machine.registry import Registry, Surroundings

_READY_S = 60.0
_QUIET_S = 1.0


def _let_grow(file: Path) -> None:
    """Wait until nothing more is written: on a busy machine tcpdump comes late."""
    size, deadline = -1, time.monotonic() + _READY_S
    while size != file.stat().st_size and time.monotonic() < deadline:
        size = file.stat().st_size
        time.sleep(_QUIET_S)


@contextlib.contextmanager
def capturing(registry: Registry, bed: Testbed, file: Path) -> Iterator[None]:
    """Capture everything that crosses the middle link while the block runs, in a pcap file (whole frames)."""
    if bed.capture is None:
        raise EspbenchError(f"platform {bed.platform}: its middle link cannot be captured")
    if shutil.which("tcpdump") is None:
        raise MachineLacks("capture: needs tcpdump", "apt-get install tcpdump")
    log = file.with_suffix(".tcpdump.log")
    before = len(registry.entries)
    with log.open("wb") as said:
        # Every frame at once into the file, not block by block; -Z root: keep the right to write it.
        process = registry.spawn(
            [
                "tcpdump",
                "-i",
                bed.capture,
                "--immediate-mode",
                "-U",
                "-s",
                "0",
                "-Z",
                "root",
                "-w",
                str(file),
            ],
            "tcpdump",
            Surroundings(netns=bed.capture_netns),
            stderr=said,
        )
        try:
            deadline = time.monotonic() + _READY_S
            while "listening on" not in log.read_text(errors="replace"):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise EspbenchError(
                        f"tcpdump on {bed.capture}: {log.read_text(errors='replace').strip()}"
                    )
                time.sleep(0.02)
            yield
            _let_grow(file)
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_READY_S)
        finally:
            registry.undo(registry.entries[before:])
    log.unlink()
