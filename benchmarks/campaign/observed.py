# SPDX-License-Identifier: Apache-2.0
"""espbench as a process that is watched from outside: what it says, what it has made, its trials, its end."""

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

from campaign import ROOT, checks, told
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
    """Ours, with the clone's own espbench and this package in Python's path."""
    path = os.pathsep.join([str(ROOT / "harness"), str(ROOT / "benchmarks")])
    return os.environ | {"PYTHONPATH": path} | more


class Observed:
    """`PROGRAM run --no-report …` in the background; leaving the context ends it if it still runs."""

    def __init__(
        self,
        folder: Path,
        *arguments: str | Path,
        program: Sequence[str] = ESPBENCH,
        env: dict[str, str] | None = None,
        wait: bool = True,
    ) -> None:
        """wait: until no other measurement has this machine; else such a one is a reason to refuse."""
        folder.mkdir(parents=True, exist_ok=True)
        number = len(list(folder.glob("stderr*")))
        self._stderr = folder / f"stderr{number}"
        self.disturbances = folder.absolute() / f"disturbances{number}"  # what it does to itself (told.py)
        with self._stderr.open("w") as errors:
            self.process = subprocess.Popen(
                [*program, "run", "--no-report", *(["--wait"] if wait else []), *map(str, arguments)],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, cwd=folder,
                env=environment(**{told.VARIABLE: str(self.disturbances)}, **(env or {})),
            )  # fmt: skip
        self.id = ""
        self._folder, self._arguments = folder, arguments
        self._directory: Path | None = None
        self._journal = ""
        self._seen: dict[int, int] = {}  # every process it started → its start

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
        """The text that it has written to stderr."""
        return self._stderr.read_text(errors="replace")

    @property
    def directory(self) -> Path | None:
        """Its run directory, once there is one."""
        if self._directory is None:  # once: another process may write to it later
            self._directory = run_directory(self._arguments, self.process.pid, self._folder)
        return self._directory

    @property
    def log(self) -> bytes:
        """Its trials.jsonl; empty before there is one."""
        directory = self.directory
        with contextlib.suppress(FileNotFoundError):
            return (directory / "trials.jsonl").read_bytes() if directory else b""
        return b""

    def lines(self) -> int:
        """Trials on disk."""
        return self.log.count(b"\n")

    def look(self) -> list[dict[str, Any]]:
        """Return the entries of its journal, and remember them and the processes below it, also for after its end."""
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
        """The living process last made under this name, of those in its journal and its own children."""
        for entry in reversed(self.look()):
            if entry["kind"] == "process" and entry["name"].startswith(name):
                return int(entry["pid"]) if start_time(entry["pid"]) == entry["start"] else None
        return None

    def measures(self) -> bool:
        """Return whether a program of its journal still runs."""
        programs = [entry for entry in self.look() if entry["kind"] == "process"]
        return any(start_time(entry["pid"]) == entry["start"] for entry in programs)

    def ended(self, patience_s: float = PATIENCE_S) -> int | None:
        """Its exit code; None: it does not end (and is then killed by leaving the context)."""
        deadline = time.monotonic() + patience_s
        while self.process.poll() is None and time.monotonic() < deadline:
            self.look()
            time.sleep(0.05)
        return self.process.poll()

    def left(self) -> list[str]:
        """Faults: what is still there of a run that ended. Processes that were killed get the time to be gone."""
        deadline = time.monotonic() + _GONE_S
        while (living := self._living()) and time.monotonic() < deadline:
            time.sleep(0.02)
        return checks.nothing_left(leftovers(self.id) if self.id else set(), living)

    def _living(self) -> list[int]:
        return [pid for pid, start in self._seen.items() if start_time(pid) == start]


def cases_of(directory: Path) -> list[str]:
    """The cases of a run's manifest."""
    return [entry["case"] for entry in json.loads((directory / "manifest.json").read_text())["cases"]]


def tables(directory: Path) -> dict[str, bytes]:
    """The results files that are there."""
    names = ("results.csv", "results.json", "findings.csv")
    return {name: (directory / name).read_bytes() for name in names if (directory / name).exists()}


def like(directory: Path, reference: Path) -> list[str]:
    """Faults: what of its results and trials differs from those of the run that nobody disturbed."""
    logs = [(run / "trials.jsonl").read_bytes() for run in (reference, directory)]
    return [*checks.same_tables(tables(reference), tables(directory)), *checks.same_trials(*logs)]


def whole(run: Observed, directory: Path) -> list[str]:
    """Faults of a run that ended with its results: a case without a row, a damaged log, a thing left."""
    _, faults = checks.trials_of(run.log or (directory / "trials.jsonl").read_bytes())
    rows = checks.rows_of((directory / "results.csv").read_text())
    return [*faults, *checks.one_row_a_case(cases_of(directory), rows), *run.left()]


def clean(run_id: str) -> None:
    """`espbench clean` after a run that was killed; RuntimeError with its words if anything of that run stays.

    Other programs of this machine may have left things that cannot be undone now: that is theirs.
    """
    done = subprocess.run(
        [*ESPBENCH, "clean"], capture_output=True, text=True, check=False, env=environment(), timeout=300
    )
    journal = state_dir() / f"{run_id}.journal"
    if (run_id and journal.exists()) or "Traceback" in done.stderr or done.returncode not in (0, 1):
        raise RuntimeError(f"espbench clean ended with {done.returncode}: {done.stderr.strip()[-500:]}")
