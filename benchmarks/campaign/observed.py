# SPDX-License-Identifier: Apache-2.0
"""Watches an espbench process from outside: its messages, the things that it made, its trials and its end."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from campaign import ROOT, announcements, checks
from espbench.this_machine.processes import descendants, start_time
from espbench.this_machine.registry import state_dir
from support.gateways.boxes import leftovers
from support.runs import run_directory

ESPBENCH = (sys.executable, "-m", "espbench")
TRUTH = (sys.executable, "-m", "campaign.truth_run")
IN_GATEWAYS = (sys.executable, "-m", "campaign.disturbed_run")
PATIENCE_S = 900.0
_GONE_S = 60.0


def environment(**more: str) -> dict[str, str]:
    """Return this process's environment, with the clone's espbench and this package in Python's path."""
    path = os.pathsep.join([str(ROOT / "harness"), str(ROOT / "benchmarks")])
    return os.environ | {"PYTHONPATH": path} | more


class Observed:
    """Runs `PROGRAM run --no-report …` in the background; leaving the context ends the run if it still runs."""

    def __init__(
        self,
        folder: Path,
        *arguments: str | Path,
        program: Sequence[str] = ESPBENCH,
        env: dict[str, str] | None = None,
        wait: bool = True,
    ) -> None:
        """wait: until no other measurement uses this machine; False: espbench refuses to run beside another one."""
        folder.mkdir(parents=True, exist_ok=True)
        number = len(list(folder.glob("stderr*")))
        self._stderr = folder / f"stderr{number}"
        self.disturbances = (
            folder.absolute() / f"disturbances{number}"
        )  # the run's own ones (announcements.py)
        with self._stderr.open("w") as errors:
            self.process = subprocess.Popen(
                [*program, "run", "--no-report", *(["--wait"] if wait else []), *map(str, arguments)],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, cwd=folder,
                env=environment(**{announcements.VARIABLE: str(self.disturbances)}, **(env or {})),
            )  # fmt: skip
        self.id = ""
        self._folder, self._arguments = folder, arguments
        self._directory: Path | None = None
        self._journal = ""
        self._seen: dict[int, int] = {}  # every process that the run started → its start time

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(_GONE_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    @property
    def said(self) -> str:
        """The text that the run has written to stderr."""
        return self._stderr.read_text(errors="replace")

    @property
    def directory(self) -> Path | None:
        """The run directory; None as long as there is none."""
        if self._directory is None:  # determined once: another process may write to it later
            self._directory = run_directory(self._arguments, self.process.pid, self._folder)
        return self._directory

    @property
    def log(self) -> bytes:
        """The content of trials.jsonl; empty as long as there is none."""
        directory = self.directory
        with contextlib.suppress(FileNotFoundError):
            return (directory / "trials.jsonl").read_bytes() if directory else b""
        return b""

    def lines(self) -> int:
        """Return the number of trials on disk."""
        return self.log.count(b"\n")

    def look(self) -> list[dict[str, Any]]:
        """Return the entries of the run's journal that are not undone.

        The journal and the run's processes are remembered for checks after its end.
        """
        for path in state_dir().glob("*.journal"):
            with contextlib.suppress(FileNotFoundError, ValueError):
                text = path.read_text()
                if text and json.loads(text.partition("\n")[0])["pid"] == self.process.pid:
                    self.id, self._journal = path.stem, text
        for pid in descendants(self.process.pid):
            if (start := start_time(pid)) is not None:
                self._seen[pid] = start
        made: dict[int, dict[str, Any]] = {}
        for line in self._journal.splitlines():
            with contextlib.suppress(ValueError):
                entry = json.loads(line)
                if "made" in entry:
                    made[entry["made"]] = entry
                made.pop(entry.get("undone"), None)
        return list(made.values())

    def pid_of(self, name: str) -> int | None:
        """Return the id of the last process in the journal whose name begins with `name`; None if it is gone."""
        for entry in reversed(self.look()):
            if entry["kind"] == "process" and entry["name"].startswith(name):
                return int(entry["pid"]) if start_time(entry["pid"]) == entry["start"] else None
        return None

    def measures(self) -> bool:
        """Return whether a program in the run's journal still runs."""
        programs = [entry for entry in self.look() if entry["kind"] == "process"]
        return any(start_time(entry["pid"]) == entry["start"] for entry in programs)

    def ended(self, patience_s: float = PATIENCE_S) -> int | None:
        """Wait for the end and return the exit code; None if the run does not end (leaving the context ends it)."""
        deadline = time.monotonic() + patience_s
        while self.process.poll() is None and time.monotonic() < deadline:
            self.look()
            time.sleep(0.05)
        return self.process.poll()

    def left(self) -> list[str]:
        """Return a fault for each thing that an ended run left behind; killed processes get some time to disappear."""
        deadline = time.monotonic() + _GONE_S
        while (living := self._living()) and time.monotonic() < deadline:
            time.sleep(0.02)
        return checks.nothing_left(leftovers(self.id) if self.id else set(), living)

    def _living(self) -> list[int]:
        return [pid for pid, start in self._seen.items() if start_time(pid) == start]


def cases_of(directory: Path) -> list[str]:
    """Return the cases of a run's manifest."""
    return [entry["case"] for entry in json.loads((directory / "manifest.json").read_text())["cases"]]


def tables(directory: Path) -> dict[str, bytes]:
    """Return the results files of a run, by name."""
    names = ("results.csv", "results.json", "findings.csv")
    return {name: (directory / name).read_bytes() for name in names if (directory / name).exists()}


def like(directory: Path, reference: Path) -> list[str]:
    """Return a fault for each difference of results and trials from those of an undisturbed run, the reference."""
    logs = [(run / "trials.jsonl").read_bytes() for run in (reference, directory)]
    return [*checks.same_tables(tables(reference), tables(directory)), *checks.same_trials(*logs)]


def whole(run: Observed, directory: Path) -> list[str]:
    """Return the faults of a run that ended with results: cases without rows, a damaged log, things left behind."""
    _, faults = checks.trials_of(run.log or (directory / "trials.jsonl").read_bytes())
    rows = checks.rows_of((directory / "results.csv").read_text())
    return [*faults, *checks.one_row_a_case(cases_of(directory), rows), *run.left()]


def clean(run_id: str) -> None:
    """Run `espbench clean` after a run that was killed; RuntimeError with its message if anything of that run stays.

    Other programs on this machine may have left things that cannot be undone now; these are no error.
    """
    done = subprocess.run(
        [*ESPBENCH, "clean"], capture_output=True, text=True, check=False, env=environment(), timeout=300
    )
    journal = state_dir() / f"{run_id}.journal"
    if (run_id and journal.exists()) or "Traceback" in done.stderr or done.returncode not in (0, 1):
        raise RuntimeError(f"espbench clean ended with {done.returncode}: {done.stderr.strip()[-500:]}")
