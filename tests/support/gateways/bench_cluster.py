# SPDX-License-Identifier: Apache-2.0
"""Starts a Dask cluster with certificates whose workers measure in real time, each with a machine-id of its own.

All workers are on this machine, so they take turns by its lock. Only their machine-ids make them look like several
machines.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from campaign.observed import Observed, environment

from support.virtual.cluster import certificates

PATIENCE_S = 900.0  # only ends a hang
_SCHEDULER = "from distributed.cli.dask_scheduler import main; main()"
_WORKER = "if __name__ == '__main__':\n    from distributed.cli.dask_worker import main; main()"
# This script runs a command with another file as /etc/machine-id, in a mount namespace of its own.
_AS_ANOTHER = 'mount --bind "$0" /etc/machine-id && exec "$@"'


class BenchCluster:
    """A scheduler, and workers that are added one by one."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.env = environment() | certificates(folder)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = str(free.getsockname()[1])
        self.address = f"tls://127.0.0.1:{port}"
        self._processes = [
            self._start(
                [sys.executable, "-c", _SCHEDULER, "--protocol", "tls", "--no-dashboard", "--port", port]
            )
        ]

    def worker(self, digit: str, *options: str, path: str | None = None) -> subprocess.Popen[bytes]:
        """Start a worker on a machine whose machine-id consists of this digit; wait until it is registered.

        path: the worker's PATH, if it is not this process's.
        """
        registered = self.log.count("Registered to:")
        file = self.folder / f"machine-id-{digit}"
        file.write_text(f"{digit * 32}\n")
        process = self._start(
            ["unshare", "--mount", "sh", "-c", _AS_ANOTHER, str(file), *(["env", f"PATH={path}"] if path else []),
             sys.executable, "-c", _WORKER, self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard",
             "--local-directory", str(self.folder / "scratch"), *options],
        )  # fmt: skip
        self._processes.append(process)
        self.until(lambda: self.log.count("Registered to:") > registered)
        return process

    def bench(self, digit: str, path: str | None = None) -> subprocess.Popen[bytes]:
        """Start a worker that measures in real time, on the machine with this digit."""
        return self.worker(digit, "--resources", "bench=1", path=path)

    def _start(self, command: list[str]) -> subprocess.Popen[bytes]:
        with (self.folder / "cluster.log").open("ab") as log:
            return subprocess.Popen(command, env=self.env, stdout=log, stderr=log)

    @property
    def log(self) -> str:
        """The output of the cluster's processes."""
        return (self.folder / "cluster.log").read_text()

    def until(self, condition: Callable[[], object]) -> None:
        """Wait until a condition is true; AssertionError with the log if it takes too long."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, self.log
            time.sleep(0.1)

    def run(self, folder: Path, *options: str | Path) -> Observed:
        """Start `espbench run` on this cluster."""
        return Observed(folder, *options, "--cluster", self.address, env=self.env)

    def end(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()


@contextmanager
def running(folder: Path) -> Iterator[BenchCluster]:
    cluster = BenchCluster(folder)
    try:
        yield cluster
    finally:
        cluster.end()
