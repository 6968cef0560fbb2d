# SPDX-License-Identifier: Apache-2.0
"""One build of a daemon: Debian's packages or the user's own; its programs, and what tells it from another.

A program that a folder lacks would be taken from the host, where a daemon of the same name may be
installed: so every program is looked for in the folder itself, before any gateway is made.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from espbench.errors import EspbenchError, MachineLacks, UsageError
from espbench.platforms.base import HeldDaemon
from espbench.stacks.daemons import packages

PROGRAMS = {"strongswan": ("charon", "swanctl"), "libreswan": ("pluto", "addconn", "whack")}
_TOOLS = {"strongswan": (), "libreswan": ("certutil", "pk12util")}  # of others, which own builds do not bring
# Programs are where `make install` puts them below its prefix; the first three hold libraries and plugins.
_DAEMON_FOLDERS = ("libexec/ipsec", "lib/ipsec", "lib64/ipsec")
_FOLDERS = (*_DAEMON_FOLDERS, "sbin", "bin")
# A gateway has its own of these, or of what the daemon's files are laid with: the host's are not seen there.
_HIDDEN = ("/run", "/dev", "/proc", "/sys")
_DIGITS = 12


@dataclass(frozen=True)
class Build:
    """A daemon's files on the host, to be laid over a gateway.

    programs: their paths inside the gateway. name tells it from other builds of that daemon, `details`
    says more. An image looks like a root (usr/, etc/, var/); else the folder is an install prefix, which
    appears at the same path inside. in_root: gateways have it from their boot, and nothing is to be laid.
    base: the folder inside below which it is installed. own: it is the user's.
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
    """Return the build a plan asks for: `prefix`, or the packages of `version` (fetched if need be).

    UsageError where the prefix holds no such daemon; MachineLacks where the packages cannot be had.
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
    """Return the build that gateways have in their root from their boot; its name is the first package's version."""
    versions = by_gateways.packages
    details = ", ".join(f"{name} {version}" for name, version in versions.items())
    name = next(iter(versions.values()))
    return Build(Path("/"), by_gateways.programs, name, details, image=True, in_root=True)


def own_in_root(daemon: str, prefix: Path) -> Build:
    """Return the user's build, as guests have it in their root from their boot; UsageError if there is none.

    Its tools are those of the guests.
    """
    return replace(_in(daemon, prefix), in_root=True)


def _own(daemon: str, prefix: Path) -> Build:
    build = _in(daemon, prefix)
    lacking = [
        name
        for name in _TOOLS[daemon]
        if not shutil.which(name) and not (prefix / "usr/bin" / name).is_file()
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
    digest = _digest(base)[:_DIGITS]
    details = f"own build; SHA-256 of its programs, libraries and plugins {digest}…"
    inside = f"/{base.relative_to(prefix)}" if base != prefix else str(prefix)
    return Build(
        prefix, programs, f"own build {digest}", details, image=base != prefix, base=inside, own=True
    )


def _programs(daemon: str, folder: Path) -> tuple[Path, dict[str, str]] | None:
    """Find where in the folder the whole daemon is, and its programs' paths inside the gateway."""
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
    """Say why a gateway would not see a folder of the host; empty if it does."""
    for path in (folder, folder.resolve()):
        for place in _HIDDEN:
            if path.is_relative_to(place):
                return f"{folder} is below {place}, of which each gateway has its own"
    return ""


def _digest(base: Path) -> str:
    """Hash the names and bytes of all files a daemon runs; its configuration is espbench's."""
    whole = hashlib.sha256()
    files = [
        file for place in _DAEMON_FOLDERS for file in sorted((base / place).rglob("*")) if file.is_file()
    ]
    for file in files:
        whole.update(f"{file.relative_to(base)}\0".encode())
        whole.update(hashlib.sha256(file.read_bytes()).digest())
    return whole.hexdigest()
