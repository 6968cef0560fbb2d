# SPDX-License-Identifier: Apache-2.0
"""espbench against boxes whose truth is known: it finds that truth, or says that it cannot."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from espbench.terms import WITH_FIGURE
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


def run_plan(plan: dict[str, Any], folder: Path, *options: str) -> tuple[Path, list[dict[str, str]], int]:
    """Run a plan; its run directory, the rows of results.csv, the exit code (0 or 3)."""
    file = folder / "plan.yaml"
    file.write_text(yaml.safe_dump(plan))
    done = espbench("run", *options, str(file), "--out", str(folder / "runs"))
    assert done.returncode in (0, 3), done.stderr
    (run,) = (folder / "runs").iterdir()
    with (run / "results.csv").open() as table:
        rows = list(csv.DictReader(table))
    at_maximum = sum("at the search's maximum" in row["warnings"] for row in rows)
    assert (f"at the search's maximum ({at_maximum} result" in done.stderr) == bool(at_maximum), done.stderr
    require_settled(rows)
    return run, rows, done.returncode


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
    _, rows, _ = run_plan(plan, tmp_path, "--no-report")
    assert [int(row["frame_size"]) for row in rows] == sizes
    for row in rows:
        assert_found(row, rate / FRAME_BITS[int(row["frame_size"])])


@pytest.mark.slow
def test_mlrsearch_finds_the_rate_of_a_limiting_router(box: RouterBox, tmp_path: Path) -> None:
    """Its bounds and figure from real trials; one of two final trials may lose frames, and the table says so."""
    rate = 20_000_000
    box.give_own_threads(max(os.sched_getaffinity(0)))
    box.limit_rate(rate)
    settings = {
        "search": "mlr",
        "preset": "tst009",
        "trial": "500ms",
        "final_trial": "1s",
        "maximum": "30000fps",
    }
    run, rows, _ = run_plan(box.plan(frame_sizes=[512], throughput=settings), tmp_path, "--no-report")
    assert_found(rows[0], rate / FRAME_BITS[512])
    (result,) = json.loads((run / "results.json").read_text())["outcomes"]
    if result["status"] == "OK":
        assert result["lower_fps"] < result["upper_fps"] < 1.02 * result["lower_fps"]
    assert result["words"].startswith("zero-loss passes")
    assert "MLRsearch" in result["words"]
    assert not result["rfc2544"]
    assert any(
        deviation.startswith("26.1: a load passes although") for deviation in result["rfc2544_deviations"]
    )


@pytest.mark.slow
def test_a_deep_queue_does_not_raise_the_throughput(box: RouterBox, tmp_path: Path) -> None:
    """The same router with room for seconds of traffic loses nothing at twice its rate, and is not believed."""
    rate = 20_000_000
    box.limit_rate(rate, limit=20_000_000)
    plan = box.plan(frame_sizes=[512], throughput={"maximum": "10000fps", "residue": "500ms"})
    run, rows, _ = run_plan(plan, tmp_path, "--no-report")
    assert_found(rows[0], rate / FRAME_BITS[512])
    trials = [json.loads(line) for line in (run / "trials.jsonl").read_text().splitlines()]
    stored = [t for t in trials if t["validity"] == "VALID" and not t["sustained"]]
    assert any(t["lost"] == 0 for t in stored)
    assert all("stored, not forwarded" in t["reasons"][0] for t in stored)


@pytest.mark.slow
def test_a_constant_loss_fails_the_goal_it_exceeds(box: RouterBox, tmp_path: Path) -> None:
    """One frame in 200,000 is below 0.001 % and above zero."""
    box.drop_one_in(200_000)
    throughput = {
        "loss_goals": [0, "0.001%"], "minimum": "45000fps", "maximum": "50000fps", "trial": "2s",
        "final_trial": "5s", "resolution": "5%",
    }  # fmt: skip
    run, rows, _ = run_plan(box.plan(throughput=throughput), tmp_path)
    by_goal = {float(row["loss_goal"]): row for row in rows}
    assert by_goal[0.0]["status"] == "BELOW_MINIMUM"
    assert by_goal[1e-5]["status"] in WITH_FIGURE
    text = (run / "report.md").read_text()
    assert "zero-loss fails at every rate with enough frames" in text
    assert "0.001 % passes" in text


@pytest.mark.slow
def test_a_box_whose_counters_cannot_be_read_is_not_called_encrypted(box: RouterBox, tmp_path: Path) -> None:
    """External boxes: `encryption not proven` in every table."""
    run, rows, _ = run_plan(box.plan(throughput={"maximum": "5000fps"}), tmp_path)
    assert {row["encryption"] for row in rows} == {"not proven"}
    assert "at the search's maximum" in rows[0]["warnings"]
    assert "encryption not proven" in (run / "report.html").read_text()
    assert "encryption not proven" in (run / "report.md").read_text()


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
