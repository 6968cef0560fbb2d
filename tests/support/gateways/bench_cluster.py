# SPDX-License-Identifier: Apache-2.0
"""Starts a Dask cluster with certificates whose workers measure in real time, each with a machine-id of its own.

All workers are on this machine, so they take turns by its lock. Only their machine-ids make them look like several
machines.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from campaign.observed import ESPBENCH, Observed, environment

from support.dask_cluster import DaskCluster

_WORKER = "if __name__ == '__main__':\n    from distributed.cli.dask_worker import main; main()"
# This program is espbench, with another time after which a machine that is not seen counts as gone.
_IMPATIENT = """\
from functools import partial
from espbench.cli import run
from espbench.cli.main import main
run.OnBenches = partial(run.OnBenches, gone_after_s={gone_after_s})
main()
"""
# This script runs a command with another file as /etc/machine-id, in a mount namespace of its own.
_AS_ANOTHER = 'mount --bind "$0" /etc/machine-id && exec "$@"'


class BenchCluster(DaskCluster):
    """A scheduler, and workers that are added one by one."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, environment())

    def worker(self, digit: str, *options: str, path: str | None = None) -> subprocess.Popen[bytes]:
        """Start a worker on a machine whose machine-id consists of this digit; wait until it is registered.

        path: the worker's PATH, if it is not this process's.
        """
        registered = self.registered
        file = self.folder / f"machine-id-{digit}"
        file.write_text(f"{digit * 32}\n")
        process = self.start(
            ["unshare", "--mount", "sh", "-c", _AS_ANOTHER, str(file), *(["env", f"PATH={path}"] if path else []),
             sys.executable, "-c", _WORKER, self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard",
             "--local-directory", str(self.folder / "scratch"), *options],
        )  # fmt: skip
        self.until(lambda: self.registered > registered)
        return process

    def bench(self, digit: str, path: str | None = None) -> subprocess.Popen[bytes]:
        """Start a worker that measures in real time, on the machine with this digit."""
        return self.worker(digit, "--resources", "bench=1", path=path)

    def run(self, folder: Path, *options: str | Path, gone_after_s: float | None = None) -> Observed:
        """Start `espbench run` on this cluster; gone_after_s: not seen for so long, a machine is gone."""
        program = ESPBENCH
        if gone_after_s is not None:
            program = (sys.executable, "-c", _IMPATIENT.format(gone_after_s=gone_after_s))
        return Observed(folder, *options, "--cluster", self.address, program=program, env=self.env)


@contextmanager
def running(folder: Path) -> Iterator[BenchCluster]:
    cluster = BenchCluster(folder)
    try:
        yield cluster
    finally:
        cluster.end()
