# SPDX-License-Identifier: Apache-2.0
"""Compiles a kernel for the engines: Debian's cross GCC and Clang, both linked by the cross linker."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from shutil import which

from espbench.errors import EspbenchError
from espbench.npcrypt.ciphers.kernel import Kernel
from espbench.paths import data_dir
from espbench.plan.duts.processors import Processor
from espbench.plan.keys.kernel_test import CompilerName, Level, Option
from espbench.platforms.base import Readiness

PACKAGE = "gcc-riscv64-unknown-elf"
_INSTALL = f"apt-get install --no-install-recommends {PACKAGE} clang"
_LINKER = "riscv64-unknown-elf-ld"
_COMMANDS: dict[CompilerName, list[str]] = {
    # A loop that copies is to stay a loop: an engine has no C library.
    "gcc": ["riscv64-unknown-elf-gcc", "-fno-tree-loop-distribute-patterns", "-msmall-data-limit=0"],
    "clang": ["clang", "--target=riscv32-unknown-elf"],
}
_FLAGS = (
    "-mabi=ilp32", "-mno-relax", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-ffreestanding", "-fno-builtin",
    "-nostdlib", "-DENGINE",
)  # fmt: skip


@dataclass(frozen=True)
class Compilation:
    """A way to compile a kernel."""

    level: Level
    compiler: CompilerName
    option: Option


def readiness() -> list[Readiness]:
    """Doctor's answer: what compiles and links."""
    versions = []
    for name in (*(command[0] for command in _COMMANDS.values()), _LINKER):
        ready = which(name) is not None
        versions.append(
            Readiness("ixp", ready, "" if ready else f"{name} is missing", "" if ready else _INSTALL)
        )
    return versions


@cache
def version(compiler: CompilerName) -> str:
    """Return the first line of what a compiler says of itself."""
    return first_line(_COMMANDS[compiler][0])


def first_line(program: str) -> str:
    """Return the first line of what a program says of its version."""
    return ran([program, "--version"]).splitlines()[0]


def compiled(kernel: Kernel, compilation: Compilation, processor: Processor, folder: Path) -> Path:
    """Compile a kernel into a folder of its own and return the program. EspbenchError tells what the compiler said."""
    sources = data_dir("network_processor") / "kernels"
    folder.mkdir(parents=True, exist_ok=True)
    command = [
        *_COMMANDS[compilation.compiler],
        f"-march={processor.assumed.instructions}",
        *_FLAGS,
        f"-{compilation.option}",
        f"-DLEVEL={compilation.level}",
        *(["-DLOCAL_MEMORY"] if processor.stated.local_memory else []),
    ]
    objects = []
    for source in ("start.S", kernel.source, "multiply.c"):
        objects.append(str(folder / f"{source}.o"))
        ran([*command, "-c", str(sources / source), "-o", objects[-1]])
    program = folder / "program.elf"
    ran(
        [_LINKER, "-m", "elf32lriscv", "--no-relax", "--gc-sections", "-T", str(sources / "link.ld"),
         *objects, "-o", str(program)]
    )  # fmt: skip
    return program


def ran(command: list[str]) -> str:
    """Run a compiler and return what it printed. EspbenchError tells what it said where it failed."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise EspbenchError(f"{command[0]}: expected a compiler, got: {error}\n  {_INSTALL}") from error
    if done.returncode:
        raise EspbenchError(f"{' '.join(command)}: failed:\n{done.stderr.strip() or done.stdout.strip()}")
    return done.stdout
