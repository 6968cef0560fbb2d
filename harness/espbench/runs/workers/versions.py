# SPDX-License-Identifier: Apache-2.0
"""Says whether a worker can do tasks of a driver: it needs the same espbench, and one thread."""

from __future__ import annotations

from espbench.own_code import own_code
from espbench.version import __version__


def version_here() -> str:
    """Return the version of espbench on this machine, and a digest of its code."""
    return f"{__version__}, code {own_code()['code']}"


def different_code(where: str, expected: str, got: str) -> str:
    """Return the message that a worker runs another espbench than its driver."""
    return (
        f"{where}\n  expected: espbench {expected}\n  got: espbench {got}\n"
        "  what to do: install the same espbench on all machines"
    )


def too_many_threads(where: str, threads: int) -> str:
    """Return the message that a Dask worker would do several tasks at once; "" if it has one thread.

    All tasks of a Dask worker share one worker process, which does one at a time.
    """
    if threads == 1:
        return ""
    return (
        f"{where}\n  expected: 1 thread, because a worker does one case at a time\n  got: {threads} threads\n"
        "  what to do: start it with --nthreads 1, and with --nworkers for each CPU"
    )
