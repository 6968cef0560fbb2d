# SPDX-License-Identifier: Apache-2.0
"""Identifies the espbench that measured: by the commit of its clone, and by a digest of the code itself.

A version number says little between two releases. Two runs with equal digests were made by the same code, wherever
it is stored and whatever else is in the clone. With the commit, a reader can look the code up.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
from collections.abc import Collection
from functools import cache
from pathlib import Path

from espbench.paths import DataKind, clone_root, data_dir, program

_PACKAGE = Path(__file__).resolve().parent
# These folders only read results: no figure of a run depends on them.
READERS = ("reporting", "comparison", "claims", "frames", "over_time", "cli/finished", "cli/history")
_SETTINGS: tuple[DataKind, ...] = ("topologies", "traffic")
_DIGITS = 16
_PATIENCE_S = 120.0


@cache
def own_code() -> dict[str, str]:
    """Describe this espbench as the manifest keeps it.

    `code`: SHA-256 of the Python files with their names. `measuring`: the same without READERS, with the YAML files
    that say what is measured: suites, topologies and traffic profiles (the conditions of a run have their names, but
    not their content). `generator`: SHA-256 of the traffic generator's program, missing if that is not built. Each is
    cut to 16 digits. `commit`: of the clone; `changed`: present if tracked files were changed since. Both are missing
    if espbench is installed from a wheel, or if git is not installed.
    """
    identity = {
        "code": digest_of_files(_PACKAGE, "*.py"),
        "measuring": _measuring(),
    }
    if digest := generator_digest():
        identity["generator"] = digest
    root = clone_root()
    if root is not None and (commit := _commit(root)):
        identity |= commit
    return identity


def _measuring() -> str:
    digests = [
        digest_of_files(_PACKAGE, "*.py", READERS),
        digest_of_files(_PACKAGE / "catalogue", "*.yaml"),
        *(digest_of_files(data_dir(kind), "*.yaml") for kind in _SETTINGS),
    ]
    return _digest(" ".join(digests).encode())


def generator_digest() -> str:
    """Return the SHA-256 of the traffic generator's program, cut to 16 digits; empty if that is not built.

    The program is read at each call: a new build may replace it while this process runs.
    """
    with contextlib.suppress(OSError):
        return _digest(program("espbench-traffic", "ESPBENCH_TRAFFIC").read_bytes())
    return ""


def digest_of_files(folder: Path, pattern: str, without: Collection[str] = ()) -> str:
    """Return the SHA-256 of the files of this pattern in a folder and those below, with their names; 16 digits.

    without: folders, relative to the first one, whose files are left out.
    """
    total = hashlib.sha256()
    for file in sorted(folder.rglob(pattern)):
        if any(file.is_relative_to(folder / name) for name in without):
            continue
        total.update(f"{file.relative_to(folder).as_posix()}\0".encode())
        total.update(hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()[:_DIGITS]


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_DIGITS]


def _commit(root: Path) -> dict[str, str]:
    """Return the commit that is checked out, and `changed` if its files were changed; empty if git cannot say."""
    top, _, commit = _git(root, "rev-parse", "--show-toplevel", "--verify", "HEAD").partition("\n")
    if (
        not commit or Path(top) != root
    ):  # git refuses another user's clone; a copy may lie inside the clone of another project
        return {}
    changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    return {"commit": commit, **({"changed": "yes"} if changed else {})}


def _git(root: Path, *words: str) -> str:
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}  # git must not write into the clone
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *words],
            capture_output=True, text=True, check=False, timeout=_PATIENCE_S, env=environment,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
