# SPDX-License-Identifier: Apache-2.0
"""espbench against boxes whose truth is known, in real time: it finds that truth, or says what is wrong.

What else it must find or say is in test_truth_runs.py, in virtual time.
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.gateways.boxes import RouterBox, leftovers
from support.session.unsettled import assert_found, require_settled

pytestmark = pytest.mark.root

FRAME_BITS = {size: 8 * (size - 4) for size in (64, 512, 1424)}  # tbf does not count the FCS


@pytest.fixture
def box() -> Iterator[RouterBox]:
    """A clean router, gone afterwards."""
    with RouterBox() as router:
        yield router


def espbench(*arguments: str, timeout: float = 1800) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "espbench", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )


def run_plan(plan: dict[str, Any], folder: Path) -> list[dict[str, str]]:
    """Run a plan without a report; return the rows of results.csv."""
    file = folder / "plan.yaml"
    file.write_text(yaml.safe_dump(plan))
    done = espbench("run", "--no-report", str(file), "--out", str(folder / "runs"))
    assert done.returncode in (0, 3), done.stderr
    (run,) = (folder / "runs").iterdir()
    with (run / "results.csv").open() as table:
        rows = list(csv.DictReader(table))
    require_settled(rows)
    return rows


@pytest.mark.parametrize(
    ("own_threads", "sizes"),
    [
        pytest.param(True, [1424], id="own threads"),
        pytest.param(True, [64], id="own threads, small frames", marks=pytest.mark.slow),
        pytest.param(False, [512], id="in the sender's context", marks=pytest.mark.slow),
    ],
)
def test_the_rate_of_a_limiting_router_is_found_within_2_percent(
    box: RouterBox, tmp_path: Path, own_threads: bool, sizes: list[int]
) -> None:
    """A token bucket forwards an exactly known number of frames per second, whatever their size.

    Without threads of its own the box runs inside the sender: it cannot be overloaded, the sender
    falls short instead, and the search must end at what could be offered.
    """
    rate = 20_000_000
    if own_threads:
        box.give_own_threads(max(os.sched_getaffinity(0)))
    box.limit_rate(rate)
    plan = box.plan(frame_sizes=sizes, throughput={"trial": "500ms", "final_trial": "2s"})
    rows = run_plan(plan, tmp_path)
    assert [int(row["frame_size"]) for row in rows] == sizes
    for row in rows:
        assert_found(row, rate / FRAME_BITS[int(row["frame_size"])])


def test_a_wrong_gateway_address_is_named(box: RouterBox, tmp_path: Path) -> None:
    """Nobody answers for 10.0.1.77: the message says so, and nothing is left behind."""
    plan = box.plan()
    plan["ports"]["west"]["gateway"] = "10.0.1.77"
    file = tmp_path / "plan.yaml"
    file.write_text(yaml.safe_dump(plan))
    done = espbench("run", str(file), "--out", str(tmp_path / "runs"))
    assert done.returncode == 1
    assert "10.0.1.77" in done.stderr
    assert not leftovers()


@pytest.mark.parametrize(
    ("spoil", "named"), [("ip -n {west} link set a0 down", "down"), ("ip -n {west} link del a0", "a0")]
)
def test_an_interface_that_is_down_or_missing_is_named(
    box: RouterBox, tmp_path: Path, spoil: str, named: str
) -> None:
    """The message names the interface and what is wrong with it."""
    subprocess.run(spoil.format(west=box.west), shell=True, check=True)
    file = tmp_path / "plan.yaml"
    file.write_text(yaml.safe_dump(box.plan()))
    done = espbench("run", str(file), "--out", str(tmp_path / "runs"))
    assert done.returncode in (1, 2)
    assert "a0" in done.stderr
    assert named in done.stderr
    assert "Traceback" not in done.stderr
