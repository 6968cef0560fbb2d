# SPDX-License-Identifier: Apache-2.0
"""Builds the guest's userland: one static program in an initramfs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from espbench.platforms.virtual.parts import recipe, tools
from espbench.platforms.virtual.parts.cpio import Entry, archive, zipped
from espbench.platforms.virtual.parts.tools import Runner

FLAGS = ("-std=gnu11", "-Os", "-static", "-Wall", "-Wextra", "-Werror", "-s")


def build(work: Path, runner: Runner) -> Mapping[str, Path]:
    """Return the product `initramfs.cpio.gz`, made below `work`."""
    program = work / "init"
    compile_init(f"{tools.CROSS}gcc", program, runner)
    product = work / "initramfs.cpio.gz"
    product.write_bytes(zipped(archive(root(program.read_bytes()))))
    return {product.name: product}


def build_native(work: Path, runner: Runner) -> Mapping[str, Path]:
    """Return the product `initramfs.cpio` for this machine's own kind of CPU, made below `work`.

    It is not compressed, because the guest would need time to decompress it.
    """
    program = work / "init"
    compile_init("gcc", program, runner, "*.c", "x86/*.c")
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


def compile_init(compiler: str, program: Path, runner: Runner, *patterns: str) -> None:
    """Compile the guest's /init from files of init/ (by default those for all guests), for the compiler's machine."""
    ours = recipe.folder() / "init"
    files = [str(file) for pattern in patterns or ("*.c",) for file in sorted(ours.glob(pattern))]
    command = [compiler, *FLAGS, f"-ffile-prefix-map={ours}=.", "-o", str(program), *files]
    runner.run(command, program.parent, "compiling the guest's init")
