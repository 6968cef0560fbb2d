# SPDX-License-Identifier: Apache-2.0
"""Tests how perf samples threads of this machine: only those asked for, only while it is on, and how it is refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from espbench.errors import MachineLacks
from espbench.platforms.sampling import Sampled, Sampler, require
from espbench.profile.samples import Samples, read
from espbench.this_machine.registry import Registry, clean

pytestmark = [pytest.mark.root, pytest.mark.needs("linux-perf"), pytest.mark.untimed]

CPU = max(os.sched_getaffinity(0))
# It works only when a line tells it to, so that a test decides when there is something to sample.
WORKER = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
for line in sys.stdin:
    until = time.process_time() + 0.3
    while time.process_time() < until: sum(range(1000))
    print("done", flush=True)
"""


@pytest.fixture
def workers() -> Iterator[list[subprocess.Popen[str]]]:
    started = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(CPU)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    yield started
    for worker in started:
        worker.kill()
        worker.communicate()


def work(worker: subprocess.Popen[str]) -> None:
    """Let it use 0.3 s of CPU time, and wait until it has."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    print("now", file=worker.stdin, flush=True)
    assert worker.stdout.readline() == "done\n"


def sampled_of(file: Path) -> Samples:
    first, _, text = file.read_text().partition("\n")
    threads = set(map(int, first.partition("[")[2].rstrip("]}").split(", ")))
    return read(text, str(file), threads)


def test_each_gateway_has_its_own_threads_samples_and_only_those_of_the_trial(
    tmp_path: Path, workers: list[subprocess.Popen[str]]
) -> None:
    """The sampler is reached through a shell that greets, as that of a box may."""
    first, second = workers
    machine = Sampled(
        "here",
        [CPU],
        {"home": lambda: {first.pid}, "office": lambda: {second.pid}},
        lambda argv: ["sh", "-c", 'echo Welcome; exec "$@"', "sh", *argv],
    )
    with Registry("sampling", tmp_path / "journals") as registry:
        sampler = Sampler(registry, tmp_path, [machine])
        for case, worker in (("one", first), ("two", second)):
            sampler.start()
            work(first)
            with sampler.during(case):
                work(worker)
            work(second)
            sampler.finish()
        assert not list(registry.entries)
    counts = {
        (case, side): sum(s.period for s in sampled_of(tmp_path / f"profile-{case}-{side}.samples").samples)
        for case in ("one", "two")
        for side in ("home", "office")
    }
    for worked, other in ((("one", "home"), ("one", "office")), (("two", "office"), ("two", "home"))):
        assert 0.2e9 < counts[worked] < 0.45e9
        assert counts[other] < 0.02e9


# A controller that samples this machine as the platform of namespaces does, and waits to be ended.
CONTROLLER = """
import sys, threading
from pathlib import Path
from types import SimpleNamespace
from espbench.platforms.sampling import Sampler
from espbench.runs.platform_kinds.namespaces import _this_machine
from espbench.this_machine.registry import Registry
logs = Path(sys.argv[1])
with Registry("ended", logs) as registry:
    placement = SimpleNamespace(cpus={"home": [int(sys.argv[2])]})
    workspace = SimpleNamespace(registry=registry, placement=placement)
    sampler = Sampler(registry, logs, [_this_machine(workspace, {"home": None})])
    sampler.start()
    print("started", flush=True)
    threading.Event().wait()
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=lambda how: how.name)
def test_perf_ends_with_its_controller(tmp_path: Path, how: signal.Signals) -> None:
    """A controller that ends leaves neither perf, which would sample for ever, nor its file, which may be large."""
    folders = {name: tmp_path / name for name in ("logs", "temporary")}
    for folder in folders.values():
        folder.mkdir(mode=0o700)
    controller = subprocess.Popen(
        [sys.executable, "-c", CONTROLLER, str(folders["logs"]), str(CPU)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "TMPDIR": str(folders["temporary"])},
    )
    assert controller.stdout is not None
    assert controller.stdout.readline() == "started\n"
    mark = f"-C {CPU} -D -1"
    assert list(folders["temporary"].rglob("tmp.*")), "perf's file is elsewhere"

    def running() -> bool:
        lines = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        return any(line.startswith("perf record") and mark in line for line in lines.splitlines())

    assert running()
    controller.send_signal(how)
    controller.communicate()
    wait_until(lambda: not running())
    clean(folders["logs"])
    assert not list(folders["temporary"].iterdir())


def wait_until(reached: Callable[[], bool]) -> None:
    wait = threading.Event()
    for _ in range(600):
        if reached():
            return
        wait.wait(0.2)
    raise AssertionError("perf is still there")


def test_perf_leaves_nothing_on_a_box(tmp_path: Path) -> None:
    """It writes no file to a disk there, and a signal to the shell on the box does not leave its file in memory."""
    home = tmp_path / "disk"
    home.mkdir()
    on_disk = [f"{name}={home}" for name in ("HOME", "TMPDIR")]
    box = Sampled("home (box)", [CPU], {"home": None}, lambda argv: ["env", *on_disk, *argv])
    memory = Path("/dev/shm")
    before = set(memory.glob("tmp.*"))
    with Registry("box", tmp_path / "journals") as registry:
        sampler = Sampler(registry, tmp_path, [box])
        sampler.start()
        with sampler.during("one"):
            sum(range(10**6))
        sampler.finish()
        sampler.start()
        made = set(memory.glob("tmp.*")) - before
        assert made
        # Leaving the registry sends SIGTERM to the shell.
    sampler.stop()  # closes the pipes
    assert not [file for file in made if file.exists()]
    assert not list(home.rglob("*"))


def test_a_machine_without_perf_is_refused() -> None:
    machine = Sampled(
        "home (box)", [], {"home": None}, lambda argv: ["env", "PATH=/nowhere", "/bin/sh", *argv[1:]]
    )
    with pytest.raises(MachineLacks, match=r"home \(box\): no perf") as refused:
        require([machine])
    assert "apt-get install linux-perf" in str(refused.value.install)


def test_a_user_whom_the_kernel_refuses_is_told() -> None:
    """Perf itself names the setting that forbids it (perf_event_paranoid)."""
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all"]
    machine = Sampled("here", [CPU], {"home": None}, lambda argv: [*nobody, *argv])
    with pytest.raises(MachineLacks, match="here: perf may not sample"):
        require([machine])
