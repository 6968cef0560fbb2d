# SPDX-License-Identifier: Apache-2.0
"""Starts a Dask cluster on this machine, with certificates; its workers measure the truth DUT."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from campaign import truth
from campaign.observed import TRUTH, Observed, environment

from support.dask_cluster import DaskCluster
from support.virtual.side_by_side import DEEP

WORKERS = 3
_WORKER = """
if __name__ == "__main__":
    from campaign import truth_run
    truth_run.put_in_place()
    from distributed.cli.dask_worker import main
    main()
"""


class Cluster(DaskCluster):
    """A scheduler and three workers; worker_env: additional environment variables of the workers."""

    def __init__(self, folder: Path, worker_env: dict[str, str]) -> None:
        super().__init__(folder, environment(**truth.environment(known=DEEP)))
        self._worker_env = worker_env
        self.workers = [self.worker() for _ in range(WORKERS)]

    def worker(self, **env: str) -> subprocess.Popen[bytes]:
        """Start one more worker, without a nanny, which would start it again after its end."""
        return self.start(
            [sys.executable, "-c", _WORKER, self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard",
             "--local-directory", str(self.folder / "scratch")],
            **self._worker_env | env,
        )  # fmt: skip

    def run(self, folder: Path, *options: str | Path) -> Observed:
        """Start `espbench run` on this cluster."""
        folder.mkdir(exist_ok=True)
        return Observed(folder, *options, "--cluster", self.address, program=TRUTH, env=self.env)


@contextmanager
def running(folder: Path, **worker_env: str) -> Iterator[Cluster]:
    cluster = Cluster(folder, worker_env)
    try:
        cluster.until(lambda: cluster.registered >= WORKERS)
        yield cluster
    finally:
        cluster.end()
