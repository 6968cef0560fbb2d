# SPDX-License-Identifier: Apache-2.0
"""Reads samples as `perf script` writes them: the process that ran, the weight, and the chain of called functions."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import PurePath

from espbench.errors import EspbenchError
from espbench.profile.symbols import KERNEL, UNNAMED, Function

_HEAD = re.compile(
    r"^\s*(?P<comm>.*?)\s+(?P<pid>-?\d+)/(?P<tid>-?\d+)\s+(?:\[\d+\]\s+)?[\d.]+:\s+(?P<period>\d+)\s+"
    r"(?P<event>\S+):\s*$"
)
_LOST = re.compile(r"PERF_RECORD_LOST(?:_SAMPLES)?\s+lost\s+(\d+)")
# A symbol of C++ may have blanks and parentheses; a path may have blanks.
_FRAME = re.compile(r"^\s+[0-9a-f]+\s+(?P<symbol>.*)\s\((?P<file>[/\[][^()]*(?: \(deleted\))?|[^()\s]+)\)$")
_KERNELS = ("[kernel.kallsyms]", "[kernel]")
_BPF = "bpf_prog_"  # the beginning of a BPF program's name, which perf shows as a file of its own
_DELETED = " (deleted)"
_UNKNOWN = "[unknown]"


@dataclass(frozen=True)
class Sample:
    """One sample of a CPU.

    process: the name of the process, without numbers that differ in each run. idle: the CPU's idle task ran. period:
    how much of the event the sample stands for (cpu-clock: ns). calls: the chain of callers, the outermost function
    first; the last one ran; empty if perf did not know it. in_kernel: whether the function that ran is the kernel's.
    """

    process: str
    thread: int
    idle: bool
    period: int
    calls: tuple[Function, ...]
    in_kernel: bool


@dataclass(frozen=True)
class Samples:
    """The samples of one recording; event: perf's name of the counted event; lost: samples that perf could not keep."""

    event: str
    samples: list[Sample]
    lost: int


def read(text: str, where: str, threads: Collection[int] | None = None) -> Samples:
    """Return the samples of these threads, or of all; EspbenchError, which names the file `where`, for another text."""
    samples: list[Sample] = []
    events: dict[str, None] = {}
    lost = 0
    for block in re.split(r"\n\s*\n", text):
        lines = [line for line in block.splitlines() if line.strip()]
        while lines and (gap := _LOST.search(lines[0])):
            lost += int(gap[1])
            del lines[0]
        if not lines:
            continue
        if (head := _HEAD.match(lines[0])) is None:
            raise EspbenchError(f"{where}: expected a sample as perf script writes it, got {lines[0]!r}")
        events.setdefault(head["event"].partition(":")[0])
        if threads is None or int(head["tid"]) in threads:
            samples.append(_sample(head, lines[1:]))
    if len(events) > 1:
        raise EspbenchError(f"{where}: expected samples of one event, got {', '.join(events)}")
    return Samples(next(iter(events), ""), samples, lost)


def _sample(head: re.Match[str], lines: list[str]) -> Sample:
    innermost_first = [_function(line) for line in lines]
    calls = tuple(function for function, _ in reversed(innermost_first))
    return Sample(
        process=_process(head["comm"]),
        thread=int(head["tid"]),
        idle=head["tid"] == "0",
        period=int(head["period"]),
        calls=calls,
        in_kernel=bool(innermost_first) and innermost_first[0][1],
    )


def _process(comm: str) -> str:
    """Return the part of a name that is the same in other runs: kernel threads end with a device, CPU or number."""
    return re.sub(r"/.*", "", comm)


def _function(line: str) -> tuple[Function, bool]:
    """Return the function in a line, and whether it is the kernel's."""
    frame = _FRAME.match(line)
    if frame is None:
        return UNNAMED, False
    file = frame["file"].removesuffix(_DELETED)
    of_module = file.startswith("[") and file.endswith("]") and file not in (_UNKNOWN, "[vdso]")
    in_kernel = of_module or PurePath(file).name.startswith(("vmlinux", _BPF)) or file.endswith(".ko")
    module = "" if file == _UNKNOWN else _module(file, in_kernel=in_kernel)
    return Function(UNNAMED.name if frame["symbol"] == _UNKNOWN else frame["symbol"], module), in_kernel


def _module(file: str, *, in_kernel: bool) -> str:
    name = PurePath(file).name
    if not in_kernel:
        return name
    if file in _KERNELS or name.startswith("vmlinux"):
        return KERNEL
    return "bpf" if name.startswith(_BPF) else name.strip("[]").removesuffix(".ko")
