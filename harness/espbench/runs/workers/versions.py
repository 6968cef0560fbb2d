# SPDX-License-Identifier: Apache-2.0
"""Says whether a worker can do tasks of a driver: the same espbench, one thread, and a port closed to others."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from espbench.own_code import generator_digest, own_code
from espbench.version import __version__


def version_here() -> str:
    """Return the version of espbench in this process, with digests of its code and of the traffic generator.

    The code is that which this process loaded, whatever is on disk by now; each trial starts the generator from disk.
    """
    generator = generator_digest() or "not built"
    return f"{__version__}, code {own_code()['code']}, traffic generator {generator}"


def different_code(where: str, expected: str, got: str) -> str:
    """Return the message that a worker runs another espbench than its driver."""
    return (
        f"{where}\n  expected: espbench {expected}\n  got: espbench {got}\n"
        "  what to do: install the same espbench on all machines, then start the workers again; two compilers make "
        "different traffic generators, so copy one, or use a wheel (docs/many-machines.md)"
    )


def no_espbench(where: str, expected: str, error: Exception) -> str:
    """Return the message that a worker cannot say which espbench it has, for instance because it has none."""
    return (
        f"{where} cannot import espbench\n  expected: espbench {expected}\n  got: {error}\n"
        "  what to do: install the same espbench there, for the Python that runs its `dask worker`"
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


def open_to_others(where: str, address: str) -> str:
    """Return the message that other machines reach this address without a certificate, or that it is none; else "".

    Tasks are pickled, so anybody who reaches the scheduler or a worker could run programs there.
    """
    try:
        url = urlsplit(address)
    except ValueError as error:
        return f"{where}\n  expected: tls://HOST:PORT\n  got: {address} ({error})\n  what to do: correct the address"
    if url.scheme == "tls" or (url.scheme == "tcp" and _is_here(url.hostname)):
        return ""
    return (
        f"{where}\n  expected: tls://HOST:PORT, or tcp:// on 127.0.0.1 alone\n"
        f"  got: {address}, by which anybody who reaches that port can run programs there\n"
        "  what to do: give the cluster certificates (docs/many-machines.md), or, if all of it is on this machine, "
        "start its scheduler and its workers with --host 127.0.0.1"
    )


def _is_here(host: str | None) -> bool:
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return host == "localhost"
