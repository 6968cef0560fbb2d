# SPDX-License-Identifier: Apache-2.0
"""The benchmark of parallel cases starts workers as espbench does, and its truth runs may use all CPUs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
# Run in a process of its own: both programs change modules for good.
_FIRST_WORKER = "import cluster; assert 0 < cluster._until_hello()"
_ON_DASK = """\
import cluster, dask_workers
with dask_workers.waiting(2, 0.0) as workers:
    run = cluster._simulated(8, workers)
assert run.trials >= 5 * run.cases
assert 0 < dask_workers.warm_up_s(None)
"""
_NO_CPUS = """\
from campaign import truth_run
from espbench.runs import beds
truth_run.put_in_place()
assert not any(beds.place(None, [object()]).cpus.values())
"""


def _python(program: str) -> None:
    folders = [ROOT / "benchmarks", ROOT / "benchmarks/tester", ROOT / "harness", ROOT / "tests"]
    made = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert made.returncode == 0, made.stderr


def test_a_worker_says_that_it_can_take_a_task() -> None:
    _python(_FIRST_WORKER)


@pytest.mark.needs("distributed")
def test_cases_are_done_by_a_cluster_as_documented() -> None:
    _python(_ON_DASK)


def test_a_run_of_the_truth_dut_is_not_pinned() -> None:
    _python(_NO_CPUS)
