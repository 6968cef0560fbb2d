# SPDX-License-Identifier: Apache-2.0
"""Fetches the Debian packages for guests by apt, and checks them against pinned hashes; none of them is installed."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from espbench.errors import EspbenchError, MachineLacks
from espbench.platforms.virtual.parts import recipe, sources
from espbench.platforms.virtual.parts.recipe import BinaryPackage
from espbench.platforms.virtual.parts.sources import Note
from espbench.platforms.virtual.parts.tools import Runner
from espbench.this_machine import kept


def fetch(names: Iterable[str], runner: Runner, on_note: Note) -> None:
    """Fetch these pinned packages, each with the right hash, into the folder of the sources if they are not there.

    If Debian's archive does not have the pinned version any more, fetch the newest of its series, with the hash in
    apt's signed lists. Then the user gets a note, and the choice is stored. Raise MachineLacks if there is none or the
    archive cannot be reached, EspbenchError if a package has the wrong hash.
    """
    kept.folder_of_ours(sources.folder())
    pinned, used = recipe.pinned_packages(), recipe.used_packages()
    lacking = [pinned[name] for name in names if not _here(used[name])]
    if not lacking:
        return
    if shutil.which("apt-get") is None:
        raise MachineLacks(f"no apt-get to fetch {_named(lacking[0])}", _by_hand(lacking[0]))
    lists = sources.own_lists(source_packages=False)
    sources.update(lists, runner)
    shown = _shown(lacking, lists, runner)
    wanted = []
    for package in lacking:
        chosen = _choose(package, shown)
        if chosen != package:
            on_note(
                f"the archive has {_named(chosen)}, and {_named(package)} no more: using that. Its figures are "
                "not for comparison with those of other versions"
            )
            recipe.note_package(package, chosen)
        if not _here(chosen):
            wanted.append(chosen)
    if wanted:
        _download(wanted, lists, runner)


def unpack(package: BinaryPackage, into: Path, runner: Runner) -> None:
    """Unpack a package into a folder; its scripts are not executed."""
    archive = str(sources.folder() / package.file)
    runner.run(["dpkg-deb", "-x", archive, str(into)], into.parent, f"unpacking {package.name}")


def parse_show(package: BinaryPackage, shown: str) -> list[BinaryPackage]:
    """Return the packages of this package's series in the output of `apt-cache show`."""
    packages = []
    for stanza in re.split(r"\n\s*\n", shown):
        said = dict(re.findall(r"^(Package|Version|SHA256): (\S+)", stanza, re.MULTILINE))
        if len(said) == 3 and re.fullmatch(package.series, said["Package"]):
            packages.append(
                replace(package, name=said["Package"], version=said["Version"], sha256=said["SHA256"])
            )
    return packages


def _here(package: BinaryPackage) -> bool:
    """Return whether the package has been fetched; raise EspbenchError if its hash is wrong."""
    file = sources.folder() / package.file
    if not kept.file_of_ours(file):
        return False
    if (got := recipe.digest(file)) != package.sha256:
        raise EspbenchError(
            f"{file}: expected SHA-256 {package.sha256}, got {got}; nothing was made of it: delete that file"
        )
    return True


def _shown(packages: list[BinaryPackage], lists: list[str], runner: Runner) -> str:
    """Return apt's descriptions of all packages that could replace these; empty if apt knows none."""
    folder = sources.folder()
    try:
        names = runner.run(["apt-cache", *lists, "pkgnames"], folder, "apt-cache", online=True).split()
        any_of = re.compile("|".join(package.series for package in packages))
        series = sorted(name for name in names if any_of.fullmatch(name))
        return runner.run(["apt-cache", *lists, "show", *series], folder, "apt-cache", online=True)
    except EspbenchError:
        return ""


def _choose(package: BinaryPackage, shown: str) -> BinaryPackage:
    """Return the pinned package, or the newest of its series in the archive; raise MachineLacks if there is none."""
    offered = parse_show(package, shown)
    if package in offered:
        return package
    if not offered:
        raise MachineLacks(
            f"expected {_named(package)} in the archives of {sources.APT}, got none of its series",
            _by_hand(package),
        )
    newest = offered[0]
    for other in offered[1:]:
        if sources.newer(other.version, newest.version):
            newest = other
    return newest


def _download(packages: list[BinaryPackage], lists: list[str], runner: Runner) -> None:
    """Download into a temporary folder, so that an incomplete file is never used; then check the hashes."""
    fresh = sources.folder() / ".new"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    wanted = [f"{package.name}={package.version}" for package in packages]
    what = ", ".join(package.name for package in packages)
    try:
        runner.run(["apt-get", *lists, "download", *wanted], fresh, f"fetching {what}", online=True)
    except EspbenchError as error:
        first = packages[0]
        raise MachineLacks(f"apt cannot fetch {_named(first)}: {error}", _by_hand(first)) from None
    by_digest = {recipe.digest(file): file for file in fresh.iterdir()}
    for package in packages:
        file = by_digest.get(package.sha256)
        if file is None:
            same = [
                digest for digest, other in by_digest.items() if other.name.startswith(f"{package.name}_")
            ]
            raise EspbenchError(
                f"{package.file}, as apt fetched it: expected SHA-256 {package.sha256}, got "
                f"{same[0] if same else 'no such file'}; nothing was made of it. Was the archive, or a proxy before "
                "it, changed?"
            )
        file.replace(sources.folder() / package.file)
    shutil.rmtree(fresh)


def _named(package: BinaryPackage) -> str:
    return f"{package.name} {package.version}"


def _by_hand(package: BinaryPackage) -> str:
    return (
        f"connect this machine to its Debian archive once, or put Debian's {_named(package)} into "
        f"{sources.folder()} as {package.file}"
    )
