# SPDX-License-Identifier: Apache-2.0
"""A plan with the tests of an emulated board's crypto engine: figures, report, page, twice the same.

They are the driver-level accelerator test and the test of the public-key unit. Neither sends a frame.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from espbench.results import accelerator
from support.plans import pair_plan, quick, write_plan
from support.runs import espbench
from support.virtual.e500_machine import built_by_command

pytestmark = [pytest.mark.virtual_time, pytest.mark.boards, pytest.mark.slow]

PATIENCE_S = 1800.0
THROUGHPUT = quick(minimum="2000fps", maximum="4000fps", trial="20ms", final_trial="20ms", resolution="50%")
ENGINE: list[dict[str, Any]] = [
    {"accelerator": {"operations": 1000, "sizes": [64, 1456], "suites": ["3des-sha1"]}},
    {"public_key_unit": {"operations": 2, "sizes": [512], "clocks_mhz": [133]}},
]


def measured(folder: Path, tests: list[dict[str, Any]], *options: str) -> Path:
    built_by_command()
    file = write_plan(folder, pair_plan("mpc8548e", name="engine", frame_sizes=[1456], tests=tests))
    done = espbench("run", file, *options, "--out", folder / "runs", timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    (run,) = (folder / "runs").iterdir()
    return run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of all tests beside another test, with one figure after the other."""
    return measured(tmp_path_factory.mktemp("first"), [{"throughput": THROUGHPUT}, *ENGINE], "--jobs", "1")


def test_the_driver_is_measured(run: Path) -> None:
    """All at once is faster where software's share is large; the engine's own time is a bound where it is not."""
    small, large = accelerator.read(run)
    assert (small.size, large.size) == (64, 1456)
    assert "talitos" in small.driver
    assert small.gain > large.gain > 1
    page = (run / "published.html").read_text(encoding="utf-8")
    assert "Driver-level accelerator test" in page
    assert "Driver-level accelerator test" in (run / "report.md").read_text(encoding="utf-8")


def test_the_public_key_unit_is_driven_by_the_guest(run: Path) -> None:
    """The unit takes the cycles of its model at both clocks; the guest has compared every result."""
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
    assert "## Public keys" in (run / "report.md").read_text(encoding="utf-8")


def test_the_figures_are_the_same_each_time(run: Path, tmp_path: Path) -> None:
    """Here without another test, and all of them side by side."""
    again = measured(tmp_path, ENGINE, "--jobs", "3", "--no-report")
    for file in (accelerator.FILE, accelerator.PUBLIC_KEY_FILE):
        assert (run / file).read_bytes() == (again / file).read_bytes()
