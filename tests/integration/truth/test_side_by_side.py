# SPDX-License-Identifier: Apache-2.0
"""`espbench run --jobs N` in virtual time: the files of one job, whoever is killed on the way, and nothing left.

The boxes are the truth DUT (campaign.truth_run); real boards side by side are in boards/test_qemu_e500.py.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from campaign import truth
from campaign.observed import Observed

from espbench.this_machine.processes import descendants, start_time
from support.boxes import leftovers

pytestmark = [pytest.mark.virtual_time, pytest.mark.needs("generator", "gcc")]

# It keeps many frames before it loses one, so that searches take many trials and later sizes begin with a guess.
DEEP = {"service_ns": 100_000, "buffer": 3000}
PATIENCE_S = 300.0


def content() -> dict[str, Any]:
    tests = truth.plan(throughput={"resolution": "4%", "loss_goals": [0]})["tests"]
    return truth.plan() | {
        "frame_sizes": [64, 256, 512, 1024],
        "directions": ["one-way", "both-ways"],
        "tests": [*tests, {"latency": {"trial": "1s", "repeats": 2, "settle": "0s", "learning": "0s"}}],
    }


def started(folder: Path, *options: str | Path) -> Observed:
    return truth.start(folder, *options, known=DEEP)


def ended(run: Observed) -> Path:
    assert run.ended(PATIENCE_S) == 0, run.said
    assert run.directory is not None
    return run.directory


def files(directory: Path) -> dict[str, Any]:
    """What must not depend on the number of jobs; of trials all but what depends on the host."""
    found: dict[str, Any] = {
        name: (directory / name).read_bytes() for name in ("results.csv", "results.json", "findings.csv")
    }
    trials = [json.loads(line) for line in (directory / "trials.jsonl").read_text().splitlines()]
    found["trials"] = [json.dumps({k: v for k, v in trial.items() if k != "host"}) for trial in trials]
    manifest = json.loads((directory / "manifest.json").read_text())
    found["manifest"] = [
        (k, v) for k, v in manifest.items() if k not in ("started", "host", "resumed", "plan_path")
    ]
    return found


@pytest.fixture(scope="module")
def one_job(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What one case after the other comes to."""
    folder = tmp_path_factory.mktemp("one")
    with started(folder, truth.written(folder, content()), "--out", folder / "runs", "--jobs", "1") as run:
        found = files(ended(run))
    assert len(dict(found["manifest"])["search_hints"]) == 4  # the third and fourth size of each direction
    return found


def begun(folder: Path, jobs: int) -> Observed:
    """A run that is under way: several workers have each a trial on disk."""
    run = started(folder, truth.written(folder, content()), "--out", folder / "runs", "--jobs", str(jobs))
    until(run, lambda: len(cases_begun(run)) >= 2)
    return run


def cases_begun(run: Observed) -> set[str]:
    return {json.loads(line)["case"] for line in run.log.splitlines()}


def until(run: Observed, condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert run.process.poll() is None, run.said
        assert time.monotonic() < deadline, run.said
        time.sleep(0.02)


def workers(run: Observed) -> dict[int, str]:
    """Its worker processes, each with what its journal is called."""
    found = {}
    for pid in descendants(run.process.pid):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if b"campaign.truth_worker" in words:
            found[pid] = words[-2].decode()
    return found


def nothing_left(run: Observed, ids: dict[int, str]) -> None:
    """No process, and of no worker a journal, a file, or a link in memory."""
    assert run.left() == []
    for pid, run_id in ids.items():
        assert start_time(pid) is None
        assert leftovers(run_id) == set()


@pytest.mark.parametrize("jobs", [2, 4])
def test_several_jobs_leave_the_files_of_one(one_job: dict[str, Any], tmp_path: Path, jobs: int) -> None:
    with begun(tmp_path, jobs) as run:
        ids = workers(run)
        assert 2 <= len(ids) <= jobs
        run.look()
        assert files(ended(run)) == one_job
        nothing_left(run, ids)


def test_a_killed_worker_is_named_and_its_case_goes_on(one_job: dict[str, Any], tmp_path: Path) -> None:
    """With those of its trials that are on disk."""
    with begun(tmp_path, 2) as run:
        run.look()
        ids = workers(run)
        for pid in ids:
            os.kill(pid, signal.SIGKILL)
        until(run, lambda: run.said.count("begun again") == 2)
        ids |= workers(run)
        assert files(ended(run)) == one_job
        nothing_left(run, ids)
    for pid in list(ids)[:2]:
        assert f"its worker, process {pid}, ended by SIGKILL" in run.said


@pytest.mark.parametrize("jobs", [1, 3])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_ended_driver_leaves_nothing_and_loses_nothing(
    one_job: dict[str, Any], tmp_path: Path, number: signal.Signals, jobs: int
) -> None:
    """Neither by Ctrl-C nor by SIGKILL; resumed with another number of jobs it ends as one that nobody disturbed."""
    with begun(tmp_path, 2) as run:
        run.look()
        ids = workers(run)
        os.kill(run.process.pid, number)
        assert run.ended() == (130 if number == signal.SIGINT else -number)
        nothing_left(run, ids)
        before = run.log
        assert run.directory is not None
    if number == signal.SIGINT:
        assert f"go on with: espbench run --resume {run.directory}" in run.said
    with started(tmp_path, "--resume", run.directory, "--jobs", str(jobs)) as again:
        assert files(ended(again)) == one_job
    after = again.log.splitlines()
    assert set(before.splitlines()) <= set(after)
