# SPDX-License-Identifier: Apache-2.0
"""The benchmark of the demo interrupts runs and resumes them; the gateways are simulated, in virtual time."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import demo_under_load
import pytest

import espbench

pytestmark = pytest.mark.slow

PLAN = """\
name: interrupted
topology: gateway-to-gateway
dut: mpc8548e
stacks: [plain, xfrm]
suites: [aes128-sha1]
frame_sizes: [64, 512, 1024]
directions: [one-way]
tests:
  - throughput: {loss_goals: [0, 0.001%], trial: 1s, final_trial: 1s, resolution: 10%}
"""
RESULTS = 12
# This is espbench with simulated gateways whose trials take some time, so that a run can be interrupted.
PROGRAM = """\
import sys
from espbench.cli import run
from espbench.cli.main import main
from support.simulated import command
command.put_in_place()
run.LocalWorkers = lambda at_once: command.Counting(at_once, trial_s=0.02)
sys.argv += ["--jobs", "2"]
main()
"""


@pytest.fixture(autouse=True)
def simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of the benchmark have simulated gateways."""
    monkeypatch.setenv("PYTHONPATH", ":".join(filter(None, sys.path)))
    monkeypatch.setattr(demo_under_load, "PROGRAM", (sys.executable, "-c", PROGRAM))


def _made(folder: Path, trials: int, monkeypatch: pytest.MonkeyPatch) -> int | str | None:
    """Make one quiet run that is interrupted after so many trials; return the benchmark's exit code."""
    (folder / "plan.yaml").write_text(PLAN)
    words = ["--runs", "1", "--load", "quiet", "--state", folder / "runs", "--plan", folder / "plan.yaml"]
    asked = map(str, ["demo_under_load.py", *words, "--interrupt", trials])
    monkeypatch.setattr(sys, "argv", list(asked))
    with pytest.raises(SystemExit) as ended:
        demo_under_load.main()
    return ended.value.code


def test_an_interrupted_run_has_all_results_after_it_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _made(tmp_path, 8, monkeypatch) == 0
    said = capsys.readouterr().out
    interrupted = re.search(r"interrupted after (\d+) trials", said)
    assert interrupted is not None
    (directory,) = (tmp_path / "runs" / "quiet" / "1").glob("*/manifest.json")
    run = espbench.load(directory.parent)
    assert len(run.results) == RESULTS
    assert 8 <= int(interrupted[1]) < len(run.trials)


def test_a_run_that_ends_before_it_is_interrupted_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = _made(tmp_path, 10_000, monkeypatch)
    assert isinstance(code, str)
    assert "expected exit code 130 after SIGINT at 10000 trials, got 0" in code
