# SPDX-License-Identifier: Apache-2.0
"""The registry: everything made is undone, whatever happens to the controller."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from espbench.errors import EspbenchError, MachineLacks
from espbench.this_machine.processes import descendants, start_time
from espbench.this_machine.registry import Registry, Surroundings, clean, undo_the_rest

CONTROLLER = """
import sys, time
from pathlib import Path
from espbench.this_machine.processes import descendants, start_time
from espbench.this_machine.registry import Registry, Surroundings
with Registry("killed", Path(sys.argv[1])) as registry:
    directory = registry.directory("private")
    (directory / "file").write_text("x")
    process = registry.spawn(["sh", "-c", "sleep 1000 & wait"], "sleeper", Surroundings(own_pids=sys.argv[2] == "own"))
    print(directory, process.pid, flush=True)
    time.sleep(1000)
"""


# A host may stand still or be busy: what must come is waited for, and this only ends a hang, s.
PATIENCE_S = 120


def gone(pid: int) -> bool:
    """Wait for a process to end, and say whether it did."""
    deadline = time.monotonic() + PATIENCE_S
    while start_time(pid) is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    return start_time(pid) is None


def wait_for(path: Path) -> None:
    """Wait until a program has made a file."""
    deadline = time.monotonic() + PATIENCE_S
    while not path.exists():
        assert time.monotonic() < deadline, path
        time.sleep(0.01)


def test_undoes_in_reverse_order(tmp_path: Path) -> None:
    """Later changes may need earlier ones."""
    order: list[int] = []
    with Registry("r", tmp_path) as registry:
        for number in range(3):
            registry.add("file", str(number), lambda number=number: order.append(number))  # type: ignore[misc]
    assert order == [2, 1, 0]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_undoes_on_error_and_ctrl_c(tmp_path: Path, error: type[BaseException]) -> None:
    """However the block is left, the directory goes and the exception stays."""
    made = []

    def run() -> None:
        with Registry("r", tmp_path) as registry:
            made.append(registry.directory("d"))
            raise error

    with pytest.raises(error):
        run()
    assert not made[0].exists()


def test_one_failure_does_not_keep_the_others(tmp_path: Path) -> None:
    """Every undo is tried; the failure is named; the journal keeps what is still there."""

    def fail() -> None:
        raise OSError("busy")

    made = []

    def run() -> None:
        with Registry("r", tmp_path) as registry:
            made.append(registry.directory("first"))
            registry.add("netns", "n", fail)

    with pytest.raises(EspbenchError, match="could not undo:\n  netns n: busy"):
        run()
    assert not made[0].exists()
    assert (tmp_path / "r.journal").exists()


def test_a_journal_that_cannot_be_written_does_not_keep_things_from_being_undone(tmp_path: Path) -> None:
    """All are undone on a full disk, the journal goes, and nothing is left for the end of the program."""
    order: list[int] = []
    made = []
    with Registry("r", tmp_path) as registry:
        for number in range(3):
            registry.add("file", str(number), lambda number=number: order.append(number))  # type: ignore[misc]
        made.append(registry.directory("d"))
        assert registry._journal is not None
        registry._journal.close()
        registry._journal = Path("/dev/full").open("w")  # noqa: SIM115  (the registry closes it)
    assert order == [2, 1, 0]
    assert not made[0].exists()
    assert list(tmp_path.iterdir()) == []
    undo_the_rest()


def test_an_undo_that_fails_on_a_full_disk_is_told_once(tmp_path: Path) -> None:
    """The end of the program does not try to write the closed journal."""

    def fail() -> None:
        raise OSError("busy")

    def run() -> None:
        with Registry("r", tmp_path) as registry:
            registry.add("netns", "n", fail)
            assert registry._journal is not None
            registry._journal.close()
            registry._journal = Path("/dev/full").open("w")  # noqa: SIM115
            registry._journal.write("x")  # what is still to be written when it is closed

    with pytest.raises(EspbenchError, match="could not undo:\n  netns n: busy"):
        run()
    assert (tmp_path / "r.journal").exists()
    undo_the_rest()


def test_a_journal_that_cannot_be_begun_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Registry, record: dict[str, Any]) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Registry, "_write", full)
    with pytest.raises(OSError, match="No space left"), Registry("r", tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_failed_undo_does_not_hide_the_error(tmp_path: Path) -> None:
    """The exception that ended the block stays the one that is raised, with a note."""

    def fail() -> None:
        raise OSError("busy")

    def run() -> None:
        with Registry("r", tmp_path) as registry:
            registry.add("netns", "n", fail)
            raise ValueError("first")

    with pytest.raises(ValueError, match="first") as raised:
        run()
    assert "netns n: busy" in raised.value.__notes__[0]


def test_an_undo_that_fails_after_ctrl_c_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The user should not be surprised by what `clean` then has to do."""

    def fail() -> None:
        raise OSError("busy")

    def run() -> None:
        with Registry("r", tmp_path) as registry:
            registry.add("netns", "n", fail)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run()
    assert "netns n: busy" in capsys.readouterr().err


def test_ctrl_c_while_undoing_waits_for_the_end(tmp_path: Path) -> None:
    """An impatient user's second Ctrl-C is heard after everything is gone."""
    done: list[str] = []

    def interrupted() -> None:
        signal.raise_signal(signal.SIGINT)
        done.append("b")

    def run() -> None:
        with Registry("r", tmp_path) as registry:
            registry.add("file", "a", lambda: done.append("a"))
            registry.add("file", "b", interrupted)

    with pytest.raises(KeyboardInterrupt):
        run()
    assert done == ["b", "a"]


def test_part_of_it_can_be_undone_early(tmp_path: Path) -> None:
    """A test bed closes; the rest stays, and nothing is undone twice."""
    with Registry("r", tmp_path) as registry:
        kept = registry.directory("kept")
        first = len(registry.entries)
        early = registry.directory("early")
        made = registry.entries[first:]
        registry.undo(made)
        registry.undo(made)
        assert kept.exists()
        assert not early.exists()
    assert not kept.exists()


def test_a_kind_that_clean_could_not_undo_is_refused(tmp_path: Path) -> None:
    """A thing without a way back after a crash may not be made."""
    with Registry("r", tmp_path) as registry, pytest.raises(ValueError, match="no way to undo a 'planet'"):
        registry.add("planet", "mars", lambda: None)


def test_two_runs_cannot_share_an_id(tmp_path: Path) -> None:
    """The second is told which journal is in the way; the first is not touched."""
    with Registry("same", tmp_path) as first:
        directory = first.directory("d")
        with pytest.raises(EspbenchError, match="another espbench uses the run id same"):
            Registry("same", tmp_path).__enter__()
        assert directory.exists()


def test_spawned_programs_end_with_the_registry(tmp_path: Path) -> None:
    """The whole process group ends, children too, and the controller has waited for it."""
    with Registry("r", tmp_path) as registry:
        process = registry.spawn(["sh", "-c", f"sleep 1000 & echo > {tmp_path}/up; wait"], "sleeper")
        wait_for(tmp_path / "up")
        (child,) = descendants(process.pid)
    assert process.returncode == -signal.SIGTERM
    assert gone(child)


def test_a_program_deaf_to_sigterm_is_killed(tmp_path: Path) -> None:
    """SIGKILL comes after the grace."""
    with Registry("r", tmp_path) as registry:
        script = f"trap '' TERM; echo > {tmp_path}/up; while :; do sleep 0.05; done"
        process = registry.spawn(["sh", "-c", script], "deaf", grace_s=0.1)
        wait_for(tmp_path / "up")
    assert process.returncode == -signal.SIGKILL


def test_a_program_runs_where_it_was_put(tmp_path: Path) -> None:
    """CPU, policy and session are what was asked for."""
    cpu = max(os.sched_getaffinity(0))
    with Registry("r", tmp_path) as registry:
        process = registry.spawn(
            ["sh", "-c", f"echo > {tmp_path}/up; exec sleep 1000"], "pinned", Surroundings(cpus=[cpu])
        )
        wait_for(tmp_path / "up")
        assert os.sched_getaffinity(process.pid) == {cpu}
        assert os.sched_getscheduler(process.pid) == os.SCHED_OTHER
        assert os.getsid(process.pid) == process.pid


def test_a_program_that_cannot_start_says_why(tmp_path: Path) -> None:
    """The launcher's own failure is one line on stderr and exit code 1."""
    with Registry("r", tmp_path) as registry:
        process = registry.spawn(["/no/such/program"], "none", stderr=subprocess.PIPE)
        assert process.stderr is not None
        with process.stderr as stderr:
            assert b"espbench launcher: [Errno 2] cannot run /no/such/program" in stderr.read()
        assert process.wait(PATIENCE_S) == 1


@pytest.mark.root
def test_a_read_only_program_cannot_write_the_host(tmp_path: Path) -> None:
    """Neither plainly nor after mounting; its own tmpfs is the one place it can write."""
    own = tmp_path / "own"
    own.mkdir()
    script = f"echo x > {tmp_path}/host; echo y > {own}/mine && cat {own}/mine"
    with Registry("r", tmp_path) as registry:
        process = registry.spawn(
            ["sh", "-c", script],
            "caged",
            Surroundings(own_pids=True, read_only=True, mounts=[("tmpfs", str(own), "size=1m")]),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        out, err = process.communicate(timeout=PATIENCE_S)
    assert out == b"y\n"
    assert b"Read-only file system" in err
    assert not (tmp_path / "host").exists()
    assert list(own.iterdir()) == []


@pytest.mark.parametrize("pids", [pytest.param("own", marks=pytest.mark.root), "shared"])
def test_a_killed_controller_takes_its_programs_along_and_clean_does_the_rest(
    tmp_path: Path, pids: str
) -> None:
    """After kill -9 the process is gone by itself; `clean` removes the directory and reports it."""
    controller = subprocess.Popen(
        [sys.executable, "-c", CONTROLLER, str(tmp_path), pids], stdout=subprocess.PIPE, text=True
    )
    assert controller.stdout is not None
    directory, pid = controller.stdout.readline().split()
    deadline = time.monotonic() + PATIENCE_S
    wanted = 4 if pids == "own" else 2  # the launcher and process 1 stay as parents
    while len(below := [int(pid), *descendants(int(pid))]) < wanted and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(below) == wanted
    assert clean(tmp_path) == [], "a living controller's things are not touched"
    assert Path(directory).exists()
    controller.kill()
    controller.wait()
    controller.stdout.close()
    # Everything dies in a namespace of its own; without one, a grandchild is the program's own business.
    assert all(gone(each) for each in (below if pids == "own" else [int(pid)]))
    report = clean(tmp_path)
    assert f"killed: directory {directory}" in report
    assert not Path(directory).exists()
    assert list(tmp_path.iterdir()) == []
    if pids == "shared":
        os.kill(below[-1], signal.SIGKILL)


def test_clean_does_not_kill_a_process_that_has_the_old_number(tmp_path: Path) -> None:
    """The start time tells a reused pid from the process that was made."""
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as bystander:
        record = {"made": 1, "kind": "process", "name": "x", "pid": bystander.pid, "start": 1}
        (tmp_path / "old.journal").write_text(json.dumps(record) + "\n")
        clean(tmp_path)
        assert bystander.poll() is None
        bystander.kill()


def test_clean_reads_a_journal_cut_off_in_the_middle_of_a_line(tmp_path: Path) -> None:
    """The last line of a controller that was killed while writing is passed over."""
    left = tmp_path / "espbench-cut-left"
    left.write_text("x")
    record = json.dumps({"made": 1, "kind": "file", "name": str(left)})
    (tmp_path / "cut.journal").write_text(record + "\n" + record[:20])
    assert clean(tmp_path) == [f"cut: file {left}"]
    assert not left.exists()


def test_clean_passes_over_journals_that_vanish_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that ends, or another `clean`: one before the journal is opened, one before it is locked."""
    kept = tmp_path / "kept"
    kept.write_text("another clean undoes it")
    journals = [tmp_path / "a.journal", tmp_path / "b.journal"]
    for journal in journals:
        entry = {"made": 1, "kind": "file", "name": str(kept)}
        journal.write_text(
            json.dumps({"run": "x", "pid": 1 << 22, "start": 1}) + "\n" + json.dumps(entry) + "\n"
        )
    lock = fcntl.flock

    def late(file: int, how: int) -> None:
        journals[1].unlink()
        lock(file, how)

    monkeypatch.setattr(Path, "glob", lambda folder, pattern: journals)
    monkeypatch.setattr(fcntl, "flock", late)
    journals[0].unlink()
    assert clean(tmp_path) == []
    assert kept.exists()


@pytest.mark.root
def test_clean_removes_namespaces_links_and_mounts(tmp_path: Path) -> None:
    """Each kind is undone from its journal alone; what is already gone is no error."""
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    name = f"espbench-rest-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    subprocess.run(["ip", "-n", name, "link", "add", "a0", "type", "veth", "peer", "name", "b0"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(mounted)], check=True)
    links = tmp_path / "links.journal"
    record = {"made": 1, "kind": "link", "name": "a0", "netns": name}
    links.write_text(json.dumps(record) + "\n" + json.dumps({**record, "made": 2, "name": "gone"}) + "\n")
    clean(tmp_path)
    shown = subprocess.run(["ip", "-n", name, "-br", "link"], check=True, capture_output=True, text=True)
    assert "a0" not in shown.stdout
    rest = [("netns", name), ("netns", f"{name}-gone"), ("mount", str(mounted)), ("mount", str(tmp_path))]
    with (tmp_path / "rest.journal").open("w") as journal:
        for number, (kind, what) in enumerate(rest):
            journal.write(json.dumps({"made": number, "kind": kind, "name": what}) + "\n")
    clean(tmp_path)
    assert not Path(f"/run/netns/{name}").exists()
    assert not os.path.ismount(mounted)
    assert list(tmp_path.iterdir()) == [mounted]


def test_ctrl_c_while_undoing_waits_and_leaves_no_journal(tmp_path: Path) -> None:
    """All is undone first, then it is delivered, and there is nothing for `clean` to do."""
    kept = tmp_path / "file"
    kept.touch()
    registry = Registry("impatient", tmp_path / "state")
    registry.__enter__()
    registry.add("file", str(kept))
    registry.add("file", str(tmp_path / "second"), lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        registry.__exit__(None, None, None)
    assert not kept.exists()
    assert registry.entries == []
    assert list((tmp_path / "state").iterdir()) == []


# -- whom `clean` believes -------------------------------------------------------------------------


def planted(folder: Path, **record: object) -> Path:
    """A journal that names one thing."""
    folder.mkdir(mode=0o700, exist_ok=True)
    journal = folder / "planted.journal"
    journal.write_text(json.dumps({"made": 1, **record}) + "\n")
    return journal


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            '{"made": 2, "kind": "wormhole", "name": "w"}',
            "wormhole w: left by a newer espbench; use its `espbench clean`",
        ),
        ("5", "'5': left alone: expected a record of espbench"),
        ("[]", "left alone: expected a record"),
        ('{"kind": "file", "name": "x"}', "left alone: expected a record"),
        ('{"made": 2, "kind": "file"}', "left alone: expected a record"),
        ('{"made": 2, "kind": ["file"], "name": "x"}', "left alone: expected a record"),
        ('{"undone": [1]}', "left alone: expected a record"),
        (
            '{"made": 2, "kind": "process", "name": "sleep"}',
            "process sleep: left alone: its record is damaged .*start",
        ),
    ],
)
def test_clean_keeps_a_journal_that_it_does_not_understand_and_does_the_rest(
    tmp_path: Path, line: str, said: str
) -> None:
    """The things of the journal's other lines, and of later journals, are undone all the same."""
    lefts = [tmp_path / "espbench-a-left", tmp_path / "espbench-b-left"]
    for left, text in zip(lefts, (line + "\n", ""), strict=True):
        left.write_text("x")
        record = json.dumps({"made": 1, "kind": "file", "name": str(left)})
        (tmp_path / f"{left.name[9]}.journal").write_text(f"{text}{record}\n")
    with pytest.raises(EspbenchError, match=f"could not undo:\n  .*{said}.*, remove .*a.journal"):
        clean(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["a.journal"]


def test_clean_passes_over_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.journal").write_bytes(b"\xff\n")
    assert clean(tmp_path) == []


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A directory that a journal names as if a run had made it."""
    folder = tmp_path / "espbench-planted-x-1"
    folder.mkdir(mode=0o700)
    (folder / "diary").write_text("x")
    return folder


@pytest.mark.parametrize("mode", [0o777, 0o755, 0o770])
def test_a_directory_of_journals_that_others_can_enter_is_not_believed(
    tmp_path: Path, victim: Path, mode: int
) -> None:
    """/tmp/espbench-UID may be made by anybody, before we come."""
    planted(tmp_path / "state", kind="directory", name=str(victim))
    (tmp_path / "state").chmod(mode)
    with pytest.raises(
        MachineLacks, match=rf"state: expected a directory of this user's alone.*mode {mode:04o}"
    ):
        clean(tmp_path / "state")
    with pytest.raises(MachineLacks, match="remove it if it is not yours"):
        Registry("r", tmp_path / "state").__enter__()
    assert (victim / "diary").exists()


def test_a_symbolic_link_in_place_of_the_journals_is_not_followed(tmp_path: Path, victim: Path) -> None:
    planted(tmp_path / "elsewhere", kind="directory", name=str(victim))
    (tmp_path / "state").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(MachineLacks, match="got a symbolic link"):
        clean(tmp_path / "state")
    assert (victim / "diary").exists()


@pytest.mark.root
@pytest.mark.parametrize("whose", ["state", "."])
def test_a_directory_of_journals_of_another_user_is_not_believed(
    tmp_path: Path, victim: Path, whose: str
) -> None:
    """The same is true below such a directory: its owner can put another in its place."""
    planted(tmp_path / "state", kind="directory", name=str(victim))
    os.chown(tmp_path / whose, 12345, 12345)
    with pytest.raises(MachineLacks, match="belongs to user 12345"):
        clean(tmp_path / "state")
    os.chown(tmp_path, 0, 0)
    assert (victim / "diary").exists()


def test_a_directory_of_journals_that_others_can_replace_is_not_believed(
    tmp_path: Path, victim: Path
) -> None:
    """Its parent is open to all, and not sticky."""
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    planted(tmp_path / "open/state", kind="directory", name=str(victim))
    with pytest.raises(MachineLacks, match="nobody else can put there, got one below"):
        clean(tmp_path / "open/state")
    (tmp_path / "open").chmod(0o1777)
    assert clean(tmp_path / "open/state") == [f"planted: directory {victim}"]


@pytest.mark.parametrize(
    ("record", "why"),
    [
        ({"kind": "directory", "name": "{home}"}, "no run gives it this name"),
        ({"kind": "directory", "name": "{home}/../home"}, "expected an absolute path"),
        ({"kind": "directory", "name": "{link}"}, "a symbolic link"),
        ({"kind": "file", "name": "{home}/notes"}, "no run gives it this name"),
        ({"kind": "netns", "name": "lab"}, "no namespace of this run"),
        ({"kind": "netns", "name": "espbench-other-home"}, "no namespace of this run"),
    ],
)
def test_clean_leaves_alone_what_no_run_can_have_made(
    tmp_path: Path, record: dict[str, str], why: str
) -> None:
    """It is named, with the reason, and its journal stays."""
    home, link = tmp_path / "home", tmp_path / "espbench-planted-link"
    home.mkdir()
    (home / "notes").write_text("x")
    link.symlink_to(home)
    record = {key: value.format(home=home, link=link) for key, value in record.items()}
    journal = planted(tmp_path / "state", **record)
    with pytest.raises(
        EspbenchError, match=f"left alone: .*{why}; once you have seen to it, remove {journal}"
    ):
        clean(tmp_path / "state")
    assert (home / "notes").exists()
