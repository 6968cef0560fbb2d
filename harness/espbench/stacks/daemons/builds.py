# SPDX-License-Identifier: Apache-2.0
"""Finds the build of a daemon, Debian's packages or the user's own build: its programs and its identity.

If a build's folder had no such program, the gateway would execute the host's, where a daemon of the same name may be
installed. So every program must be in the folder itself. This is checked before any gateway is made.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from espbench.errors import EspbenchError, MachineLacks, UsageError
from espbench.platforms.base import HeldDaemon
from espbench.stacks.daemons import packages

PROGRAMS = {"strongswan": ("charon", "swanctl"), "libreswan": ("pluto", "addconn", "whack")}
# These programs are part of other packages; a user's own build of the daemon does not contain them.
TOOLS = {"strongswan": (), "libreswan": ("certutil", "pk12util")}
# `make install` puts programs into these folders below its prefix; the first three also have libraries and plugins.
_DAEMON_FOLDERS = ("libexec/ipsec", "lib/ipsec", "lib64/ipsec")
_FOLDERS = (*_DAEMON_FOLDERS, "sbin", "bin")
# Each gateway has its own folders of these names, so that files in the host's are not visible there.
_HIDDEN = ("/run", "/dev", "/proc", "/sys")
_DIGITS = 12


@dataclass(frozen=True)
class Build:
    """A daemon's files on the host, which are laid over a gateway's root.

    programs: their paths inside the gateway. name distinguishes the build from other builds of that daemon, `details`
    describes it. image: the folder looks like a root (usr/, etc/, var/); otherwise it is an install prefix, which
    appears at the same path inside the gateway. in_root: gateways have the files from their boot, so that none are
    laid. base: the folder inside the gateway below which the daemon is installed. own: it is the user's build.
    """

    folder: Path
    programs: Mapping[str, str]
    name: str
    details: str
    image: bool
    in_root: bool = False
    base: str = "/usr"
    own: bool = False


def find(
    daemon: str, version: str | None, prefix: Path | None, on_note: Callable[[str], None] = lambda text: None
) -> Build:
    """Return the build that a plan asks for: `prefix`, or the packages of `version`, fetched if they are not cached.

    Raise UsageError if the prefix has no such daemon, MachineLacks if the packages or tools are not available.
    """
    if prefix is not None:
        return _own(daemon, prefix)
    folder = packages.unpacked(daemon, version, on_note)
    if why := _hidden(folder):
        raise MachineLacks(f"the cache {why}", "set XDG_CACHE_HOME to a folder elsewhere")
    installed = _programs(daemon, folder)
    if installed is None:
        raise EspbenchError(f"{folder}: expected {_sought(daemon)}, got packages without; delete that folder")
    listed = packages.listed(folder)
    return Build(folder, installed[1], listed[packages.PACKAGES[daemon][0]], ", ".join(
        f"{name} {version}" for name, version in listed.items()
    ), image=True)  # fmt: skip


def held(by_gateways: HeldDaemon) -> Build:
    """Return the build that gateways have in their root from their boot.

    The name of Debian's is the version of the first package.
    """
    if by_gateways.own_name:
        return Build(
            Path("/"), by_gateways.programs, by_gateways.own_name, by_gateways.own_details,
            image=False, in_root=True, own=True,
        )  # fmt: skip
    versions = by_gateways.packages
    details = ", ".join(f"{name} {version}" for name, version in versions.items())
    name = next(iter(versions.values()))
    return Build(Path("/"), by_gateways.programs, name, details, image=True, in_root=True)


def own_in_root(daemon: str, prefix: Path) -> Build:
    """Return the user's build, which guests have in their root from their boot. Raise UsageError if there is none.

    The tools (`TOOLS`) are not checked, because they are those of the guests.
    """
    return replace(_in(daemon, prefix), in_root=True)


def _own(daemon: str, prefix: Path) -> Build:
    build = _in(daemon, prefix)
    lacking = [
        name for name in TOOLS[daemon] if not shutil.which(name) and not (prefix / "usr/bin" / name).is_file()
    ]
    if lacking:
        raise MachineLacks(
            f"no {' and '.join(lacking)}, which {daemon} keeps its keys with", "apt-get install libnss3-tools"
        )
    return build


def _in(daemon: str, prefix: Path) -> Build:
    if why := _hidden(prefix):
        raise UsageError(f"prefix: {why}; move the build elsewhere")
    installed = _programs(daemon, prefix)
    if installed is None:
        raise UsageError(
            f"prefix: expected a build of {daemon}, an install prefix or a DESTDIR image, with "
            f"{_sought(daemon)}, got {prefix}; give the folder that `make install` filled"
        )
    base, programs = installed
    inside = f"/{base.relative_to(prefix)}" if base != prefix else str(prefix)
    used = [base / Path(program).relative_to(inside) for program in programs.values()]
    digest = _digest(base, used)[:_DIGITS]
    details = f"own build; SHA-256 of its programs, libraries and plugins {digest}…"
    return Build(
        prefix, programs, f"own build {digest}", details, image=base != prefix, base=inside, own=True
    )


def _programs(daemon: str, folder: Path) -> tuple[Path, dict[str, str]] | None:
    """Return the folder below which all programs of the daemon are installed, and their paths inside the gateway.

    Return None if no folder has all of them.
    """
    for base, inside in (
        (folder / "usr", "/usr"),
        (folder / "usr/local", "/usr/local"),
        (folder, str(folder)),
    ):
        programs = {
            name: f"{inside}/{place}/{name}"
            for name in PROGRAMS[daemon]
            for place in reversed(_FOLDERS)
            if (base / place / name).is_file()
        }
        if len(programs) == len(PROGRAMS[daemon]):
            return base, programs
    return None


def _sought(daemon: str) -> str:
    return f"{', '.join(PROGRAMS[daemon])} in {', '.join(_FOLDERS)} (of it, its usr or its usr/local)"


def _hidden(folder: Path) -> str:
    """Return why a folder of the host would not be visible in a gateway; empty if it is visible."""
    for path in (folder, folder.resolve()):
        for place in _HIDDEN:
            if path.is_relative_to(place):
                return f"{folder} is below {place}, of which each gateway has its own"
    return ""


def _digest(base: Path, programs: Sequence[Path]) -> str:
    """Return a hash of the names and bytes of the daemon's files: these programs, and everything in folders `ipsec`,
    which have its libraries and plugins. Debian's --libdir puts such a folder one level deeper
    (lib/x86_64-linux-gnu/ipsec).

    Configuration files do not count, because espbench writes its own.
    """
    folders = [base / place for place in _DAEMON_FOLDERS]
    found = sorted({*base.glob("*/ipsec"), *base.glob("*/*/ipsec")} - set(folders))
    folders += [folder for folder in found if folder.relative_to(base).parts[0] != "etc"]
    files = [file for folder in folders for file in sorted(folder.rglob("*")) if file.is_file()]
    whole = hashlib.sha256()
    for file in dict.fromkeys([*files, *sorted(programs)]):
        whole.update(f"{file.relative_to(base)}\0".encode())
        whole.update(hashlib.sha256(file.read_bytes()).digest())
    return whole.hexdigest()
