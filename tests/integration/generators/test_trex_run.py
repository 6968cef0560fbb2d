# SPDX-License-Identifier: Apache-2.0
"""A whole run with `generator: trex` on a server of the user's: the figure, and what is said beside it.

The server is a stand-in without a wire that forwards 3,000 frames/s.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import yaml

from support.generators.trex_server import FakeTrex
from support.plans import quick
from support.runs import espbench

pytestmark = pytest.mark.root

TRUTH_FPS = 3000.0
SERVED = {"i_own_this_network": True, "name": "trex", "topology": "external", "line_rate": "1Gbps"}


def test_a_run_on_a_server_finds_the_truth_and_says_what_was_not_measured(tmp_path: Path) -> None:
    """Within the resolution; no latency; backlog not judged; TRex's version among the tools."""
    with FakeTrex(forwards_fps=TRUTH_FPS) as server:
        host, number = server.address
        plan = SERVED | {
            "generator": {"trex": {"server": f"{host}:{number}"}},
            "ports": {
                side: {
                    "interface": f"port{n}", "address": f"10.0.{n}.2/24", "gateway": f"10.0.{n}.1",
                    "gateway_mac": f"02:00:00:00:0{n}:01",
                }
                for n, side in enumerate(("west", "east"), start=1)
            },
            "frame_sizes": [64],
            "tests": [{"throughput": quick(
                minimum="1000fps", maximum="6000fps", trial="500ms", final_trial="1s", residue="0s"
            )}],
        }  # fmt: skip
        file = tmp_path / "plan.yaml"
        file.write_text(yaml.safe_dump(plan))
        done = espbench("run", file, "--out", tmp_path / "runs")
    assert done.returncode == 0, done.stderr
    (run,) = (tmp_path / "runs").iterdir()
    with (run / "results.csv").open() as table:
        (row,) = csv.DictReader(table)
    assert row["status"] == "OK"
    assert 0.85 * TRUTH_FPS <= float(row["throughput_fps"]) <= 1.001 * TRUTH_FPS
    (outcome,) = json.loads((run / "results.json").read_text())["outcomes"]
    assert any(text.startswith("backlog not judged") for text in outcome["warnings"])
    trials = [json.loads(line) for line in (run / "trials.jsonl").read_text().splitlines()]
    for trial in trials:
        assert trial["not_measured"]
        assert trial["corrupted"] is trial["latency_us"]["p99"] is None
        assert trial["per_direction"]["west-east"]["drain_s"] is None
        assert trial["host"]["backlog_excess"] == [None]
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["tools"]["generator"].startswith("trex: TRex v3.08, net_af_packet")
    report = (run / "report.md").read_text()
    assert "backlog not judged" in report
    assert "did not check each one" in report
    assert "0 frames duplicated" not in report
