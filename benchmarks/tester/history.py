#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how long `espbench history` takes for 10,000 runs: the first reading, queries, and one more run.

    .venv/bin/python benchmarks/tester/history.py [RUNS]

It also measures the size of the HTML page. The runs are of twenty plans, half of them in virtual time, with 15 cases
and two loss goals each. Each step is a process of its own; its time begins after its imports. The exit code is 1 if a
query of an existing index takes more than a second of CPU time, or if the page is too large. CPU time is judged because
the machine may have other users.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from datetime import timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from asked_number import asked_number

from espbench.over_time import History
from espbench.reporting.over_time.page import write as write_page
from support.synthetic import run as synthetic_run
from support.synthetic.series import BEGUN, Night, write

RUNS = 10_000
PAGE_RUNS = 1000
PAGE_LIMIT_BYTES = 5_000_000
PLANS = 20
QUERY_LIMIT_S = 1.0
SHAPE = synthetic_run.Shape(sizes=(64, 512, 1424), trials_per_case=2)
SCATTERS = 8  # the number of different runs of a noisy plan
_STEP = """
import time
from pathlib import Path
from espbench.over_time import History
wall, cpu = time.perf_counter(), time.process_time()
with History.open([Path({runs!r})]) as found:
    count = len(found.{asked})
print(time.perf_counter() - wall, time.process_time() - cpu, count)
"""
QUERIES = ("changes()", "changes(plan='plan-7')", "series(plan='plan-3')", "series()", "runs()")


def build(parent: Path, runs: int) -> None:
    """Make the runs as copies of a few runs with different figures; the time of this is not measured."""
    chance = random.Random(1)
    samples: dict[tuple[int, int], list[tuple[str, str]]] = {}
    with tempfile.TemporaryDirectory(dir=parent.parent) as folder:
        for plan in range(PLANS):
            is_virtual = plan % 2 == 0
            for level in (0, 1):
                for number in range(1 if is_virtual else SCATTERS):
                    factor = (1.0 + 0.1 * level) * (1.0 if is_virtual else chance.gauss(1, 0.01))
                    night = Night(
                        factor=factor, is_virtual=is_virtual, plan=f"plan-{plan}", kernel=f"6.1.{level}"
                    )
                    made = write(Path(folder), number, night, SHAPE).path
                    texts = tuple((made / name).read_text() for name in ("manifest.json", "results.json"))
                    samples.setdefault((plan, level), []).append((texts[0], texts[1]))
    for number in range(runs):
        add(parent, number, samples, runs)


def add(parent: Path, number: int, samples: dict[tuple[int, int], list[tuple[str, str]]], runs: int) -> None:
    """Add one run."""
    plan, turn = number % PLANS, number // PLANS
    level = int(turn > runs // PLANS // 2)
    manifest, results = samples[plan, level][turn * 5 % len(samples[plan, level])]
    began = BEGUN + timedelta(minutes=10 * number)
    started = f'"started": "{began.isoformat(timespec="seconds")}"'
    before, _, after = manifest.partition('"started": "')
    folder = parent / f"{began:%Y%m%dT%H%M%SZ}-plan-{plan}"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(before + started + after.partition('"')[2])
    (folder / "results.json").write_text(results)


def query(runs: Path, cache: Path, asked: str) -> tuple[float, float, int]:
    """Return wall seconds, CPU seconds, and the number of results of a query.

    asked: the call of a method of History, as Python code.
    """
    text = f"import sys; sys.path[:] = {sys.path!r}\n" + _STEP.format(runs=str(runs), asked=asked)
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True, env=environment
    )
    wall, cpu, count = done.stdout.split()
    return float(wall), float(cpu), int(count)


def page_bytes(parent: Path, cache: Path) -> int:
    """Return the size of the page of `espbench history --html` for 1,000 runs, bytes."""
    runs = parent / "thousand"
    build(runs, PAGE_RUNS)
    with History.open([runs], cache / "thousand.sqlite") as index:
        return write_page(index, parent / "out").stat().st_size


def main() -> int:
    """Print a line for each step; return the exit code: 1 if a limit is exceeded."""
    wanted = asked_number(__doc__, "runs", RUNS, "runs of the history")
    with tempfile.TemporaryDirectory(prefix="espbench-history-") as directory:
        runs, cache = Path(directory) / "runs", Path(directory) / "cache"
        cache.mkdir()
        build(runs, wanted)
        one = runs / "one"  # a run that the index does not know yet
        newest = max(path for path in runs.iterdir())
        newest.rename(Path(directory) / "one")
        wall, cpu, count = query(runs, cache, "changes()")
        size = f"{next(cache.rglob('*.sqlite')).stat().st_size / 1e6:.0f} MB"
        print(f"first reading     {wall:7.2f} s, {cpu:6.2f} s of CPU   {count:,} changes; index {size}")
        slowest = 0.0
        for asked in QUERIES:
            wall, cpu, count = query(runs, cache, asked)
            slowest = max(slowest, cpu)
            print(f"query             {wall:7.2f} s, {cpu:6.2f} s of CPU   {asked}: {count:,}")
        (Path(directory) / "one").rename(one)
        wall, cpu, _ = query(runs, cache, "changes()")
        print(f"with one run more {wall:7.2f} s, {cpu:6.2f} s of CPU")
        pages = page_bytes(Path(directory), cache)
        print(f"page of {PAGE_RUNS:,} runs  {pages / 1e6:.2f} MB")
    within = slowest <= QUERY_LIMIT_S and pages <= PAGE_LIMIT_BYTES
    print(
        "within the budget"
        if within
        else f"over: {QUERY_LIMIT_S} s a query, {PAGE_LIMIT_BYTES / 1e6} MB a page"
    )
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
