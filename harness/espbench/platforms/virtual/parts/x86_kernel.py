# SPDX-License-Identifier: Apache-2.0
"""Extracts the kernel of an x86-64 guest, and the modules that it needs, from Debian's kernel package.

The kernel is unpacked from its vmlinuz: QEMU starts it directly (PVH), so that the guest does not need time to unpack
it. modules.cpio has the modules. modules.txt lists their files; each module comes after those that it depends on.
"""

from __future__ import annotations

import gzip
import lzma
import re
import shutil
import struct
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from espbench.errors import EspbenchError
from espbench.platforms.virtual.parts import packages, recipe
from espbench.platforms.virtual.parts.cpio import Entry, archive
from espbench.platforms.virtual.parts.tools import Runner

MODULES = "modules"  # /init finds them here in the guest's root (init/PROTOCOL.md)
# Offsets in the header of a vmlinuz (Linux, Documentation/x86/boot.rst).
_SETUP_SECTORS, _MAGIC, _PAYLOAD = 0x1F1, 0x202, 0x248
_ELF = b"\x7fELF"
_ZSTD = b"\x28\xb5\x2f\xfd"
_LENGTH_BYTES = 4
# A module in a later folder replaces one of the same name. Folders of other names count as extra/.
_ORDER = {"kernel": 0, "extra": 1, "updates": 2}


def build(work: Path, runner: Runner) -> Mapping[str, Path]:
    """Return the products `vmlinux`, `config`, `modules.cpio` and `modules.txt`, made below `work`."""
    package = recipe.used_packages()["linux-amd64"]
    root = work / "root"
    packages.unpack(package, root, runner)
    release = package.name.removeprefix("linux-image-")
    folder = next(path for path in (root / "lib/modules", root / "usr/lib/modules") if path.is_dir())
    wanted = (recipe.folder() / "x86/modules.txt").read_text().split("\n")
    loaded = modules(folder / release, [line for line in wanted if line and not line.startswith("#")])
    vmlinux, listed, together = work / "vmlinux", work / "modules.txt", work / "modules.cpio"
    vmlinux.write_bytes(kernel_of((root / f"boot/vmlinuz-{release}").read_bytes()))
    listed.write_text("".join(f"{name}\n" for name in loaded))
    together.write_bytes(
        archive(
            [Entry.folder(MODULES), *(Entry.file(f"{MODULES}/{name}", data) for name, data in loaded.items())]
        )
    )
    return {
        "vmlinux": vmlinux,
        "config": root / f"boot/config-{release}",
        together.name: together,
        listed.name: listed,
    }


def kernel_of(vmlinuz: bytes) -> bytes:
    """Return the ELF image in a vmlinuz; raise EspbenchError if there is none."""
    if vmlinuz[_MAGIC : _MAGIC + 4] != b"HdrS":
        raise EspbenchError("expected a Linux kernel for x86 (a vmlinuz), got a file without its header")
    setup = (vmlinuz[_SETUP_SECTORS] or 4) + 1
    offset, length = struct.unpack_from("<II", vmlinuz, _PAYLOAD)
    payload = vmlinuz[setup * 512 + offset :][:length]
    if payload[:4] == _ZSTD:
        payload = payload[
            :-_LENGTH_BYTES
        ]  # the kernel's length follows the compressed data; zstd(1) would report an error
    image = _unpacked(payload)
    if image[:4] != _ELF:
        raise EspbenchError("expected an ELF image in the vmlinuz, got something else")
    return image


def modules(folder: Path, wanted: Iterable[str]) -> dict[str, bytes]:
    """Return modules of a release's folder and all their dependencies by file name; a module follows its dependencies.

    If a module is there twice, that of updates/ is taken, else that of another folder than kernel/, such as extra/, as
    depmod does. Modules that are built into the kernel are left out. Raise EspbenchError for a module that is neither
    in the folder nor built in.
    """

    def order(file: Path) -> tuple[int, Path]:
        path = file.relative_to(folder)
        return _ORDER.get(path.parts[0], _ORDER["extra"]), path

    files = {name_of(file.name): file for file in sorted(folder.glob("**/*.ko*"), key=order)}
    builtin = folder / "modules.builtin"
    built_in = (
        {name_of(Path(line).name) for line in builtin.read_text().split()} if builtin.is_file() else set()
    )
    loaded: dict[str, bytes] = {}
    taken: set[str] = set()

    def take(name: str, for_whom: str) -> None:
        if name in taken or name in built_in:
            return
        if name not in files:
            raise EspbenchError(f"{folder}: expected the module {name}{for_whom}, there is none")
        taken.add(name)
        data = _unpacked(files[name].read_bytes())
        needs = re.search(rb"\0depends=([^\0]*)\0", data)
        for need in filter(None, needs[1].decode().split(",") if needs else ()):
            take(name_of(need), f", which {name} needs")
        loaded[f"{name}.ko"] = data

    for name in wanted:
        take(name_of(name), "")
    return loaded


def name_of(file: str) -> str:
    """Return the kernel's name of a module from the name of its file: `xfrm_user` for `xfrm-user.ko.xz`."""
    return file.partition(".ko")[0].replace("-", "_")


def _unpacked(data: bytes) -> bytes:
    """Return a file's content, decompressed if needed; raise EspbenchError if the compression is not supported."""
    try:
        if data[:4] == _ELF:
            return data
        if data[:2] == b"\x1f\x8b":
            return gzip.decompress(data)
        if data[:6] == b"\xfd7zXZ\0":
            unpacking = lzma.LZMADecompressor()  # it ignores the kernel's length, which follows the data
            image = unpacking.decompress(data)
            if unpacking.eof:
                return image
            raise EOFError("it ends too soon")
        if data[:4] == _ZSTD and (zstd := shutil.which("zstd")):
            return subprocess.run([zstd, "-dc"], input=data, capture_output=True, check=True).stdout
    except (OSError, EOFError, lzma.LZMAError, subprocess.CalledProcessError) as error:
        raise EspbenchError(f"a part of the kernel cannot be unpacked: {error}") from error
    raise EspbenchError(
        f"expected a kernel or module compressed by gzip or xz (or zstd, with that program), got {data[:6].hex()}"
    )
