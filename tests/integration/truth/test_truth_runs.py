# SPDX-License-Identifier: Apache-2.0
"""Whole runs on a DUT whose truth is known, in virtual time: they find that truth, or say that they cannot.

Boxes of known truth in real time are in test_known_truth.py and platforms/test_external_boxes.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from campaign import truth

from espbench.terms import WITH_FIGURE
from support.command_line import in_process
from support.runs import ENDED, rows
from support.session.unsettled import assert_found
from support.virtual.side_by_side import PATIENCE_S

pytestmark = [pytest.mark.virtual_time, pytest.mark.slow, pytest.mark.needs("generator", "gcc")]


def measured(
    folder: Path, size: int, throughput: dict[str, Any], **known: int
) -> tuple[Path, list[dict[str, str]]]:
    """Measure a DUT with these settings (truth_dut.c); return the run directory and the rows of results.csv."""
    plan = truth.plan(frame_sizes=[size], throughput=throughput)
    arguments = (truth.written(folder, plan), "--out", folder / "runs", "--jobs", "1")
    with truth.start(folder, *arguments, known=known) as run:
        assert run.ended(PATIENCE_S) in ENDED, run.said
    assert run.directory is not None
    table = rows(run.directory)
    at_maximum = sum("at the search's maximum" in row["warnings"] for row in table)
    assert (f"at the search's maximum ({at_maximum} result" in run.said) == bool(at_maximum), run.said
    return run.directory, table


def test_mlrsearch_finds_the_rate_of_a_server(tmp_path: Path) -> None:
    """Its bounds and its figure; one of two final trials may lose frames, and the table says so."""
    settings = {
        "search": "mlr", "preset": "tst009", "loss_goals": [0], "resolution": "1%", "maximum": "8000fps",
    }  # fmt: skip
    run, (row,) = measured(tmp_path, 512, settings, **truth.KNOWN)
    assert row["status"] == "OK"
    assert_found(row, truth.RATE_FPS)
    (result,) = json.loads((run / "results.json").read_text())["outcomes"]
    assert result["lower_fps"] < result["upper_fps"] < 1.02 * result["lower_fps"]
    assert result["words"].startswith("zero-loss passes")
    assert "MLRsearch" in result["words"]
    assert not result["rfc2544"]
    assert any(
        deviation.startswith("26.1: a load passes although") for deviation in result["rfc2544_deviations"]
    )


def test_a_deep_queue_does_not_raise_the_throughput(tmp_path: Path) -> None:
    """A server with room for half a second of traffic loses nothing above its rate, and is not believed."""
    settings = {"loss_goals": [0], "maximum": "10000fps", "residue": "500ms", "resolution": "1%"}
    run, (row,) = measured(tmp_path, 512, settings, service_ns=truth.SERVICE_NS, buffer=3000)
    assert row["status"] == "OK"
    assert_found(row, truth.RATE_FPS)
    trials = [json.loads(line) for line in (run / "trials.jsonl").read_text().splitlines()]
    stored = [t for t in trials if not t["sustained"]]
    assert any(t["lost"] == 0 for t in stored)
    assert all("stored, not forwarded" in t["reasons"][0] for t in stored)


def test_a_constant_loss_fails_the_goal_it_exceeds(tmp_path: Path) -> None:
    """One frame in 200,000 is below 0.001 % and above zero.

    Every table says that nobody read the counters of these boxes, and that a figure is at the search's maximum.
    """
    settings = {
        "loss_goals": [0, "0.001%"], "minimum": "45000fps", "maximum": "50000fps", "trial": "2s",
        "final_trial": "5s", "resolution": "5%",
    }  # fmt: skip
    run, table = measured(tmp_path, 64, settings, one_of=200_000)
    by_goal = {float(row["loss_goal"]): row for row in table}
    assert by_goal[0.0]["status"] == "BELOW_MINIMUM"
    assert by_goal[1e-5]["status"] in WITH_FIGURE
    assert "at the search's maximum" in by_goal[1e-5]["warnings"]
    assert {row["encryption"] for row in table} == {"not proven"}
    assert in_process("report", run).returncode == 0
    text = (run / "report.md").read_text()
    assert "zero-loss fails at every rate with enough frames" in text
    assert "0.001 % passes" in text
    assert "encryption not proven" in text
    assert "encryption not proven" in (run / "report.html").read_text()
