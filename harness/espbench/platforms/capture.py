# SPDX-License-Identifier: Apache-2.0
"""Captures the middle link by tcpdump, in the namespace that has an interface of this link."""

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
    """Wait until the file does not grow any more: on a busy machine tcpdump writes late."""
    size, deadline = -1, time.monotonic() + _READY_S
    while size != file.stat().st_size and time.monotonic() < deadline:
        size = file.stat().st_size
        time.sleep(_QUIET_S)


@contextlib.contextmanager
def capturing(registry: Registry, bed: Testbed, file: Path) -> Iterator[None]:
    """Capture all frames on the middle link, as long as the context lasts, into a pcap file with whole frames.

    Raise EspbenchError if the link cannot be captured or tcpdump fails, MachineLacks if there is no tcpdump.
    """
    if bed.capture is None:
        raise EspbenchError(f"platform {bed.platform}: its middle link cannot be captured")
    if shutil.which("tcpdump") is None:
        raise MachineLacks("capture: needs tcpdump", "apt-get install tcpdump")
    log = file.with_suffix(".tcpdump.log")
    before = len(registry.entries)
    with log.open("wb") as said:
        # tcpdump writes each frame at once, not block by block; with -Z root it keeps the right to write the file.
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
