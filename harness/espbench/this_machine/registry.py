# SPDX-License-Identifier: Apache-2.0
"""Records every change that espbench makes to the machine, so that every change is undone.

Each thing is written to a journal when it is made, and marked as undone when it is removed. The journal is locked while
its controller lives. If a controller was killed, the things it left are in a journal without a lock, and `clean`
removes them.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from espbench.errors import EspbenchError
from espbench.this_machine.ending import uninterrupted
from espbench.this_machine.network import make_netns, remove_link, remove_netns
from espbench.this_machine.private import not_private, private_directory
from espbench.this_machine.processes import descendants, start_time

LAUNCHER = Path(__file__).with_name("launcher.py")
_REMEDY = "look what is in it; remove it if it is not yours, or set XDG_RUNTIME_DIR to a directory of yours"
Redirection = int | IO[Any] | None


def state_dir() -> Path:
    """Return the directory of the journals: /run/espbench for root, else one in the user's runtime directory."""
    if os.geteuid() == 0:
        return Path("/run/espbench")
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return Path(runtime) / "espbench" if runtime else Path(tempfile.gettempdir()) / f"espbench-{os.getuid()}"


def undo_the_rest() -> None:
    """Undo everything that registries of this process still have, because an interruption kept them from doing so.

    Call it at the very end, when signals are ignored. Raise EspbenchError, which names what could not be undone.
    """
    for registry in reversed(_LIVING.copy()):
        registry.__exit__(None, None, None)


def interpreter() -> str:
    """Return the Python that runs the launcher and the agents: that of this process, without its virtualenv."""
    return os.path.realpath(sys.executable)


class LeftForClean(Exception):
    """Raised by an undo that cannot finish now. The run does not fail, but the journal keeps the entry for `clean`."""


@dataclass
class Entry:
    """One thing that was made: kind and name say what it is, `undo` removes it; detail is for the journal."""

    number: int
    kind: str
    name: str
    undo: Callable[[], None]
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Surroundings:
    """The surroundings of a program: where it runs, and what it may do.

    netns: path of a network namespace. cpus: if empty, all that this process may use. own_pids: the program has a PID
    namespace of its own, so that all its descendants die with it, also stopped and traced ones. read_only: it cannot
    write files of the host. nice: the value for the program and its session, if this user may set it. mounts: (type,
    target, options) of file systems that only the program sees. env: the whole environment; None: that of this process.
    """

    netns: str | None = None
    cpus: Sequence[int] = ()
    own_pids: bool = False
    read_only: bool = False
    nice: int = 0
    mounts: Sequence[tuple[str, str, str]] = ()
    env: Mapping[str, str] | None = None


class Registry:
    """Records the things that one controller makes. Leaving its context undoes all, in reverse order.

    Processes must be spawned from a thread that outlives them: the kernel kills them when the thread
    that started them ends.
    """

    def __init__(self, run_id: str, directory: Path | None = None) -> None:
        self.run_id = run_id
        self.entries: list[Entry] = []
        self._directory = directory or state_dir()
        self._count = 0
        self._left = False
        self._journal: IO[str] | None = None
        self.path = self._directory / f"{run_id}.journal"

    def __enter__(self) -> Self:
        try:
            with uninterrupted():
                self._begin()
                _LIVING.append(self)
        except KeyboardInterrupt:
            if self in _LIVING:
                self.__exit__(None, None, None)
            raise
        return self

    def _begin(self) -> None:
        private_directory(self._directory, _REMEDY)
        # The journal gets its final name once it is locked, so that `clean` never sees it without its lock.
        handle, unlocked = tempfile.mkstemp(dir=self._directory, prefix=".new-")
        self._journal = os.fdopen(handle, "w")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            self._write({"run": self.run_id, "pid": os.getpid(), "start": start_time(os.getpid())})
            os.link(unlocked, self.path)
        except BaseException as error:
            with contextlib.suppress(OSError):  # of a full disk
                self._journal.close()
            if isinstance(error, FileExistsError):
                text = f"another espbench uses the run id {self.run_id} ({self.path})"
                raise EspbenchError(text) from None
            raise
        finally:
            Path(unlocked).unlink()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.undo(self.entries)
        except EspbenchError as failure:
            if error is None:
                raise
            error.add_note(str(failure))
            if isinstance(error, KeyboardInterrupt):  # its notes are not printed later
                print(failure, file=sys.stderr)
        finally:
            if self in _LIVING:
                _LIVING.remove(self)
            # The journal is removed even if a second Ctrl-C was delayed until everything was undone. `clean` removes
            # one that the file system does not let go.
            if not self._left and not [entry for entry in self.entries if entry.kind in UNDO]:
                with contextlib.suppress(OSError):
                    self.path.unlink(missing_ok=True)
            if self._journal is not None:
                with contextlib.suppress(OSError):  # of a full disk: what could not be written before
                    self._journal.close()

    def add(self, kind: str, name: str, undo: Callable[[], None] | None = None, **detail: Any) -> Entry:
        """Register a thing and return its entry; without `undo`, it is undone as `clean` undoes its kind.

        Call this before the thing is made, if its name is known: it is not an error to undo a thing that does not
        exist. Raise ValueError for a kind that `clean` cannot undo.
        """
        if kind not in UNDO:
            raise ValueError(f"no way to undo a {kind!r} after a crash; kinds: {', '.join(UNDO)}")
        self._count += 1
        record = {"made": self._count, "kind": kind, "name": name, **detail}
        entry = Entry(self._count, kind, name, undo or (lambda: UNDO[kind](record)), detail)
        self.entries.append(entry)
        self._write(record)
        return entry

    def closing(self, name: str, close: Callable[[], None]) -> None:
        """Register a thing that ends with this process, such as a socket; it is not written to the journal."""
        self._count += 1
        self.entries.append(Entry(self._count, "open", name, close))

    def undo(self, entries: Sequence[Entry]) -> None:
        """Undo these entries in reverse order. After all were tried, raise EspbenchError with those that failed.

        Ctrl-C, SIGTERM and SIGHUP are delayed until it is done.
        """
        failures = []
        with uninterrupted():
            for entry in sorted(entries, key=lambda entry: entry.number, reverse=True):
                if entry not in self.entries:
                    continue
                try:
                    entry.undo()
                except LeftForClean:
                    self.entries.remove(entry)
                    self._left = True
                    continue
                except Exception as error:  # one failure must not keep the others from being undone
                    failures.append(f"{entry.kind} {entry.name}: {error}")
                    continue
                self.entries.remove(entry)
                self._mark_undone(entry)
        if failures:
            raise EspbenchError("could not undo:\n  " + "\n  ".join(failures))

    def netns(self, role: str) -> str:
        """Make the network namespace `espbench-<run>-<role>` and return its name.

        Undoing removes it with everything in it. While there is one of that role, the next is called
        `espbench-<run>-<role>-2`, and so on.
        """
        taken = {entry.name for entry in self.entries if entry.kind == "netns"}
        name = bare = f"espbench-{self.run_id}-{role}"
        number = 1
        while name in taken:
            number += 1
            name = f"{bare}-{number}"
        self.add("netns", name)
        # A Ctrl-C is delayed, since otherwise the namespace could be made after it was undone.
        with uninterrupted():
            make_netns(name)
        return name

    def directory(self, role: str, inside: Path | None = None) -> Path:
        """Make a directory that only this user can enter; inside: its parent (default: that of temporary files)."""
        with uninterrupted():
            path = Path(tempfile.mkdtemp(prefix=f"espbench-{self.run_id}-{role}-", dir=inside))
            self.add("directory", str(path))
        return path

    def control_group(self, root: Path, role: str) -> Path:
        """Make a control group; root: a mounted hierarchy, or a group in one."""
        with uninterrupted():
            path = root / f"espbench-{self.run_id}-{role}-{self._count}"
            path.mkdir()
            self.add("control group", str(path))
        return path

    def spawn(
        self,
        argv: Sequence[str],
        name: str,
        surroundings: Surroundings | None = None,
        *,
        stdin: Redirection = subprocess.DEVNULL,
        stdout: Redirection = None,
        stderr: Redirection = None,
        pass_fds: Sequence[int] = (),
        grace_s: float = 2.0,
    ) -> subprocess.Popen[bytes]:
        """Start a program that dies when this thread does, in a session of its own, under SCHED_OTHER.

        Undoing it sends SIGTERM, after grace_s seconds SIGKILL (0: SIGKILL at once), and waits for its end. Process 1
        of a PID namespace receives a SIGTERM only if it has a handler for it.
        """
        around = surroundings or Surroundings()
        spec = {
            "parent": os.getpid(),
            "netns": around.netns,
            "cpus": list(around.cpus),
            "own_pids": around.own_pids,
            "read_only": around.read_only,
            "nice": around.nice,
            "mounts": [list(mount) for mount in around.mounts],
            "argv": list(argv),
        }
        with uninterrupted():
            process = subprocess.Popen(
                [interpreter(), "-I", "-S", str(LAUNCHER), json.dumps(spec)],
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                pass_fds=pass_fds,
                env=around.env,
                start_new_session=True,
            )
            start = start_time(process.pid)
            self.add(
                "process", name, lambda: _end(process, grace_s, around.own_pids), pid=process.pid, start=start
            )
        return process

    def _mark_undone(self, entry: Entry) -> None:
        """Write that an entry is undone, if the journal can be written.

        If it cannot, everything else must be undone all the same. Without the mark `clean` undoes this entry again,
        which changes nothing.
        """
        with contextlib.suppress(OSError, ValueError):  # a full disk, a closed journal
            self._write({"undone": entry.number})

    def _write(self, record: dict[str, Any]) -> None:
        if self._journal is None:
            raise RuntimeError("a Registry is used as a context: `with Registry(…) as registry:`")
        self._journal.write(json.dumps(record) + "\n")
        self._journal.flush()


def _end(process: subprocess.Popen[bytes], grace_s: float, own_pids: bool) -> None:
    """Terminate the process group of a process that `spawn` started, and wait for the process."""
    if process.poll() is not None:
        return  # it was waited for, so another process may have its pid by now
    if grace_s:
        _signal_group(process.pid, signal.SIGTERM)
        deadline = time.monotonic() + grace_s
        # WNOWAIT does not reap the leader when it ends, so that no other group can get its number before the SIGKILL.
        how = os.WEXITED | os.WNOWAIT | os.WNOHANG
        while os.waitid(os.P_PID, process.pid, how) is None and time.monotonic() < deadline:
            time.sleep(0.01)
    if own_pids and (below := descendants(process.pid)):
        # Only process 1 of the namespace is killed: the launcher, its parent, ends when all of the namespace have.
        with contextlib.suppress(ProcessLookupError):
            os.kill(below[0], signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_KILLED_S)
            return
    _signal_group(process.pid, signal.SIGKILL)
    process.wait(_KILLED_S)


def _signal_group(leader: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, number)


def _undo_netns(record: dict[str, Any]) -> None:
    remove_netns(record["name"])


def _undo_link(record: dict[str, Any]) -> None:
    remove_link(record.get("netns"), record["name"])


def _undo_process(record: dict[str, Any]) -> None:
    if record["start"] is not None and start_time(record["pid"]) == record["start"]:
        _signal_group(record["pid"], signal.SIGKILL)


def _undo_mount(record: dict[str, Any]) -> None:
    if os.path.ismount(record["name"]):
        subprocess.run(["umount", "-l", record["name"]], check=True, capture_output=True)


def _undo_directory(record: dict[str, Any]) -> None:
    path = Path(record["name"])
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)


def _undo_control_group(record: dict[str, Any]) -> None:
    path = Path(record["name"])
    deadline = time.monotonic() + _GROUP_EMPTIES_S
    while path.is_dir():
        try:
            path.rmdir()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)  # its last process is about to end


def _undo_file(record: dict[str, Any]) -> None:
    Path(record["name"]).unlink(missing_ok=True)


# A killed process ends when it gets a CPU, which may take a while on a busy host.
_GROUP_EMPTIES_S = _KILLED_S = 60.0
_MOST_QUOTED = 60  # characters of a line that is no record
_LIVING: list[Registry] = []
UNDO: dict[str, Callable[[dict[str, Any]], None]] = {
    "netns": _undo_netns,
    "link": _undo_link,
    "process": _undo_process,
    "mount": _undo_mount,
    "directory": _undo_directory,
    "file": _undo_file,
    "control group": _undo_control_group,
}


def clean(directory: Path | None = None, run_id: str = "*") -> list[str]:
    """Undo everything that dead controllers left; return one line for each thing. Living controllers are not touched.

    run_id: only of this controller. After everything was tried, raise EspbenchError with the things that could not be
    undone; their journals stay.
    """
    report: list[str] = []
    failures: list[str] = []
    journals = directory or state_dir()
    if not os.path.lexists(journals):
        return report
    private_directory(journals, _REMEDY)
    for path in sorted(journals.glob(f"{run_id}.journal")):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            continue  # its run has ended meanwhile, or another `clean` was faster
        with os.fdopen(descriptor, errors="replace") as journal:
            try:
                fcntl.flock(journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            if not os.fstat(descriptor).st_nlink:
                continue
            undone, left = _clean_journal(path, journal)
            report += undone
            failures += left
            if not left:
                path.unlink(missing_ok=True)
    if failures:
        raise EspbenchError("could not undo:\n  " + "\n  ".join(failures))
    return report


def _clean_journal(path: Path, journal: IO[str]) -> tuple[list[str], list[str]]:
    """Undo what a dead controller's journal names; return a line for each thing undone, and for each that was not."""
    seen_to = f"once you have seen to it, remove {path}"
    records, damaged = _left_behind(journal)
    undone: list[str] = []
    left = [f"{line}: left alone: expected a record of espbench; {seen_to}" for line in damaged]
    for record in records:
        thing = f"{record['kind']} {record['name']}"
        try:
            if record["kind"] not in UNDO:
                left.append(f"{thing}: left by a newer espbench; use its `espbench clean`, or, {seen_to}")
            elif why := _not_ours(path.stem, record):
                left.append(f"{thing}: left alone: {why}; {seen_to}")
            else:
                UNDO[record["kind"]](record)
                undone.append(f"{path.stem}: {thing}")
        except (OSError, EspbenchError, subprocess.SubprocessError) as error:
            left.append(f"{thing}: {error}")
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            left.append(f"{thing}: left alone: its record is damaged ({error!r}); {seen_to}")
    return undone, left


def _not_ours(run_id: str, record: dict[str, Any]) -> str:
    """Say why a run cannot have made a thing that a journal names; empty if it may have.

    A journal may be damaged or written by another version; without this check, things of others could be removed.
    """
    kind, name = record["kind"], str(record["name"])
    if kind == "netns":
        given = re.fullmatch(rf"espbench-{re.escape(run_id)}-[\w-]+", name)
        return "" if given else "no namespace of this run"
    if kind == "control group":
        given = re.fullmatch(rf"/[\w/.-]*/espbench-{re.escape(run_id)}-[\w-]+", name)
        return "" if given and ".." not in name else "no control group of this run"
    if kind in ("directory", "file", "mount") and os.path.lexists(name):
        return _no_path_of_ours(run_id, kind, Path(name))
    return ""  # a process is identified by its start, a link by its namespace


def _no_path_of_ours(run_id: str, kind: str, path: Path) -> str:
    if not path.is_absolute() or path != Path(os.path.normpath(path)):
        return "expected an absolute path"
    # The folders of a build are in the cache.
    if kind != "mount" and not re.match(rf"espbench-{re.escape(run_id)}-|\.work-[0-9a-f]+$", path.name):
        return "no run gives it this name"
    if kind == "directory":
        return not_private(path)
    owner = path.lstat().st_uid
    return "" if owner == os.geteuid() else f"it belongs to user {owner}"


def _left_behind(journal: IO[str]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the records of things that were made and not undone, according to a journal, in reverse order; and the
    lines that are no records, as they are quoted.
    """
    made: dict[int, dict[str, Any]] = {}
    damaged: list[str] = []
    for line in journal:
        try:
            record = json.loads(line)
        except ValueError:  # the controller was killed while it wrote this line
            continue
        match record:
            case {"run": _}:  # the first line: who the controller was
                continue
            case {"undone": int(number)}:
                made.pop(number, None)
            case {"made": int(number), "kind": str(), "name": str()}:
                made[number] = record
            case _:
                damaged.append(ascii(line.strip()[:_MOST_QUOTED]))
    return list(reversed(made.values())), damaged
