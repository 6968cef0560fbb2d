# SPDX-License-Identifier: Apache-2.0
"""Starts a User-Mode Linux guest: it has its own kernel, the host's files read-only, and an agent."""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from espbench.errors import GatewayFailed, UsageError
from espbench.platforms.channel import AGENT, AgentChannel
from espbench.platforms.gateway import tail
from espbench.platforms.placement import NICE
from espbench.platforms.uml.beat import Beat
from espbench.platforms.uml.uml_kernel import (
    GUEST_PATH,
    UmlKernel,
    build_xstate_shim,
    find_kernel,
    find_modules,
    needs_xstate_shim,
)
from espbench.this_machine.processes import descendants, renice_sessions
from espbench.this_machine.registry import Registry, Surroundings, interpreter

BOOT_TIMEOUT_S = 300.0  # a guest that dies is detected at once

INIT = """\
#!/bin/sh
# Process 1 of the guest: an overlay over the host's root, the modules, then the agent until it ends.
export PATH={path}
fail() {{ echo "espbench: $1 failed"; exit 1; }}
mount -t proc proc /proc || fail "mount /proc"
mount -t tmpfs tmpfs /tmp || fail "mount /tmp"
cd /tmp
version=$(uname -r)
mkdir -p lower upper work root boot/lib/modules
ln -s {modules} "boot/lib/modules/$version"
modprobe -d /tmp/boot overlay || fail "modprobe overlay"
# Without a path: it is / then, and how one is given differs between kernels and versions of mount(8).
mount -t hostfs -o ro none lower || fail "mount hostfs"
mount -t overlay -o lowerdir=/tmp/lower,upperdir=/tmp/upper,workdir=/tmp/work overlay root || fail overlay
cd root
mkdir -p lib/modules .old-root
ln -sfn {modules} "lib/modules/$version"
# pivot_root, not chroot: the kernel's own calls of modprobe must find the modules too.
pivot_root . .old-root || fail pivot_root
mount -t proc proc /proc && mount -t sysfs sysfs /sys && mount -t devtmpfs devtmpfs /dev || fail "mount /dev"
umount -l /.old-root
for module in {preload}; do modprobe $module || fail "modprobe $module"; done
{agent}
echo o > /proc/sysrq-trigger
exec sleep 60
"""


@dataclass(frozen=True)
class UmlMachine:
    """The configuration of a guest.

    devices: words of the kernel command line that define its network devices; preload: modules that are loaded before
    the agent's greeting.
    """

    kernel: UmlKernel
    memory_mb: int
    devices: Sequence[str] = ()
    preload: Sequence[str] = ()


@dataclass
class Guest:
    """A guest that was started. Its agent may not have sent its greeting yet (`wait_ready`)."""

    name: str
    process: subprocess.Popen[bytes]
    channel: AgentChannel
    notebook: Path
    console: Path
    beat: Beat

    def wait_ready(self) -> dict[str, Any]:
        """Wait for the agent's greeting and return it; from then on the guest has a higher priority on its CPU.

        The priority is set again here because the guest's kernel makes its own session when it starts. Raise
        GatewayFailed if the guest does not come up, or dies as soon as it is up.
        """
        greeting = self.channel.wait_ready(BOOT_TIMEOUT_S)
        renice_sessions(self.process.pid, NICE)
        try:
            self.beat.begin(self.kernel())
        except ProcessLookupError:
            raise self._died() from None
        return greeting

    def kernel(self) -> int:
        """Return the PID of the guest's kernel on this machine. Raise GatewayFailed if the guest has died."""
        below = descendants(self.process.pid)  # process 1 of its PID namespace, the kernel, what that started
        if len(below) < 2:
            raise self._died()
        return below[1]

    def _died(self) -> GatewayFailed:
        words = tail(self.console).strip()
        return GatewayFailed(
            f"gateway {self.name} died" + (f"; the end of its console:\n{words}" if words else "")
        )


def boot(
    registry: Registry,
    name: str,
    machine: UmlMachine,
    logs: Path,
    *,
    netns: str | None = None,
    cpus: Sequence[int] = (),
    pass_fds: Sequence[int] = (),
) -> Guest:
    """Start a guest and return at once; its agent sends a greeting on `channel` when the guest is up.

    The guest's logs are <name>-console.log and <name>.log in the folder `logs`.
    """
    executable = find_kernel(machine.kernel)
    private = registry.directory(name)
    state = _state(private)
    init = _write_init(private, machine)
    console, notebook = logs / f"{name}-console.log", logs / f"{name}.log"
    ours, theirs = socket.socketpair()
    channel = AgentChannel(name, ours, lambda: tail(console))
    registry.closing(f"channel to {name}", channel.close)
    fd = theirs.fileno()
    argv = [executable, *_kernel_parameters(name, machine, state, init, fd)]
    surroundings = Surroundings(
        netns=netns,
        cpus=cpus,
        own_pids=True,
        read_only=True,
        nice=NICE,
        # The guest's memory and control socket are here; they disappear with its mount namespace.
        mounts=[("tmpfs", str(state), f"size={machine.memory_mb + 16}m,mode=0700")],
        env=_environment(machine.kernel, private, state),
    )
    with notebook.open("a") as page:
        page.write(f"# {shlex.join(argv)}\n")
    with theirs, console.open("ab") as output:
        process = registry.spawn(
            argv,
            f"{name} ({executable})",
            surroundings,
            stdout=output,
            stderr=output,
            pass_fds=(fd, *pass_fds),
            grace_s=0,
        )
    beat = Beat(f"beat of {name}")
    registry.closing(f"beat of {name}", beat.stop)
    return Guest(name, process, channel, notebook, console, beat)


def _state(private: Path) -> Path:
    """Make the directory for the guest's memory and control socket; raise UsageError if its path has a space."""
    if len(str(private).split()) != 1:
        raise UsageError(f"TMPDIR must not contain a space ({private}): it stands on a kernel command line")
    state = private / "state"
    state.mkdir(mode=0o700)
    return state


def _write_init(private: Path, machine: UmlMachine) -> Path:
    """Write the guest's first program, which makes its root and starts the agent."""
    init = private / "init"
    init.write_text(
        INIT.format(
            path=GUEST_PATH,
            modules=shlex.quote(str(find_modules(machine.kernel))),
            preload=shlex.join(machine.preload),
            agent=shlex.join([interpreter(), "-I", "-S", str(AGENT), "--tty", "/dev/ttyS0"]),
        )
    )
    init.chmod(0o700)
    return init


def _kernel_parameters(name: str, machine: UmlMachine, state: Path, init: Path, fd: int) -> list[str]:
    """Return the guest kernel's command line; fd: the descriptor of the agent's channel, which is its serial line."""
    return [
        f"mem={machine.memory_mb}M",
        f"umid={name}",
        f"uml_dir={state}",
        "root=/dev/root",
        "rootfstype=hostfs",
        "ro",
        f"init={init}",
        "con=null",
        "con0=null,fd:1",
        "ssl=null",
        f"ssl0=fd:{fd},fd:{fd}",
        *machine.devices,
    ]


def _environment(kernel: UmlKernel, private: Path, state: Path) -> dict[str, str]:
    """Return the environment of the guest's kernel; some kernels must preload a library (uml_ptrace.c)."""
    env = {"PATH": os.defpath, "TMPDIR": str(state)}
    if needs_xstate_shim(kernel):
        env["LD_PRELOAD"] = str(build_xstate_shim(private))
    return env
