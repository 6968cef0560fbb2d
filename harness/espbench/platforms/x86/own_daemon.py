# SPDX-License-Identifier: Apache-2.0
"""Packs a daemon that the user built into an archive for a guest's root, at the path for which it was built.

The archive has the programs and plugins of the build, and the libraries that they need: those of the build, else those
of Debian's pinned packages, else those of this machine. It also has the files of Debian's archive of the same daemon,
without the daemon itself: tools (certutil), and libraries that are loaded at run time (NSS).

Workers on other machines get the archive, not the build: their own libraries of the same name may be others.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from espbench.errors import MachineLacks, UsageError
from espbench.platforms.base import HeldDaemon
from espbench.platforms.virtual.own import own_files
from espbench.platforms.virtual.own.own_files import OwnFiles
from espbench.platforms.virtual.parts.cpio import Entry, archive, entries
from espbench.platforms.virtual.virtual_guest import Built

# The files of the daemon itself in Debian's archive; the user's build replaces them.
_DEBIANS_OWN = ("usr/lib/ipsec/", "usr/libexec/ipsec/", "usr/sbin/swanctl")
_PLUGINS = "usr/lib/ipsec/plugins/"
# A build has its libraries and plugins in these folders, below the folder that `make install` filled.
_BUILD_FOLDERS = ("lib/ipsec", "lib64/ipsec", "lib", "lib64", "lib/x86_64-linux-gnu")
_HOST_FOLDERS = (
    "/usr/lib/x86_64-linux-gnu",
    "/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/lib",
)
_GUESTS_FOLDER = "/usr/lib/x86_64-linux-gnu"  # the guest's loader searches it without ld.so.cache
_NEEDED = re.compile(r"\(NEEDED\).*\[(.+)\]")
_DIGITS = 16
_ARCHIVE, _DESCRIPTION = "root.cpio", "daemon.json"  # the files that another machine gets


@dataclass(frozen=True)
class OwnBuild:
    """A daemon's files on this machine.

    root: the folder of this machine that corresponds to the guest's /. base: the folder in the guest below which the
    build is installed (/usr, /opt/mine). held: what guests with this build have.
    """

    daemon: str
    root: Path
    base: str
    held: HeldDaemon

    def here(self, inside: str) -> Path:
        """Return the file of this machine for a path in the guest."""
        return self.root / inside.lstrip("/")


@dataclass(frozen=True)
class OwnDaemon:
    """The archive of a daemon. held: what a guest with it has.

    libraries: those from the machine that packed it, with their digests, for the Security Context.
    """

    daemon: str
    data: bytes = field(repr=False)
    held: HeldDaemon = field(hash=False)
    libraries: str = ""


def needed_by(file: Path) -> list[str]:
    """Return the libraries that a program or library needs; empty for a script. Raise MachineLacks without readelf."""
    try:
        done = subprocess.run(["readelf", "-d", str(file)], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise MachineLacks(
            "no readelf, which finds a daemon's libraries", "apt-get install binutils"
        ) from None
    return _NEEDED.findall(done.stdout)


def packed(own: OwnBuild, built: Built, needs: Callable[[Path], list[str]] = needed_by) -> OwnDaemon:
    """Return the archive of a build with its libraries. Raise UsageError for a library that does not exist."""
    assert built.userland is not None
    folder = built.userland.folder
    debians = list(entries((folder / f"{own.daemon}.cpio").read_bytes()))
    beneath = [e for e in debians if not e.path.startswith(_DEBIANS_OWN)]
    there = {Path(e.path).name for e in (*entries((folder / "base.cpio").read_bytes()), *beneath)}
    plugins = [Path(e.path).name for e in debians if e.path.startswith(_PLUGINS)]
    files = {path: own.here(path) for path in (*own.held.programs.values(), *_plugins(own, plugins))}
    libraries = _libraries(own, files, there, needs)
    made = {e.path: e for e in beneath}
    for path, file in sorted({**files, **libraries}.items()):
        parents = [str(parent).lstrip("/") for parent in reversed(Path(path).parents)]
        made |= {name: Entry.folder(name) for name in parents if name and name not in made}
        made[path.lstrip("/")] = Entry.file(path, file.read_bytes(), mode=0o755)
    of_host = [file for file in libraries.values() if not file.is_relative_to(own.here(own.base))]
    said = ", ".join(sorted(f"{file.name} sha256 {_digest(file)}" for file in of_host))
    return OwnDaemon(own.daemon, archive(made.values()), own.held, said)


def files_of(name: str, own: OwnDaemon) -> OwnFiles:
    """Return the files with which another machine has the same daemon; name: by which it is looked up there."""
    description = json.dumps({"libraries": own.libraries, "held": asdict(own.held)}, sort_keys=True)
    return own_files.packed(name, own.daemon, {_ARCHIVE: own.data, _DESCRIPTION: description.encode()})


def copy_of(daemon: str, folder: Path) -> OwnDaemon:
    """Return the daemon that another machine packed; folder: the place of its files in this machine's cache."""
    description = json.loads((folder / _DESCRIPTION).read_text())
    held = HeldDaemon(**description["held"])
    return OwnDaemon(daemon, (folder / _ARCHIVE).read_bytes(), held, description["libraries"])


def _plugins(own: OwnBuild, names: Sequence[str]) -> Iterator[str]:
    """Yield the paths of those plugins of a build that espbench uses: others would only need memory."""
    for folder in _BUILD_FOLDERS:
        paths = (f"{own.base}/{folder}/plugins/{name}" for name in names)
        yield from (path for path in paths if own.here(path).is_file())


def _libraries(
    own: OwnBuild, files: Mapping[str, Path], there: set[str], needs: Callable[[Path], list[str]]
) -> dict[str, Path]:
    """Return the libraries that these files need and that the guest does not have, by their paths in the guest."""
    libraries: dict[str, Path] = {}
    names: set[str] = set()
    todo = list(files.values())
    while todo:
        whose = todo.pop()
        for name in needs(whose):
            if name in names:
                continue
            in_build = (f"{own.base}/{folder}/{name}" for folder in _BUILD_FOLDERS)
            path = next((path for path in in_build if own.here(path).is_file()), None)
            if path is None and name in there:
                continue
            file = own.here(path) if path else _of_host(name, whose)
            libraries[path or f"{_GUESTS_FOLDER}/{name}"] = file
            names.add(name)
            todo.append(file)
    return libraries


def _of_host(name: str, whose: Path) -> Path:
    for folder in _HOST_FOLDERS:
        if (file := Path(folder, name)).is_file():
            return file
    raise UsageError(
        f"prefix: expected {name}, which {whose} needs, in the build or among the libraries of this machine, got none; "
        "install that library"
    )


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()[:_DIGITS]
