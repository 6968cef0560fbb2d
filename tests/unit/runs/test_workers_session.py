# SPDX-License-Identifier: Apache-2.0
"""The driver of cases side by side: whatever the order, whoever is lost on the way, the files are those of one job.

The workers are threads here, and their gateways a queue by arithmetic; what processes do is in test_worker_process.py.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from espbench.errors import CannotWrite, EspbenchError, UsageError
from espbench.plan import ResolvedPlan, cases, load_plan
from espbench.results import RunDirectory
from espbench.runs.workers.loop import MAXIMUM_RETRIES
from espbench.runs.workers.messages import CaseTask, Done, Failed, Learnt
from espbench.runs.workers.process import OnNews, WorkerLost
from support.plans import pair_plan, write_plan
from support.simulated.workers import Silent, Threads, begun, session

SEARCH = {"trial": "1s", "final_trial": "2s", "resolution": "2%", "maximum": "100000fps", "minimum": "100fps"}
PLAN = pair_plan(
    "mpc8548e",
    throughput=SEARCH,
    stacks=["plain", "null", "xfrm"],
    suites=["3des-sha1"],
    frame_sizes=[64, 256, 512, 1424],
) | {"repeat": 2}


@pytest.fixture(scope="module")
def resolved(tmp_path_factory: pytest.TempPathFactory) -> ResolvedPlan:
    return load_plan(write_plan(tmp_path_factory.mktemp("plan"), PLAN))


def files(directory: RunDirectory) -> dict[str, Any]:
    """Return what must not depend on how many jobs there were; of the manifest all but its time."""
    contents = {path.name: path.read_bytes() for path in directory.path.glob("[rt]*.*")}
    assert set(contents) >= {"trials.jsonl", "results.csv", "results.json"}
    manifest = RunDirectory.open(directory.path).manifest.model_dump(mode="json")
    return {
        **contents,
        "manifest": [(k, v) for k, v in manifest.items() if k not in ("started", "host", "resumed")],
    }


@pytest.fixture(scope="module")
def one_job(resolved: ResolvedPlan, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The files of a run that measures one case after the other."""
    directory = begun(resolved, tmp_path_factory.mktemp("one"))
    workers = Threads(1)
    session(resolved, directory, workers).run()
    directory.close()
    assert workers.closed
    manifest = RunDirectory.open(directory.path).manifest
    assert manifest.search_hints  # there is something that could depend on the order
    return files(directory)


@pytest.mark.parametrize(("at_once", "lose"), [(2, 0.0), (5, 0.0), (24, 0.0), (3, 0.2), (6, 0.5), (4, 1.0)])
def test_the_files_are_those_of_one_job(
    one_job: dict[str, Any], resolved: ResolvedPlan, tmp_path: Path, at_once: int, lose: float
) -> None:
    """However many there are, in whatever order they finish, and whoever is lost on the way."""
    directory = begun(resolved, tmp_path / "many")
    workers, observer = Threads(at_once, seed=at_once, lose=lose), Silent()
    session(resolved, directory, workers, observer).run()
    directory.close()
    assert 2 <= workers.most <= at_once  # on a busy machine one may end before the last one has begun
    assert files(directory) == one_job
    assert any("ended by SIGKILL; begun again" in note for note in observer.notes) == (lose > 0)
    log = (directory.path / "logs/home.log").read_text().split()
    assert len([line for line in log if line != "lost"]) == 24


def test_an_interrupted_run_goes_on_with_another_number_of_jobs(
    one_job: dict[str, Any], resolved: ResolvedPlan, tmp_path: Path
) -> None:
    """Nothing that was on disk is measured again."""
    directory = begun(resolved, tmp_path / "many")
    kept = 0

    class Stops(Silent):
        def trial_done(self, record: object) -> None:
            nonlocal kept
            kept += 1
            if kept == 60:
                raise KeyboardInterrupt

    workers = Threads(4, seed=1)
    with pytest.raises(KeyboardInterrupt):
        session(resolved, directory, workers, Stops()).run()
    directory.close()
    assert workers.closed
    again = RunDirectory.open(directory.path)
    assert sum(again.trial_counts().values()) == 60
    workers = Threads(3, seed=2)
    session(resolved, again, workers).run()
    again.close()
    assert files(again) == one_job
    assert workers.made == one_job["trials.jsonl"].count(b"\n") - 60


def test_a_worker_that_is_lost_again_and_again_costs_its_case_alone(
    one_job: dict[str, Any], resolved: ResolvedPlan, tmp_path: Path
) -> None:
    """All others are finished, the case is named, and the run can be resumed."""
    directory = begun(resolved, tmp_path / "many")
    fault = WorkerLost("0003-…: its worker, process 7, ended by SIGKILL")
    name = cases(resolved)[3].id
    with pytest.raises(EspbenchError, match=rf"ended by SIGKILL, {MAXIMUM_RETRIES + 1} times"):
        session(resolved, directory, Threads(4, faults={name: fault})).run()
    assert len({result.case for result in directory.results()}) == 23
    session(resolved, directory, Threads(2)).run()
    directory.close()
    assert files(directory) == one_job


class Leaving(Threads):
    """Workers that have these problems, each time that the driver looks."""

    def __init__(self, problems: Iterator[str]) -> None:
        self._problems = problems
        super().__init__(2)

    @property
    def problem(self) -> str:
        return next(self._problems)

    @problem.setter
    def problem(self, text: str) -> None:
        assert not text


def test_that_nobody_is_there_is_told_once_each_time(resolved: ResolvedPlan, tmp_path: Path) -> None:
    """All workers of a cluster were refused, or their machines are off; a run must not wait in silence."""
    directory, observer = begun(resolved, tmp_path / "many"), Silent()
    problems = itertools.chain(["", "no workers", "no workers", "", "no workers"], itertools.repeat(""))
    workers = Leaving(problems)
    session(resolved, directory, workers, observer).run()
    directory.close()
    assert observer.notes.count("no workers") == 2
    assert "" not in observer.notes


@pytest.mark.parametrize("error", [UsageError("another kernel"), CannotWrite("no room")])
def test_what_ends_a_run_of_one_job_ends_this_one(
    resolved: ResolvedPlan, tmp_path: Path, error: EspbenchError
) -> None:
    """It ends with the same error, and nobody is left."""
    directory = begun(resolved, tmp_path / "many")
    workers = Threads(4, faults={cases(resolved)[8].id: error})
    with pytest.raises(type(error), match=str(error)):
        session(resolved, directory, workers).run()
    directory.close()
    assert workers.closed


def test_gateways_that_are_another_build_make_another_run(resolved: ResolvedPlan, tmp_path: Path) -> None:
    """Two workers may differ, too: what they say meets in the driver."""
    directory = begun(resolved, tmp_path / "many")

    class Differs(Threads):
        def _measured(self, task: CaseTask, on_news: OnNews) -> Done | Failed:
            kernel = {"kernel": {"home": f"Linux of {task.case.frame_size}"}}
            on_news(Learnt({"contexts": {"one": kernel}}), lambda: None)
            return super()._measured(task, on_news)

    with pytest.raises(UsageError, match=r"one: kernel was Linux of 64 .* now it is Linux of 256"):
        session(resolved, directory, Differs(1)).run()
    directory.close()
