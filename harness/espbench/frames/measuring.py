# SPDX-License-Identifier: Apache-2.0
"""Measures a plan, or checks it against a base, from Python: runs `espbench run` and `check` as separate processes."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd
from yaml import YAMLError

from espbench.errors import EspbenchError, Interrupted, MachineLacks, UsageError
from espbench.frames.columns import frame
from espbench.frames.lending import Lending
from espbench.frames.run import Run, load
from espbench.results import RunDirectory
from espbench.results.run_lock import writer_of

PROGRAM = (sys.executable, "-m", "espbench")
_WHOLE = (0, 3)  # 0: each case has a figure; 3: some have a status instead
_JUDGED = (0, 3, 5)
_ERRORS: dict[int, type[EspbenchError]] = {2: UsageError, 4: MachineLacks, 130: Interrupted}
_LOOK_EVERY_S = 0.25
_MOST_LINES = 20
_CHECKED = (
    "case", "loss_goal", "load_fps", "quantity", "side", "unit", "base", "low", "high", "repeats", "now", "change",
    "share", "limit", "allowed", "word", "why",
)  # fmt: skip
_UNITS = {"instructions": "instructions/frame", "throughput": "frames/s"}


@dataclass(frozen=True)
class Progress:
    """The progress of a run: its directory, how many of its cases have answers, and how many trials were made."""

    run: Path
    cases_done: int
    cases: int
    trials: int


class Plan:
    """A plan file to be measured; it is not read before `run`."""

    def __init__(self, path: str | PathLike[str], *, seed: int | None = None) -> None:
        """path: the YAML file. seed: the seed of all random numbers in virtual time, in place of the plan's own."""
        self.path = Path(path)
        self.seed = seed

    def __repr__(self) -> str:
        return f"<espbench plan {self.path}>"

    def run(
        self,
        out: str | PathLike[str] = "runs",
        *,
        jobs: int | None = None,
        cluster: str | None = None,
        executor: Executor | None = None,
        wait: bool = False,
        on_progress: Callable[[Progress], object] | None = None,
    ) -> Run:
        """Measure the plan as `espbench run` does, and return the run. If the newest run of it in `out` is unfinished,
        continue that run.

        A run of it is one of the same file with exactly the same text and seed. It is unfinished if it was interrupted
        or has failed; of a run of an older espbench, only if some of its cases have no answer.

        jobs, cluster, wait: as the command's options. executor: in virtual time, measures the cases, `jobs` at once
        (lending.py). on_progress is called when another trial or case is on disk; an exception from it interrupts the
        run like Ctrl-C, and the run can be continued. Virtual time needs no root.

        UsageError for a mistake in the plan, or a run that cannot be continued here; MachineLacks; Interrupted;
        EspbenchError for anything else, with the command's message.
        """
        folder = Path(out)
        unfinished = _unfinished(folder, self)
        what = ["--resume", str(unfinished)] if unfinished else [str(self.path), "--out", str(folder)]
        options = [*(["--jobs", str(jobs)] if jobs else []), *(["--cluster", cluster] if cluster else [])]
        options += ["--wait"] if wait else []
        options += [] if unfinished or self.seed is None else ["--seed", str(self.seed)]
        before = set() if unfinished else _folders(folder)
        argv = ["run", "--no-report", *what, *options]
        with (
            Lending(executor) as lending,
            _started([*argv, *lending.options], lending.passed) as command,
        ):
            lending.begin()
            watch = _Watch(command.process.pid, folder, before, unfinished)
            while command.process.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    command.process.wait(_LOOK_EVERY_S)
                if on_progress is not None and (progress := watch.changed()):
                    on_progress(progress)
            command.finish(_WHOLE)
            if on_progress is not None and (progress := watch.changed()):
                on_progress(progress)
            return load(Path(command.said.strip().splitlines()[-1]).parent)


def check(
    plan: str | PathLike[str],
    against: str | PathLike[str],
    *,
    limit: Sequence[str] = (),
    allow_different: Sequence[str] = (),
    out: str | PathLike[str] = "runs",
    jobs: int | None = None,
    wait: bool = False,
) -> pd.DataFrame:
    """Check a plan against a base as `espbench check` does: one row per figure, whose `word` is the verdict.

    against: a run directory, a file of `espbench baseline`, or the reference of the plan's compare. limit:
    `instructions=0.1%` and the like; allow_different: conditions that may differ. `base`, `low`, `high`, `now`,
    `change` and `allowed` are in the `unit` of their row.

    `attrs`: verdict (`passed`, `not judged`, `regressed`), exit_code, run, base, problems (what could not be judged,
    and why), notes, units. Errors as for `Plan.run`.
    """
    options = [f"--limit={text}" for text in limit] + [
        f"--allow-different={text}" for text in allow_different
    ]
    options += [*(["--jobs", str(jobs)] if jobs else []), *(["--wait"] if wait else [])]
    with tempfile.TemporaryDirectory(prefix="espbench-") as folder:
        file = Path(folder) / "verdict.json"
        argv = [
            "check",
            str(plan),
            "--against",
            str(against),
            "--out",
            str(out),
            "--json",
            str(file),
            *options,
        ]
        with _started(argv) as command:
            command.process.wait()
            command.finish(_JUDGED if file.exists() else ())
        answer = json.loads(file.read_text(encoding="utf-8"))
    table = frame((_row(row) for row in answer["rows"]), _CHECKED)
    table.attrs |= {key: answer[key] for key in ("verdict", "exit_code", "run", "base", "problems", "notes")}
    return table


def _row(row: dict[str, Any]) -> dict[str, Any]:
    goal = row["goal"]
    return {
        **row,
        "loss_goal": goal,
        "unit": "ratio" if goal is None else _UNITS.get(row["quantity"], "ratio"),
    }


@dataclass
class _Command:
    """A command of espbench that was started; said: what it wrote to stdout."""

    process: subprocess.Popen[str]
    stdout: Path
    stderr: Path

    @property
    def said(self) -> str:
        return self.stdout.read_text(encoding="utf-8", errors="replace")

    def finish(self, good: Sequence[int]) -> None:
        """Raise the error of its exit code, with its last messages, unless the code is one of `good`."""
        code = self.process.returncode
        if code not in good:
            lines = self.stderr.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            words = (
                "\n".join(lines[-_MOST_LINES:]) or f"espbench ended with exit code {code}, and said nothing"
            )
            raise _ERRORS.get(code, EspbenchError)(words)


@contextmanager
def _started(arguments: Sequence[str], passed: Sequence[int] = ()) -> Iterator[_Command]:
    """Yield a started command; if it still runs at the end of the block, terminate it and wait until it has ended.

    passed: file descriptors that it inherits.
    """
    with tempfile.TemporaryDirectory(prefix="espbench-") as folder:
        files = (Path(folder) / "stdout", Path(folder) / "stderr")
        with files[0].open("w") as stdout, files[1].open("w") as stderr:
            process = subprocess.Popen(
                [*PROGRAM, *arguments], stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, text=True,
                pass_fds=passed,
            )  # fmt: skip
        try:
            yield _Command(process, *files)
        finally:
            if process.poll() is None:
                process.terminate()
            process.wait()


class _Watch:
    """Follows a run on disk, and reports its progress."""

    def __init__(self, pid: int, out: Path, before: set[Path], run: Path | None) -> None:
        self._pid = pid
        self._out = out
        self._before = before
        self._run = run
        self._inode = 0
        self._read = 0
        self._trials = 0
        self._reported: Progress | None = None

    def changed(self) -> Progress | None:
        """Return the run's progress if it has advanced since the last call; None if not, or if there is no run yet."""
        self._run = self._run or next(
            (path for path in _folders(self._out) - self._before if writer_of(path) == self._pid), None
        )
        if self._run is None:
            return None
        try:
            with (self._run / "trials.jsonl").open("rb") as log:
                inode = os.fstat(log.fileno()).st_ino
                if inode != self._inode:  # the file was replaced, with its lines in another order
                    self._inode, self._read, self._trials = inode, 0, 0
                log.seek(self._read)
                more = log.read()
            directory = RunDirectory.open(self._run)
            done = {result.case for result in directory.results()}
        except (OSError, EspbenchError):  # not written yet
            return None
        self._read += len(more)
        self._trials += more.count(b"\n")
        cases = [entry.case for entry in directory.manifest.cases]
        now = Progress(self._run, len(done & set(cases)), len(cases), self._trials)
        if now == self._reported:
            return None
        self._reported = now
        return now


def _folders(out: Path) -> set[Path]:
    return {path for path in out.iterdir() if path.is_dir()} if out.is_dir() else set()


def _unfinished(out: Path, plan: Plan) -> Path | None:
    """Return the newest run of this plan if it was not finished, or if some of its cases have no result; else None.

    A plan is its file and its text: what its relative paths name depends on the folder of the file. A run whose cases
    all have results may lack its comparison at fixed loads, and figures of boards or kernels, which are of no case.
    """
    try:
        text = plan.path.read_text(encoding="utf-8")
        if plan.seed is not None:
            from espbench.plan.reading.changing import with_value  # noqa: PLC0415  (it imports all of plan)

            text = with_value(text, "seed", plan.seed)
    except (OSError, UnicodeDecodeError, YAMLError):
        return None  # the command has the better message
    for path in sorted(_folders(out), reverse=True):
        try:
            run = RunDirectory.open(path)
            manifest = run.manifest
            if (
                run.plan_text == text
                and manifest.plan_path == str(plan.path.resolve())
                and not manifest.base_loads
            ):
                answered = {result.case for result in run.results()}
                is_answered = {entry.case for entry in manifest.cases} <= answered
                return None if is_answered and manifest.finished is not False else path
        except (OSError, EspbenchError):
            continue
    return None
