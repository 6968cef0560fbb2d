# SPDX-License-Identifier: Apache-2.0
"""Fetches daemons as Debian packages and unpacks them into the user's cache: nothing is installed on the host.

A folder in the cache looks like a root (usr/, etc/, var/) and never changes. Its name contains a digest of the packages
and versions in it, and it is sealed: a folder that was changed later, or belongs to another user, is fetched again. apt
verifies the packages against its signed lists. Installed packages of the daemons would conflict with each other and
with the host's own; in the cache, several versions of a daemon can exist at the same time.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from espbench.errors import EspbenchError, MachineLacks, UsageError
from espbench.paths import cache_dir
from espbench.platforms.base import Readiness
from espbench.this_machine import kept

PACKAGES = {
    "strongswan": (
        "strongswan-charon", "strongswan-starter", "strongswan-swanctl", "strongswan-libcharon",
        "libcharon-extra-plugins",
        "libstrongswan", "libstrongswan-standard-plugins", "libstrongswan-extra-plugins",
    ),
    "libreswan": ("libreswan", "libnss3-tools"),
}  # fmt: skip
# These packages are built from one source and have the same version, which a plan's `version:` gives.
_SAME_VERSION = {"strongswan": PACKAGES["strongswan"], "libreswan": ("libreswan",)}
_TOP_LEVEL = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")  # links into usr/ on a system with merged usr
# Dependencies that only boot a system: no daemon here executes any of them, and they would be most of the folder.
_OF_A_BOOT = re.compile(r"(systemd|udev|tpm-udev|dbus|libpam-systemd|libnss-systemd|libsystemd-shared)\b")
_LIST = "packages.txt"
_FOUND: dict[tuple[str, str | None], Path] = {}
_INST = re.compile(r"^Inst (\S+) (?:\[\S+\] )?\((\S+) ")


def unpacked(
    daemon: str, version: str | None = None, on_note: Callable[[str], None] = lambda text: None
) -> Path:
    """Return the folder with a daemon's packages and with those of their dependencies that this host does not have.

    version is a Debian package version; None: the newest that the host's apt knows. apt is asked only once, so that
    the answer does not change within a run. Raise MachineLacks if the packages are not available, UsageError if apt
    knows only other versions.
    """
    if (daemon, version) not in _FOUND:
        _FOUND[daemon, version] = _find(daemon, version, on_note)
    return _FOUND[daemon, version]


def listed(folder: Path) -> dict[str, str]:
    """Return the packages in a folder of the cache and their versions."""
    lines = (folder / _LIST).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


def _find(daemon: str, version: str | None, on_note: Callable[[str], None]) -> Path:
    if not (ready := readiness(daemon, daemon)).ready:
        raise MachineLacks(ready.missing, ready.install)
    for place in (cache_dir(), cache_dir() / "packages"):
        kept.folder_of_ours(place)
    try:
        return _had(daemon, version, on_note, own_lists=False)
    except EspbenchError:
        # The host's package lists may be missing, or older than the archive, so espbench fetches its own new lists.
        on_note(f"apt's lists on this host do not have {daemon}: fetching new ones into the cache")
    _update_own_lists(on_note)
    try:
        return _had(daemon, version, on_note, own_lists=True)
    except EspbenchError as error:
        if (folder := _kept(daemon, version, on_note)) is None:
            raise
        which = listed(folder)[PACKAGES[daemon][0]]
        on_note(f"{str(error).splitlines()[0]}: using {daemon} {which}, fetched before")
        return folder


def _kept(daemon: str, version: str | None, on_note: Callable[[str], None]) -> Path | None:
    """Return the cache's folder with this version of a daemon (None: the newest version); None if there is none."""
    newest = None
    for folder in sorted((cache_dir() / "packages").glob(f"{daemon}-*")):
        if why := kept.problem_with(folder):
            on_note(f"{folder}: {why}; not used")
            continue
        here = listed(folder)[PACKAGES[daemon][0]]
        if version in (None, here) and (newest is None or _newer(here, listed(newest)[PACKAGES[daemon][0]])):
            newest = folder
    return newest


def _newer(version: str, other: str) -> bool:
    compared = subprocess.run(["dpkg", "--compare-versions", version, "gt", other], check=False)
    return compared.returncode == 0


def _had(daemon: str, version: str | None, on_note: Callable[[str], None], *, own_lists: bool) -> Path:
    wanted = _versions(daemon, version, own_lists)
    digest = hashlib.sha256("\n".join(wanted).encode()).hexdigest()[:12]
    folder = cache_dir() / "packages" / f"{daemon}-{digest}"
    if os.path.lexists(folder) and (why := kept.problem_with(folder)):
        on_note(f"{folder}: {why}; not used")
        aside = folder.with_name(f".bad-{secrets.token_hex(3)}")
        folder.rename(aside)
        if not aside.is_symlink():
            shutil.rmtree(aside, ignore_errors=True)
    if not folder.is_dir():
        on_note(f"fetching {daemon}: {len(wanted)} packages, unpacked into the cache, not installed")
        _fetch(wanted, folder, own_lists)
    return folder


def readiness(name: str, daemon: str) -> Readiness:
    """Return whether this host has the programs that fetch a stack's daemon. The archive itself is not asked."""
    missing = [program for program in ("apt-get", "dpkg-deb") if shutil.which(program) is None]
    here = any((cache_dir() / "packages").glob(f"{daemon}-*"))
    return Readiness(
        name,
        not missing,
        f"no {' and '.join(missing)}: {daemon} is unpacked from Debian packages",
        "use prefix: with your own build of it",
        note=f"{daemon} " + ("is in the cache" if here else "is fetched when first used"),
    )


def _versions(daemon: str, version: str | None, own_lists: bool) -> tuple[str, ...]:
    """Return `name=version` of the daemon's packages, and of those dependencies that the host lacks."""
    mine = PACKAGES[daemon]
    asked = [f"{name}={version}" if version and name in _SAME_VERSION[daemon] else name for name in mine]
    simulate = ["-s", "--no-install-recommends", "-o", "Debug::NoLocking=1", "install", *asked]
    done = _apt(simulate, own_lists)
    if done.returncode:
        raise _refused(daemon, version, done, own_lists)
    versions = wanted_versions(done.stdout)
    # apt does not list a package that the host already has in that version, but the daemon's own must be in the folder.
    for name in mine:
        if name not in versions:
            known = version if version and name in _SAME_VERSION[daemon] else None
            versions[name] = known or _candidate(name, own_lists)
    return tuple(sorted(f"{name}={versions[name]}" for name in versions))


def wanted_versions(simulated: str) -> dict[str, str]:
    """Return the versions by package that `apt-get -s install` would install, without those that boot a system."""
    found = (_INST.match(line) for line in simulated.splitlines())
    return {m[1]: m[2] for m in found if m is not None and not _OF_A_BOOT.match(m[1])}


def _candidate(package: str, own_lists: bool) -> str:
    shown = _apt(["--no-all-versions", "show", package], own_lists, program="apt-cache").stdout
    candidate = re.search(r"^Version: (\S+)", shown, re.MULTILINE)
    if candidate is None:
        raise MachineLacks(f"apt knows no package {package}", "apt-get update")
    return candidate[1]


def _refused(
    daemon: str, version: str | None, done: subprocess.CompletedProcess[str], own_lists: bool
) -> EspbenchError:
    """Return UsageError if apt does not have the version that the plan asks for, else MachineLacks."""
    if version:
        madison = _apt(["madison", PACKAGES[daemon][0]], own_lists, program="apt-cache").stdout
        versions = list(dict.fromkeys(re.findall(r"^[^|]*\| *(\S+) *\|", madison, re.MULTILINE)))
        if versions and version not in versions:
            return UsageError(
                f"stack {daemon}: version: expected one that apt can fetch ({', '.join(versions)}), "
                f"got {version}; for another one, give prefix: with your own build"
            )
    return MachineLacks(
        f"apt cannot give {daemon}: {_error(done)}",
        "apt-get update, or prefix: with your own build",
    )


def _error(done: subprocess.CompletedProcess[str]) -> str:
    """Return the first of apt's errors: the others mostly repeat it for other packages."""
    errors = [line for line in done.stderr.splitlines() if line.startswith("E:")]
    return (errors or done.stderr.strip().splitlines()[-1:] or ["it gave no reason"])[0]


def _own_lists() -> list[str]:
    """Return options that make apt use espbench's own package lists."""
    own = cache_dir() / "apt"
    return ["-o", f"Dir::State::lists={own / 'lists'}", "-o", f"Dir::Cache={own / 'cache'}"]


def _update_own_lists(on_note: Callable[[str], None]) -> None:
    for part in ("lists/partial", "cache/archives/partial"):
        (cache_dir() / "apt" / part).mkdir(parents=True, exist_ok=True)
    # apt would fail if another process updated these lists at the same time, so wait for a lock.
    with (cache_dir() / "apt" / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = _apt(["-o", "APT::Update::Error-Mode=any", "update"], own_lists=True)
    if done.returncode:  # not an error yet: the source that failed may not be needed
        on_note(f"apt-get update: {_error(done)}")


def _apt(
    arguments: Sequence[str], own_lists: bool, program: str = "apt-get", cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, "-o", "APT::Sandbox::User=", *(_own_lists() if own_lists else []), *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env=os.environ | {"LC_ALL": "C"},
        start_new_session=True,
    )


def _fetch(wanted: Sequence[str], folder: Path, own_lists: bool) -> None:
    """Download and unpack into a temporary folder, then rename it, so that an incomplete folder is never used."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".new-") as name:
        work = Path(name)
        archives, root = work / "archives", work / "root"
        archives.mkdir()
        root.mkdir(mode=0o755)
        done = _apt(["download", *wanted], own_lists, cwd=archives)
        if done.returncode:
            raise MachineLacks(f"apt-get download failed: {_error(done)}", "apt-get update")
        for archive in sorted(archives.iterdir()):
            opened = subprocess.run(
                ["dpkg-deb", "-x", str(archive), str(root)], capture_output=True, text=True, check=False
            )
            if opened.returncode:
                raise MachineLacks(
                    f"{archive.name} cannot be unpacked into {folder.parent}: {opened.stderr.strip()}",
                    "make room there, or set XDG_CACHE_HOME to a folder elsewhere",
                )
        _merge_usr(root)
        (root / _LIST).write_text("\n".join(wanted) + "\n")
        kept.seal(root)
        try:
            root.rename(folder)
        except OSError:
            if not folder.is_dir():  # otherwise another espbench was faster: same digest, so same files
                raise


def _merge_usr(root: Path) -> None:
    """Move lib, sbin and the other folders of _TOP_LEVEL into usr/, where a host with merged usr has them."""
    for name in _TOP_LEVEL:
        if (root / name).is_dir() and not (root / name).is_symlink():
            shutil.copytree(root / name, root / "usr" / name, symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(root / name)
