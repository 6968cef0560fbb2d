# SPDX-License-Identifier: Apache-2.0
"""Measures a cipher kernel on one emulated PowerQUICC board: it boots, runs one program, and powers off.

The program and the requests are in the guest's root, so nothing of the host is in the figure.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from pathlib import Path
from shutil import which
from typing import Any

from espbench.errors import EspbenchError
from espbench.npcrypt import hosted
from espbench.npcrypt.ciphers import KERNELS
from espbench.npcrypt.measure import Configuration
from espbench.npcrypt.processes import Processes
from espbench.plan.duts.boards import Board
from espbench.plan.duts.profiles import Profile
from espbench.platforms.base import Readiness
from espbench.platforms.e500 import e500_guest
from espbench.platforms.virtual.parts.cpio import Entry, archive, joined
from espbench.platforms.virtual.parts.tools import CROSS
from espbench.platforms.virtual.virtual_guest import Built
from espbench.results.kernels import KernelResult

COMPILER = f"{CROSS}gcc"
_PACKAGES = "gcc-powerpc-linux-gnu libc6-dev-powerpc-cross"
_HEADER = Path("/usr/powerpc-linux-gnu/include/stdio.h")
_PROGRAM = "/kernel"
_MOST_VIRTUAL_NS = 10**12
_MOST_REAL_S = 3600


def readiness() -> Readiness:
    """Doctor's answer: what compiles kernels for boards."""
    ready = which(COMPILER) is not None and _HEADER.is_file()
    install = "" if ready else f"apt-get install --no-install-recommends {_PACKAGES}"
    return Readiness(
        "qemu_e500", ready, "" if ready else f"{COMPILER}, or its C library, is missing", install
    )


def measure(
    configuration: Configuration, profile: Profile, built: Built, folder: Path, processes: Processes
) -> KernelResult:
    """Compile a kernel for the board, run it there, compare every byte, and return its figures.

    folder: of this configuration alone. EspbenchError where a byte is wrong, or the board or the program failed.
    """
    c, kernel, board = configuration, KERNELS[configuration.kernel], profile.board
    assert board is not None
    how = c.compilation
    program = hosted.compiled(kernel, how.level, how.option, c.data, folder, tools=CROSS, static=True)
    if profile.own_kernel is not None:
        built = _with_kernel(built, Path(profile.own_kernel.home))
    root, console = _root(built, program, folder), folder / "console.log"
    command = e500_guest.alone(built, root, profile.memory, board.ns_per_instruction, console)
    printed = _run(command, console, c.shown, processes)
    return _result(
        c, board, hosted.ns_per_call(kernel, printed, c.data, c.shown), kernel.output_bytes(c.data)
    )


def _with_kernel(built: Built, kernel: Path) -> Built:
    return replace(built, kernel=kernel)


def _root(built: Built, program: Path, folder: Path) -> Path:
    """Return the root of a board that runs the program at once, and then powers off."""
    requests = f"1 run {_MOST_VIRTUAL_NS} {_PROGRAM.encode().hex()}\n2 poweroff\n".encode()
    ours = archive([Entry.file(_PROGRAM, program.read_bytes(), mode=0o755), Entry.file("requests", requests)])
    root = folder / "root.cpio"
    root.write_bytes(joined(built.initramfs.read_bytes(), ours))
    return root


def _run(command: list[str], console: Path, what: str, processes: Processes) -> str:
    """Run a board to its end; return what its program printed."""
    ended = processes.run(command, f"{what}: the board", timeout_s=_MOST_REAL_S)
    answer = _answer(ended.out)
    if answer is None or not answer["ok"] or answer["rc"] != 0:
        shown = console.read_text(errors="replace")[-2000:] if console.exists() else ""
        raise EspbenchError(
            f"{what}: expected the program to end with 0 on the board, got {answer or 'no answer'}\n"
            f"{ended.err.strip()}\n{shown}".rstrip()
        )
    printed: str = answer["out"]
    return printed


def _answer(lines: str) -> dict[str, Any] | None:
    """Return the answer to the first request; None if the board ended before the answer was complete."""
    for line in lines.splitlines():
        with contextlib.suppress(ValueError):
            answer: dict[str, Any] = json.loads(line) if line.startswith("{") else {}
            if answer.get("id") == 1:
                return answer
    return None


def _result(c: Configuration, board: Board, ns: float, checked: int) -> KernelResult:
    """Return the figures of a kernel that took so many nanoseconds. All of the time the core executes."""
    return KernelResult(
        **c.recorded.model_dump(),
        clock_hz=board.core_clock,
        cycles=round(ns * board.core_clock / 1e9),
        executing=1.0,
        aborted=0.0,
        idle=0.0,
        stalled=0.0,
        executed=round(ns / float(board.ns_per_instruction)),
        checked=checked,
    )
