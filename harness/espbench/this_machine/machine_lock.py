# SPDX-License-Identifier: Apache-2.0
"""Permits one measurement at a time on a machine: two would take CPU time from each other, and falsify both results.

The lock is a flock(2) on the file of this machine's time namespace (time_namespaces(7)). All users share this file,
and so do all containers, since they usually have no time namespace of their own. Nobody can replace or remove it,
everybody may open it, and the kernel frees the lock when its holder ends, even by SIGKILL. The kernel also says which
process holds the lock (/proc/locks).

A measurement in real time holds the lock alone. Runs in virtual time are right whatever else runs, but they take CPU
time from measurements in real time. So they share the lock among themselves.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from espbench.errors import EspbenchError, MachineLacks
from espbench.this_machine.processes import NS_PER_TICK, start_time

# The second file is for kernels without time namespaces; a container has a user namespace only if its users are mapped.
FILES = (Path("/proc/self/ns/time"), Path("/proc/self/ns/user"))
LOCKS = Path("/proc/locks")
_ASK_AGAIN_S = 0.5
_LONGEST_COMMAND = 200


@dataclass(frozen=True)
class Holder:
    """A process that holds the lock. Fields that this user may not read are empty."""

    pid: int
    user: str
    command: str
    directory: str
    since: str

    def __str__(self) -> str:
        of = f" of {self.user}" if self.user else ""
        since = f", since {self.since}" if self.since else ""
        where = f" (in {self.directory})" if self.directory else ""
        return f"process {self.pid}{of}{since}: {self.command or 'its command cannot be seen'}{where}"


def nobody(holders: list[Holder]) -> None:
    """Do nothing: the default of `on_wait`."""


@contextlib.contextmanager
def held(
    *, shared: bool = False, wait: bool = False, on_wait: Callable[[list[Holder]], None] = nobody
) -> Iterator[None]:
    """Hold the lock while the block runs; shared: together with other processes that share it.

    If other processes hold it, raise MachineLacks, which names them; with `wait`, call on_wait with them, again and
    again, until the lock is free.
    """
    descriptor = _open()
    try:
        how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        while not _taken(descriptor, how):
            others = holders(descriptor)
            if not wait:
                raise _refused(others)
            on_wait(others)
            time.sleep(_ASK_AGAIN_S)
        yield
    finally:
        os.close(descriptor)


def holders(descriptor: int) -> list[Holder]:
    """Return the holders of the lock on an open file, oldest first; a container does not see those of others."""
    status = os.fstat(descriptor)
    file = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    pids = []
    with contextlib.suppress(OSError):
        for line in LOCKS.read_text().splitlines():
            words = (
                line.split()
            )  # proc(5): number, kind, manner, access, pid, file, start, end; -> marks a process that waits
            if words[1] == "FLOCK" and words[5] == file and int(words[4]) > 0:
                pids.append(int(words[4]))
    return [_holder(pid) for pid in dict.fromkeys(pids)]


def _open() -> int:
    for file in FILES:
        with contextlib.suppress(FileNotFoundError):
            return os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    raise MachineLacks(
        f"no {FILES[-1]}, by which measurements know of each other", "mount -t proc proc /proc"
    )


def _taken(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise EspbenchError(f"{FILES[0]}: cannot be locked: {error.strerror}") from error
    return True


def _refused(others: list[Holder]) -> MachineLacks:
    who = "\n".join(f"  {holder}" for holder in others)
    pids = " ".join(str(holder.pid) for holder in others)
    return MachineLacks(
        "this machine's CPUs are taken: another measurement is under way, and each would slow the other\n"
        + (who or "  a process that cannot be seen from here; it may be in another container"),
        "let it end; `espbench run --wait` waits for that by itself"
        + (f"; or end it: kill {pids}" if pids else ""),
    )


def _holder(pid: int) -> Holder:
    process = Path(f"/proc/{pid}")
    command = directory = user = since = ""
    with contextlib.suppress(OSError):
        command = _shown(process.joinpath("cmdline").read_bytes())
    with contextlib.suppress(OSError):
        directory = _shown(os.fsencode(process.joinpath("cwd").readlink()))
    with contextlib.suppress(OSError):
        uid = process.stat().st_uid
        try:
            user = pwd.getpwuid(uid).pw_name
        except KeyError:
            user = f"user {uid}"
    if (started := start_time(pid)) is not None:
        began = time.time() - (time.clock_gettime(time.CLOCK_BOOTTIME) - started * NS_PER_TICK / 1e9)
        since = datetime.fromtimestamp(began).astimezone().isoformat(" ", "seconds")
    return Holder(pid, user, command, directory, since)


def _shown(text: bytes) -> str:
    """Return the text of another process as one line, without characters that control a terminal."""
    words = text.replace(b"\0", b" ").decode(errors="replace").strip()
    plain = "".join(c if c.isprintable() else "?" for c in words)
    return plain if len(plain) <= _LONGEST_COMMAND else plain[:_LONGEST_COMMAND] + " …"
