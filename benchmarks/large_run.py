#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long a run of 1,000 cases and 20,000 trials takes to resume, load and report, and how big it gets.

    .venv/bin/python benchmarks/large_run.py

Each step runs in a process of its own, as the commands do; RSS is that process's peak.
Exits 1 when a limit of the size budget is broken.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import espbench
from espbench.results import RunDirectory
from support.synthetic import run as synthetic_run

HTML_LIMIT_BYTES = 10_000_000
SECONDS_LIMIT = 10.0

# 5 stacks × 5 suites × 10 sizes × 2 directions × 2 IP versions = 1,000 cases, 20 figures.
SHAPE = synthetic_run.Shape(
    stacks=("xfrm", "strongswan", "libreswan", "kernel-libipsec", "xfrm-sec"),
    suites=("null-null", "3des-sha1", "aes128-sha1", "aes128gcm16", "chacha20poly1305"),
    sizes=(64, 128, 256, 390, 512, 1024, 1280, 1424, 1456, 1518),
    directions=("one-way", "both-ways"),
    ip_versions=(4, 6),
    trials_per_case=20,
)


def build(path: Path) -> str:
    """Not a step of espbench: makes the run."""
    run = synthetic_run.build(path, SHAPE)
    return f"{len(run.manifest.cases):,} cases, {len(run.outcomes()):,} outcomes"


def resume(path: Path) -> str:
    """What `--resume` does before its first trial: lock, and read every trial of every case."""
    with RunDirectory.open(path) as run:
        run.lock()
        trials = sum(len(run.trials_of(case.case)) for case in run.manifest.cases)
    return f"{trials:,} trials"


def load_frames(path: Path) -> str:
    """The results and the trials as data frames."""
    run = espbench.load(path)
    return f"{len(run.results):,} results, {len(run.trials):,} trials"


def report(path: Path) -> str:
    """All documents."""
    from espbench.reporting.report import write_report  # noqa: PLC0415

    html = write_report(RunDirectory.open(path))
    return f"HTML {html.stat().st_size / 1e6:.2f} MB"


def measured(step: Callable[[Path], str], path: Path) -> tuple[float, float, str]:
    """Seconds, peak RSS in MB and the answer of a step in a fresh process."""
    results: multiprocessing.SimpleQueue[tuple[float, float, str]] = multiprocessing.get_context(
        "spawn"
    ).SimpleQueue()
    process = multiprocessing.get_context("spawn").Process(target=_step, args=(step, path, results))
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(f"{step.__name__} failed")
    return results.get()


def _step(
    step: Callable[[Path], str], path: Path, results: multiprocessing.SimpleQueue[tuple[float, float, str]]
) -> None:
    started = time.perf_counter()
    said = step(path)
    seconds = time.perf_counter() - started
    results.put((seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, said))


def main() -> int:
    """Print a line for each step."""
    with tempfile.TemporaryDirectory(prefix="espbench-synthetic-") as directory:
        parent = Path(directory)
        print(f"built: {build(parent)}")
        (path,) = parent.iterdir()
        within = True
        for step in (resume, load_frames, report):
            seconds, rss, said = measured(step, path)
            within = within and seconds <= SECONDS_LIMIT
            print(f"{step.__name__:14} {seconds:6.2f} s  {rss:6.0f} MB RSS  {said}")
        within = within and (path / "report.html").stat().st_size <= HTML_LIMIT_BYTES
    print("within the budget" if within else f"over the budget: {SECONDS_LIMIT} s a step, HTML under 10 MB")
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
