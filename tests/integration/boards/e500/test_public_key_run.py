# SPDX-License-Identifier: Apache-2.0
"""A plan with the test of the public-key unit, run on an emulated board: figures, report, twice the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from espbench.results import accelerator
from support.plans import pair_plan, write_plan
from support.runs import espbench
from support.virtual.e500_machine import built_by_command

pytestmark = [pytest.mark.virtual_time, pytest.mark.boards, pytest.mark.slow]

PATIENCE_S = 1800.0
PLAN = pair_plan(
    "mpc8548e",
    name="keys",
    frame_sizes=[1456],
    tests=[{"public_key_unit": {"operations": 2, "sizes": [512], "clocks_mhz": [133]}}],
)


def measured(folder: Path, jobs: int) -> Path:
    built_by_command()
    folder.mkdir()
    done = espbench(
        "run", write_plan(folder, PLAN), "--jobs", str(jobs), "--out", folder / "runs", timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stderr
    (run,) = (folder / "runs").iterdir()
    return run


def test_the_unit_is_driven_by_the_guest_and_the_same_each_time(tmp_path: Path) -> None:
    """The unit takes the cycles of its model at both clocks; the guest has compared every result."""
    run = measured(tmp_path / "first", jobs=1)
    results = {
        (r.by, r.operation, r.bits, r.exponent_bits, r.clock_mhz): r for r in accelerator.read_public_key(run)
    }
    assert len(results) == 12
    for mhz in (133.0, 266.0):
        for exponent_bits, cycles in ((512, 267_008), (3, 14_289.5)):
            unit = results["unit", "rsa", 512, exponent_bits, mhz]
            # The empty operation, which is subtracted, has 31 cycles of its own.
            assert unit.unit_ms == pytest.approx((cycles - 31) / mhz / 1e3, abs=0.0005)
            assert unit.overhead_ns > 0
    assert all(r.whole_ns > 0 for r in results.values())
    assert (
        results["unit", "rsa", 512, 512, 266.0].cpu_pct
        < 5
        < results["software", "ecdh", 256, 0, 266.0].cpu_pct
    )
    page = (run / "report.md").read_text(encoding="utf-8")
    assert "## Public keys" in page
    again = measured(tmp_path / "second", jobs=2)
    file = accelerator.PUBLIC_KEY_FILE
    assert (run / file).read_bytes() == (again / file).read_bytes()
