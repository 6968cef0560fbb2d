# SPDX-License-Identifier: Apache-2.0
"""Compiles programs of x86-64 guests with Debian's pinned compiler and C library, which are unpacked, never installed.

So a program is the same to the byte whatever compiler, linker and C library this machine has. The compiler's own
programs run with the C library of the same packages: nothing but the kernel of this machine takes part.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from espbench.platforms.virtual.parts import packages, recipe
from espbench.platforms.virtual.parts.recipe import Part
from espbench.platforms.virtual.parts.tools import Runner

_MACHINE = "x86_64-linux-gnu"
_GCC = f"usr/lib/gcc/{_MACHINE}/12"
_LIBRARIES = (f"lib/{_MACHINE}", f"usr/lib/{_MACHINE}")
_HEADERS = (f"{_GCC}/include", f"usr/include/{_MACHINE}", "usr/include")
# gcc(1) of Debian 12 passes these to its compiler and its linker for a static program.
_COMPILED = ("-quiet", "-mtune=generic", "-march=x86-64", "-fasynchronous-unwind-tables", "-nostdinc")
_LINKED = ("--build-id", "-m", "elf_x86_64", "--hash-style=gnu", "--as-needed", "-static", "-s")


def unpacked(part: Part, into: Path, runner: Runner) -> Path:
    """Return the new folder `into` with the part's packages, which have the compiler."""
    used = recipe.used_packages()
    for name in recipe.packages_of(part):
        packages.unpack(used[name], into, runner)
    return into


def compile_static(
    root: Path, sources: Sequence[Path], flags: Sequence[str], program: Path, runner: Runner
) -> None:
    """Make a static program of C files with the compiler that is unpacked in `root`."""
    folder = program.parent
    headers = [word for place in _HEADERS for word in ("-isystem", str(root / place))]
    objects = []
    for number, source in enumerate(sources):
        text, made = folder / f"{number}.s", folder / f"{number}.o"
        compiling = [*_COMPILED, *flags, *headers, str(source), "-o", str(text)]
        runner.run(_within(root, f"{_GCC}/cc1", compiling), folder, f"compiling {source.name}")
        assembling = ["--64", "-o", str(made), str(text)]
        runner.run(_within(root, f"usr/bin/{_MACHINE}-as", assembling), folder, f"assembling {source.name}")
        objects.append(str(made))
    gcc, libc = root / _GCC, root / f"usr/lib/{_MACHINE}"
    linking = [
        *_LINKED, "-o", str(program), f"-L{gcc}", f"-L{libc}",
        str(libc / "crt1.o"), str(libc / "crti.o"), str(gcc / "crtbeginT.o"), *objects,
        "--start-group", "-lgcc", "-lgcc_eh", "-lc", "--end-group", str(gcc / "crtend.o"), str(libc / "crtn.o"),
    ]  # fmt: skip
    runner.run(_within(root, f"usr/bin/{_MACHINE}-ld.bfd", linking), folder, f"linking {program.name}")


def _within(root: Path, program: str, arguments: Sequence[str]) -> list[str]:
    """Return the command that runs a program of the root with the root's own loader and libraries."""
    loader = root / f"lib/{_MACHINE}/ld-linux-x86-64.so.2"
    libraries = ":".join(str(root / place) for place in _LIBRARIES)
    return [str(loader), "--library-path", libraries, str(root / program), *arguments]
