# SPDX-License-Identifier: Apache-2.0
"""Makes of Debian's packages what an x86-64 guest runs beside its init: archives that are laid over its root at boot.

Of the packages only the programs that x86/userland.yaml names are taken, with the libraries that their headers ask
for: all of it stands in the guest's memory. `base.cpio` has a shell and ip(8), every other one a daemon, or OpenSSL's
own program, with what base has not; daemons.json says where the programs are and of which versions.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from espbench.errors import EspbenchError
from espbench.paths import own_yaml
from espbench.platforms.virtual.parts import packages, recipe
from espbench.platforms.virtual.parts.cpio import Entry, archive
from espbench.platforms.virtual.parts.tools import Runner

BASE = "base"
_LIBRARIES = ("usr/lib64", "usr/lib/x86_64-linux-gnu", "usr/lib/ipsec")
# These are links into usr where usr is merged.
_MERGED = ("bin", "sbin", "lib", "lib64")
_FOLDERS = ("etc", "run", "run/lock", "tmp", "var", "var/lib")
_NEEDED = re.compile(r"\(NEEDED\).*\[(.+)\]")


@dataclass(frozen=True)
class Image:
    """One archive: programs by name, further files, names that busybox answers to, packages that tell its version.

    empty: files that programs insist on.
    """

    programs: Mapping[str, str]
    files: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    busybox: list[str] = field(default_factory=list)
    packages: list[str] = field(default_factory=list)


def images() -> dict[str, Image]:
    """Read the archives of x86/userland.yaml by name, base first; EspbenchError where it cannot be read."""
    path = recipe.folder() / "x86/userland.yaml"
    try:
        read: dict[str, dict[str, Any]] = own_yaml(path)
        return {
            name: Image(**facts) for name, facts in sorted(read.items(), key=lambda item: item[0] != BASE)
        }
    except (OSError, yaml.YAMLError, TypeError, AttributeError) as error:
        raise EspbenchError(
            f"{path}: expected programs, files, busybox and packages of each archive, got {error}"
        ) from None


def build(work: Path, runner: Runner) -> Mapping[str, Path]:
    """Return the archives and daemons.json, made below `work`."""
    root = work / "root"
    used = {p.name: p for p in recipe.used_packages().values() if p.group == recipe.X86_USERLAND.group}
    for package in used.values():
        packages.unpack(package, root, runner)

    def needs(file: Path) -> list[str]:
        # A program without shared libraries has no such section, and readelf says so.
        return _NEEDED.findall(runner.run(["readelf", "-d", str(file)], work, f"reading {file.name}"))

    made: dict[str, Path] = {}
    there: set[str] = set()
    for name, image in images().items():
        files = closure(root, [*image.programs.values(), *image.files], needs, there)
        there |= files.keys() if name == BASE else set()
        made[f"{name}.cpio"] = work / f"{name}.cpio"
        made[f"{name}.cpio"].write_bytes(archive(entries(image, files, with_folders=name == BASE)))
    versions = {name: package.version for name, package in used.items()}
    made["daemons.json"] = work / "daemons.json"
    made["daemons.json"].write_text(
        json.dumps(
            {
                name: {
                    "programs": {program: f"/{path}" for program, path in image.programs.items()},
                    "packages": {package: versions[package] for package in image.packages},
                }
                for name, image in images().items()
                if name != BASE
            },
            indent=2,
        )
        + "\n"
    )
    return made


def closure(
    root: Path, files: Iterable[str], needs: Callable[[Path], list[str]], there: set[str]
) -> dict[str, bytes]:
    """Collect files of an unpacked root with all libraries they need, by their paths in the guest, but those there.

    EspbenchError names what is in none of the packages, and who needs it.
    """
    contents: dict[str, bytes] = {}
    todo = [(path, "x86/userland.yaml") for path in files]
    while todo:
        path, for_whom = todo.pop()
        if path in contents or path in there:
            continue
        file = locate(root, path)
        if file is None:
            raise EspbenchError(
                f"expected {path}, for {for_whom}, in the packages of group userland: there is none"
            )
        contents[path] = file.read_bytes()
        for library in needs(file):
            places = [f"{place}/{library}" for place in _LIBRARIES]
            todo.append((next((p for p in places if locate(root, p)), library), path))
    return contents


def locate(root: Path, path: str) -> Path | None:
    """Return the file that a path of the merged root means in an unpacked one, links followed; None: there is none."""
    for place in (path, path.removeprefix("usr/")):
        file = root / place
        if file.is_symlink():
            inside = os.path.normpath(Path("/", place).parent / file.readlink()).lstrip("/")
            return locate(root, inside if inside.startswith("usr/") else f"usr/{inside}")
        if file.is_file():
            return file
    return None


def entries(image: Image, files: Mapping[str, bytes], *, with_folders: bool) -> list[Entry]:
    """Return an archive's entries: each folder before its content; those of the merged root only if asked."""
    made: dict[str, Entry] = {}
    if with_folders:
        made |= {name: Entry.folder(name) for name in (*_FOLDERS, "usr", *(f"usr/{m}" for m in _MERGED))}
        made |= {name: Entry.link(name, f"usr/{name}") for name in _MERGED}
        made["var/run"] = Entry.link("var/run", "/run")
    for path in sorted(files):
        parents = [str(parent) for parent in reversed(Path(path).parents) if str(parent) != "."]
        made |= {name: Entry.folder(name) for name in parents if name not in made}
        made[path] = Entry.file(path, files[path], mode=0o755)
    made |= {path: Entry.file(path, b"", mode=0o644) for path in image.empty}
    made |= {f"usr/bin/{name}": Entry.link(f"usr/bin/{name}", "busybox") for name in image.busybox}
    return list(made.values())
