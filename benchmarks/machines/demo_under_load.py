#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `make demo` on a machine that others use: its plan N times quiet, and N times under each load.

    quiet     no load
    ten       one process that takes 10 % of one CPU, in bursts of 5 ms
    bursts    on each CPU a process that takes 25 % of it, in bursts of 20 ms

For each run it prints the number of results with each status, and the ratios of the figures to the quiet figures (the
medians of the quiet runs). Goals: in quiet runs, every result is OK. Under load, 8 of 9 results have a figure (OK or
LOWER_BOUND), and no figure is above the quiet one by more than the search's resolution. With three runs of each kind
or more, a figure is above if the interval of the ratio of the means is (load_effect.py). With fewer runs, it is above
if it exceeds the highest one of the quiet runs by more than the resolution. The exit code is 1 if a goal is missed, or
cannot be checked because a quiet run, a quiet figure or a result is missing.

The kinds of run alternate: quiet, ten, bursts, bursts, ten, quiet and so on. So a slow change of the machine meets all
of them.

With --interrupt each run gets SIGINT after 30 trials, about a third of the demo's, and is then resumed. It must have as
many results as a run that was not interrupted, and the goals are the same.

The loads are processes under SCHED_OTHER that end with this program. Runs are kept in a folder: an interrupted run
continues when the program is started again with the same folder, and more runs can be made later. Interrupted runs are
kept in a folder of their own.

    .venv/bin/python benchmarks/machines/demo_under_load.py [--runs 10] [--load quiet ten bursts] [--state FOLDER]
        [--plan PLAN] [--interrupt [TRIALS]]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple

import load_effect
import pandas as pd

import espbench
from espbench.errors import Interrupted
from espbench.plan import cases, load_plan
from espbench.terms import WITH_FIGURE
from espbench.this_machine.processes import tree_cpu_ns
from espbench.this_machine.registry import Registry, Surroundings, interpreter

CLONE = Path(__file__).resolve().parents[2]
# This share of a loaded run's results must have figures: 16 of the demo's 18.
WITH_FIGURES = 16 / 18
PROGRAM = (sys.executable, "-m", "espbench")
THIRD = 30  # of the demo's trials, of which quiet runs have about 90 (docs/reliability.md)
DONE = "exit.txt"
RESULT = "result"
NOTHING = pd.Series([], dtype=float, index=pd.Index([], name=RESULT))
# This program takes a share of its CPU, in bursts of its own CPU time. The periods are random, so that they do not
# coincide with any other period.
HOG = """
import random, sys, time
burst, share = float(sys.argv[1]), float(sys.argv[2])
while True:
    begun, used = time.monotonic(), time.process_time()
    while time.process_time() - used < burst:
        pass
    time.sleep(max(0.0, random.uniform(0.7, 1.3) * burst / share - (time.monotonic() - begun)))
"""


class Load(NamedTuple):
    """A load: on each of these CPUs, a process that takes a share of it, in bursts of burst_s."""

    cpus: Sequence[int]
    share: float = 0.0
    burst_s: float = 0.0


def loads() -> dict[str, Load]:
    """Return the loads by name."""
    every = sorted(os.sched_getaffinity(0))
    return {"quiet": Load([]), "ten": Load(every[:1], 0.10, 0.005), "bursts": Load(every, 0.25, 0.020)}


def main() -> None:
    """Make the missing runs, and print all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=10, help="number of runs under each load")
    parser.add_argument("--load", nargs="+", choices=list(loads()), default=list(loads()))
    parser.add_argument("--state", type=Path, help="the folder of the runs; default: a folder in runs/")
    parser.add_argument("--plan", type=Path, default=CLONE / "plans" / "quick.yaml")
    parser.add_argument(
        "--interrupt",
        type=int,
        nargs="?",
        const=THIRD,
        metavar="TRIALS",
        help="interrupt and resume each run",
    )
    asked = parser.parse_args()
    state = asked.state or CLONE / "runs" / ("demo-interrupted" if asked.interrupt else "demo-under-load")
    for number in range(1, asked.runs + 1):
        for name in asked.load if number % 2 else reversed(asked.load):
            folder = state / name / str(number)
            if not (folder / DONE).exists():
                make(folder, asked.plan, loads()[name], asked.interrupt)
    plan = load_plan(asked.plan)
    (test,) = (test.throughput for test in plan.plan.tests if test.throughput is not None)
    kept = {name: _kept(state / name) for name in loads()}
    sys.exit(0 if report(kept, test.resolution, len(cases(plan)) * len(test.loss_goals)) else 1)


def make(folder: Path, plan: Path, load: Load, interrupt: int | None = None) -> None:
    """Make one run under a load, or resume an interrupted one; interrupt: after how many trials a new run is."""
    folder.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    with hogs(load) as pids, (folder / "run.log").open("a") as log:
        command = [*PROGRAM, "run", "--no-report"]
        anew = [*command, str(plan), "--out", str(folder)]
        if interrupt and not _directories(folder):
            make_and_interrupt(anew, folder, log, interrupt)
        before = _directories(folder)
        again = [*command, "--resume", str(before[0])] if before else anew
        done = subprocess.run(again, stdout=log, stderr=log, check=False)
        took = time.monotonic() - begun
        shares = [100 * (tree_cpu_ns(pid) or 0) / 1e9 / took for pid in pids]
    if done.returncode not in (0, 3):
        words = (folder / "run.log").read_text().splitlines()[-3:]
        sys.exit(f"demo_under_load: {folder}: espbench ended with {done.returncode}: " + "\n  ".join(words))
    others = f"; others took {', '.join(f'{share:.0f} %' for share in shares)}" if shares else ""
    print(f"{folder}: {took:.0f} s, exit {done.returncode}{others}", flush=True)
    (folder / DONE).write_text(str(done.returncode))


def make_and_interrupt(command: Sequence[str], folder: Path, log: IO[str], trials: int) -> None:
    """Begin a run in a folder, and end it by SIGINT once it has this many trials."""
    with subprocess.Popen(command, stdout=log, stderr=log) as run:
        while run.poll() is None and _trials(folder) < trials:
            time.sleep(0.02)
        run.send_signal(signal.SIGINT)
    if run.returncode != Interrupted.exit_code:
        sys.exit(
            f"demo_under_load: {folder}: expected exit code {Interrupted.exit_code} after SIGINT at {trials} trials, "
            f"got {run.returncode} at {_trials(folder)}"
        )
    print(f"{folder}: interrupted after {_trials(folder)} trials", flush=True)


@contextlib.contextmanager
def hogs(load: Load) -> Iterator[list[int]]:
    """Run the processes of a load while the context lasts; yield their PIDs."""
    with Registry(secrets.token_hex(3)) as registry:
        argv = [interpreter(), "-c", HOG, str(load.burst_s), str(load.share)]
        yield [
            registry.spawn(argv, f"hog {cpu}", Surroundings(cpus=[cpu]), grace_s=0).pid for cpu in load.cpus
        ]


def report(kept: dict[str, list[pd.DataFrame]], resolution: float, results: int) -> bool:
    """Print each run's statuses and the ratios of its figures to the quiet ones; return whether all goals are met.

    results: how many results a run of the plan has.
    """
    quiet = kept["quiet"]
    wanted = bool(quiet)
    if not wanted:
        print("no quiet run: nothing can be said of a load")
    for load, runs in kept.items():
        alternating = load != "quiet" and load_effect.mean_effect(quiet, runs) is not None
        for number, run in enumerate(runs, start=1):
            wanted = _report_run((load, number), run, quiet, resolution, results, alternating) and wanted
        if alternating:
            wanted = _report_effect(load, quiet, runs, resolution) and wanted
    return wanted


def _report_run(
    title: tuple[str, int],
    run: pd.DataFrame,
    quiet: list[pd.DataFrame],
    resolution: float,
    results: int,
    alternating: bool,
) -> bool:
    """Print one run; return whether it has enough results, and no figure that is too high.

    title: the load, and the number of the run. alternating: whether there are enough runs to judge the OK figures by
    their means.
    """
    figures = pd.concat([run["throughput_fps"] for run in quiet] or [NOTHING]).groupby(RESULT)
    load, number = title
    loaded = load != "quiet"
    has_figure = run["status"].isin(WITH_FIGURE)
    ratios = run["throughput_fps"] / figures.median().reindex(run.index)
    # A figure without a quiet figure cannot be compared, and may be too high.
    alone = run.index[has_figure & ratios.isna()]
    ratios = ratios.dropna()
    above = ratios[run["throughput_fps"] > (1 + resolution) * figures.max().reindex(run.index)]
    # The means have no bounds: a bound that is too high shows here only.
    single = [name for name in above.index if not alternating or run.loc[name, "status"] != "OK"]
    count = sum(has_figure) if loaded else sum(run["status"] == "OK")
    least = WITH_FIGURES * results if loaded else results
    enough = count >= least and run.index.nunique() == len(run) == results
    counts = ", ".join(f"{count} {status}" for status, count in run["status"].value_counts().items())
    spread = (
        f"; of the quiet figure {ratios.min():.3f} to {ratios.max():.3f}, median {ratios.median():.3f}"
        if len(ratios) else ""
    )  # fmt: skip
    print(f"{load} {number}: {counts}{spread}{'' if enough else f'  EXPECTED MORE OF {results}'}")
    for name, ratio in above.items():
        print(f"    {name}: {run.loc[name, 'status']}, {ratio:.3f} of the quiet figure, above the highest")
    for name in alone:
        print(f"    {name}: {run.loc[name, 'status']}, no quiet figure")
    for name, status in run.loc[~has_figure, "status"].items():
        print(f"    {name}: {status}")
    return enough and not (loaded and (len(single) > 0 or len(alone) > 0))


def _report_effect(load: str, quiet: list[pd.DataFrame], runs: list[pd.DataFrame], resolution: float) -> bool:
    """Print the ratios of the means; return whether none is above 1 by more than the resolution, beyond chance."""
    mean, each = load_effect.mean_effect(quiet, runs), load_effect.effects(quiet, runs)
    rows = {"all results, mean of each run": mean, **each} if mean else each
    print(f"{load} / quiet, means of {len(runs)} and {len(quiet)} runs:")
    for name, ratio in rows.items():
        sure = "  TOO HIGH" if ratio.low > 1 + resolution else ""
        print(f"    {name}: {ratio.value:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]{sure}")
    return all(ratio.low <= 1 + resolution for ratio in rows.values())


def _kept(folder: Path) -> list[pd.DataFrame]:
    """Return the results of the finished runs of a load, indexed by stack, suite, frame size and loss goal as text."""
    done = sorted(folder.glob(f"*/{DONE}"), key=lambda file: int(file.parent.name))
    tables = [espbench.load(*_directories(file.parent)).results for file in done]
    return [table.set_index(table.apply(_name, axis=1).rename(RESULT)) for table in tables]


def _name(result: pd.Series) -> str:
    return "{stack} {suite} {frame_size} {loss_goal:g}".format(**result)


def _trials(folder: Path) -> int:
    """Return the number of trials of the runs in a folder."""
    return sum(log.read_bytes().count(b"\n") for log in folder.glob("*/trials.jsonl"))


def _directories(folder: Path) -> list[Path]:
    """Return the run directories in a folder: one or none."""
    return sorted(manifest.parent for manifest in folder.glob("*/manifest.json"))


if __name__ == "__main__":
    main()
