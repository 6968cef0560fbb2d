# SPDX-License-Identifier: Apache-2.0
"""Samples by perf the functions that run on the gateways' CPUs, exactly while a trial's frames are sent.

perf starts before the trial with its events disabled. Commands on its standard input enable and disable them, and perf
acknowledges each command (perf-record(1), --control), so that the samples are from the time of the frames only.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from select import select
from time import monotonic

from espbench.errors import EspbenchError, MachineLacks
from espbench.platforms.base import Side
from espbench.this_machine.registry import Registry

# The number of samples per second on each CPU: a prime, so that they are not synchronous with the kernel's tick.
PER_S = 997
FILE_END = ".samples"
_INSTALL = "as root: apt-get install linux-perf; or sysctl kernel.perf_event_paranoid=-1"
_ANSWER_S = 60.0
_SCRIPT_S = 600.0
_END_S = 5.0
_FIELDS = "comm,pid,tid,cpu,time,period,event,ip,sym,dso"
# The acknowledgements, and later the samples as text, go to standard output, all other output to stderr. perf ends by
# itself when its standard input is closed: when its parent process or the connection to a box ends. A shell that a
# signal ends does not execute what it was told to do at EXIT, unless a trap for this signal exits.
_RECORD = (
    "{file} || exit; trap 'rm -f \"$f\"' EXIT; trap exit HUP INT TERM; "
    'perf record {options} -D -1 --control fd:0,3 -o "$f" 3>&1 1>&2; '
    f'perf script -i "$f" --show-lost-events --no-inline -F {_FIELDS}'
)
# File systems in memory: nothing is written to the disk of a box.
_IN_MEMORY = "f=$(mktemp -p /dev/shm) || f=$(mktemp -p /run)"
_TRY = "command -v perf >/dev/null || exit 127; perf record {options} -o /dev/null -- true 1>&2"


@dataclass(frozen=True)
class Sampled:
    """One machine with CPUs of gateways.

    where: its name for people. cpus: the CPUs to sample; empty: all CPUs of the machine. threads: for each gateway on
    the machine a function that returns the ids of its threads; None: all threads of the machine are the gateway's.
    reached: returns the command line that executes another one on this machine. folder: the directory of perf's file,
    which must outlive perf; None: the machine is a box, and the file is in its memory.
    """

    where: str
    cpus: Sequence[int]
    threads: Mapping[Side, Callable[[], set[int]] | None]
    reached: Callable[[list[str]], list[str]] = list
    folder: Path | None = None

    def shell(self, script: str) -> list[str]:
        """Return the command line that executes a script such as _RECORD on this machine."""
        cpus = f"-C {','.join(map(str, self.cpus))}" if self.cpus else "-a"
        file = f"f=$(mktemp -p {shlex.quote(str(self.folder))})" if self.folder else _IN_MEMORY
        # -N: otherwise perf copies the programs that it met to ~/.debug.
        options = f"-F {PER_S} -g -N {cpus}"
        return self.reached(["sh", "-c", script.replace("{options}", options).replace("{file}", file)])


def require(machines: Sequence[Sampled]) -> None:
    """Raise MachineLacks if perf is missing on a machine, or is not permitted to sample."""
    for machine in machines:
        done = subprocess.run(
            machine.shell(_TRY), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise MachineLacks(_why(machine, done.returncode, done.stderr), _INSTALL)


def _why(machine: Sampled, status: int, said: str) -> str:
    if status == 127:
        return f"{machine.where}: no perf, which samples the functions of gateways in real time"
    words = [line.strip() for line in said.splitlines() if line.strip()]
    return f"{machine.where}: perf may not sample ({' '.join(words[:3]) or f'exit code {status}'})"


class Sampler:
    """Samples the trials of one test bed into files in `logs`; a later trial of a case replaces the files of
    the last.
    """

    def __init__(self, registry: Registry, logs: Path, machines: Sequence[Sampled]) -> None:
        """Raise MachineLacks if perf cannot sample on one of the machines."""
        require(machines)
        self._registry = registry
        self._logs = logs
        self._machines = machines
        self._recordings: list[_Recording] = []
        self._case = ""

    def start(self) -> None:
        """Start perf, which does not sample yet. Raise EspbenchError, which quotes perf, if it does not start."""
        self.stop()
        for machine in self._machines:
            self._recordings.append(_Recording(self._registry, self._logs, machine))
        for recording in self._recordings:
            recording.command("ping")

    @contextmanager
    def during(self, case: str) -> Iterator[None]:
        """Sample while the context lasts, for the trial of this case."""
        self._case = case
        for recording in self._recordings:
            recording.look_at_threads()
            recording.command("enable")
        yield
        for recording in self._recordings:
            recording.command("disable")
            recording.look_at_threads()

    def finish(self) -> None:
        """Write the samples; the gateways' programs still run, so that perf can name their functions."""
        for recording in self._recordings:
            text = recording.text()
            for side, threads in recording.threads.items():
                first = json.dumps({"threads": None if threads is None else sorted(threads)})
                path = self._logs / f"profile-{self._case}-{side}{FILE_END}"
                path.write_text(f"{first}\n{text}", encoding="utf-8")
        self.stop()

    def stop(self) -> None:
        """End perf on all machines."""
        for recording in self._recordings:
            recording.end()
        self._recordings.clear()


class _Recording:
    """A running perf on one machine."""

    def __init__(self, registry: Registry, logs: Path, machine: Sampled) -> None:
        self._machine = machine
        self._registry = registry
        self._log = logs / f"perf-{'-'.join(machine.threads)}.log"
        before = len(registry.entries)
        with self._log.open("wb") as said:
            self._process = registry.spawn(
                machine.shell(_RECORD), f"perf on {machine.where}",
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, grace_s=5.0,
            )  # fmt: skip
        self._entries = registry.entries[before:]
        # The threads that existed before the trial or after it.
        self.threads: dict[Side, set[int] | None] = {
            side: None if find is None else set() for side, find in machine.threads.items()
        }

    def look_at_threads(self) -> None:
        for side, find in self._machine.threads.items():
            if find is not None:
                self.threads[side] = (self.threads[side] or set()) | find()

    def command(self, word: str) -> None:
        """Send a command and wait until perf has acknowledged it; raise EspbenchError if it does not."""
        pipe_in, pipe_out = self._process.stdin, self._process.stdout
        assert pipe_in is not None
        assert pipe_out is not None
        said, deadline = b"", monotonic() + _ANSWER_S
        with suppress(BrokenPipeError):
            os.write(pipe_in.fileno(), f"{word}\n".encode())
            while select([pipe_out], [], [], max(0.0, deadline - monotonic()))[0]:
                if not (part := os.read(pipe_out.fileno(), 4096)):
                    break
                said += part
                if b"ack\n" in said:  # output of a login shell may come before it
                    return
        raise self._failed(f"did not answer `{word}`")

    def text(self) -> str:
        """Let perf end, and return its samples."""
        self.command("stop")
        try:
            out, _ = self._process.communicate(timeout=_SCRIPT_S)
        except subprocess.TimeoutExpired:
            raise self._failed(f"has written no samples within {_SCRIPT_S:g} s") from None
        if self._process.returncode:
            raise self._failed("cannot read its samples")
        return out.decode(errors="replace").lstrip("\0")

    def end(self) -> None:
        """End perf; on a box by the command `stop`, since a signal on this machine reaches only ssh."""
        pipe_in, pipe_out = self._process.stdin, self._process.stdout
        assert pipe_in is not None
        assert pipe_out is not None
        if self._process.poll() is None:
            with suppress(OSError):
                os.write(pipe_in.fileno(), b"stop\n")
        for pipe in (pipe_out, pipe_in):
            with suppress(OSError):
                pipe.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_S)
        self._registry.undo(self._entries)

    def _failed(self, what: str) -> EspbenchError:
        said = " ".join(self._log.read_text(errors="replace").split())
        return EspbenchError(f"perf on {self._machine.where} {what}: {said[-500:] or 'it said nothing'}")
