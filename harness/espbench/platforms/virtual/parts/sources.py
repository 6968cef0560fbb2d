# SPDX-License-Identifier: Apache-2.0
"""Fetches Debian's source packages by apt with espbench's own package lists, and checks them against pinned hashes.

The host's apt does not change: espbench asks the same archives for the sources of the guests' Debian release. Once the
files are in the cache, no network is needed. If the host has no apt, or no Debian, users can put the files into the
cache themselves.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from espbench.errors import EspbenchError, MachineLacks
from espbench.platforms.virtual.parts import recipe
from espbench.platforms.virtual.parts.recipe import SourcePackage
from espbench.platforms.virtual.parts.tools import Runner
from espbench.this_machine import distribution, kept

APT = Path("/etc/apt")
GUESTS_RELEASE = "bookworm"  # the Debian release of versions.yaml and packages.yaml
Note = Callable[[str], None]


def folder() -> Path:
    """Return the folder with the files of source packages."""
    return recipe.store() / "sources"


def fetch(names: Iterable[str], runner: Runner, on_note: Note) -> None:
    """Fetch the files of these pinned source packages, each with the right hash, if they are not in folder().

    If Debian's archive does not have the pinned version any more, fetch the newest of its series, with the hashes in
    apt's signed lists. Then the user gets a note, and the choice is stored. Raise MachineLacks if there is none or the
    archive cannot be reached, EspbenchError if a file has the wrong hash.
    """
    kept.folder_of_ours(folder())
    lacking = [recipe.pinned()[name] for name in names if not _complete(recipe.used()[name])]
    if not lacking:
        return
    if shutil.which("apt-get") is None:
        raise MachineLacks(f"no apt-get to fetch the source of {_named(lacking[0])}", _by_hand(lacking[0]))
    updated = update(own_lists(), runner)
    for package in lacking:
        chosen = _choose(package, runner, updated)
        if chosen != package:
            on_note(
                f"the archive has {_named(chosen)}, and {package.version} no more: using that. Its figures are "
                "not for comparison with those of other versions"
            )
            recipe.note_substitute(package, chosen)
        if not _complete(chosen):
            _download(chosen, runner)


def unpack(package: SourcePackage, into: Path, runner: Runner) -> None:
    """Unpack a source package into the new folder `into`, with Debian's patches applied."""
    # --no-check skips the check of the author's signature; the pinned hashes are stricter.
    runner.run(
        ["dpkg-source", "--no-check", "--no-copy", "-x", str(folder() / package.dsc), str(into)],
        into.parent,
        f"unpacking {package.name}",
    )


def _complete(package: SourcePackage) -> bool:
    """Return whether all files of a package are in folder(); raise EspbenchError if one has the wrong hash."""
    for name, expected in package.files.items():
        file = folder() / name
        if not kept.file_of_ours(file):
            return False
        if (got := recipe.digest(file)) != expected:
            raise EspbenchError(
                f"{file}: expected SHA-256 {expected}, got {got}; nothing was built of it: delete that file"
            )
    return True


def update(lists: list[str], runner: Runner) -> str:
    """Fetch the package lists of own_lists(), and return apt's first error; an archive that fails may not be needed."""
    try:
        said = runner.run(["apt-get", *lists, "update"], folder(), "apt-get update", online=True)
    except EspbenchError as error:
        said = str(error)
    return _error(said)


def _choose(package: SourcePackage, runner: Runner, complaint: str) -> SourcePackage:
    """Return the pinned version, or the newest of its series in the archive; raise MachineLacks if there is none."""
    try:
        shown = runner.run(
            ["apt-cache", *own_lists(), "showsrc", package.name], folder(), "apt-cache", online=True
        )
    except EspbenchError:
        shown = ""
    offered = parse_showsrc(package, shown)
    if package.version in (one.version for one in offered):
        return package
    series = [one for one in offered if one.version.startswith(package.series)]
    if not series:
        others = ", ".join(sorted({one.version for one in offered})) or "none"
        raise MachineLacks(
            f"expected the source of {_named(package)} in the archives of {APT}, got {others}"
            + (f" (apt says: {complaint})" if complaint else ""),
            _by_hand(package),
        )
    newest = series[0]
    for other in series[1:]:
        if newer(other.version, newest.version):
            newest = other
    return newest


def parse_showsrc(package: SourcePackage, shown: str) -> list[SourcePackage]:
    """Return the versions of a source package in the output of `apt-cache showsrc`."""
    versions = []
    for stanza in re.split(r"\n\s*\n", shown):
        name = re.search(r"^Package: (\S+)", stanza, re.MULTILINE)
        version = re.search(r"^Version: (\S+)", stanza, re.MULTILINE)
        listed = re.search(r"^Checksums-Sha256:\s*\n((?: .*(?:\n|$))+)", stanza, re.MULTILINE)
        if name and version and listed and name[1] == package.name:
            # An upstream signature (.asc) is not needed for unpacking.
            rows = [line.split() for line in listed[1].splitlines() if not line.endswith(".asc")]
            files = {file: sha for sha, _, file in rows}
            versions.append(replace(package, version=version[1], files=files))
    return versions


def _download(package: SourcePackage, runner: Runner) -> None:
    """Download into a temporary folder, so that an incomplete file is never used; then check the hashes."""
    fresh = folder() / ".new"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    command = ["apt-get", *own_lists(), "source", "--download-only", "--only-source"]
    try:
        runner.run(
            [*command, f"{package.name}={package.version}"], fresh, f"fetching {package.name}", online=True
        )
    except EspbenchError as error:
        raise MachineLacks(
            f"apt cannot fetch the source of {_named(package)}: {_error(str(error))}", _by_hand(package)
        ) from None
    for name, expected in package.files.items():
        file = fresh / name
        got = recipe.digest(file) if file.is_file() else "no such file"
        if got != expected:
            raise EspbenchError(
                f"{name}, as apt fetched it: expected SHA-256 {expected}, got {got}; nothing was built of it. "
                "Was the archive, or a proxy before it, changed?"
            )
        file.replace(folder() / name)
    shutil.rmtree(fresh)


def own_lists(*, source_packages: bool = True) -> list[str]:
    """Return options that make apt use espbench's own lists of the host's archives, for the release that guests are
    made of: of sources (deb-src) or packages.
    """
    own = recipe.store() / ("apt" if source_packages else "apt-binary")
    for part in ("lists/partial", "cache/archives/partial", "sources"):
        (own / part).mkdir(parents=True, exist_ok=True)
    for path in (own, *sorted(own.rglob("*"))):
        kept.folder_of_ours(path) if path.is_dir() else kept.file_of_ours(path)
    for stale in (own / "sources").iterdir():
        stale.unlink()
    here = distribution.debian_codename()
    for given in [APT / "sources.list", *sorted((APT / "sources.list.d").glob("*"))]:
        if given.suffix in (".list", ".sources") and given.is_file():
            text = distribution.with_release(given.read_text(), given.suffix, here, GUESTS_RELEASE)
            (own / "sources" / given.name).write_text(
                as_sources(text, given.suffix) if source_packages else text
            )
    return [
        word
        for option in (
            "APT::Sandbox::User=",
            "Dir::Etc::sourcelist=/dev/null",
            f"Dir::Etc::sourceparts={own / 'sources'}",
            f"Dir::State::lists={own / 'lists'}",
            f"Dir::Cache={own / 'cache'}",
        )
        for word in ("-o", option)
    ]


def as_sources(text: str, suffix: str) -> str:
    """Return an apt sources file (.sources or .list) changed so that it names sources instead of packages."""
    if suffix == ".sources":
        return re.sub(r"(?mi)^(Types:).*$", r"\1 deb-src", text)
    lines = [line for line in text.splitlines() if re.match(r"\s*deb\s", line)]
    return "".join(re.sub(r"^\s*deb\s", "deb-src ", line) + "\n" for line in lines)


def newer(version: str, other: str) -> bool:
    """Return whether a Debian version is newer than another."""
    compared = subprocess.run(["dpkg", "--compare-versions", version, "gt", other], check=False)
    return compared.returncode == 0


def _error(said: str) -> str:
    """Return the first of apt's errors (the others mostly repeat it); empty if there is none."""
    return next((line for line in said.splitlines() if line.startswith(("E:", "Err:", "W: Failed"))), "")


def _named(package: SourcePackage) -> str:
    return f"{package.name} {package.version}"


def _by_hand(package: SourcePackage) -> str:
    return (
        f"connect this machine to its Debian archive once, or put {', '.join(package.files)} of Debian's source "
        f"package {_named(package)} into {folder()}"
    )
