# SPDX-License-Identifier: Apache-2.0
"""Checks files of the cache before they are run as root: they must be this user's, and unchanged.

Digests are recorded when files are made, and compared when they are used; each process reads a file only once.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from espbench.errors import MachineLacks
from espbench.this_machine.private import foreign

DIGESTS = "digests.json"
_READ: dict[tuple[Path, int, int, int, int], str] = {}


def folder_of_ours(path: Path) -> Path:
    """Make a folder of the cache, or make sure that nobody else can write in an existing one; return the path.

    Raise MachineLacks if it belongs to another user, or cannot be made.
    """
    try:
        path.mkdir(mode=0o755, parents=True, exist_ok=True)
        status = path.stat()
        if status.st_uid == os.geteuid() and status.st_mode & 0o022:  # made under a umask such as 002
            path.chmod(stat.S_IMODE(status.st_mode) & ~0o022)
    except OSError as error:
        raise not_writable(path, error) from None
    if why := foreign(path):
        raise MachineLacks(
            f"{path}: expected a cache of this user's own, got one of which {why}; nothing in it is believed",
            "set XDG_CACHE_HOME to a folder of yours",
        )
    return path


def not_writable(path: Path, error: OSError) -> MachineLacks:
    """Return the error for a path of the cache that the system did not let this user make or change."""
    return MachineLacks(
        f"{path}: expected a cache that this user may write, got: {error.strerror or error}",
        "set XDG_CACHE_HOME to a folder that you may write",
    )


def is_there(path: Path) -> bool:
    """Return whether there is a file; also False if this user may not look, as below the home of another user."""
    try:
        return path.is_file()
    except OSError:
        return False


def file_of_ours(path: Path) -> bool:
    """Return whether there is a file that nobody else can change from now on.

    Write permissions of others are removed from a file of ours, which must be read only after that. A file that
    another user put there is removed.
    """
    if not is_there(path):
        return False
    status = path.stat()
    if status.st_uid == os.geteuid() and status.st_mode & 0o022:  # made under a umask such as 002
        path.chmod(stat.S_IMODE(status.st_mode) & ~0o022)
    if foreign(path) or foreign(path.resolve()):
        with contextlib.suppress(OSError):
            path.unlink()
        return False
    return True


def digest(file: Path) -> str:
    """Return a file's SHA-256; if this process has read the file before, and its status is the same, that of then."""
    status = file.stat()
    key = (file, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    if key not in _READ:
        with file.open("rb") as stream:
            _READ[key] = hashlib.file_digest(stream, "sha256").hexdigest()
    return _READ[key]


def problem_with_files(folder: Path, expected: Mapping[str, str]) -> str:
    """Say why these files of a folder (name → SHA-256) must not be used; empty if they may be used."""
    for path in (folder, *(folder / name for name in expected)):
        if not path.exists():
            return f"{path.name} is missing"
        if why := foreign(path):
            return f"of {path.name}, {why}"
    for name, wanted in expected.items():
        if (got := digest(folder / name)) != wanted:
            return f"{name}: expected SHA-256 {wanted[:16]}…, got {got[:16]}…"
    return ""


def seal(folder: Path) -> None:
    """Record the digests of everything below a folder, once it is complete."""
    (folder / DIGESTS).write_text(json.dumps(dict(_entries(folder)), indent=0) + "\n")
    (folder / DIGESTS).chmod(0o644)


def problem_with(folder: Path) -> str:
    """Say why a sealed folder must not be used: another user's, or changed since `seal`; empty if it may be used."""
    if why := foreign(folder):
        return why
    try:
        expected = json.loads((folder / DIGESTS).read_text())
        got = dict(_entries(folder))
    except (OSError, ValueError) as error:
        return f"no digests of its files can be read ({error})"
    for name in sorted({*expected, *got}):
        if expected.get(name) != got.get(name):
            return f"{name}: expected {_shown(expected.get(name))}, got {_shown(got.get(name))}"
    strangers = (0, os.geteuid())
    return next(
        (f"{p} belongs to another user" for p in _below(folder) if p.lstat().st_uid not in strangers), ""
    )


def _entries(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the name of each file and link below a folder, and the text that identifies it.

    That is a file's SHA-256 and mode, or a link's target. Folders are identified by their content.
    """
    for path in _below(folder):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            yield name, f"a link to {path.readlink()}"
        elif path.is_file() and name != DIGESTS:
            yield name, f"SHA-256 {digest(path)}, mode {stat.S_IMODE(path.stat().st_mode):o}"


def _below(folder: Path) -> Iterator[Path]:
    yield from sorted(folder.rglob("*"))


def _shown(entry: str | None) -> str:
    return entry or "no such file"
