# SPDX-License-Identifier: Apache-2.0
"""The benchmark of parallel cases starts workers as espbench does, and its truth runs may use all CPUs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[4]
# Run in a process of its own: both programs change modules for good.
_FIRST_WORKER = "import cluster; assert 0 < cluster._until_hello()"
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


def test_a_run_of_the_truth_dut_is_not_pinned() -> None:
    _python(_NO_CPUS)
