# SPDX-License-Identifier: Apache-2.0
"""CPU time and start time of real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from espbench.this_machine import processes
from espbench.this_machine.processes import WaitAccount, descendants, start_time, times_unknown, tree_cpu_ns

BURN = "import time\nend = time.process_time() + 0.2\nwhile time.process_time() < end: pass\n"
TREE = (
    "import subprocess, sys\n"
    "subprocess.run([sys.executable, '-c', sys.argv[1]])\n"  # ended and waited for
    "child = subprocess.Popen([sys.executable, '-c', sys.argv[1] + 'print(1, flush=True); input()'],"
    " stdin=subprocess.PIPE)\n"
    "input()\n"
    "child.communicate()\n"
)


def test_the_tree_counts_living_and_ended_children() -> None:
    """Two children of 0.2 s each, one of them gone: at least 0.39 s in all, and the parent's own is less."""
    with subprocess.Popen(
        [sys.executable, "-c", TREE, BURN], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        total = tree_cpu_ns(parent.pid)
        (child,) = descendants(parent.pid)
        living = tree_cpu_ns(child)
        parent.communicate(b"\n")
    assert living is not None
    assert total is not None
    assert living >= 190_000_000
    assert total - living >= 190_000_000


def test_what_had_no_cpu_waited_also_when_it_has_ended() -> None:
    """It wants 0.2 s of a CPU on which another never rests: at a fair half it waits about as long as it runs."""
    on_one_cpu = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
    rival = subprocess.Popen(
        [*on_one_cpu, sys.executable, "-c", "print(1, flush=True)\nwhile True: pass"], stdout=subprocess.PIPE
    )
    assert rival.stdout is not None
    rival.stdout.readline()
    with subprocess.Popen(
        [*on_one_cpu, sys.executable, "-c", BURN + "print(1, flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        account = WaitAccount(lambda: [process.pid])
        assert process.stdout is not None
        process.stdout.readline()
        rival.kill()
        rival.communicate()
        waited = account.ns()
        process.communicate(b"\n")
    assert waited is not None
    assert waited >= 50_000_000
    assert account.ns() == waited


def test_a_process_that_is_gone_has_neither_time_nor_start() -> None:
    """Ended, even while its zombie waits: no start time; waited for: no CPU time."""
    process = subprocess.Popen(["true"], start_new_session=True)
    assert os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT) is not None
    assert start_time(process.pid) is None
    process.wait()
    assert tree_cpu_ns(process.pid) == 0


@pytest.mark.parametrize(
    ("text", "why"), [(None, "has no /"), ("0 0 0\n", "counts nothing in /")], ids=["absent", "switched off"]
)
def test_times_that_the_kernel_does_not_tell_are_unknown_and_not_0(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, why: str
) -> None:
    """Without CONFIG_SCHED_INFO, and with delay accounting alone that is switched off."""
    assert times_unknown() == ""
    if text is not None:
        (tmp_path / "schedstat").write_text(text)
    monkeypatch.setattr(processes, "_OWN", tmp_path / "schedstat")
    assert why in times_unknown()
    assert tree_cpu_ns(os.getpid()) is None
    assert WaitAccount(lambda: [os.getpid()]).ns() is None


def test_a_process_that_may_not_be_seen_has_no_start_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other users' files in /proc exist and cannot be read, with hidepid=1."""

    def refused(path: Path, *_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_text", refused)
    assert start_time(1) is None
    assert descendants(1) == []
