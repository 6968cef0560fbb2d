# SPDX-License-Identifier: Apache-2.0
"""Starts a Dask cluster with certificates on this machine, for cluster.py; its workers have nannies, as documented."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from campaign.observed import environment

from espbench.platforms.virtual.parts.build import Kit
from support.dask_cluster import DaskCluster
from support.simulated import worker_process

if TYPE_CHECKING:
    from espbench.runs.workers.cluster import ClusterWorkers

_WAITING = "from espbench.runs.workers import process; process.COMMAND = {command!r}"


@contextmanager
def waiting(count: int, trial_s: float) -> Iterator[ClusterWorkers]:
    """Yield the driver's end of a cluster whose workers' trials are waits of trial_s."""
    with _scheduler() as cluster:
        command = (sys.executable, "-m", worker_process.__name__, str(trial_s))
        # A nanny starts its worker as a new Python, which gets the command from a text that Dask executes first.
        preloaded = [_WAITING.format(command=command)]
        _start(cluster, count, DASK_DISTRIBUTED__WORKER__PRELOAD=repr(preloaded))
        workers = _connected(cluster)
        try:
            yield workers
        finally:
            workers.close()


def warm_up_s(kit: Kit[Any] | None) -> float:
    """Return the time from a worker's start until it has all parts of a kit, and so can take a task, s.

    The worker's cache is empty at its start. kit: None for a plan that needs none.
    """
    with _scheduler() as cluster:
        began = time.monotonic()
        _start(cluster, 1, XDG_CACHE_HOME=str(cluster.folder / "cache"))
        workers = _connected(cluster, [kit] if kit else [])
        took_s = time.monotonic() - began
        workers.close()
    return took_s


@contextmanager
def _scheduler() -> Iterator[DaskCluster]:
    with tempfile.TemporaryDirectory(prefix="espbench-cluster-") as folder:
        cluster = DaskCluster(Path(folder), environment(PYTHONPATH=os.environ["PYTHONPATH"]))
        try:
            cluster.until(lambda: "Scheduler at:" in cluster.log)
            yield cluster
        finally:
            cluster.end()


def _start(cluster: DaskCluster, count: int, **env: str) -> None:
    """Start workers, and wait until they are registered."""
    cluster.start(
        [sys.executable, "-m", "dask", "worker", cluster.address, "--nworkers", str(count), "--nthreads", "1",
         "--no-dashboard", "--local-directory", str(cluster.folder / "scratch")],
        **env,
    )  # fmt: skip
    cluster.until(lambda: cluster.registered >= count)


def _connected(cluster: DaskCluster, kits: list[Kit[Any]] | None = None) -> ClusterWorkers:
    import dask  # noqa: PLC0415  (an extra)

    from espbench.runs.workers.cluster import connect  # noqa: PLC0415  (an extra)

    os.environ.update(
        {name: value for name, value in cluster.env.items() if name.startswith("DASK_DISTRIBUTED__")}
    )
    dask.config.refresh()  # another cluster of this process had other certificates
    return connect(cluster.address, kits or [])
