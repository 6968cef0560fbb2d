# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C, SIGTERM and SIGHUP: whenever and however often they come, everything is undone and nothing is deaf."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from espbench.this_machine import ending
from espbench.this_machine.ending import ENDING
from espbench.this_machine.registry import Registry

# Every thing it has made is undone by a program of its own.
CONTROLLER = """
import subprocess, sys, time
from pathlib import Path
from espbench.this_machine import registry
from espbench.this_machine.ending import listen
listen()
try:
    with registry.Registry("flood", Path(sys.argv[1])) as made:
        for number in range(100):
            made.add("file", str(number), lambda: subprocess.run(["sleep", "0.01"], check=True))
        print("up", flush=True)
        time.sleep(60)
except KeyboardInterrupt:
    sys.exit(130)
"""
LISTENING = """
import sys, time
from espbench.this_machine.ending import listen
listen()
try:
    print("up", flush=True)
    {body}
except KeyboardInterrupt:
    sys.exit(130)
"""
WAITING = LISTENING.format(body="time.sleep(60)")
PATIENCE_S = 120  # only ends a hang
# The tests themselves may run under nohup.
HEARD, IGNORED = ("env", "--default-signal=HUP"), ("env", "--ignore-signal=HUP")


def begin(
    script: str, *arguments: str, before: tuple[str, ...] = (), stdin: int | None = None
) -> subprocess.Popen[str]:
    """A Python program of its own, once it has said that it is up."""
    argv = [*before, sys.executable, "-c", script, *arguments]
    process = subprocess.Popen(argv, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    said = process.stdout.readline()
    assert said == "up\n", (said, process.communicate())
    return process


def test_ctrl_c_again_and_again_at_a_terminal_kills_no_program_that_undoes(tmp_path: Path) -> None:
    """It reaches such a program before that is in a session of its own: it must be deaf from its first moment."""
    main, terminal = pty.openpty()
    process = begin(CONTROLLER, str(tmp_path), before=("setsid", "--ctty"), stdin=terminal)
    with process:
        while process.poll() is None:
            os.write(main, b"\x03")
            time.sleep(0.0002)
        assert process.stderr is not None
        assert (process.returncode, process.stderr.read()) == (130, "")
    os.close(terminal)
    os.close(main)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_while_a_program_starts_does_not_lose_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """Between its start and its entry in the journal nobody would end it."""
    started = []
    popen = subprocess.Popen

    def interrupted(*arguments: object, **options: object) -> subprocess.Popen[bytes]:
        process = popen(*arguments, **options)  # type: ignore[call-overload]
        started.append(process)
        os.kill(os.getpid(), number)
        return process  # type: ignore[no-any-return]

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    before = signal.signal(number, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), Registry("r", tmp_path) as registry:
            registry.spawn(["sleep", "1000"], "sleeper")
    finally:
        signal.signal(number, before)
    assert started[0].poll() is not None
    assert list(tmp_path.iterdir()) == []


def test_a_signal_before_the_registry_is_entered_leaves_no_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def interrupted(*paths: str) -> None:
        signal.raise_signal(signal.SIGINT)
        link(*paths)

    monkeypatch.setattr(os, "link", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Registry("r", tmp_path).__enter__()
    assert list(tmp_path.iterdir()) == []


def test_a_directory_made_while_a_signal_comes_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = tmp_path / "made"

    def interrupted(**options: str) -> str:
        made.mkdir()
        signal.raise_signal(signal.SIGINT)
        return str(made)

    def run() -> None:
        with Registry("r", tmp_path / "state") as registry:
            monkeypatch.setattr(tempfile, "mkdtemp", interrupted)
            registry.directory("d")

    with pytest.raises(KeyboardInterrupt):
        run()
    assert not made.exists()


def test_what_a_program_starts_with_is_not_blocked(tmp_path: Path) -> None:
    """The controller blocks these signals while it starts one; a daemon must hear its SIGTERM."""
    with Registry("r", tmp_path) as registry:
        process = registry.spawn(["grep", "SigBlk", "/proc/self/status"], "look", stdout=subprocess.PIPE)
        out, _ = process.communicate(timeout=PATIENCE_S)
    blocked = int(out.split()[1], 16)
    assert [number for number in ENDING if blocked >> (number - 1) & 1] == []


def test_under_nohup_a_closed_terminal_ends_nothing() -> None:
    """An ignored SIGHUP stays ignored; the others are heard."""
    with begin(WAITING, before=IGNORED) as process:
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGHUP)
        assert "SigIgn" in ignored(process.pid, signal.SIGHUP)
        assert process.poll() is None
        process.terminate()
        assert process.wait(PATIENCE_S) == 130


def ignored(pid: int, number: signal.Signals) -> str:
    """The line of proc(5) status that says that a process ignores this signal; empty if it does not."""
    text = Path(f"/proc/{pid}/status").read_text()
    (line,) = (line for line in text.splitlines() if line.startswith("SigIgn"))
    return line if int(line.split()[1], 16) >> (number - 1) & 1 else ""


def test_without_nohup_a_closed_terminal_ends_a_command() -> None:
    with begin(WAITING, before=HEARD) as process:
        process.send_signal(signal.SIGHUP)
        assert process.wait(PATIENCE_S) == 130


def test_a_signal_inside_a_destructor_is_heard() -> None:
    """Python drops what is raised there; it is said again, and the command ends."""
    body = """
    class Slow:
        def __del__(self):
            print("deleting", flush=True)
            time.sleep(1)
    Slow()
    time.sleep(60)
"""
    with begin(LISTENING.format(body=body.strip("\n "))) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "deleting\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 130


@pytest.mark.parametrize(("parent", "is_gone"), [(1, False), (4711, True)])
def test_a_driver_may_be_process_1_of_a_container(
    monkeypatch: pytest.MonkeyPatch, parent: int, is_gone: bool
) -> None:
    """A worker whose driver ended also has process 1 as its parent; so it is told which process is its driver."""
    monkeypatch.setattr("os.getppid", lambda: 1)
    monkeypatch.setattr("ctypes.CDLL", lambda _: SimpleNamespace(prctl=lambda *_: 0))
    with pytest.raises(KeyboardInterrupt) if is_gone else nullcontext():
        ending.with_parent(parent)
