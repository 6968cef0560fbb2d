# SPDX-License-Identifier: Apache-2.0
"""The gate on emulated boards, from a run to exit codes: what did not change is the same to the last instruction."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from support.plans import pair_plan, write_plan
from support.runs import espbench
from support.virtual.e500_machine import built_by_command

pytestmark = [pytest.mark.virtual_time, pytest.mark.boards]

PATIENCE_S = 1800.0


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    """Build the guests in the user's cache; the first test that needs them does it."""
    built_by_command()


@pytest.fixture(scope="module")
def based(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a plan of two cases and the base of it, measured now."""
    folder = tmp_path_factory.mktemp("gate")
    throughput = {
        "loss_goals": [0], "minimum": "4000fps", "maximum": "120000fps", "trial": "20ms", "final_trial": "40ms",
        "warm_up": "10ms", "resolution": "40%",
    }  # fmt: skip
    plan = pair_plan(
        "mpc8548e", throughput=throughput, name="gate", stacks=["plain", "xfrm"], suites=["aes128-sha1"],
        frame_sizes=[512],
    )  # fmt: skip
    write_plan(folder, plan)
    command = ("run", folder / "gate.yaml", "--out", folder / "runs", "--no-report", "--jobs", "1")
    done = espbench(*command, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    (run,) = (folder / "runs").iterdir()
    done = espbench("baseline", run, "--out", folder / "baseline.json", timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert "its band has no width" in done.stderr
    return folder


def check(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the check with a limit of 0, so that a single instruction counts."""
    return espbench(
        "check", folder / "gate.yaml", "--against", folder / "baseline.json", "--limit", "instructions=0",
        "--out", folder / "checks", "--json", folder / "verdict.json", timeout=PATIENCE_S,
    )  # fmt: skip


def test_nothing_changed(based: Path) -> None:
    """Two gateways, a loss and a throughput of each of two cases, at loads on the edge of what they forward."""
    done = check(based)
    assert done.returncode == 0, done.stdout + done.stderr
    verdict = json.loads((based / "verdict.json").read_text())
    assert [row["word"] for row in verdict["rows"]] == ["same"] * 8
    assert {row["change"] for row in verdict["rows"] if row["side"]} == {0.0}
    assert all((row["base"] > 1000) == (row["quantity"] != "frame loss") for row in verdict["rows"])


def test_another_device_is_foreign(based: Path, tmp_path: Path) -> None:
    """Refused before anything is measured."""
    plan = (based / "gate.yaml").read_text().replace("dut: mpc8548e", "dut: mpc8544e")
    (tmp_path / "gate.yaml").write_text(plan)
    shutil.copy(based / "baseline.json", tmp_path)
    done = check(tmp_path)
    assert done.returncode == 2
    assert not (tmp_path / "checks").exists()
