# SPDX-License-Identifier: Apache-2.0
"""A plan with the driver-level accelerator test, run on an emulated board: figures, report, page, twice the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from espbench.results import accelerator
from support.plans import pair_plan, quick, write_plan
from support.runs import espbench
from support.virtual.e500_machine import built_by_command

pytestmark = [pytest.mark.virtual_time, pytest.mark.boards, pytest.mark.slow]

PATIENCE_S = 1800.0
PLAN = pair_plan(
    "mpc8548e",
    name="driver",
    frame_sizes=[1456],
    tests=[
        {
            "throughput": quick(
                minimum="2000fps", maximum="4000fps", trial="20ms", final_trial="20ms", resolution="50%"
            )
        },
        {"accelerator": {"operations": 1000, "sizes": [64, 1456], "suites": ["3des-sha1"]}},
    ],
)


def measured(folder: Path, jobs: int) -> Path:
    built_by_command()
    file = write_plan(folder, PLAN)
    done = espbench("run", file, "--jobs", str(jobs), "--out", folder / "runs", timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    (run,) = (folder / "runs").iterdir()
    return run


def test_the_driver_is_measured_and_the_same_each_time(tmp_path: Path) -> None:
    """All at once is faster where software's share is large; the engine's own time is a bound where it is not.

    One figure after the other, and all of them side by side.
    """
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    run = measured(first, jobs=1)
    small, large = accelerator.read(run)
    assert (small.size, large.size) == (64, 1456)
    assert "talitos" in small.driver
    assert small.gain > large.gain > 1
    assert (run / accelerator.FILE).read_bytes() == (measured(second, jobs=3) / accelerator.FILE).read_bytes()
    page = (run / "published.html").read_text(encoding="utf-8")
    assert "Driver-level accelerator test" in page
    assert "Driver-level accelerator test" in (run / "report.md").read_text(encoding="utf-8")
