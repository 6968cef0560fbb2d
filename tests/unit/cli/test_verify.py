# SPDX-License-Identifier: Apache-2.0
"""`espbench verify` calculates a run's results again; the run is one of the truth DUT's, kept in tests/witness."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from espbench.own_code import own_code
from espbench.results import RunDirectory
from espbench.terms import Trial
from support.command_line import in_process
from support.plans import plan_text
from support.simulated.command import PROGRAM

WITNESS = Path(__file__).parents[2] / "witness/throughput"
CASE = "0001-external-64-one-way"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A copy of the finished run."""
    copy = tmp_path / "run"
    shutil.copytree(WITNESS, copy, ignore=shutil.ignore_patterns("expected"))
    return copy


def said_of(run: Path, code: int) -> str:
    """Verify a run, which must end with this exit code and change nothing; return what was said."""
    before = {file: file.read_bytes() for file in run.rglob("*") if file.is_file()}
    done = in_process("verify", run)
    assert done.returncode == code, done.stdout + done.stderr
    assert {file: file.read_bytes() for file in run.rglob("*") if file.is_file()} == before
    return done.stdout + done.stderr


def replace_in(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def write_trials(run: Path, trials: list[Trial]) -> None:
    """Write these trials with seals that fit, as somebody could who wants to deceive."""
    (run / "trials.jsonl").unlink()
    with RunDirectory.open(run) as directory:
        directory._log.create()
        for trial in trials:
            directory.append(trial)
    (run / ".lock").unlink()


def test_results_that_follow_from_the_trials(run: Path) -> None:
    assert said_of(run, 0).splitlines()[-1] == "4 results: all follow from 14 recorded trials"


def test_a_figure_that_was_changed_is_named(run: Path) -> None:
    replace_in(run / "results.json", '"throughput_fps":10066.2', '"throughput_fps":12066.2')
    said = said_of(run, 3)
    assert f"{CASE}, loss goal 0 %: throughput_fps: recorded 12066.2, calculated 10066.2\n" in said
    assert said.endswith("not all of 4 results follow from 14 recorded trials: 1 difference\n")


def test_a_result_that_was_added_or_removed_is_named(run: Path) -> None:
    document = json.loads((run / "results.json").read_text())
    removed = document["outcomes"].pop(0)
    document["outcomes"].append(removed | {"loss_goal": 0.5})
    (run / "results.json").write_text(json.dumps(document))
    said = said_of(run, 3)
    assert f"{CASE}, loss goal 0 %: not recorded\n" in said
    assert f"{CASE}, loss goal 50 %: does not come out\n" in said


def test_a_trial_that_was_changed_is_damage(run: Path) -> None:
    replace_in(run / "trials.jsonl", '"attempt":0', '"attempt":1')
    assert "trials.jsonl: damaged: " in said_of(run, 3)


def _lost(trial: Trial) -> dict[str, Any]:
    """Return the changes that make a trial lose half of its frames."""
    half = trial.tx_frames // 2
    ways = {
        name: way.model_copy(update={"rx_frames": half, "lost": half})
        for name, way in trial.per_direction.items()
    }
    return {"rx_frames": half, "lost": half, "frame_loss_ratio": 0.5, "per_direction": ways}


def test_a_trial_that_was_changed_and_sealed_again_leads_elsewhere(run: Path) -> None:
    """The search would not have gone on as it did."""
    trials = list(RunDirectory.open(run).trials())
    final = next(n for n, trial in enumerate(trials) if trial.phase == "final")
    trials[final] = trials[final].model_copy(update=_lost(trials[final]))
    write_trials(run, trials)
    assert f"{CASE}, throughput: " in said_of(run, 3)


def test_trials_that_are_missing_are_named(run: Path) -> None:
    trials = list(RunDirectory.open(run).trials())
    write_trials(run, trials[:-1])
    assert "0002-external-512-one-way, throughput: it needs more than the 6 trials" in said_of(run, 3)


def test_cases_of_a_plan_that_was_edited_are_not_those_of_the_run(run: Path) -> None:
    replace_in(run / "plan.yaml", "- 512", "- 1024")
    assert "its cases are not those of plan.yaml" in said_of(run, 1)


def test_cases_without_a_result_are_no_difference_in_a_run_that_is_not_finished(run: Path) -> None:
    trials = list(RunDirectory.open(run).trials())
    write_trials(run, [trial for trial in trials if trial.case == CASE])
    document = json.loads((run / "results.json").read_text())
    document["outcomes"] = [one for one in document["outcomes"] if one["case"] == CASE]
    (run / "results.json").write_text(json.dumps(document))
    manifest = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps(manifest | {"finished": False}))
    assert said_of(run, 0).splitlines()[-1] == (
        "2 results: all follow from 7 recorded trials (the run is not finished)"
    )


def test_other_tests_follow_too(tmp_path: Path) -> None:
    """They start from the throughputs; the gateways are simulated."""
    plan = tmp_path / "plan.yaml"
    tests = "\n  - throughput: {loss_goals: [0], trial: 1s, final_trial: 1s, resolution: 10%}"
    tests += "\n  - latency: {trial: 1s, repeats: 2}\n  - frame_loss: {trial: 1s}"
    plan.write_text(plan_text(dut="mpc8548e", stacks="[plain, xfrm]", suites="[aes128-sha1]", tests=tests))
    made = subprocess.run(
        [*PROGRAM, "run", "--no-report", "--jobs", "2", "--out", str(tmp_path / "runs"), str(plan)],
        env=os.environ | {"PYTHONPATH": ":".join(filter(None, sys.path))}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode in (0, 3), made.stderr
    (run,) = (tmp_path / "runs").iterdir()
    assert "all follow from" in said_of(run, 0)


def test_a_run_without_results_of_trials_is_refused(run: Path) -> None:
    """It is not silently right."""
    manifest = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps(manifest | {"cases": []}))
    assert "nothing to verify" in said_of(run, 2)


def test_a_result_of_a_case_that_the_plan_has_not_follows_from_nothing(run: Path) -> None:
    document = json.loads((run / "results.json").read_text())
    document["outcomes"].append(document["outcomes"][0] | {"case": "0099-forged"})
    (run / "results.json").write_text(json.dumps(document))
    assert "0099-forged, loss goal 0 %: follows from no trial\n" in said_of(run, 3)


def test_a_result_that_is_there_twice_is_named(run: Path) -> None:
    document = json.loads((run / "results.json").read_text())
    document["outcomes"].insert(0, document["outcomes"][0] | {"throughput_fps": 99_999.0})
    (run / "results.json").write_text(json.dumps(document))
    assert f"{CASE}, loss goal 0 %: recorded 2 times\n" in said_of(run, 3)


def test_trials_at_another_load_were_not_asked_for(run: Path) -> None:
    trials = list(RunDirectory.open(run).trials())
    trials[1] = trials[1].model_copy(update={"intended_fps": trials[1].intended_fps / 2})
    write_trials(run, trials)
    assert f"{CASE}, throughput: trial 1, " in said_of(run, 3)


def test_a_run_of_an_older_format_is_refused(run: Path) -> None:
    manifest = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps(manifest | {"format": 1}))
    assert "got: format 1" in said_of(run, 2)


def test_a_table_that_was_edited_is_named(run: Path) -> None:
    """results.json and the trials are as they were."""
    expected = (WITNESS / "expected/results.csv.txt").read_text()
    (run / "results.csv").write_text(expected)
    assert "all follow from 14 recorded trials\n" in said_of(run, 0)
    replace_in(run / "results.csv", "10066.2", "12066.2")
    said = said_of(run, 3)
    assert "results.csv, line 2: throughput_fps is 12066.2, not 10066.2\n" in said
    assert "4 results: all follow from 14 recorded trials, but files say something else\n" in said


def test_rows_that_were_added_to_a_table_are_named(run: Path) -> None:
    text = (WITNESS / "expected/results.csv.txt").read_text()
    (run / "results.csv").write_text(text + text.splitlines(keepends=True)[-1])
    assert "results.csv: 5 rows, and results.json gives 4\n" in said_of(run, 3)


def made_here(run: Path) -> None:
    """Let the manifest name the code of these tests, so that reports are compared, and write the report."""
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["code"] = {"code": own_code()["code"]}
    (run / "manifest.json").write_text(json.dumps(manifest))
    assert in_process("report", run).returncode == 0


@pytest.mark.parametrize("name", ["report.md", "report.html"])
def test_a_report_that_was_edited_is_named(run: Path, name: str) -> None:
    made_here(run)
    said_of(run, 0)
    replace_in(run / name, "10,066", "12,066")
    assert f"{name}: not as `espbench report` writes it\n" in said_of(run, 3)


def test_a_column_that_was_renamed_is_named(run: Path) -> None:
    """Its cells are compared with nothing."""
    made_here(run)
    replace_in(run / "results.csv", "throughput_fps", "peak_fps")
    assert "results.csv: not as espbench writes it\n" in said_of(run, 3)


def test_reports_of_another_espbench_are_not_compared(run: Path) -> None:
    (run / "report.md").write_text("of another version\n")
    assert f"; reports are not compared; to write them again: espbench report {run}\n" in said_of(run, 0)
