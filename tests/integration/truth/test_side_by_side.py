# SPDX-License-Identifier: Apache-2.0
"""`espbench run --jobs N` in virtual time: the files of one job, whoever is killed on the way, and nothing left.

The boxes are the truth DUT (campaign.truth_run); real boards side by side are in boards/e500/test_qemu_e500.py.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from campaign import truth
from campaign.observed import Observed

from support.virtual import side_by_side
from support.virtual.side_by_side import (
    cases_begun,
    content,
    ended,
    files,
    nothing_left,
    started,
    until,
    workers,
)

pytestmark = [pytest.mark.virtual_time, pytest.mark.needs("generator", "gcc")]


@pytest.fixture(scope="module")
def one_job(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the result of one case after the other."""
    return side_by_side.one_job(tmp_path_factory)


def begun(folder: Path) -> Observed:
    """A run that is under way: both of its workers have a trial on disk."""
    run = started(folder, truth.written(folder, content()), "--out", folder / "runs", "--jobs", "2")
    until(run, lambda: len(cases_begun(run)) >= 2)
    return run


def test_several_jobs_leave_the_files_of_one(one_job: dict[str, Any], tmp_path: Path) -> None:
    with begun(tmp_path) as run:
        ids = workers(run)
        assert len(ids) == 2
        run.look()
        assert files(ended(run)) == one_job
        nothing_left(run, ids)


@pytest.mark.slow
def test_a_killed_worker_is_named_and_its_case_goes_on(one_job: dict[str, Any], tmp_path: Path) -> None:
    """Another worker goes on with those of the case's trials that are on disk."""
    with begun(tmp_path) as run:
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


@pytest.mark.slow
@pytest.mark.parametrize(("number", "jobs"), [(signal.SIGINT, 3), (signal.SIGKILL, 1)])
def test_an_ended_driver_leaves_nothing_and_loses_nothing(
    one_job: dict[str, Any], tmp_path: Path, number: signal.Signals, jobs: int
) -> None:
    """Neither by Ctrl-C nor by SIGKILL; resumed with another number of jobs it ends as one that nobody disturbed."""
    with begun(tmp_path) as run:
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
