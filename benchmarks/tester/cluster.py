#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the gain and the cost of measuring cases in parallel (docs/many-machines.md), in eight steps:

    .venv/bin/python benchmarks/tester/cluster.py --out DIR [STEP …]

warm-up     the time from a worker's start until it can take a task, and from a Dask worker's until it has done one
overhead    the cost of a case in addition to its trials: 200 cases whose trials take no time, on one worker
simulated   1,000 cases whose trials are waits, on 16 worker processes: the sum of the waits by the time of the run
truth       24 cases of the truth DUT in virtual time; two workers against one worker that has the same share of the
            CPUs as each of two, and against one job that may use all CPUs; their files must be the same
boards      the same with two emulated gateways (--dut, built before with `espbench build`)

dask-warm-up    the time from a Dask worker's start until it has got the parts of a guest that it lacked, for each
                kind of guest that this machine has built
dask-overhead   the same as overhead, but on a worker of a Dask cluster
dask-simulated  the same as simulated, but on 16 workers of a Dask cluster

The first three need only Python: the driver, its worker processes, the messages between them and the run directory are
those of `espbench run --jobs N`; only the gateways are simulated. `truth` needs the traffic generator and gcc. No case
waits for another one; side_by_side.py measures the idle time that such waits cause. The last three need the extra
`cluster` and openssl: scheduler and workers are started as docs/many-machines.md says, with TLS, all on this machine.

DIR keeps the results: a step that is there is printed again, and not repeated. An interrupted run is continued; its
time is then the sum of its parts. Without --out nothing is kept. The exit code is 1 if a figure misses its limit.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

sys.path += [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "tests")]

import dask_workers
from campaign import truth
from campaign.observed import ESPBENCH, TRUTH, like

from espbench.measure.validity import host
from espbench.plan import cases, load_plan
from espbench.platforms.virtual.parts.build import Kit
from espbench.platforms.virtual.parts.kits import KITS
from espbench.results import RunDirectory
from espbench.runs.workers.local import LocalWorkers, Workers, cpu_shares
from espbench.runs.workers.messages import Done, Failed, News, Task
from espbench.runs.workers.process import COMMAND, OnNews
from support.plans import pair_plan, write_plan
from support.simulated import worker_process
from support.simulated.workers import begun, session

WARM_UP_LIMIT_S = 30.0
OVERHEAD_LIMIT_S = 0.050
WORKERS, TIMES_FASTER_OF_16 = 16, 14.0
TIMES_FASTER_OF_2 = 1.8
TIMES_FASTER_THAN_ONE_JOB = 1.0  # which may use the CPUs of both workers
SIZES, DIRECTIONS = (64, 512), ("one-way", "both-ways")
SEARCH = {
    "trial": "1s", "final_trial": "2s", "resolution": "2%", "maximum": "100000fps", "minimum": "100fps",
    "warm_start": False,
}  # fmt: skip
BOARDS: dict[str, Any] = {
    "suites": ["3des-sha1", "aes128-sha1", "null-sha1"],
    "frame_sizes": [64, 512, 1424],
    "directions": list(DIRECTIONS),
    "throughput": {
        "loss_goals": [0], "trial": "25ms", "final_trial": "100ms", "resolution": "4%", "maximum": "500000fps",
        "settle": 0, "residue": "10ms", "warm_up": "10ms", "learning": "10ms",
        "warm_start": False,
    },
}  # fmt: skip
_OVERHEAD_CASES, _SIMULATED_CASES = 200, 1000
_GOOD = (0, 3)  # exit codes of a complete run
_STEP_S = 1.0


@dataclass(frozen=True)
class Figure:
    """A figure of a step. limit: the highest allowed value, or the lowest one if at_least. words: an explanation."""

    what: str
    value: float
    unit: str
    limit: float
    at_least: bool
    words: str

    @property
    def is_within(self) -> bool:
        """True if the figure is within its limit."""
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def __str__(self) -> str:
        sign = "≥" if self.at_least else "≤"
        verdict = "within" if self.is_within else "OVER"
        return f"{self.what}: {self.value:.4g} {self.unit} ({verdict}: {sign} {self.limit:g} wanted); {self.words}"


# ── a worker's start ─────────────────────────────────────────────────────────────────────────────


def warm_up(_: Path, __: argparse.Namespace) -> list[Figure]:
    """Start a worker process and, if Dask is installed, a Dask worker; return their start times."""
    process_s = max(_until_hello() for _ in range(3))
    found = [
        Figure("warm-up of a worker process", process_s, "s", WARM_UP_LIMIT_S, False, "the slowest of three")
    ]
    if importlib.util.find_spec("distributed") is None:
        print("  Dask distributed is not installed: only the worker process is measured", flush=True)
        return found
    words = "until it is registered and has said which espbench it has"
    return [
        *found,
        Figure("warm-up of a Dask worker", _until_registered(), "s", WARM_UP_LIMIT_S, False, words),
    ]


def _until_hello() -> float:
    ours, theirs = Pipe()
    began = time.monotonic()
    with ours, theirs:
        process = subprocess.Popen(
            [*COMMAND, str(theirs.fileno()), "warmup", str(os.getpid())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
        )
        theirs.close()  # so that recv ends with EOFError if the worker ends
        try:
            ours.recv()
            return time.monotonic() - began
        finally:
            process.terminate()
            process.wait()


def _until_registered() -> float:
    from distributed import Client, LocalCluster  # noqa: PLC0415  (an extra)

    from espbench.runs.workers.versions import version_here  # noqa: PLC0415

    with (
        LocalCluster(n_workers=0, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        began = time.monotonic()
        cluster.scale(1)
        client.wait_for_workers(1)
        client.run(version_here)
        return time.monotonic() - began


def dask_warm_up(_: Path, __: argparse.Namespace) -> list[Figure]:
    """Start Dask workers with empty caches; return the times until they have all parts of this machine's guests."""
    built: list[Kit[Any] | None] = [kit for kit in KITS if kit.find()]
    if not built:
        print("  this machine has built no guests: the worker gets no parts", flush=True)
    return [
        Figure(
            f"warm-up of a Dask worker that gets {kit.name if kit else 'no parts'}",
            dask_workers.warm_up_s(kit), "s", WARM_UP_LIMIT_S, False, "with TLS, from an empty cache",
        )
        for kit in built or [None]
    ]  # fmt: skip


# ── cases with simulated gateways ────────────────────────────────────────────────────────────────


class Waiting:
    """Workers whose trials are waits.

    waited_s: the sum of all waits, s. began: the time of the first message from a worker, s (monotonic clock).
    """

    def __init__(self, workers: Workers) -> None:
        self.waited_s = 0.0
        self.began: float | None = None
        self._workers = workers

    @property
    def copies(self) -> Mapping[str, str]:
        """Return the workers' copies."""
        return self._workers.copies

    @property
    def at_once(self) -> int:
        """Return the number of workers."""
        return self._workers.at_once

    @property
    def problem(self) -> str:
        """Return the workers' problem."""
        return self._workers.problem

    def submit(self, task: Task, on_news: OnNews) -> Future[Done | Failed]:
        """Have a task done, and note how long it waited."""

        def hear(news: News, kept: Callable[[], None]) -> None:
            self.began = self.began or time.monotonic()
            on_news(news, kept)

        future = self._workers.submit(task, hear)
        future.add_done_callback(self._note)
        return future

    def close(self) -> None:
        """End the processes."""
        self._workers.close()

    def _note(self, future: Future[Done | Failed]) -> None:
        done = future.result()
        assert isinstance(done, Done)
        self.waited_s += done.result


@dataclass(frozen=True)
class Simulated:
    """The result of a run of cases with simulated gateways."""

    cases: int
    trials: int
    took_s: float
    waited_s: float
    driver_cpu_s: float


def _local(count: int, trial_s: float) -> LocalWorkers:
    """Return worker processes of this machine whose trials are waits of trial_s."""
    return LocalWorkers(count, (sys.executable, "-m", worker_process.__name__, str(trial_s)))


def _simulated(count: int, workers: Workers) -> Simulated:
    """Run `count` cases. With one worker, the time begins with its first message, without the worker's start."""
    each = len(SIZES) * len(DIRECTIONS)
    labels = count // each - 1
    plan = pair_plan(
        "mpc8548e",
        throughput=SEARCH,
        stacks=["plain", *({"stack": "xfrm", "label": f"way-{n}"} for n in range(labels))],
        suites=["3des-sha1"],
        frame_sizes=list(SIZES),
        directions=list(DIRECTIONS),
    )
    with tempfile.TemporaryDirectory(prefix="espbench-cluster-") as folder:
        resolved = load_plan(write_plan(Path(folder), plan))
        assert len(cases(resolved)) == count
        directory = begun(resolved, Path(folder))
        waiting = Waiting(workers)
        alone = workers.at_once == 1
        began, cpu_s = time.monotonic(), time.process_time()
        session(resolved, directory, waiting).run()
        if alone:
            began = waiting.began or began
        took_s, cpu_s = time.monotonic() - began, time.process_time() - cpu_s
        trials = sum(directory.trial_counts().values())
        directory.close()
    return Simulated(count, trials, took_s, waiting.waited_s, cpu_s)


def overhead(_: Path, __: argparse.Namespace) -> list[Figure]:
    """Measure a run whose trials take no time."""
    return [_overhead("overhead of a case", _simulated(_OVERHEAD_CASES, _local(1, 0.0)))]


def dask_overhead(_: Path, __: argparse.Namespace) -> list[Figure]:
    """Measure the same run on a worker of a Dask cluster."""
    with dask_workers.waiting(1, 0.0) as workers:
        return [_overhead("overhead of a case through Dask", _simulated(_OVERHEAD_CASES, workers))]


def _overhead(what: str, run: Simulated) -> Figure:
    words = (
        f"{run.cases} cases with {run.trials} trials on one worker in {run.took_s:.1f} s; "
        f"{1e3 * run.driver_cpu_s / run.cases:.0f} ms of a case are CPU of the driver"
    )
    return Figure(what, run.took_s / run.cases, "s", OVERHEAD_LIMIT_S, False, words)


def simulated(_: Path, asked: argparse.Namespace) -> list[Figure]:
    """Compare 16 workers with one worker that would never wait for its driver."""
    run = _simulated(_SIMULATED_CASES, _local(WORKERS, asked.trial))
    return [_times_one(f"{WORKERS} workers", run, asked.trial)]


def dask_simulated(_: Path, asked: argparse.Namespace) -> list[Figure]:
    """Compare 16 workers of a Dask cluster with the same one worker."""
    with dask_workers.waiting(WORKERS, asked.trial) as workers:
        run = _simulated(_SIMULATED_CASES, workers)
    return [_times_one(f"{WORKERS} workers of a Dask cluster", run, asked.trial)]


def _times_one(what: str, run: Simulated, trial_s: float) -> Figure:
    words = (
        f"{run.cases} cases with {run.trials} trials of {trial_s:g} s in {run.took_s:.1f} s; "
        f"{1e3 * run.driver_cpu_s / run.cases:.0f} ms of a case are CPU of the driver"
    )
    return Figure(what, run.waited_s / run.took_s, "times one", TIMES_FASTER_OF_16, True, words)


# ── cases in virtual time ────────────────────────────────────────────────────────────────────────


def of_truth(folder: Path, _: argparse.Namespace) -> list[Figure]:
    """Measure 24 cases of the truth DUT: twelve sizes, two directions."""
    # Trials are so long that the start of the workers hardly counts.
    search = {
        "resolution": "2%", "loss_goals": [0], "warm_start": False, "trial": "30s", "final_trial": "60s",
    }  # fmt: skip
    content = truth.plan(throughput=search) | {
        "frame_sizes": [64, 128, 256, 390, 512, 768, 1024, 1152, 1280, 1400, 1424, 1456],
        "directions": list(DIRECTIONS),
    }
    return _compared(folder, content, TRUTH, truth.environment(known={"service_ns": 100_000, "buffer": 3000}))


def of_boards(folder: Path, asked: argparse.Namespace) -> list[Figure]:
    """Measure 24 cases of emulated gateways: plain and three suites, three sizes, two directions."""
    return _compared(
        folder, pair_plan(asked.dut, name="cluster", stacks=["plain", "xfrm"], **BOARDS), ESPBENCH, {}
    )


def _compared(
    folder: Path, content: dict[str, Any], program: Sequence[str], env: dict[str, str]
) -> list[Figure]:
    """Measure the plan with one worker, with one job on all CPUs, and with two workers; all leave the same files."""
    file = truth.written(folder, content)
    cpus = sorted(os.sched_getaffinity(0))
    share = cpu_shares(cpus, 2)[0]
    took: list[Took] = []
    directories: list[Path] = []
    for name, jobs, allowed in (("one worker", 1, share), ("one job", 1, cpus), ("two workers", 2, cpus)):
        run = _Run(folder / name.replace(" ", "-"), file, jobs, [*_on(allowed), *program], env)
        took.append(run.measured())
        directories.append(run.directory.path)
        used = f"{took[-1].busy_s / took[-1].seconds:.2f} of {len(allowed)} CPUs in use"
        print(f"  {name}: {took[-1].seconds:.1f} s, {used}", flush=True)
    one, alone, two = directories
    if differences := [*like(two, one), *like(two, alone)]:
        raise SystemExit("\n".join([f"{folder}: the files of these runs differ", *differences]))
    count = len(RunDirectory.open(two).manifest.cases)
    one_s, job_s, two_s = (each.seconds for each in took)
    words = (
        f"{count} cases; a worker has {len(share)} of {len(cpus)} CPUs; the files are the same to the byte"
    )
    job = "which may use all CPUs"
    return [
        Figure("two workers", one_s / two_s, "times one worker", TIMES_FASTER_OF_2, True, words),
        Figure("two workers", job_s / two_s, "times one job", TIMES_FASTER_THAN_ONE_JOB, True, job),
    ]


def _on(cpus: Sequence[int]) -> list[str]:
    return ["taskset", "--cpu-list", ",".join(map(str, cpus))]


@dataclass(frozen=True)
class Took:
    """The time of a run, and the time of the machine's CPUs in which they executed anything."""

    seconds: float
    busy_s: float


class _Run:
    """A run of espbench that may be interrupted; its time so far is kept in a file beside it."""

    def __init__(
        self, folder: Path, plan: Path, jobs: int, program: Sequence[str], env: dict[str, str]
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._clock = folder / "took.json"
        self._argv = [*program, "run", "--no-report", "--jobs", str(jobs)]
        self._plan = plan
        self._env = {**os.environ, **env, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}

    @property
    def directory(self) -> RunDirectory:
        """The run directory, which exists once the run was begun."""
        (manifest,) = (self._folder / "runs").glob("*/manifest.json")
        return RunDirectory.open(manifest.parent)

    def measured(self) -> Took:
        """Begin or continue the run, wait for its end, and return its time."""
        before = Took(**json.loads(self._clock.read_text())) if self._clock.exists() else Took(0.0, 0.0)
        if (self._folder / "whole").exists():
            return before
        is_begun = any((self._folder / "runs").glob("*/manifest.json"))
        what = (
            ["--resume", str(self.directory.path)]
            if is_begun
            else [str(self._plan), "--out", str(self._folder / "runs")]
        )
        began, busy_s = time.monotonic(), _busy_s()
        with (self._folder / "log").open("ab") as log:
            process = subprocess.Popen([*self._argv, *what], env=self._env, stdout=log, stderr=log)
            try:
                while process.poll() is None:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(_STEP_S)
                    self._keep(before, began, busy_s)
            finally:
                process.terminate()
                process.wait()
                self._keep(before, began, busy_s)
        if process.returncode not in _GOOD:
            raise SystemExit(f"the run ended with {process.returncode}: see {self._folder / 'log'}")
        (self._folder / "whole").touch()
        return self.measured()

    def _keep(self, before: Took, began: float, busy_s: float) -> None:
        took = Took(before.seconds + time.monotonic() - began, before.busy_s + _busy_s() - busy_s)
        self._clock.write_text(json.dumps(asdict(took)))


def _busy_s() -> float:
    """Return the time of all CPUs since boot in which they executed tasks, s.

    The CPU time of children would leave out gateways whose parent does not wait for them.
    """
    return sum(times.task_ns for times in host.cpu_times().values()) / 1e9


# ── all of them ──────────────────────────────────────────────────────────────────────────────────

STEPS: dict[str, Callable[[Path, argparse.Namespace], list[Figure]]] = {
    "warm-up": warm_up,
    "overhead": overhead,
    "simulated": simulated,
    "truth": of_truth,
    "boards": of_boards,
    "dask-warm-up": dask_warm_up,
    "dask-overhead": dask_overhead,
    "dask-simulated": dask_simulated,
}


@contextlib.contextmanager
def _kept_in(out: Path | None) -> Iterator[Path]:
    if out is None:
        with tempfile.TemporaryDirectory(prefix="espbench-cluster-") as folder:
            yield Path(folder)
        return
    out.mkdir(parents=True, exist_ok=True)
    yield out


def main() -> int:
    """Print a line for each figure; return the exit code: 1 if a limit is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"of {', '.join(STEPS)}; default: all")
    parser.add_argument("--out", type=Path, help="the folder that keeps the results")
    parser.add_argument(
        "--trial", type=float, default=0.3, help="seconds of a simulated trial; a real one takes longer"
    )
    parser.add_argument("--dut", default="mpc8548e", help="the emulated gateways of the step boards")
    asked = parser.parse_args()
    if unknown := set(asked.steps) - set(STEPS):
        parser.error(f"no such step: {', '.join(sorted(unknown))}; expected some of {', '.join(STEPS)}")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))  # of the workers
    within = True
    with _kept_in(asked.out) as out:
        for name in asked.steps or STEPS:
            print(f"{name}:", flush=True)
            if name.startswith("dask-") and importlib.util.find_spec("distributed") is None:
                print("  Dask distributed is not installed: not measured", flush=True)
                continue
            for figure in _figures(out / name, STEPS[name], asked):
                within = within and figure.is_within
                print(f"  {figure}", flush=True)
    return 0 if within else 1


def _figures(
    folder: Path, step: Callable[[Path, argparse.Namespace], list[Figure]], asked: argparse.Namespace
) -> list[Figure]:
    """Return the figures of a step, from its file if the step was run before."""
    kept = folder / "figures.json"
    if kept.exists():
        return [Figure(**figure) for figure in json.loads(kept.read_text())]
    folder.mkdir(exist_ok=True)
    found = step(folder, asked)
    kept.write_text(json.dumps([asdict(figure) for figure in found], ensure_ascii=False, indent=2))
    return found


if __name__ == "__main__":
    sys.exit(main())
