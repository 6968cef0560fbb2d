# SPDX-License-Identifier: Apache-2.0
"""Daemons from Debian packages, unpacked into the user's cache: nothing is installed on the host.

A folder in the cache looks like a root (usr/, etc/, var/) and never changes: its name holds a digest of
the packages and versions in it. Package managers put daemons that conflict with each other and with the
host's own; here two versions of one stand side by side.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from espbench.errors import MachineLacks
from espbench.platforms.base import Readiness

PACKAGES = {
    "strongswan": (
        "strongswan-charon", "strongswan-swanctl", "strongswan-libcharon", "libcharon-extra-plugins",
        "libstrongswan", "libstrongswan-standard-plugins", "libstrongswan-extra-plugins",
    ),
    "libreswan": ("libreswan", "libnss3-tools"),
}  # fmt: skip
# All built from one source: `version:` of a plan is theirs.
_SAME_VERSION = {"strongswan": PACKAGES["strongswan"], "libreswan": ("libreswan",)}
_TOP_LEVEL = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")  # of usr/, where usr is merged
_UNKNOWN = re.compile(r"Unable to locate package|was not found|has no installation candidate")
_INST = re.compile(r"^Inst (\S+) (?:\[\S+\] )?\((\S+) ")


def cache_dir() -> Path:
    """Where espbench keeps what it fetched: XDG_CACHE_HOME, or ~/.cache, with espbench under it."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "espbench"


def unpacked(
    daemon: str, version: str | None = None, on_note: Callable[[str], None] = lambda text: None
) -> Path:
    """The folder with a daemon's packages and those they need that this host has not; fetched once.

    version is a Debian package version; None: the newest the host's apt knows. MachineLacks when they
    cannot be had.
    """
    if not (ready := readiness(daemon, daemon)).ready:
        raise MachineLacks(ready.missing, ready.install)
    wanted = _versions(daemon, version)
    digest = hashlib.sha256("\n".join(wanted).encode()).hexdigest()[:12]
    folder = cache_dir() / "packages" / f"{daemon}-{digest}"
    if not folder.is_dir():
        on_note(f"fetching {daemon}: {len(wanted)} packages, unpacked into the cache, not installed")
        _fetch(wanted, folder)
    return folder


def readiness(name: str, daemon: str) -> Readiness:
    """Whether a stack's daemon can be had here: whether there is apt, not whether it reaches its archive."""
    missing = [program for program in ("apt-get", "dpkg-deb") if shutil.which(program) is None]
    here = any((cache_dir() / "packages").glob(f"{daemon}-*"))
    return Readiness(
        name,
        not missing,
        f"no {' and '.join(missing)}: {daemon} is unpacked from Debian packages",
        "use prefix: with your own build of it",
        note=f"{daemon} " + ("is in the cache" if here else "is fetched when first used"),
    )


def _versions(daemon: str, version: str | None) -> list[str]:
    """`name=version` of the daemon's packages and all they need beside what the host has."""
    mine = PACKAGES[daemon]
    asked = [f"{name}={version}" if version and name in _SAME_VERSION[daemon] else name for name in mine]
    simulate = ["-s", "--no-install-recommends", "-o", "Debug::NoLocking=1", "install", *asked]
    done = _apt(simulate)
    if done.returncode and _UNKNOWN.search(done.stderr):
        _update_own_lists()
        done = _apt(simulate)
    if done.returncode:
        raise _refused(daemon, version, done)
    found = {m[1]: m[2] for line in done.stdout.splitlines() if (m := _INST.match(line))}
    # A package the host has at that version is not installed again, but the daemon's own must be ours.
    for name in mine:
        if name not in found:
            found[name] = version if version and name in _SAME_VERSION[daemon] else _candidate(name)
    return sorted(f"{name}={found[name]}" for name in found)


def _candidate(package: str) -> str:
    shown = _apt(["--no-all-versions", "show", package], program="apt-cache").stdout
    candidate = re.search(r"^Version: (\S+)", shown, re.MULTILINE)
    if candidate is None:
        raise MachineLacks(f"apt knows no package {package}", "apt-get update")
    return candidate[1]


def _refused(daemon: str, version: str | None, done: subprocess.CompletedProcess[str]) -> MachineLacks:
    errors = [line for line in done.stderr.splitlines() if line.startswith("E:")]
    which = f"{daemon} {version}" if version else daemon
    known = ""
    if version:
        madison = _apt(["madison", PACKAGES[daemon][0]], program="apt-cache").stdout
        versions = list(dict.fromkeys(re.findall(r"\| *(\S+) *\|", madison)))
        known = f"; it knows {', '.join(versions)}" if versions else ""
    return MachineLacks(
        f"apt cannot give {which}: {'; '.join(errors) or done.stderr.strip() or 'no reason'}{known}",
        "apt-get update, another version:, or prefix: with your own build",
    )


def _own_lists() -> list[str]:
    """Options that make apt use package lists of ours: the host's are missing or too old."""
    own = cache_dir() / "apt"
    if not (own / "lists").is_dir():
        return []
    return ["-o", f"Dir::State::lists={own / 'lists'}", "-o", f"Dir::Cache={own / 'cache'}"]


def _update_own_lists() -> None:
    for part in ("lists/partial", "cache/archives/partial"):
        (cache_dir() / "apt" / part).mkdir(parents=True, exist_ok=True)
    _apt(["update"])


def _apt(
    arguments: Sequence[str], program: str = "apt-get", cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, "-o", "APT::Sandbox::User=", *_own_lists(), *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env=os.environ | {"LC_ALL": "C"},
        start_new_session=True,
    )


def _fetch(wanted: Sequence[str], folder: Path) -> None:
    """Download and unpack beside the final name, then rename: a half-made folder is never used."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".new-") as name:
        work = Path(name)
        archives, root = work / "archives", work / "root"
        archives.mkdir()
        root.mkdir(mode=0o755)
        done = _apt(["download", *wanted], cwd=archives)
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if line.startswith("E:")]
            raise MachineLacks(f"apt-get download failed: {'; '.join(errors)}", "apt-get update")
        for archive in sorted(archives.iterdir()):
            subprocess.run(["dpkg-deb", "-x", str(archive), str(root)], check=True, capture_output=True)
        _merge_usr(root)
        (root / "packages.txt").write_text("\n".join(wanted) + "\n")
        try:
            root.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another espbench was faster: the same digest, the same files
                raise


def _merge_usr(root: Path) -> None:
    """Move /lib, /sbin … into usr/, where the host keeps them."""
    for name in _TOP_LEVEL:
        if (root / name).is_dir() and not (root / name).is_symlink():
            shutil.copytree(root / name, root / "usr" / name, symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(root / name)
