# SPDX-License-Identifier: Apache-2.0
"""Makes the archives with an x86-64 guest's programs from Debian's packages. They are unpacked into its root at boot.

The archives have only the programs that x86/userland.yaml names and the libraries that these programs need, because all
files are in the guest's memory. `base.cpio` has a shell and ip(8). Each other archive has a daemon, or OpenSSL's
program, with the files that base does not have. daemons.json has the programs' paths and versions.
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
# These are links into usr on a system with merged usr.
_MERGED = ("bin", "sbin", "lib", "lib64")
_FOLDERS = ("etc", "run", "run/lock", "tmp", "var", "var/lib")
_NEEDED = re.compile(r"\(NEEDED\).*\[(.+)\]")


@dataclass(frozen=True)
class Image:
    """One archive. programs: their paths by name; files: further files; empty: empty files that programs require.

    busybox: names of its commands that become links to it; packages: those whose versions are recorded.
    """

    programs: Mapping[str, str]
    files: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    busybox: list[str] = field(default_factory=list)
    packages: list[str] = field(default_factory=list)


def images() -> dict[str, Image]:
    """Return the archives of x86/userland.yaml by name, base first. Raise EspbenchError if the file is not valid."""
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
        # A program without shared libraries has no such section; readelf then prints a message that does not match.
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
    """Return files of an unpacked root and all libraries that they need, by their paths in the guest.

    needs returns the libraries of a file. Files in `there` are left out. Raise EspbenchError for a file that is in none
    of the packages; the text names the file that needs it.
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
    """Return the file for a path of a root with merged usr, in a root that is not merged; None if there is none.

    Links are followed.
    """
    for place in (path, path.removeprefix("usr/")):
        file = root / place
        if file.is_symlink():
            inside = os.path.normpath(Path("/", place).parent / file.readlink()).lstrip("/")
            return locate(root, inside if inside.startswith("usr/") else f"usr/{inside}")
        if file.is_file():
            return file
    return None


def entries(image: Image, files: Mapping[str, bytes], *, with_folders: bool) -> list[Entry]:
    """Return an archive's entries, each folder before its content. with_folders: add the folders of a merged root."""
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
