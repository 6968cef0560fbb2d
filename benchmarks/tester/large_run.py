#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how long a run of 1,000 cases and 20,000 trials takes to resume, load and report, and its memory and sizes.

It also measures how long 100,000 trials of 5,000 cases take to load as a data frame.

    .venv/bin/python benchmarks/tester/large_run.py

Each step runs in a process of its own, as the commands do; RSS is that process's peak. Importing pandas is not part of
the time. The exit code is 1 if a limit is exceeded.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import espbench
from espbench.results import RunDirectory
from support.synthetic import run as synthetic_run

HTML_LIMIT_BYTES = 10_000_000
SECONDS_LIMIT = 10.0
TRIALS_CPU_LIMIT_S = 2.0  # CPU time, because the machine may have other users

# 5 stacks × 5 suites × 10 sizes × 2 directions × 2 IP versions = 1,000 cases, 20 figures.
SHAPE = synthetic_run.Shape(
    stacks=("xfrm", "strongswan", "libreswan", "kernel-libipsec", "xfrm-sec"),
    suites=("null-null", "3des-sha1", "aes128-sha1", "aes128gcm16", "chacha20poly1305"),
    sizes=(64, 128, 256, 390, 512, 1024, 1280, 1424, 1456, 1518),
    directions=("one-way", "both-ways"),
    ip_versions=(4, 6),
    trials_per_case=20,
)
MANY_TRIALS = replace(SHAPE, repeats=5)


def build(path: Path, shape: synthetic_run.Shape) -> str:
    """Make the run, and describe it; the time of this is not measured."""
    run = synthetic_run.build(path, shape, sealed=True)
    return f"{len(run.manifest.cases):,} cases, {len(run.outcomes()):,} outcomes"


def resume(path: Path) -> str:
    """Do the work of `--resume` before its first trial: lock the run, and read every trial of every case."""
    with RunDirectory.open(path) as run:
        run.lock()
        trials = sum(len(run.trials_of(case.case)) for case in run.manifest.cases)
    return f"{trials:,} trials"


def load_frames(path: Path) -> str:
    """Load the results and the trials as data frames."""
    run = espbench.load(path)
    return f"{len(run.results):,} results, {len(run.trials):,} trials"


def load_trials(path: Path) -> str:
    """Load the trials as a data frame. `load` reads the results as well, but makes no data frame of them."""
    run = espbench.load(path)
    return f"{len(run.trials):,} trials, {(path / 'trials.jsonl').stat().st_size / 1e6:.0f} MB"


def report(path: Path) -> str:
    """Write all files of a report."""
    from espbench.reporting.report import write_report  # noqa: PLC0415

    html = write_report(RunDirectory.open(path))
    return f"HTML {html.stat().st_size / 1e6:.2f} MB"


@dataclass(frozen=True)
class Cost:
    """The cost of a step in a process of its own, and its description of the result."""

    seconds: float
    cpu_s: float
    rss_mb: float
    said: str


def measured(step: Callable[[Path], str], path: Path) -> Cost:
    """Run a step in a new process, and return its cost."""
    results: multiprocessing.SimpleQueue[Cost] = multiprocessing.get_context("spawn").SimpleQueue()
    process = multiprocessing.get_context("spawn").Process(target=_step, args=(step, path, results))
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(f"{step.__name__} failed")
    return results.get()


def _step(step: Callable[[Path], str], path: Path, results: multiprocessing.SimpleQueue[Cost]) -> None:
    from espbench import frames  # noqa: F401, PLC0415  (pandas: imported once in a session)

    started, cpu_s = time.perf_counter(), time.process_time()
    said = step(path)
    seconds, cpu_s = time.perf_counter() - started, time.process_time() - cpu_s
    results.put(Cost(seconds, cpu_s, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, said))


def main() -> int:
    """Print a line for each step; return the exit code: 1 if a limit is exceeded."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    with tempfile.TemporaryDirectory(prefix="espbench-synthetic-") as directory:
        parent = Path(directory)
        path = built(parent / "large", SHAPE)
        within = [cost_of(step, path).seconds <= SECONDS_LIMIT for step in (resume, load_frames, report)]
        within.append((path / "report.html").stat().st_size <= HTML_LIMIT_BYTES)
        within.append(cost_of(load_trials, built(parent / "trials", MANY_TRIALS)).cpu_s <= TRIALS_CPU_LIMIT_S)
    budget = (
        f"{SECONDS_LIMIT:g} s a step, HTML under 10 MB, {TRIALS_CPU_LIMIT_S:g} s of CPU for 100,000 trials"
    )
    print(f"{'within' if all(within) else 'over'} the budget: {budget}")
    return 0 if all(within) else 1


def built(parent: Path, shape: synthetic_run.Shape) -> Path:
    """Make a run of this shape, and return its directory."""
    print(f"built: {build(parent, shape)}", flush=True)
    (path,) = parent.iterdir()
    return path


def cost_of(step: Callable[[Path], str], path: Path) -> Cost:
    """Measure a step, and print its line."""
    cost = measured(step, path)
    print(
        f"{step.__name__:14} {cost.seconds:6.2f} s, {cost.cpu_s:6.2f} s of CPU  {cost.rss_mb:6.0f} MB RSS  {cost.said}",
        flush=True,
    )
    return cost


if __name__ == "__main__":
    sys.exit(main())
