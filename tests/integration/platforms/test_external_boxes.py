# SPDX-License-Identifier: Apache-2.0
"""Boxes espbench did not build, of known truth, with as little in the plan as it may have: the figures are right.

West ── a router that forwards so much and no more ── east, in three network namespaces (boxes.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from espbench.plan import load_plan
from espbench.runs.beds import choose
from support.gateways.boxes import RouterBox
from support.plans import write_plan
from support.runs import espbench, rows
from support.session.unsettled import assert_found, require_settled

pytestmark = pytest.mark.root

# Final trials at 0.001 % are up to five times as long.
SHORT: dict[str, Any] = {
    "loss_goals": [0, 0.00001], "trial": "300ms", "final_trial": "1s", "resolution": "2%", "warm_up": "100ms",
}  # fmt: skip
WITHIN = 0.03
BOUND = 0.9  # a host that stands still too often makes a figure a lower bound, but does not lower it by more
VETH_BPS = 10e9  # a veth says this of itself


@pytest.fixture
def box() -> Iterator[RouterBox]:
    """A clean router, gone afterwards."""
    with RouterBox() as router:
        yield router


def assert_both_goals(folder: Path, plan: dict[str, Any], truth_fps: float) -> None:
    """Measure the plan's one case; assert that its figures for both loss goals are the truth."""
    done = espbench("run", "--no-report", write_plan(folder, plan), "--out", folder / "runs")
    assert done.returncode in (0, 3), done.stderr
    (directory,) = (folder / "runs").iterdir()
    found = rows(directory)
    assert len(found) == len(SHORT["loss_goals"])
    require_settled(found)
    for row in found:
        assert_found(row, truth_fps, WITHIN, bound=BOUND)


@pytest.mark.parametrize(
    "frame_size",
    [64, pytest.param(512, marks=pytest.mark.slow), pytest.param(1424, marks=pytest.mark.slow)],
)
def test_a_frame_rate_is_found_from_the_line_rate_down(
    box: RouterBox, tmp_path: Path, frame_size: int
) -> None:
    """No maximum: the search begins far above what the tester can offer through this box, and ends at its rate.

    Which way its frames go is left to the generator.
    """
    box.limit_frames(20_000)
    plan = box.plan(frame_sizes=[frame_size], throughput=SHORT)
    del plan["generator"]
    assert_both_goals(tmp_path, plan, 20_000)


@pytest.mark.slow
def test_a_slow_link_behind_a_deep_queue_is_found(box: RouterBox, tmp_path: Path) -> None:
    """50 Mbit/s and room for seconds: what is only stored does not count."""
    box.limit_rate(50_000_000, limit=20_000_000)
    plan = box.plan(frame_sizes=[512], throughput=SHORT | {"residue": "500ms"})
    assert_both_goals(tmp_path, plan, 50e6 / (8 * 508))


@pytest.mark.untimed
def test_without_line_rate_the_ports_own_is_taken(box: RouterBox, tmp_path: Path) -> None:
    """Runs without any line rate are in unit/runs/test_no_line_rate.py."""
    plan = box.plan()
    del plan["line_rate"]
    (choice,) = choose(load_plan(write_plan(tmp_path, plan)))
    assert choice.platform.line_rate_bps == VETH_BPS
