# SPDX-License-Identifier: Apache-2.0
"""The workers of a real Dask cluster end what they measure for a driver that was killed; the gateways are simulated."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from espbench.this_machine.processes import descendants
from support.dask_cluster import DaskCluster
from support.plans import pair_plan, write_plan
from support.simulated import worker_process
from support.simulated.command import PROGRAM

pytestmark = [pytest.mark.slow, pytest.mark.needs("distributed")]

# A trial takes longer than the test may.
_WORKER = f"""
if __name__ == "__main__":
    import sys
    from espbench.runs.workers import process
    process.COMMAND = (sys.executable, "-m", "{worker_process.__name__}", "1000")
    from distributed.cli.dask_worker import main
    main()
"""
_SEARCH = {"trial": "1s", "final_trial": "1s", "resolution": "10%"}


def test_a_case_ends_when_its_driver_was_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask itself would let it run on to its end; the next run would wait behind it."""
    monkeypatch.setenv("PYTHONPATH", ":".join(filter(None, sys.path)))
    cluster = DaskCluster(tmp_path / "cluster", dict(os.environ))
    try:
        worker = cluster.start(
            [sys.executable, "-c", _WORKER, cluster.address, "--nthreads", "1", "--no-nanny", "--no-dashboard",
             "--local-directory", str(tmp_path / "scratch")]
        )  # fmt: skip
        cluster.until(lambda: cluster.registered)
        plan = write_plan(tmp_path, pair_plan("mpc8548e", throughput=_SEARCH))
        driver = cluster.start(
            [*PROGRAM, "run", str(plan), "--out", str(tmp_path / "runs"), "--cluster", cluster.address]
        )
        cluster.until(lambda: driver.poll() is not None or descendants(worker.pid))
        assert driver.poll() is None, cluster.log
        driver.kill()
        cluster.until(lambda: not descendants(worker.pid))
        assert worker.poll() is None
    finally:
        cluster.end()
