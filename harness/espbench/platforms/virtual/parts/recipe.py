# SPDX-License-Identifier: Apache-2.0
"""Defines the inputs of each part of a guest (Debian's packages, espbench's files, the recipe), and its key."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import TypeAdapter

from espbench.errors import EspbenchError
from espbench.paths import cache_dir, data_dir, own_yaml
from espbench.this_machine import kept

# Increase this number when a module of BUILDERS makes another product of the same files: a key has the number, but not
# the modules' code. All machines then build their guests again.
RECIPE = 1
# The modules that make the products, each with a digest of its code without comments and docstrings. A unit test
# compares these, so that nobody changes a module without asking whether RECIPE must change (test_builders.py).
BUILDERS: Mapping[str, str] = {
    "compiler": "0e1ed9312086",
    "cpio": "777d69ddcf91",
    "guest": "ea13bc5774d9",
    "kernel": "8bdc0d2e5f5f",
    "kits": "81240ffa9922",
    "packages": "31fdd5bea3b7",
    "qemu": "f0747dadb200",
    "sources": "ed82122dc63c",
    "strongswan": "99227a41f441",
    "tools": "57e6bffc98ea",
    "userland": "676b92520605",
    "x86_kernel": "a71b61923840",
}
KEY_DIGITS = 16


@dataclass(frozen=True)
class SourcePackage:
    """One version of a Debian source package; files: name → SHA-256. Versions that can replace it begin with
    `series`.
    """

    name: str
    version: str
    series: str
    files: Mapping[str, str]

    @property
    def dsc(self) -> str:
        """The name of the .dsc file, which describes the other files."""
        return next(name for name in self.files if name.endswith(".dsc"))


@dataclass(frozen=True)
class Part:
    """One part of a guest: products that are made from Debian's packages and espbench's own files.

    sources are source packages, by their names in versions.yaml; packages are binary packages, by their names in
    packages.yaml, and `group` adds all packages of a group there. room_mb is the largest size of the work folder, MB.
    tree: one command makes all parts with the same tree in one work folder; empty: the part has its own.
    """

    name: str
    products: tuple[str, ...]
    sources: tuple[str, ...]
    files: Callable[[Path], list[Path]]
    room_mb: int
    packages: tuple[str, ...] = ()
    group: str = ""
    tree: str = ""


_Package = TypeVar("_Package", "SourcePackage", "BinaryPackage")


def folder() -> Path:
    """Return the folder of espbench's own files for guests: harness/emulator."""
    return data_dir("emulator")


def store() -> Path:
    """Return the folder of the sources and finished parts of all guests; its name is that of the first kind of
    guest.
    """
    return cache_dir() / "e500"


def qemu_sources(base: Path) -> list[Path]:
    """Return the device models: the SEC's core, and the files for QEMU in qemu/ (which has test programs as well)."""
    ours = [file for file in _of(base, "qemu/*.c") if '"qemu/osdep.h"' in file.read_text()]
    return _of(base, "sec/*.c", "sec/*.h") + ours + _of(base, "qemu/*.h")


def qemu_patches(base: Path) -> list[Path]:
    """Return the patches of QEMU for boards, in the order in which they are applied."""
    return _of(base, "qemu/*.patch")


def _of(base: Path, *patterns: str) -> list[Path]:
    return [file for pattern in patterns for file in sorted(base.glob(pattern))]


KERNEL = Part(
    "kernel",
    ("vmlinux", "config"),
    ("linux",),
    lambda base: _of(base, "kernel.frag", "kernel/*"),
    room_mb=1900,
)
GUEST = Part("guest", ("initramfs.cpio.gz",), (), lambda base: _of(base, "init/*.c", "init/*.h"), room_mb=20)
QEMU = Part(
    "qemu",
    ("qemu-system-ppc",),
    ("qemu",),
    lambda base: qemu_sources(base) + qemu_patches(base),
    room_mb=700,
    tree="qemu",
)
PARTS = (GUEST, KERNEL, QEMU)
E500_STRONGSWAN = Part(
    "e500-strongswan",
    ("base.cpio", "strongswan.cpio", "daemons.json"),
    ("busybox", "openssl", "strongswan"),
    lambda base: _of(base, "strongswan/*"),
    room_mb=600,
)

X86_KERNEL = Part(
    "x86-kernel",
    ("vmlinux", "config", "modules.cpio", "modules.txt"),
    (),
    lambda base: _of(base, "x86/modules.txt"),
    room_mb=900,
    packages=("linux-amd64",),
)
X86_GUEST = Part(
    "x86-guest",
    ("initramfs.cpio",),
    (),
    lambda base: _of(base, "init/*.c", "init/*.h", "init/x86/*.c"),
    room_mb=120,
    packages=("libc6", "libgmp10", "libzstd1", "zlib1g"),
    group="compiler",
)
X86_QEMU = Part(
    "x86-qemu",
    ("qemu-system-x86_64", "pvh.bin", "bios-256k.bin"),
    ("qemu",),
    lambda base: x86_qemu_sources(base) + x86_qemu_patches(base),
    room_mb=700,
    packages=("qemu-data", "seabios"),
    tree="qemu",
)
X86_USERLAND = Part(
    "x86-userland",
    ("base.cpio", "strongswan.cpio", "libreswan.cpio", "openssl.cpio", "daemons.json"),
    (),
    lambda base: _of(base, "x86/userland.yaml"),
    room_mb=300,
    group="userland",
)


def x86_qemu_sources(base: Path) -> list[Path]:
    """Return the files for links and the profile, which every guest has, and those for the PC alone."""
    links = ("qemu/esplink.c", "qemu/esplink_shm.h", "qemu/bus.c", "qemu/bus.h", "qemu/fcs.h")
    return _of(base, *links, "qemu/profile.c", "qemu/profile.h", "qemu/x86/*.c")


def x86_qemu_patches(base: Path) -> list[Path]:
    """Return the patches of QEMU's clock and speed, which every guest has, and those for the PC alone."""
    return _of(base, "qemu/*-icount-*.patch", "qemu/x86/*.patch")


def pinned() -> dict[str, SourcePackage]:
    """Return the source packages that versions.yaml names."""
    path = folder() / "versions.yaml"
    try:
        read: dict[str, dict[str, Any]] = own_yaml(path)
        return {name: SourcePackage(name, **facts) for name, facts in read.items()}
    except (OSError, yaml.YAMLError, TypeError, AttributeError) as error:
        raise EspbenchError(
            f"{path}: expected version, series and files of each source package, got {error}"
        ) from None


def used() -> dict[str, SourcePackage]:
    """Return the source packages that builds on this machine use: the pinned ones or their substitutes (sources.py)."""
    return {name: substitute(package) or package for name, package in pinned().items()}


def substitute(package: SourcePackage) -> SourcePackage | None:
    """Return the package that was fetched in place of a pinned one that the archive no longer had; None: there
    is none.
    """
    return _remembered(_substitute_file(package), SourcePackage)


def note_substitute(package: SourcePackage, instead: SourcePackage) -> None:
    """Store the substitute of a pinned package, so that parts built from it are found offline."""
    _remember(_substitute_file(package), asdict(instead))


@dataclass(frozen=True)
class BinaryPackage:
    """One version of a Debian binary package.

    series: a pattern; a package whose name matches it can replace this one. group: a name for packages that are used
    together.
    """

    name: str
    version: str
    series: str
    sha256: str
    group: str = ""

    @property
    def file(self) -> str:
        """The package's file name, as apt writes it."""
        return f"{self.name}_{self.version.replace(':', '%3a')}.deb"


def pinned_packages() -> dict[str, BinaryPackage]:
    """Return the binary packages that packages.yaml names, by their purpose."""
    path = folder() / "packages.yaml"
    try:
        read: dict[str, dict[str, Any]] = own_yaml(path)
        return {what: BinaryPackage(**facts) for what, facts in read.items()}
    except (OSError, yaml.YAMLError, TypeError, AttributeError) as error:
        raise EspbenchError(
            f"{path}: expected name, version, series and sha256 of each binary package, got {error}"
        ) from None


def used_packages() -> dict[str, BinaryPackage]:
    """Return the binary packages that builds on this machine use: the pinned ones or their substitutes
    (packages.py).
    """
    return {what: _instead(package) or package for what, package in pinned_packages().items()}


def packages_of(part: Part) -> list[str]:
    """Return the names in packages.yaml of all binary packages that a part is built from."""
    if not part.group:
        return [*part.packages]
    grouped = (what for what, package in pinned_packages().items() if package.group == part.group)
    return [*part.packages, *grouped]


def note_package(package: BinaryPackage, instead: BinaryPackage) -> None:
    """Store the substitute of a pinned package, so that parts built from it are found offline."""
    _remember(_instead_file(package), asdict(instead))


def _instead(package: BinaryPackage) -> BinaryPackage | None:
    return _remembered(_instead_file(package), BinaryPackage)


def _remember(path: Path, facts: Mapping[str, Any]) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(facts))
    fresh.chmod(0o644)
    fresh.replace(path)


def _remembered(path: Path, kind: type[_Package]) -> _Package | None:
    """Return the package that `_remember` wrote; None if the file does not exist, is not valid, or is another user's.

    Fetched files are compared with the digests in it, so no other user may have written it.
    """
    if not kept.file_of_ours(path):
        return None
    try:
        return TypeAdapter(kind).validate_json(path.read_bytes(), strict=True)
    except ValueError:  # pydantic's ValidationError is one
        return None


def _instead_file(package: BinaryPackage) -> Path:
    return store() / f"instead-of-{package.file}.json"


def _substitute_file(package: SourcePackage) -> Path:
    return store() / f"instead-of-{package.name}_{package.version.replace(':', '%3a')}.json"


def inputs(part: Part) -> dict[str, str]:
    """Return all inputs of a part, espbench's and Debian's files: name → SHA-256 (for the recipe its number)."""
    base = folder()
    digests = {str(file.relative_to(base)): digest(file) for file in part.files(base) if file.is_file()}
    if part.sources:
        sources_here = used()
        for name in part.sources:
            digests |= sources_here[name].files
    if names := packages_of(part):
        used_here = used_packages()
        digests |= {used_here[name].file: used_here[name].sha256 for name in names}
    return {"recipe": str(RECIPE), **digests}


def key(part: Part) -> str:
    """Return the key of a part, a digest of its inputs."""
    return key_of(inputs(part))


def key_of(inputs: Mapping[str, str]) -> str:
    """Return the key of these inputs."""
    return _key(inputs.items())


def _key(entries: Iterable[tuple[str, str]]) -> str:
    text = "".join(f"{name} {value}\n" for name, value in sorted(entries))
    return hashlib.sha256(text.encode()).hexdigest()[:KEY_DIGITS]


def digest(file: Path) -> str:
    """Return a file's SHA-256."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
