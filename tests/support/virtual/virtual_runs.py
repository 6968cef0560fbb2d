# SPDX-License-Identifier: Apache-2.0
"""Whole runs in virtual time: measured, read, and measured again on a host that others keep busy."""

from __future__ import annotations

import contextlib
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
from support.runs import espbench

# Enough for what the guests need of the host, also when somebody else has it for a while.
PATIENCE_S = 1800.0
# Takes a CPU for some milliseconds at a time: that comes between as often as a loop without end, and costs a third.
BURSTS = """
import random, time
while True:
    end = time.process_time() + random.uniform(0.001, 0.03)
    while time.process_time() < end:
        pass
    time.sleep(0.03)
"""


def without_the_host(trials: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Their records but for the one key under which all stands that depends on it."""
    return [{key: value for key, value in trial.items() if key != "host"} for trial in trials]


@dataclass
class Measured:
    """A finished run."""

    directory: Path

    @property
    def trials(self) -> list[dict[str, Any]]:
        """The lines of trials.jsonl, which are these records to the byte."""
        lines = (self.directory / "trials.jsonl").read_text().splitlines()
        trials = [json.loads(line) for line in lines]
        assert [json.dumps(trial, separators=(",", ":"), ensure_ascii=False) for trial in trials] == lines
        return trials

    @property
    def tables(self) -> dict[str, bytes]:
        """The run's tables and curves, as bytes."""
        files = [self.directory / name for name in ("results.csv", "results.json")]
        return {file.name: file.read_bytes() for file in (*files, *self.directory.glob("figures/*.svg"))}

    def of(self, stack: str) -> list[dict[str, Any]]:
        """The trials of one stack, on every DUT."""
        cases = json.loads((self.directory / "manifest.json").read_text())["cases"]
        stacks = {case["case"]: case["stack"] for case in cases}
        return [trial for trial in self.trials if stacks.get(trial["case"]) == stack]

    def of_test(self, test: str) -> list[dict[str, Any]]:
        """The trials of all cases of one test, by its name in the findings."""
        cases = json.loads((self.directory / "manifest.json").read_text())["cases"]
        wanted = [case["case"] for case in cases if case["test"] == test]
        return [trial for trial in self.trials if trial["case"] in wanted]


def build(kit: str) -> None:
    """Have these guests (e500, x86) in the user's cache: the first test that needs them builds them."""
    command = [sys.executable, "-m", "espbench", "build", kit]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def without_rights(home: Path) -> list[str]:
    """Return what, put before a command, makes its user one without any capability, and without an interface.

    The guests are those of the present user's cache. The test is skipped where the kernel refuses this.
    """
    nobody = ["unshare", "--user", "--map-user=65534", "--map-group=65534", "--net", "env"]
    nobody += [f"HOME={home}", f"XDG_RUNTIME_DIR={home}", f"XDG_CACHE_HOME={cache_dir().parent}"]
    if subprocess.run([*nobody, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this kernel lets nobody make a user namespace")
    return nobody


def measured(plan: Path, out: Path, *options: str, as_user: Sequence[str] = ()) -> Measured:
    """Run a plan to its end; `as_user` is put before the command."""
    done = espbench("run", plan, "--out", out, *options, as_user=as_user, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    (directory,) = out.iterdir()
    return Measured(directory)


@contextlib.contextmanager
def busy_host() -> Iterator[None]:
    """Let others take every CPU of this machine meanwhile, often; check that they had each at many moments."""
    burning = [subprocess.Popen([sys.executable, "-c", BURSTS]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
        assert all(cpu_s(process.pid) > 0.5 for process in burning)
    finally:
        for process in burning:
            process.kill()
            process.wait()


def cpu_s(pid: int) -> float:
    """The CPU time of a process that lives (proc(5): utime)."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    assert after_name[0] != "Z"
    return int(after_name[11]) / os.sysconf("SC_CLK_TCK")


def frames(trials: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the trials without what says which case of a plan they belong to."""
    return [
        {key: value for key, value in trial.items() if key not in ("case", "sequence", "attempt")}
        for trial in without_the_host(trials)
    ]


def patiently(condition: Callable[[], Any]) -> None:
    """Wait until it is so."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
