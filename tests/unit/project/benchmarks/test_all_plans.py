# SPDX-License-Identifier: Apache-2.0
"""The benchmark of all plans says in what two runs differ, and keeps what an interrupted run took."""

from __future__ import annotations

import json
from pathlib import Path

import all_plans
import pytest
from all_plans import Took, differences


def _run(folder: Path, *, host: str, lost: int = 0, results: str = "figures") -> Path:
    """Write a run directory of two trials."""
    run = folder / f"run-{host}"
    (run / "logs").mkdir(parents=True)
    (run / "logs" / "home.log").write_text(host)
    (run / "manifest.json").write_text(json.dumps({"cases": ["one"], "host": host}))
    (run / ".lock").write_text(f"process of {host}")
    (run / "results.csv").write_text(results)
    trials = [{"sequence": n, "lost": lost * n, "host": {"name": host}} for n in range(2)]
    (run / "trials.jsonl").write_text("".join(json.dumps(trial) + "\n" for trial in trials))
    return run


def test_runs_on_two_hosts_are_the_same(tmp_path: Path) -> None:
    """Neither what a record says of the host counts, nor the manifest, the logs and the lock."""
    assert differences(_run(tmp_path, host="one"), _run(tmp_path, host="two")) == []


def test_a_trial_that_differs_is_counted(tmp_path: Path) -> None:
    """One lost frame in the second trial is a difference."""
    one, two = _run(tmp_path, host="one"), _run(tmp_path, host="two", lost=1)
    assert differences(one, two) == ["trials.jsonl: 1 of 2 trials differ"]


def test_a_trial_that_is_missing_is_a_difference(tmp_path: Path) -> None:
    """So is a run that made fewer trials, even if those are the same."""
    one, two = _run(tmp_path, host="one"), _run(tmp_path, host="two")
    (two / "trials.jsonl").write_text((two / "trials.jsonl").read_text().splitlines()[0] + "\n")
    assert differences(one, two) == ["trials.jsonl: 2 and 1 trials"]


def test_every_other_file_is_compared_whole(tmp_path: Path) -> None:
    """A file that only one run has is a difference, too."""
    one, two = _run(tmp_path, host="one"), _run(tmp_path, host="two", results="other figures")
    (one / "accelerator.jsonl").write_text("{}\n")
    assert differences(one, two) == ["accelerator.jsonl: only in one run", "results.csv differs"]


def test_perf_counts_in_milliseconds() -> None:
    """The seconds are read from the line of the event; a run that was killed has none."""
    said = "# started on Tue Nov 24 20:54:05 2026\n\n638.35,msec,task-clock,638347436,100.00,0.380,CPUs utilized\n"
    assert all_plans._cpu_s(said) == pytest.approx(0.63835)
    assert all_plans._cpu_s("") is None


def test_the_time_of_a_run_that_went_on_is_marked() -> None:
    """It adds up over the parts; what did not end has none yet."""
    assert all_plans._times(Took(wall_s=61.4, cpu_s=100.2, exit_code=0)) == ("61", "100")
    assert all_plans._times(Took(wall_s=61.4, cpu_s=None, exit_code=3, is_resumed=True)) == ("~ 61", "–")
    assert all_plans._times(Took(wall_s=61.4)) == ("–", "–")


def test_an_interrupted_run_goes_on_and_its_times_add_up(tmp_path: Path) -> None:
    """Perf writes nothing if it is killed; then only the time of the clock is known."""
    counted = tmp_path / "cpu"
    first = all_plans._sum(Took(), 10.0, counted, None, is_resumed=False)
    assert not first.is_complete
    counted.write_text("2000,msec,task-clock,\n")
    whole = all_plans._sum(first, 5.0, counted, 3, is_resumed=True)
    assert whole == Took(wall_s=15.0, cpu_s=2.0, exit_code=3, is_resumed=True)
    assert whole.is_complete
