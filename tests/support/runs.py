# SPDX-License-Identifier: Apache-2.0
"""Runs espbench as a process that tests watch and disturb: its journal, its trials, its frames, its end."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from espbench.results.run_lock import writer_of
from espbench.terms import WITH_FIGURE
from espbench.this_machine.network import NETNS_DIR
from espbench.this_machine.processes import descendants, start_time
from support.gateways.boxes import GONE_S, leftovers, sh
from support.plans import write_plan

ESPBENCH = (sys.executable, "-m", "espbench")
T = TypeVar("T")
PATIENCE_S = 900.0  # only ends a hang


def espbench(
    *arguments: str | Path, as_user: Sequence[str] = (), cwd: Path | None = None, timeout: float = PATIENCE_S
) -> subprocess.CompletedProcess[str]:
    """Run an espbench command to its end; as_user: words that are put before the command."""
    return subprocess.run(
        [*as_user, *ESPBENCH, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
        cwd=cwd,
    )


def run_directory(arguments: Sequence[str | Path], pid: int, cwd: Path) -> Path | None:
    """Return the run directory of a process with these arguments, found by its lock; None if there is none yet."""
    words = list(arguments)
    if "--resume" in words:
        folders = [cwd / words[words.index("--resume") + 1]]
    else:
        out = cwd / (words[words.index("--out") + 1] if "--out" in words else "runs")
        folders = list(out.iterdir()) if out.is_dir() else []
    return next((folder for folder in folders if writer_of(folder) == pid), None)


class Run:
    """Runs `espbench run --no-report …` in the background; leaving the context ends the run if it still runs.

    terminal: the descriptor of its controlling terminal, as under a shell.
    """

    def __init__(self, folder: Path, *arguments: str | Path, terminal: int | None = None) -> None:
        self.folder = folder
        number = len(list(folder.glob("stderr*")))
        self._stderr = folder / f"stderr{number}"
        self._arguments = arguments
        with self._stderr.open("w") as errors:
            self.process = subprocess.Popen(
                [
                    *(["setsid", "--ctty"] if terminal else []),
                    *ESPBENCH,
                    "run",
                    "--no-report",
                    *map(str, arguments),
                ],
                stdin=terminal,
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )
        self.id = ""
        self._directory: Path | None = None
        self._journal = ""
        self.peak_kib: dict[str, int] = {}

    @classmethod
    def start(cls, folder: Path, plan: dict[str, Any], terminal: int | None = None) -> Run:
        """Start a run of a plan in folder/runs."""
        return cls(folder, write_plan(folder, plan), "--out", folder / "runs", terminal=terminal)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(PATIENCE_S)

    @property
    def said(self) -> str:
        """The text that the run has written to stderr."""
        return self._stderr.read_text()

    @property
    def directory(self) -> Path:
        """The run directory; waits until there is one."""
        if self._directory is None:  # determined once: another process may write to it later
            directory = self.until(lambda: run_directory(self._arguments, self.process.pid, Path.cwd()))
            assert directory is not None
            self._directory = directory
        return self._directory

    @property
    def trials(self) -> list[dict[str, Any]]:
        """The trials on disk, without an incomplete last line."""
        whole = (self.directory / "trials.jsonl").read_text().rpartition("\n")[0]
        return [json.loads(line) for line in whole.splitlines()]

    def until(self, condition: Callable[[], T]) -> T:
        """Wait until a condition is true while the run is active; return its last value."""
        deadline = time.monotonic() + PATIENCE_S
        while not (answer := condition()):
            assert self.process.poll() is None, f"it ended with {self.process.returncode}: {self.said}"
            assert time.monotonic() < deadline, f"not in {PATIENCE_S:g} s: {self.said}"
            time.sleep(0.02)
        return answer

    def look(self) -> list[dict[str, Any]]:
        """Return the journal's entries of things that the run has made; the journal is kept for after the run's end."""
        for path in Path("/run/espbench").glob("*.journal"):
            try:
                text = path.read_text()
                if text and json.loads(text.partition("\n")[0])["pid"] == self.process.pid:
                    self.id, self._journal = path.stem, text
            except FileNotFoundError:
                continue
        entries = [json.loads(line) for line in self._journal.splitlines() if line.endswith("}")]
        return [entry for entry in entries if "made" in entry]

    def pid_of(self, name: str) -> int:
        """Return the id of the last process in the journal whose name begins with `name`; wait until there is one."""

        def find() -> int:
            return next((e["pid"] for e in reversed(self.look()) if e["name"].startswith(name)), 0)

        return self.until(find)

    def processes(self) -> list[tuple[int, int | None]]:
        """Return all living processes that the run started, with their descendants, as (pid, start time)."""
        below = [pid for entry in self.look() if entry["kind"] == "process" for pid in _tree(entry["pid"])]
        return [(pid, start) for pid in below if (start := start_time(pid)) is not None]

    def in_mid_trial(self, netns: str | None = None, *, after: int = 1) -> None:
        """Wait until `after` trials are on disk, and frames of the next one are being sent.

        netns: the namespace of the tester's ports; None: the tester namespace of the run's own pair.
        """
        self.until(lambda: len(self.trials) >= after)
        self.until(lambda: bool(self.look()))
        where = netns or f"espbench-{self.id}-tester"
        self.until((NETNS_DIR / where).exists)
        before = frames_in(where)
        self.until(lambda: frames_in(where) > before + 200)

    def ended(self) -> int:
        """Wait for the end and return the exit code; `peak_kib` then has each process's peak resident memory, KiB."""
        deadline = time.monotonic() + PATIENCE_S
        while self.process.poll() is None and time.monotonic() < deadline:
            self._watch_memory()
            time.sleep(0.05)
        return self.process.wait(1)

    def _watch_memory(self) -> None:
        pids = {e["name"]: e["pid"] for e in self.look() if e["kind"] == "process"}
        for name, pid in {"controller": self.process.pid, **pids}.items():
            with contextlib.suppress(OSError):
                match = re.search(
                    r"^VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE
                )
                self.peak_kib[name] = max(int(match[1]) if match else 0, self.peak_kib.get(name, 0))

    def assert_nothing_left(self, processes: list[tuple[int, int | None]]) -> None:
        """Assert that this run left no namespace, journal, file or mount, and none of these processes.

        Killed processes get some time, because they end only when they get a CPU.
        """
        assert self.id
        assert all_gone(processes) == []
        assert leftovers(self.id) == set()


def all_gone(processes: Sequence[tuple[int, int | None]]) -> list[int]:
    """Wait up to a minute until none of these processes (pid, start time) is left; return the ids of those that are."""
    deadline = time.monotonic() + GONE_S
    while (
        left := [pid for pid, start in processes if start_time(pid) == start]
    ) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def resume(folder: Path, directory: Path) -> Run:
    """Resume a run."""
    return Run(folder, "--resume", directory)


# Exit codes of a complete run: on a host that stalls, some figures are only bounds, which gives 3.
ENDED = (0, 3)


def rows(directory: Path) -> list[dict[str, str]]:
    """Return the rows of results.csv."""
    with (directory / "results.csv").open() as file:
        return list(csv.DictReader(file))


def tables(directory: Path) -> dict[str, bytes]:
    """Return the contents of both results files, by name."""
    return {name: (directory / name).read_bytes() for name in ("results.csv", "results.json")}


def assert_complete(directory: Path) -> None:
    """Check that every case of the manifest has a row whose figure is that of its own final trial."""
    manifest = json.loads((directory / "manifest.json").read_text())
    trials = [json.loads(line) for line in (directory / "trials.jsonl").read_text().splitlines()]
    table = rows(directory)
    assert [row["case"] for row in table] == [entry["case"] for entry in manifest["cases"]]
    for row in table:
        of_case = [trial for trial in trials if trial["case"] == row["case"]]
        assert [trial["sequence"] for trial in of_case] == list(range(len(of_case)))
        assert row["status"] in WITH_FIGURE, row
        assert int(row["trials"]) == len(of_case)
        final = of_case[int(row["final_trial"])]
        assert final["phase"] == "final"
        assert final["validity"] == "VALID" or row["status"] == "LOWER_BOUND"
        least = min(final["offered_fps"], final["intended_fps"])
        assert abs(float(row["throughput_fps"]) - least) < 0.01


def assert_no_keys(directory: Path) -> None:
    """Assert that a run directory holds no key: those of AES-128-GCM and SHA-1 have 40 hexadecimal digits, PSKs 64.

    The commit of espbench and the digest of a gateway's kernel, which are public, are all else that has so many.
    """
    commit = json.loads((directory / "manifest.json").read_text())["code"].get("commit") or "no commit"
    for file in directory.rglob("*"):
        if file.is_file():
            text = re.sub(r"\bsha256 [0-9a-f]{64}\b", "", file.read_text(errors="replace")).replace(
                commit, ""
            )
            assert not re.search(r"\b([0-9a-fA-F]{40}|[0-9a-fA-F]{64})\b", text), file
            assert "PRIVATE KEY" not in text, file


def frames_in(netns: str) -> int:
    """Return the number of frames received and sent by all interfaces of a namespace."""
    links = json.loads(sh(f"ip -n {netns} -s -j link"))
    return sum(link["stats64"][way]["packets"] for link in links for way in ("rx", "tx"))


def kill(pid: int) -> None:
    """Kill one process that a run started, by SIGKILL."""
    os.kill(pid, signal.SIGKILL)


def _tree(pid: int) -> list[int]:
    return [pid, *descendants(pid)]
