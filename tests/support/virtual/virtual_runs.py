# SPDX-License-Identifier: Apache-2.0
"""Makes whole runs in virtual time, reads their results, and keeps the host busy during a run."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from espbench.paths import cache_dir
from support.runs import Run, espbench

# The longest time of a run, also if others use the host for a while.
PATIENCE_S = 1800.0
# This program takes a CPU for some milliseconds at a time. It disturbs as often as an endless loop, but takes a third
# of the CPU time.
BURSTS = """
import random, time
while True:
    end = time.process_time() + random.uniform(0.001, 0.03)
    while time.process_time() < end:
        pass
    time.sleep(0.03)
"""


def without_the_host(trials: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the records of trials without `host`, the only key that depends on the host."""
    return [{key: value for key, value in trial.items() if key != "host"} for trial in trials]


@dataclass
class Measured:
    """A finished run."""

    directory: Path

    @property
    def trials(self) -> list[dict[str, Any]]:
        """The records in trials.jsonl; its lines must be exactly these records as JSON."""
        lines = (self.directory / "trials.jsonl").read_text().splitlines()
        trials = [json.loads(line) for line in lines]
        assert [json.dumps(trial, separators=(",", ":"), ensure_ascii=False) for trial in trials] == lines
        return trials

    @property
    def tables(self) -> dict[str, bytes]:
        """The contents of the run's tables and charts, by name."""
        files = [self.directory / name for name in ("results.csv", "results.json")]
        return {file.name: file.read_bytes() for file in (*files, *self.directory.glob("figures/*.svg"))}

    def of(self, stack: str) -> list[dict[str, Any]]:
        """Return the trials of one stack, on every DUT."""
        cases = json.loads((self.directory / "manifest.json").read_text())["cases"]
        stacks = {case["case"]: case["stack"] for case in cases}
        return [trial for trial in self.trials if stacks.get(trial["case"]) == stack]

    def of_test(self, test: str) -> list[dict[str, Any]]:
        """Return the trials of all cases of one test, by its name in the findings."""
        cases = json.loads((self.directory / "manifest.json").read_text())["cases"]
        wanted = [case["case"] for case in cases if case["test"] == test]
        return [trial for trial in self.trials if trial["case"] in wanted]


@functools.cache
def build(kit: str) -> None:
    """Build these guests (e500, x86) into the user's cache, unless an earlier test has done so."""
    command = [sys.executable, "-m", "espbench", "build", kit]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def without_rights(home: Path) -> list[str]:
    """Return a command prefix that runs a command as a user without capabilities, in an empty network namespace.

    The guests are those of the present user's cache. The test is skipped if the kernel refuses this.
    """
    nobody = ["unshare", "--user", "--map-user=65534", "--map-group=65534", "--net", "env"]
    nobody += [f"HOME={home}", f"XDG_RUNTIME_DIR={home}", f"XDG_CACHE_HOME={cache_dir().parent}"]
    if subprocess.run([*nobody, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this kernel lets nobody make a user namespace")
    return nobody


def measured(
    plan: Path, out: Path, *options: str, as_user: Sequence[str] = (), report: bool = False
) -> Measured:
    """Run a plan to its end, and return the run; as_user: words that are put before the command.

    Without `--jobs` one job measures all cases, because guests boot for each job. Without `report` none is written.
    """
    lean = [*([] if report else ["--no-report"]), *([] if "--jobs" in options else ["--jobs", "1"])]
    done = espbench("run", plan, "--out", out, *options, *lean, as_user=as_user, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    (directory,) = out.iterdir()
    return Measured(directory)


@contextlib.contextmanager
def busy_host() -> Iterator[None]:
    """Let other processes often take every CPU of this machine while the context lasts; check that they did."""
    burning = [subprocess.Popen([sys.executable, "-c", BURSTS]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
        assert all(cpu_s(process.pid) > 0.5 for process in burning)
    finally:
        for process in burning:
            process.kill()
            process.wait()


def cpu_s(pid: int) -> float:
    """Return the user CPU time of a living process (proc(5): utime), s."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    assert after_name[0] != "Z"
    return int(after_name[11]) / os.sysconf("SC_CLK_TCK")


def frames(trials: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the trials without `host`, and without the keys that name their case in a plan."""
    return [
        {key: value for key, value in trial.items() if key not in ("case", "sequence", "attempt")}
        for trial in without_the_host(trials)
    ]


def patiently(condition: Callable[[], Any]) -> None:
    """Wait until a condition is true; AssertionError after PATIENCE_S."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def seen_until_its_end(run: Run) -> list[tuple[int, int | None]]:
    """Wait for a run that may end soon; return every process of it that was seen, as (pid, start)."""
    seen: set[tuple[int, int | None]] = set()

    def ended() -> bool:
        seen.update(run.processes())
        return run.process.poll() is not None

    patiently(ended)
    return sorted(seen, key=lambda process: process[0])
