# SPDX-License-Identifier: Apache-2.0
"""One measurement at a time: who is refused, what is said of who holds the lock, and that no end leaves it held."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from espbench.cli.progress import measuring
from espbench.errors import MachineLacks
from espbench.this_machine import machine_lock
from espbench.this_machine.machine_lock import Holder, held, holders

HOLDER = """
import sys, subprocess, time
from pathlib import Path
from espbench.this_machine import machine_lock
machine_lock.FILES = (Path(sys.argv[1]),)
child = subprocess.Popen(["sleep", "60"])
with machine_lock.held(shared=sys.argv[2] == "shared"):
    later = subprocess.Popen(["sleep", "60"])
    print(child.pid, later.pid, flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def own_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a lock that is not the machine's: there may be a run under way."""
    file = tmp_path / "lock"
    file.touch()
    monkeypatch.setattr(machine_lock, "FILES", (file,))
    return file


@pytest.fixture
def other(own_lock: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds it, and has started programs before and after it took it."""
    how = getattr(request, "param", "alone")
    argv = [sys.executable, "-c", HOLDER, str(own_lock), how, "\x1b[31mred"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stdout is not None
        children = [int(pid) for pid in process.stdout.readline().split()]
        yield process
        process.kill()
        for pid in children:
            os.kill(pid, signal.SIGKILL)


def test_a_second_measurement_is_refused_and_told_by_whom(
    other: subprocess.Popen[str], tmp_path: Path
) -> None:
    """Process, user, since when, command and where; exit code 4; what to do."""
    with pytest.raises(MachineLacks) as refused, held():
        pass
    said = str(refused.value)
    assert refused.value.exit_code == 4
    user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
    assert f"  process {other.pid} of {user}, since 20" in said
    assert f"(in {tmp_path})" in said
    assert "-c ?import sys" in said
    assert "\x1b" not in said
    assert said.splitlines()[-1] == (
        f"  to fix it: let it end; `espbench run --wait` waits for that by itself; or end it: kill {other.pid}"
    )


def test_a_killed_holder_holds_nothing_though_its_programs_live(other: subprocess.Popen[str]) -> None:
    other.kill()
    other.wait()
    with held():
        pass


@pytest.mark.parametrize("other", ["shared"], indirect=True)
def test_those_that_share_it_keep_out_those_that_do_not(other: subprocess.Popen[str]) -> None:
    """Runs in virtual time beside each other; not beside one that measures in real time."""
    with held(shared=True):
        descriptor = os.open(machine_lock.FILES[0], os.O_RDONLY)
        assert {holder.pid for holder in holders(descriptor)} == {other.pid, os.getpid()}
        os.close(descriptor)
    with pytest.raises(MachineLacks, match=f"process {other.pid}"), held():
        pass


def test_one_who_waits_is_told_for_whom_and_gets_it(other: subprocess.Popen[str]) -> None:
    holders: list[list[Holder]] = []

    def on_wait(one: list[Holder]) -> None:
        holders.append(one)
        other.kill()

    with (
        held(wait=True, on_wait=on_wait),
        pytest.raises(MachineLacks, match=f"process {os.getpid()}"),
        held(),
    ):
        pass
    assert holders[0][0].pid == other.pid


def test_waiting_is_told_once_without_a_terminal(
    other: subprocess.Popen[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often it is asked whether it is free: here the third time."""
    asked: list[float] = []

    def sleep(seconds: float) -> None:
        asked.append(seconds)
        if len(asked) == 3:
            other.kill()
            other.wait()

    monkeypatch.setattr(time, "sleep", sleep)
    with measuring(wait=True):
        pass
    said = capsys.readouterr().err
    assert said.count("waiting until no other measurement uses this machine's CPUs; now it is\n") == 1
    assert f"  process {other.pid} of " in said


def test_it_is_free_after_an_error() -> None:
    with pytest.raises(ValueError, match="x"), held():
        raise ValueError("x")
    with held():
        pass


def test_a_holder_that_cannot_be_seen_is_said(
    other: subprocess.Popen[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container hides the processes of others, and their locks."""
    (tmp_path / "locks").write_text("1: FLOCK  ADVISORY  WRITE 7 00:04:1 0 EOF\n")
    monkeypatch.setattr(machine_lock, "LOCKS", tmp_path / "locks")
    with (
        pytest.raises(MachineLacks, match="cannot be seen from here; it may be in another container"),
        held(),
    ):
        pass


@pytest.mark.root
@pytest.mark.parametrize(
    "before",
    [
        ["setpriv", "--reuid=65534", "--clear-groups"],
        ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "--ipc", "--uts", "--cgroup"],
        ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc"],
    ],
)
def test_one_lock_for_all_users_and_containers(before: list[str], own_lock: Path) -> None:
    """The machine's own file, held shared so that a run under way on it is no matter."""
    lock = Path("/proc/self/ns/time")
    probe = "import os,sys; print(os.stat(sys.argv[1]).st_ino)"
    done = subprocess.run(
        [*before, "/usr/bin/env", "python3", "-I", "-S", "-c", probe, str(lock)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        pytest.skip(done.stderr.strip())
    assert int(done.stdout) == lock.stat().st_ino


def test_what_is_locked_is_the_machines_clocks() -> None:
    """No file that somebody could make first, remove, or close to others."""
    imported = subprocess.run(
        [sys.executable, "-c", "from espbench.this_machine.machine_lock import FILES; print(*FILES)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert imported.stdout.split()[0] == "/proc/self/ns/time"
