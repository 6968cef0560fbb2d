# SPDX-License-Identifier: Apache-2.0
"""Prepares a process that the controller starts: sets its namespaces and CPUs, and lets it die with the controller.

It is run as `python3 -I -S launcher.py SPEC`, where SPEC is a JSON object (see registry.Registry.spawn), and becomes
the program; with own_pids, two copies of the launcher stay as parents of the program. It is a program of its own
because a Python controller with threads cannot safely run code between fork and exec.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import sys
from typing import Any, NoReturn

PR_SET_PDEATHSIG = 1
CLONE_NEWNS = 0x00020000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
AT_FDCWD = -100
AT_RECURSIVE = 0x8000
MOUNT_ATTR_RDONLY = 1
SYS_MOUNT_SETATTR = 442  # the same on every architecture

libc = ctypes.CDLL(None, use_errno=True)


def check(result: int, what: str) -> None:
    """Raise OSError, which names the call in `what`, if a libc call failed."""
    if result < 0:
        errno = ctypes.get_errno()
        raise OSError(errno, f"{what}: {os.strerror(errno)}")


def die_with_parent() -> None:
    """Let the kernel send SIGKILL to this process when the thread that started it ends, however it ends."""
    check(libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0), "prctl")


def enter_own_pids() -> None:
    """Return as process 2 of a new PID namespace, whose process 1 only waits.

    When process 1 dies, the kernel kills all other processes of its namespace, also stopped or traced ones. The program
    is not process 1 itself, because the kernel ignores the abort() of process 1: a panicking guest would hang.
    """
    check(libc.unshare(CLONE_NEWPID), "unshare(CLONE_NEWPID)")
    watched, held = os.pipe()
    first = os.fork()
    if first:
        wait_for(first, keep=held)
    os.close(held)
    die_with_parent()
    # The parent's pid is 0 in the namespace, whether it lives or not; the pipe shows if it has ended.
    poll = select.poll()
    poll.register(watched, 0)
    if poll.poll(0):
        os._exit(1)
    program = os.fork()
    if program:
        wait_for(program)
    os.close(watched)


def wait_for(child: int, keep: int = -1) -> NoReturn:
    """Close all files but `keep`, wait for all children that end, and exit with the status of `child`."""
    os.closerange(3, max(3, keep))
    os.closerange(max(3, keep + 1), 1 << 20)
    # A SIGTERM to the whole group is meant for the program; this process ends after the program.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        ended, status = os.wait()
        if ended == child:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def make_read_only() -> None:
    """Make every mount of this mount namespace read-only, so that the program cannot write a file of the host."""

    class Attributes(ctypes.Structure):
        _fields_ = (
            ("set", ctypes.c_uint64),
            ("clear", ctypes.c_uint64),
            ("propagation", ctypes.c_uint64),
            ("userns", ctypes.c_uint64),
        )

    wanted = Attributes(set=MOUNT_ATTR_RDONLY)
    size = ctypes.c_size_t(ctypes.sizeof(wanted))
    result = libc.syscall(SYS_MOUNT_SETATTR, AT_FDCWD, b"/", AT_RECURSIVE, ctypes.byref(wanted), size)
    check(result, "mount_setattr(/, read-only)")


def renice(nice: int) -> None:
    """Set the nice value of this process and its session; without the right to, nothing changes."""
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, nice)
    # Autogrouping lets the nice value of a process count only inside its session; the session has a value too.
    with contextlib.suppress(OSError), open("/proc/self/autogroup", "w") as group:  # noqa: PTH123
        group.write(str(nice))


def launch(spec: dict[str, Any]) -> NoReturn:
    """Apply everything that SPEC asks for, in this order, and become the program of its argv."""
    die_with_parent()
    if os.getppid() != spec["parent"]:
        os._exit(1)
    # The controller blocks these signals while it starts this process.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    if spec["nice"]:
        renice(spec["nice"])
    if spec["cpus"]:
        os.sched_setaffinity(0, spec["cpus"])
    if spec["netns"]:
        fd = os.open(spec["netns"], os.O_RDONLY)
        check(libc.setns(fd, CLONE_NEWNET), f"setns({spec['netns']})")
        os.close(fd)
    if spec["own_pids"]:
        enter_own_pids()
    if spec["read_only"] or spec["mounts"]:
        check(libc.unshare(CLONE_NEWNS), "unshare(CLONE_NEWNS)")
        check(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "mount --make-rprivate /")
    if spec["read_only"]:
        make_read_only()
    for kind, target, options in spec["mounts"]:
        result = libc.mount(kind.encode(), target.encode(), kind.encode(), 0, options.encode())
        check(result, f"mount -t {kind} {target}")
    try:
        os.execvp(spec["argv"][0], spec["argv"])
    except OSError as error:
        raise OSError(error.errno, f"cannot run {spec['argv'][0]}: {error.strerror}") from None


if __name__ == "__main__":
    try:
        launch(json.loads(sys.argv[1]))
    except OSError as error:
        sys.exit(f"espbench launcher: {error}")
