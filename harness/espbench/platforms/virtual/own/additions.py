# SPDX-License-Identifier: Apache-2.0
"""Reads what a user adds to a guest: modules of its kernel, and an overlay, a cpio archive over the guest's root.

An overlay is unpacked last, so its files replace others. If it has a program `/first`, the guest's init runs it before
it answers requests (harness/emulator/init/PROTOCOL.md).
"""

from __future__ import annotations

import gzip
import hashlib
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from espbench.errors import UsageError
from espbench.platforms.base import Side
from espbench.platforms.virtual.own import own_files
from espbench.platforms.virtual.own.own_files import OwnFiles
from espbench.platforms.virtual.parts.cpio import Entry, archive, entries
from espbench.platforms.virtual.parts.x86_kernel import MODULES, name_of
from espbench.regular_files import NotRead, bytes_of

ORDER = f"{MODULES}/order"  # the file that names the modules in the order of loading
# It stands there before a module that may find nothing that it could drive (harness/emulator/init/PROTOCOL.md).
OPTIONAL = "?"
RELEASE = re.compile(rb"Linux version (\S+) \(")
MOST_BYTES = 1 << 30  # of a file; a kernel with its symbols has several hundred MiB
_FEW = 3  # so many modules are named one by one in the Security Context
_DIGITS = 16
_GZIP = b"\x1f\x8b"
_MAGIC = (b"070701", b"070702")


@dataclass(frozen=True)
class Own:
    """The paths that a profile names for one gateway. None: the usual kernel, its own modules only, no overlay."""

    kernel: Path | None = None
    modules: Path | None = None
    overlay: Path | None = None


def by_gateway(facts: Mapping[Side, Mapping[str, str]]) -> dict[str, dict[Side, str]]:
    """Return facts of gateways, as {what: value} for each, in the form {what: {gateway: value}}."""
    turned: dict[str, dict[Side, str]] = {}
    for side, known in facts.items():
        for what, value in known.items():
            turned.setdefault(what, {})[side] = value
    return turned


def refused(key: str, path: Path, expected: str, got: str) -> UsageError:
    """Return the message about a file that a profile names with this key."""
    return UsageError(
        f"{key}: {path}\n  expected: {expected}\n  got: {got}\n  what to do: mend it, or remove {key}:"
    )


def content(file: Path, key: str) -> bytes:
    """Return a file's content; raise UsageError if it cannot be read, or is no regular file."""
    try:
        return bytes_of(file, MOST_BYTES)
    except NotRead as error:
        raise refused(key, file, "a file that can be read", str(error)) from None


def digest(data: bytes) -> str:
    """Return the first digits of the SHA-256."""
    return hashlib.sha256(data).hexdigest()[:_DIGITS]


def release_of(image: bytes) -> str:
    """Return the release of an uncompressed kernel; empty if it does not tell it."""
    banner = RELEASE.search(image)
    return banner[1].decode(errors="replace") if banner else ""


def modules_of(path: Path, release: str) -> dict[str, bytes]:
    """Return the module at this path, or those in the folder, by the names under which a guest has them.

    Raise UsageError if there is none, or one of another release.
    """
    modules = {}
    for name, data in files_of_modules(path).items():
        file = path / name
        demand_release(file, data, release)
        modules[f"{name_of(file.name)}.ko"] = data
    return modules


def files_of_modules(path: Path) -> dict[str, bytes]:
    """Return the contents of these modules' files by their names relative to the path; that of a single file is empty.

    Raise UsageError if there is none.
    """
    if not path.is_dir():
        return {"": content(path, "modules")}
    files = sorted(path.glob("*.ko"))
    if not files:
        raise refused(
            "modules", path, "a module (a file whose name ends in .ko), or a folder of some", "none"
        )
    return {file.name: content(file, "modules") for file in files}


def demand_release(file: Path, data: bytes, release: str) -> None:
    """Raise UsageError for a module of another release: a kernel loads only modules of its own release."""
    said = re.search(rb"\0?vermagic=(\S+)", data)
    if said is None:
        raise refused("modules", file, "a module of the kernel", "a file that names no version of it")
    if (of := said[1].decode(errors="replace")) != release:
        raise refused("modules", file, f"a module of the kernel {release}", f"one of {of}")


def depends(data: bytes) -> list[str]:
    """Return the names of the modules that a module needs."""
    needs = re.search(rb"\0depends=([^\0]*)\0", data)
    return [name_of(name) for name in needs[1].decode().split(",") if name] if needs else []


def ordered(path: Path, modules: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return modules so that each comes after those it needs, else by name; raise UsageError if one is missing."""
    placed: dict[str, bytes] = {}

    def place(file: str, needed_by: tuple[str, ...]) -> None:
        if file in placed or file in needed_by:
            return
        for need in depends(modules[file]):
            if f"{need}.ko" not in modules:
                raise refused(
                    "modules", path, "modules with all that they need", f"{file}, which needs {need}"
                )
            place(f"{need}.ko", (*needed_by, file))
        placed[file] = modules[file]

    for file in modules:
        place(file, ())
    return placed


def archived(modules: Mapping[str, bytes]) -> bytes:
    """Return the archive of modules for a guest; empty if there are none."""
    files = [Entry.file(f"{MODULES}/{name}", data) for name, data in modules.items()]
    return archive([Entry.folder(MODULES), *files]) if modules else b""


def order_of(lines: list[str]) -> bytes:
    """Return the archive that tells a guest's init which modules to load, one in each line; empty if none.

    A line is a file and its parameters. OPTIONAL stands before a file that need not find anything to drive.
    """
    text = "".join(f"{line}\n" for line in lines)
    return archive([Entry.file(ORDER, text.encode())]) if lines else b""


def modules_fact(modules: Mapping[str, bytes]) -> str:
    """Return digests that identify the modules: one of each if they are few, else one of all together."""
    if len(modules) <= _FEW:
        return ", ".join(f"{name} sha256 {digest(data)}" for name, data in modules.items())
    together = b"".join(hashlib.sha256(data).digest() for data in modules.values())
    return f"{len(modules)} files, sha256 {digest(together)}"


def overlay_of(path: Path) -> bytes:
    """Return the user's overlay, uncompressed; raise UsageError if it is no cpio archive that a kernel can unpack."""
    expected = "a cpio archive (find . | cpio --create --format=newc), which may be compressed with gzip"
    data = content(path, "overlay")
    if data.startswith(_GZIP):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise refused("overlay", path, expected, f"a gzip file that is damaged ({error})") from None
    if not data.startswith(_MAGIC):
        raise refused("overlay", path, expected, "a file of another kind")
    try:
        for _ in entries(data):
            pass
    except ValueError:
        raise refused("overlay", path, expected, "an archive that is damaged, or ends early") from None
    return data


def overlay_fact(path: Path, data: bytes) -> str:
    """Return the name and the digest that identify an overlay."""
    return f"{path.name} sha256 {digest(data)}"


def packed_overlay(path: Path) -> OwnFiles:
    """Return the overlay, packed for another machine."""
    return own_files.packed(str(path), path.name, {"": content(path, "overlay")})
