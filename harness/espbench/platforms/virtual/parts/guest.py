# SPDX-License-Identifier: Apache-2.0
"""Builds the guest's userland: one static program in an initramfs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from espbench.platforms.virtual.parts import compiler, recipe, tools
from espbench.platforms.virtual.parts.cpio import Entry, archive, zipped
from espbench.platforms.virtual.parts.tools import Runner

FLAGS = ("-std=gnu11", "-Os", "-Wall", "-Wextra", "-Werror")


def build(work: Path, runner: Runner) -> Mapping[str, Path]:
    """Return the product `initramfs.cpio.gz`, made below `work`."""
    program = work / "init"
    compile_init(f"{tools.CROSS}gcc", program, runner)
    product = work / "initramfs.cpio.gz"
    product.write_bytes(zipped(archive(root(program.read_bytes()))))
    return {product.name: product}


def build_x86(work: Path, runner: Runner) -> Mapping[str, Path]:
    """Return the product `initramfs.cpio` for x86-64 guests, made below `work`.

    It is not compressed, because the guest would need time to decompress it. Its init is made by the pinned compiler:
    with another init the layout of a guest's memory changes, and with it the figures (decision 0063).
    """
    program = work / "init"
    root_of_compiler = compiler.unpacked(recipe.X86_GUEST, work / "compiler", runner)
    compiler.compile_static(root_of_compiler, _sources("*.c", "x86/*.c"), _flags(), program, runner)
    product = work / "initramfs.cpio"
    product.write_bytes(archive(root(program.read_bytes())))
    return {product.name: product}


def root(init: bytes) -> list[Entry]:
    """Return the entries of the guest's root: /init, the folders where it mounts dev, proc and sys, and a console."""
    return [
        *(Entry.folder(name) for name in ("dev", "proc", "sys")),
        Entry.character_device("dev/console", 5, 1),
        Entry.file("init", init, mode=0o755),
    ]


def compile_init(gcc: str, program: Path, runner: Runner, *patterns: str) -> None:
    """Compile the guest's /init from files of init/ (by default those for all guests), for this gcc's machine."""
    files = map(str, _sources(*patterns or ("*.c",)))
    command = [gcc, *_flags(), "-static", "-s", "-o", str(program), *files]
    runner.run(command, program.parent, "compiling the guest's init")


def _sources(*patterns: str) -> list[Path]:
    """Return the files of init/ that match the patterns."""
    return [file for pattern in patterns for file in sorted(_folder().glob(pattern))]


def _flags() -> Sequence[str]:
    """Return the compiler's options for /init, which does not contain the folder of its files."""
    return [*FLAGS, f"-ffile-prefix-map={_folder()}=."]


def _folder() -> Path:
    return recipe.folder() / "init"
