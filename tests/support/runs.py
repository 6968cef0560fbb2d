# SPDX-License-Identifier: Apache-2.0
"""espbench as a process the tests watch and disturb: its journal, its trials, its frames, its end."""

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
    """Run a command to its end; `as_user` is put before it."""
    return subprocess.run(
        [*as_user, *ESPBENCH, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
        cwd=cwd,
    )


def run_directory(arguments: Sequence[str | Path], pid: int, cwd: Path) -> Path | None:
    """Find the directory of a run that a process with these arguments makes, by its lock; None before there is one."""
    words = list(arguments)
    if "--resume" in words:
        folders = [cwd / words[words.index("--resume") + 1]]
    else:
        out = cwd / (words[words.index("--out") + 1] if "--out" in words else "runs")
        folders = list(out.iterdir()) if out.is_dir() else []
    return next((folder for folder in folders if writer_of(folder) == pid), None)


class Run:
    """`espbench run --no-report …` in the background; leaving the context ends it if it still runs.

    terminal: the descriptor of a terminal that controls it, as a shell's does.
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
        """Begin a run of a plan in folder/runs."""
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
        """The text that it has written to stderr."""
        return self._stderr.read_text()

    @property
    def directory(self) -> Path:
        """Its run directory."""
        if self._directory is None:  # once: another process may write to it later
            directory = self.until(lambda: run_directory(self._arguments, self.process.pid, Path.cwd()))
            assert directory is not None
            self._directory = directory
        return self._directory

    @property
    def trials(self) -> list[dict[str, Any]]:
        """The trials it has written; one that is being written is not among them."""
        whole = (self.directory / "trials.jsonl").read_text().rpartition("\n")[0]
        return [json.loads(line) for line in whole.splitlines()]

    def until(self, condition: Callable[[], T]) -> T:
        """Wait for something to be true while it runs; the last answer."""
        deadline = time.monotonic() + PATIENCE_S
        while not (answer := condition()):
            assert self.process.poll() is None, f"it ended with {self.process.returncode}: {self.said}"
            assert time.monotonic() < deadline, f"not in {PATIENCE_S:g} s: {self.said}"
            time.sleep(0.02)
        return answer

    def look(self) -> list[dict[str, Any]]:
        """Return what it has made so far (its journal), and remember this and its id for after its end."""
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
        """The process last made under this name."""

        def find() -> int:
            return next((e["pid"] for e in reversed(self.look()) if e["name"].startswith(name)), 0)

        return self.until(find)

    def processes(self) -> list[tuple[int, int | None]]:
        """Every process it started that lives, with all below them, as (pid, start)."""
        below = [pid for entry in self.look() if entry["kind"] == "process" for pid in _tree(entry["pid"])]
        return [(pid, start) for pid in below if (start := start_time(pid)) is not None]

    def in_mid_trial(self, netns: str | None = None, *, after: int = 1) -> None:
        """Wait until `after` trials are on disk and the frames of the next are on their way.

        netns: where the tester's ports are; None: the tester namespace of its own pair.
        """
        self.until(lambda: len(self.trials) >= after)
        self.until(lambda: bool(self.look()))
        where = netns or f"espbench-{self.id}-tester"
        self.until((NETNS_DIR / where).exists)
        before = frames_in(where)
        self.until(lambda: frames_in(where) > before + 200)

    def ended(self) -> int:
        """Its exit code, once it has ended; `peak_kib` then has the most each process was resident, KiB."""
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

        Killed processes end when they get a CPU: they are waited for.
        """
        assert self.id
        assert all_gone(processes) == []
        assert leftovers(self.id) == set()


def all_gone(processes: Sequence[tuple[int, int | None]]) -> list[int]:
    """Wait until none of these (pid, start) is left; those that outlive a minute."""
    deadline = time.monotonic() + GONE_S
    while (
        left := [pid for pid, start in processes if start_time(pid) == start]
    ) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def resume(folder: Path, directory: Path) -> Run:
    """Go on with a run."""
    return Run(folder, "--resume", directory)


# Exit codes of a run that went to its end: on a host that stalls some figures are bounds, which is code 3.
ENDED = (0, 3)


def rows(directory: Path) -> list[dict[str, str]]:
    """results.csv."""
    with (directory / "results.csv").open() as file:
        return list(csv.DictReader(file))


def tables(directory: Path) -> dict[str, bytes]:
    """The bytes of both results files."""
    return {name: (directory / name).read_bytes() for name in ("results.csv", "results.json")}


def assert_complete(directory: Path) -> None:
    """Every case of the manifest has its row with a figure, which is that of its own final trial."""
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


def frames_in(netns: str) -> int:
    """Frames received and sent by all interfaces of a namespace."""
    links = json.loads(sh(f"ip -n {netns} -s -j link"))
    return sum(link["stats64"][way]["packets"] for link in links for way in ("rx", "tx"))


def kill(pid: int) -> None:
    """SIGKILL, to one process this run started."""
    os.kill(pid, signal.SIGKILL)


def _tree(pid: int) -> list[int]:
    return [pid, *descendants(pid)]
