# SPDX-License-Identifier: Apache-2.0
"""Boxes espbench did not build, of known truth, with as little in the plan as it may have: the figures are right.

West ── a router that forwards so much and no more ── east, in three network namespaces (boxes.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from espbench.terms import line_rate_fps
from support.gateways.boxes import RouterBox
from support.plans import write_plan
from support.runs import espbench, rows
from support.session.slow import slow_but
from support.session.unsettled import assert_found, require_settled

pytestmark = pytest.mark.root

SHORT = {"trial": "300ms", "final_trial": "1s", "resolution": "2%", "warm_up": "100ms"}
VETH_BPS = 10e9  # a veth says this of itself


@pytest.fixture
def box() -> Iterator[RouterBox]:
    """A clean router, gone afterwards."""
    with RouterBox() as router:
        yield router


def measured(folder: Path, plan: dict[str, Any], *options: str) -> dict[int, dict[str, str]]:
    """Frame size → its row of results.csv. Which way its frames go is left to the generator."""
    del plan["generator"]
    done = espbench("run", *options, write_plan(folder, plan), "--out", folder / "runs")
    assert done.returncode in (0, 3), done.stderr
    (directory,) = (folder / "runs").iterdir()
    table = rows(directory)
    require_settled(table)
    return {int(row["frame_size"]): row for row in table if row["test"] == "throughput"}


@pytest.mark.parametrize("size", slow_but([512], [64, 512, 1424]))
def test_a_frame_rate_is_found_from_the_line_rate_down(box: RouterBox, tmp_path: Path, size: int) -> None:
    """No maximum: the search begins far above what the tester can offer through this box, and ends at its rate."""
    box.limit_frames(20_000)
    by_size = measured(tmp_path, box.plan(frame_sizes=[size], throughput=SHORT), "--no-report")
    assert_found(by_size[size], 20_000, 0.03)


@pytest.mark.slow
def test_a_slow_link_behind_a_deep_queue_is_found(box: RouterBox, tmp_path: Path) -> None:
    """50 Mbit/s and room for seconds: what is only stored does not count."""
    box.limit_rate(50_000_000, limit=20_000_000)
    plan = box.plan(frame_sizes=[512], throughput=SHORT | {"residue": "500ms"})
    by_size = measured(tmp_path, plan, "--no-report")
    assert_found(by_size[512], 50e6 / (8 * 508), 0.03)


@pytest.mark.slow
def test_without_line_rate_the_ports_own_is_taken(box: RouterBox, tmp_path: Path) -> None:
    """Every part of the run does without the key, the report too."""
    box.limit_frames(20_000)
    plan = box.plan(frame_sizes=[512], throughput=SHORT)
    del plan["line_rate"]
    waits = {key: plan["tests"][0]["throughput"][key] for key in ("settle", "residue", "learning", "warm_up")}
    plan["tests"] += [{"flood": waits | {"trial": "300ms", "maximum": "40000fps"}}]
    by_size = measured(tmp_path, plan)
    fps = float(by_size[512]["throughput_fps"])
    assert_found(by_size[512], 20_000, 0.03)
    assert float(by_size[512]["line_rate_pct"]) == pytest.approx(
        100 * fps / line_rate_fps(512, VETH_BPS), rel=1e-3
    )
