# SPDX-License-Identifier: Apache-2.0
"""The benchmark of parallel cases starts workers as espbench does, and its truth runs may use all CPUs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
# `put_in_place` changes modules for good, so both are shown in one other process.
_PROGRAM = """\
import cluster
from campaign import truth_run
from espbench.runs import beds
assert 0 < cluster._until_hello(), "a worker says that it can take a task"
truth_run.put_in_place()
assert not any(beds.place(None, [object()]).cpus.values()), "a run of the truth DUT is not pinned"
"""
_ON_DASK = """\
import cluster, dask_workers
with dask_workers.waiting(2, 0.0) as workers:
    run = cluster._simulated(8, workers)
assert run.trials >= 5 * run.cases
assert 0 < dask_workers.warm_up_s(None)
"""


@pytest.mark.parametrize(
    "program",
    [_PROGRAM, pytest.param(_ON_DASK, marks=[pytest.mark.needs("distributed"), pytest.mark.slow])],
    ids=["here", "Dask"],
)
def test_workers_take_tasks_and_a_truth_run_is_not_pinned(program: str) -> None:
    """The workers are processes here, or those of a cluster as it is documented."""
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
