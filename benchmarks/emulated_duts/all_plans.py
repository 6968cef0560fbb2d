#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every plan of the boards and of the network processors twice, and compares the two runs byte for byte.

Prints a row for each plan: its cases and trials, the time and the CPU time of both runs, and whether they are the same.
The exit code is 1 unless all runs are complete and the same. The CPU time is that of all processes of a run. It needs
Linux's perf, because a guest's copies end unseen by the process that started them. On two otherwise idle cores, a run
takes at least half of its CPU time. Reports are not written.

All plans take hours on a machine that others use. Name plans to run only some. Runs are kept in a folder: a complete
run is not made again, and an interrupted one continues when it is started again; its time is then marked with ~.

    .venv/bin/python benchmarks/emulated_duts/all_plans.py [PLAN…] [--state FOLDER] [--jobs N] [--once]
    espbench compare FOLDER/*/first/* --by published
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NoReturn

from espbench.this_machine.processes import descendants

CLONE = Path(__file__).resolve().parents[2]
PLANS = {
    path.stem: path
    for pattern in ("powerquicc*.yaml", "npcryptbench*.yaml")
    for path in sorted((CLONE / "plans").glob(pattern))
}
RUNS = ("first", "second")
MEASURED = (0, 3)  # exit codes of a complete run: every case has a result, or some have only a bound
# These files differ in each run: they say when and where the run was made, and by which process.
OF_THE_HOST = ("manifest.json", "logs", ".lock")


@dataclass(frozen=True)
class Took:
    """The time of a run so far.

    cpu_s: of all its processes; None without perf. exit_code: None until the run ended by itself. is_resumed: the run
    was interrupted, so that some of its trials may have been made twice, or a part of its time is missing.
    """

    wall_s: float = 0.0
    cpu_s: float | None = None
    exit_code: int | None = None
    is_resumed: bool = False

    @property
    def is_complete(self) -> bool:
        """True if every case was measured."""
        return self.exit_code in MEASURED


def main() -> int:
    """Make the missing runs and print the table; return the exit code: 0 if all are complete and the same."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("plans", nargs="*", metavar="PLAN", help=f"default: all of {', '.join(PLANS)}")
    parser.add_argument("--state", type=Path, default=CLONE / "runs" / "all-plans")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--once", action="store_true", help="make first runs only, and compare nothing")
    parser.add_argument("--table", action="store_true", help="run nothing; print the table")
    asked = parser.parse_args()
    if unknown := sorted(set(asked.plans) - set(PLANS)):
        parser.error(f"no such plan: {', '.join(unknown)}; there are {', '.join(PLANS)}")
    signal.signal(signal.SIGTERM, _interrupted)
    is_good = True
    print("| plan | cases | trials | time, s | CPU, s | second run | CPU, s | two runs |")
    print("|---|---:|---:|---:|---:|---:|---:|---|", flush=True)
    for name in asked.plans or PLANS:
        row, is_as_wanted = _plan(name, asked.state / name, asked)
        print(row, flush=True)
        is_good = is_good and is_as_wanted
    return 0 if is_good else 1


def _interrupted(*_: object) -> NoReturn:
    """End this program; a second signal is ignored, because it would interrupt the writing of the times.

    `timeout` sends a signal to the process and to its group.
    """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(128 + signal.SIGTERM)


def _plan(name: str, folder: Path, asked: argparse.Namespace) -> tuple[str, bool]:
    """Make the missing runs of a plan; return its row, and whether all runs are complete and the same."""
    runs = RUNS[:1] if asked.once else RUNS
    if not asked.table:
        for run in runs:
            _run(PLANS[name], folder / run, asked.jobs)
    took = [_took(folder / run) for run in runs]
    cells = [cell for each in took for cell in _times(each)]
    if not all(each.is_complete for each in took):
        verdict, is_good = "not complete", False
    elif asked.once:
        verdict, is_good = "one run", True
    else:
        problems = differences(*(run_directory(folder / run) for run in runs))
        verdict, is_good = "; ".join(problems) or "the same", not problems
    first = folder / RUNS[0]
    counts = _counts(run_directory(first)) if took[0].is_complete else ("–", "–")
    cells += ["–"] * (2 * len(RUNS) - len(cells))
    return f"| {' | '.join([name, *counts, *cells, verdict])} |", is_good


def _run(plan: Path, folder: Path, jobs: int) -> None:
    """Make a run of a plan, or resume it, and keep its time."""
    took = _took(folder)
    if took.is_complete:
        return
    folder.mkdir(parents=True, exist_ok=True)
    begun = sorted(folder.glob("*/manifest.json"))
    what = ["--resume", str(begun[-1].parent)] if begun else [str(plan), "--out", str(folder)]
    command = [sys.executable, "-m", "espbench", "run", *what, "--jobs", str(jobs), "--no-report"]
    counted = folder / "cpu"
    if shutil.which("perf"):
        command = ["perf", "stat", "-x,", "-e", "task-clock", "-o", str(counted), "--", *command]
    began, code = time.monotonic(), None
    with (folder / "log").open("ab") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            code = process.wait()
        finally:
            _end(process)
            _keep(folder, _sum(took, time.monotonic() - began, counted, code, is_resumed=bool(begun)))
    if code not in MEASURED:
        print(
            f"{plan.stem}: the run ended with {code}; {folder / 'log'} says why", file=sys.stderr, flush=True
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    """End an interrupted run: perf would not wait for espbench, so the signal goes to espbench, and perf ends then."""
    if process.poll() is None:
        os.kill(next(iter(descendants(process.pid)), process.pid), signal.SIGTERM)
    process.wait()


def _sum(before: Took, wall_s: float, counted: Path, code: int | None, *, is_resumed: bool) -> Took:
    """Return the time of a run so far, including its newest part."""
    cpu_s = _cpu_s(counted.read_text()) if counted.exists() else None
    return Took(
        wall_s=before.wall_s + wall_s,
        cpu_s=None if cpu_s is None else (before.cpu_s or 0.0) + cpu_s,
        exit_code=code,
        is_resumed=is_resumed,
    )


def _took(folder: Path) -> Took:
    """Return the time so far of the run in a folder."""
    kept = folder / "took.json"
    return Took(**json.loads(kept.read_text())) if kept.exists() else Took()


def _keep(folder: Path, took: Took) -> None:
    (folder / "took.json").write_text(json.dumps(asdict(took)) + "\n")


def _cpu_s(counted: str) -> float | None:
    """Return the seconds that perf counted: `638.35,msec,task-clock,…`."""
    for line in counted.splitlines():
        cells = line.split(",")
        if "task-clock" in cells:
            return float(cells[0]) / 1e3
    return None


def _times(took: Took) -> tuple[str, str]:
    """Return the two cells of a run's time and CPU time."""
    about = "~ " if took.is_resumed else ""
    return (
        f"{about}{took.wall_s:,.0f}" if took.is_complete else "–",
        f"{about}{took.cpu_s:,.0f}" if took.is_complete and took.cpu_s is not None else "–",
    )


def run_directory(folder: Path) -> Path:
    """Return the run directory in a folder of one run."""
    return sorted(folder.glob("*/manifest.json"))[-1].parent


def _counts(run: Path) -> tuple[str, str]:
    """Return the number of cases and of trials of a run."""
    cases = json.loads((run / "manifest.json").read_text())["cases"]
    return str(len(cases)), str(len(_lines(run / "trials.jsonl")))


def differences(one: Path, two: Path) -> list[str]:
    """Return the differences of two runs, file by file, except in the files and keys of the host."""
    names = sorted({str(path.relative_to(run)) for run in (one, two) for path in _files(run)})
    problems = []
    for name in names:
        if not (one / name).exists() or not (two / name).exists():
            problems.append(f"{name}: only in one run")
        elif name == "trials.jsonl":
            problems += _different_trials(_lines(one / name), _lines(two / name))
        elif (one / name).read_bytes() != (two / name).read_bytes():
            problems.append(f"{name} differs")
    return problems


def _files(run: Path) -> list[Path]:
    return [
        path
        for path in run.rglob("*")
        if path.is_file() and path.relative_to(run).parts[0] not in OF_THE_HOST
    ]


def _lines(trials: Path) -> list[str]:
    """Return the trials of a file as text, each without its key `host`."""
    records = [json.loads(line) for line in trials.read_text().splitlines()] if trials.exists() else []
    return [json.dumps({key: value for key, value in each.items() if key != "host"}) for each in records]


def _different_trials(one: Sequence[str], two: Sequence[str]) -> list[str]:
    if len(one) != len(two):
        return [f"trials.jsonl: {len(one)} and {len(two)} trials"]
    differing = sum(a != b for a, b in zip(one, two, strict=True))
    return [f"trials.jsonl: {differing} of {len(one)} trials differ"] if differing else []


if __name__ == "__main__":
    sys.exit(main())
