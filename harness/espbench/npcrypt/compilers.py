# SPDX-License-Identifier: Apache-2.0
"""Compiles a kernel for the engines: by Debian's cross GCC, or a Clang of any version; the cross linker links."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from shutil import which

from espbench.errors import EspbenchError
from espbench.npcrypt.ciphers.kernel import Kernel
from espbench.own_code import digest_of_files
from espbench.paths import data_dir
from espbench.plan.duts.processors import Processor
from espbench.plan.keys.kernel_test import CompilerName, Level, Option
from espbench.platforms.base import Readiness

_GCC_PACKAGE = "gcc-riscv64-unknown-elf"  # with the linker
_LINKER = "riscv64-unknown-elf-ld"
# A loop that copies is to stay a loop: an engine has no C library.
_GCC = ["riscv64-unknown-elf-gcc", "-fno-tree-loop-distribute-patterns", "-msmall-data-limit=0"]
_CLANG = ["--target=riscv32-unknown-elf"]
USUAL: tuple[CompilerName, ...] = ("gcc", "clang")
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


def readiness(used: Iterable[CompilerName] = USUAL) -> list[Readiness]:
    """Doctor's answer: what compiles, by these compilers, and links."""
    packages = {_command(name)[0]: _package(name) for name in used} | {_LINKER: _GCC_PACKAGE}
    missing = [program for program in packages if which(program) is None]
    if not missing:
        return [Readiness("ixp", True)]
    wanted = " ".join(dict.fromkeys(packages[program] for program in missing))
    lack = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
    return [Readiness("ixp", False, lack, f"apt-get install --no-install-recommends {wanted}")]


def _command(compiler: CompilerName) -> list[str]:
    return _GCC if compiler == "gcc" else [compiler, *_CLANG]


def _package(compiler: CompilerName) -> str:
    return _GCC_PACKAGE if compiler == "gcc" else compiler


@cache
def version(compiler: CompilerName) -> str:
    """Return the first line of what a compiler says of itself."""
    return first_line(_command(compiler)[0])


@cache
def sources_digest() -> str:
    """Return the digest of the kernels' sources; between two releases, espbench's version does not identify them."""
    return f"sha256 {digest_of_files(_sources(), '*')}"


def _sources() -> Path:
    return data_dir("network_processor") / "kernels"


def first_line(program: str) -> str:
    """Return the first line of what a program says of its version."""
    return ran([program, "--version"]).splitlines()[0]


def compiled(kernel: Kernel, compilation: Compilation, processor: Processor, folder: Path) -> Path:
    """Compile a kernel into a folder of its own and return the program. EspbenchError tells what the compiler said."""
    sources = _sources()
    folder.mkdir(parents=True, exist_ok=True)
    command = [
        *_command(compilation.compiler),
        f"-march={processor.assumed.instructions}",
        *_FLAGS,
        f"-{compilation.option}",
        f"-DLEVEL={compilation.level}",
        *([f"-DLOCAL_MEMORY={local}"] if (local := processor.stated.local_memory) else []),
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
        raise EspbenchError(
            f"{command[0]}: expected a compiler, got: {error}\n  espbench doctor says what to install"
        ) from error
    if done.returncode:
        raise EspbenchError(f"{' '.join(command)}: failed:\n{done.stderr.strip() or done.stdout.strip()}")
    return done.stdout
