# SPDX-License-Identifier: Apache-2.0
"""The command decides how many cases are measured at once, and shows them."""

from __future__ import annotations

import io
import math
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from espbench.cli.side_by_side import ManyCases, jobs_for
from espbench.errors import UsageError
from espbench.measure import machine
from espbench.measure.inputs.setup import Request
from espbench.plan import cases, load_plan
from espbench.platforms.virtual import virtual_pair
from espbench.runs.beds import Choice, choose, virtual
from support.command_line import in_process
from support.plans import pair_plan, write_plan
from support.simulated.queue import QueueDut

PROJECT = Path(__file__).resolve().parents[3]


def choices(dut: str, folder: Path) -> list[Choice]:
    return choose(load_plan(write_plan(folder, pair_plan(dut))))


def jobs(dut: str, folder: Path, asked: int | None = None) -> int:
    chosen = choices(dut, folder)
    return jobs_for(asked, chosen, virtual_time=virtual(chosen))


def test_in_virtual_time_there_are_as_many_as_cpus_and_memory_allow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody may ask for another number."""
    monkeypatch.setattr(virtual_pair, "free_for_links_mb", lambda: math.inf)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr(machine, "free_memory_mb", lambda: 64_000.0)
    assert jobs("mpc8548e", tmp_path) == 8
    monkeypatch.setattr(machine, "free_memory_mb", lambda: 1500.0)  # a pair of boards has 256
    assert jobs("mpc8548e", tmp_path) == 3
    monkeypatch.setattr(machine, "free_memory_mb", lambda: 1.0)
    assert jobs("mpc8548e", tmp_path) == 1
    assert jobs("mpc8548e", tmp_path, asked=5) == 5


def test_there_are_no_more_than_the_links_have_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container has often 64 MiB for them: a link and its copy take 8.4 MB each, a pair has three links."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr(machine, "free_memory_mb", lambda: 64_000.0)
    monkeypatch.setattr(virtual_pair, "free_for_links_mb", lambda: 200.0)
    assert jobs("mpc8548e", tmp_path) == 3
    assert jobs("virt-x86", tmp_path) == 2  # its guests stay after their boot, with links
    assert jobs("mpc8548e", tmp_path, asked=5) == 5
    monkeypatch.setattr(virtual_pair, "free_for_links_mb", lambda: 64 * 1024**2 / 1e6)
    assert jobs("mpc8548e", tmp_path) == 1
    monkeypatch.setattr(virtual_pair, "free_for_links_mb", lambda: 0.0)
    assert jobs("mpc8548e", tmp_path) == 1


def test_a_file_system_for_links_may_have_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tmpfs without one says that it has 0 of 0 bytes."""
    usage = SimpleNamespace(total=64_000_000, free=4_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    assert virtual_pair.free_for_links_mb() == 4.0
    usage.total = usage.free = 0
    assert virtual_pair.free_for_links_mb() == math.inf


def test_a_link_is_as_long_as_the_generator_makes_it() -> None:
    source = (PROJECT / "traffic/src/virtual_time/memory.rs").read_text(encoding="utf-8")
    assert "const RINGS_AT: usize = 4096;" in source
    assert "const RING_BYTES: u32 = 4 << 20;" in source
    assert "RINGS_AT + 2 * ring_bytes as usize" in source
    assert virtual_pair.LINK_BYTES == 4096 + 2 * (4 << 20)


def test_in_real_time_there_is_one(tmp_path: Path) -> None:
    assert jobs("uml", tmp_path) == jobs("uml", tmp_path, asked=1) == 1
    with pytest.raises(UsageError, match=r"--jobs 2: expected a plan in virtual time[\s\S]*got: uml"):
        jobs("uml", tmp_path, asked=2)


def test_the_command_refuses_before_it_makes_anything(tmp_path: Path) -> None:
    file = write_plan(tmp_path, pair_plan("uml"))
    done = in_process("run", file, "--jobs", "2", "--out", tmp_path / "runs")
    assert done.returncode == 2
    assert "take each other's CPUs" in done.stderr
    assert in_process("run", file, "--jobs", "0").returncode == 2
    assert not (tmp_path / "runs").exists()


def test_what_came_of_a_case_is_told_in_one_piece(tmp_path: Path) -> None:
    """The piece stays whole whatever is told of others meanwhile."""
    plan = load_plan(write_plan(tmp_path, pair_plan("mpc8548e", frame_sizes=[64, 512])))
    text = io.StringIO()
    progress = ManyCases(Console(file=text, soft_wrap=True), None)
    observers = [(case, progress.of(case.id)) for case in cases(plan)]
    for number, (case, observer) in enumerate(observers, 1):
        observer.case_started(case, number, 2, 0)
    for load in (9000.0, 5000.0):
        for case, observer in observers:
            request = Request(load, 1.0, "search")
            observer.trial_started(request, [])
            observer.trial_done(QueueDut(6000.0).trial(request, case.id, 0))
    progress.note("a worker was lost")
    for _, observer in reversed(observers):
        observer.case_done([])
    lines = text.getvalue().splitlines()
    assert lines[0] == "a worker was lost"
    assert [line.startswith("case") for line in lines[1:]] == [True, False, False] * 2
    assert lines[1].startswith("case 2 of 2")
    assert "lost 3,000" in lines[2]
    assert "no loss" in lines[3]
