# SPDX-License-Identifier: Apache-2.0
"""Checks the user's own kernel, modules and overlay for an emulated board.

The kernel is a vmlinux for the e500 with the files of harness/emulator/kernel in it. Without them espbench would know
neither how long the CPU was idle nor how ESP uses the SEC. espbench's own kernel loads no modules: a user's module
needs a user's kernel. An overlay is unpacked over the board's root (virtual/own/additions.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from espbench.errors import UsageError
from espbench.platforms.virtual.own import additions, own_files
from espbench.platforms.virtual.own.additions import Own, refused
from espbench.platforms.virtual.own.own_files import OwnFiles
from espbench.platforms.virtual.parts.cpio import joined

_ELF_32_BIG_ENDIAN, _POWERPC = b"\x7fELF\x01\x02", (20).to_bytes(2, "big")
# Names that the kernel must contain, and their purpose.
_NEEDED = {
    b"espbench_idle\0": "how long the CPU was idle (harness/emulator/kernel/idle.c)",
    b"espbench_crypto\0": "how ESP uses the SEC (harness/emulator/kernel/crypto.c)",
    b"fsl-gianfar\0": "the driver of its Ethernet ports (CONFIG_GIANFAR)",
}
_LOADS_MODULES = b"version magic '"  # of the kernel's message about a module of another release


@dataclass(frozen=True)
class Additions:
    """The user's part of a gateway. root: archives for its root; facts: values that identify the user's files."""

    root: bytes = b""
    facts: Mapping[str, str] = field(default_factory=dict)


def read(own: Own) -> Additions:
    """Return what a gateway gets of the user. Raise UsageError if a board cannot use one of the files."""
    facts, modules, overlay = {}, b"", b""
    if own.kernel is not None:
        facts["kernel"] = identified(own.kernel)
    if own.modules is not None:
        in_order = additions.ordered(own.modules, _modules(own.modules, own.kernel))
        modules = joined(additions.archived(in_order), additions.order_of([*in_order]))
        facts["modules"] = additions.modules_fact(in_order)
    if own.overlay is not None:
        overlay = additions.overlay_of(own.overlay)
        facts["overlay"] = additions.overlay_fact(own.overlay, overlay)
    return Additions(joined(modules, overlay), facts)


def files_of(own: Own) -> list[OwnFiles]:
    """Return the files that another machine needs so that `read` returns the same there; raise UsageError as `read`."""
    packed = []
    if own.kernel is not None:
        kernel = additions.content(own.kernel, "kernel")
        packed.append(own_files.packed(str(own.kernel), own.kernel.name, {"": kernel}))
    if own.modules is not None:
        files = additions.files_of_modules(own.modules)
        packed.append(own_files.packed(str(own.modules), own.modules.name, files))
    if own.overlay is not None:
        packed.append(additions.packed_overlay(own.overlay))
    return packed


def identified(path: Path) -> str:
    """Return the release, file name and SHA-256 of the user's kernel. Raise UsageError if a board cannot boot it."""
    data = additions.content(path, "kernel")
    if not data.startswith(_ELF_32_BIG_ENDIAN) or data[18:20] != _POWERPC:
        raise _refused(path, "a vmlinux for a 32-bit PowerPC", "another file")
    release = additions.release_of(data)
    if not release:
        raise _refused(path, "a Linux kernel that tells its version", "none in it")
    for name, what in _NEEDED.items():
        if name not in data:
            raise _refused(path, f"a kernel that has, built in, {what}", f"{release} without it")
    return f"{release}, {path.name} sha256 {additions.digest(data)}"


def _modules(path: Path, kernel: Path | None) -> dict[str, bytes]:
    if kernel is None:
        raise refused(
            "modules", path, "a kernel: beside it that can load modules", "espbench's own, which loads none"
        )
    data = additions.content(kernel, "kernel")
    release = additions.release_of(data)
    if _LOADS_MODULES not in data:
        raise refused(
            "modules", path, "a kernel that can load modules (CONFIG_MODULES)", f"{release} without that"
        )
    return additions.modules_of(path, release)


def _refused(path: Path, expected: str, got: str) -> UsageError:
    return UsageError(
        f"kernel: {path}\n  expected: {expected}\n  got: {got}\n  what to do: build it as docs/powerquicc.md shows, or "
        "remove kernel:"
    )
