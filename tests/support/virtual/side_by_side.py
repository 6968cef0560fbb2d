# SPDX-License-Identifier: Apache-2.0
"""Starts runs of the truth DUT whose cases are measured in parallel, and checks their files and leftovers."""

from __future__ import annotations

import fcntl
import json
import os
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from campaign import truth
from campaign.observed import Observed, tables

from espbench.this_machine.processes import descendants, parent, start_time
from support.gateways.boxes import leftovers

# This DUT stores many frames before it loses one, so that searches take many trials, and later sizes have a warm start.
DEEP = {"service_ns": 100_000, "buffer": 3000}
PATIENCE_S = 900.0  # only ends a hang


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
    """Return the contents of a run that must not depend on the number of jobs; trials without `host`."""
    compared: dict[str, Any] = {**tables(directory)}
    assert {"results.csv", "results.json"} <= set(compared)
    trials = [json.loads(line) for line in (directory / "trials.jsonl").read_text().splitlines()]
    compared["trials"] = [json.dumps({k: v for k, v in trial.items() if k != "host"}) for trial in trials]
    manifest = json.loads((directory / "manifest.json").read_text())
    compared["manifest"] = [
        (k, v) for k, v in manifest.items() if k not in ("started", "host", "resumed", "plan_path")
    ]
    return compared


def one_job(factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the files of a run with one job; the run is made once for all workers of pytest-xdist."""
    folder = factory.getbasetemp()
    folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    kept = folder / "one-job"
    with (folder / "one-job.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            kept.write_bytes(pickle.dumps(_one_job(factory.mktemp("one"))))
    compared: dict[str, Any] = pickle.loads(kept.read_bytes())
    return compared


def _one_job(folder: Path) -> dict[str, Any]:
    with started(folder, truth.written(folder, content()), "--out", folder / "runs", "--jobs", "1") as run:
        compared: dict[str, Any] = files(ended(run))
    assert len(dict(compared["manifest"])["search_hints"]) == 4  # the third and fourth size of each direction
    return compared


def until(run: Observed, condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert run.process.poll() is None, run.said
        assert time.monotonic() < deadline, run.said
        time.sleep(0.02)


def cases_begun(run: Observed) -> set[str]:
    """Return the cases that have a trial on disk."""
    return {json.loads(line)["case"] for line in run.log.rpartition(b"\n")[0].splitlines()}


def workers(run: Observed) -> dict[int, str]:
    """Return the worker processes of a run: process id → name of its journal.

    Only children of the run's own process count, because a process that a worker has just started still has the
    worker's command line.
    """
    by_pid = {}
    for pid in descendants(run.process.pid):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue  # the process has ended meanwhile
        if b"campaign.truth_worker" in words and parent(pid) == run.process.pid:
            by_pid[pid] = words[-2].decode()
    return by_pid


def nothing_left(run: Observed, ids: dict[int, str]) -> None:
    """Assert that no process of a run is left, and no journal, file or link in memory of its workers."""
    assert run.left() == []
    deadline = time.monotonic() + PATIENCE_S
    for pid, run_id in ids.items():
        while start_time(pid) is not None:
            assert time.monotonic() < deadline, f"worker {pid} lives"
            time.sleep(0.02)
        assert leftovers(run_id) == set()
