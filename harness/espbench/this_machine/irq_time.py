# SPDX-License-Identifier: Apache-2.0
"""Determines whether the running kernel leaves interrupts out of a thread's CPU time (CONFIG_IRQ_TIME_ACCOUNTING).

If it does, the time of a softirq that interrupts a thread is counted for no thread. A packet that ESP has decrypted
continues in a softirq (xfrm_input, gro_cells). So the CPU time of a gateway's NAPI thread lacks this part.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import socket
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

CONFIGS = ("/proc/config.gz", "/boot/config-{0}", "/lib/modules/{0}/config", "/lib/modules/{0}/build/.config")
OPTION = re.compile(
    r"^(?:CONFIG_IRQ_TIME_ACCOUNTING=(y)|# CONFIG_IRQ_TIME_ACCOUNTING is not set)$", re.MULTILINE
)
WINDOWS, WINDOW_NS = 7, 20_000_000
# Softirqs take a fifth or more of the time of a thread that only sends packets to itself.
MISSING_LIMIT = 0.07


def left_out() -> str:
    """Say how it is known that a thread's CPU time lacks the softirqs that interrupt it; empty if it includes them."""
    config = kernel_config()
    if config is not None:
        option = OPTION.search(config)
        if option and option[1]:
            return "the kernel's configuration has CONFIG_IRQ_TIME_ACCOUNTING=y"
        return ""
    try:
        missing = share_left_out()
    except OSError as error:
        return f"the kernel's configuration cannot be read, and it could not be tried: {error}"
    if missing < MISSING_LIMIT:
        return ""
    return f"{100 * missing:.0f} % of the time of a thread that sends to itself was in nobody's account"


def kernel_config() -> str | None:
    """Return the running kernel's configuration; None if it cannot be read."""
    for name in CONFIGS:
        path = Path(name.format(os.uname().release))
        with contextlib.suppress(OSError):
            return (
                gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            ).decode()
    return None


def share_left_out() -> float:
    """Measure how much more of a thread's time is not accounted for while softirqs interrupt it; return the share.

    A softirq that interrupts the sender receives each packet to the loopback, as it does with gro_cells. Raise OSError
    if there is no loopback.
    """
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        receiver.bind(("127.0.0.1", 0))
        sender.connect(receiver.getsockname())
        pairs = [(_unbooked(lambda: sender.send(b"")), _unbooked(os.getppid)) for _ in range(WINDOWS)]
    return median(sending - resting for sending, resting in pairs)


def _unbooked(act: Callable[[], object]) -> float:
    """Return the share of a window in which this thread neither ran nor waited for a CPU, though it never slept."""
    began, ran, waited = time.monotonic_ns(), time.thread_time_ns(), _waited_ns()
    while time.monotonic_ns() - began < WINDOW_NS:
        act()
    ran, waited = time.thread_time_ns() - ran, _waited_ns() - waited
    return 1 - (ran + waited) / (time.monotonic_ns() - began)


def _waited_ns() -> int:
    return int(Path("/proc/thread-self/schedstat").read_text().split()[1])
