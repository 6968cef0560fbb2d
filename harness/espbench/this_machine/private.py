# SPDX-License-Identifier: Apache-2.0
"""Checks that folders and files are this user's, and that nobody else can change or replace them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from espbench.errors import MachineLacks

_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


def private_directory(path: Path, remedy: str) -> Path:
    """Make a directory that only this user can enter, or check an existing one; return the path.

    Raise MachineLacks, with the remedy, if another user could have put something into it.
    """
    _demand_safe_parents(path, remedy)
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if why := not_private(path):
        raise MachineLacks(
            f"{path}: expected a directory of this user's alone, got {why}; nothing in it is believed", remedy
        )
    return path


def not_private(path: Path) -> str:
    """Say why a path is not a directory that only this user can enter (mode 0700); empty if it is."""
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode):
        return "a symbolic link" if stat.S_ISLNK(status.st_mode) else "no directory"
    if status.st_uid != os.geteuid():
        return f"one that belongs to user {status.st_uid}"
    mode = stat.S_IMODE(status.st_mode)
    return "" if mode & 0o077 == 0 else f"one that others can enter (mode {mode:04o})"


def foreign(path: Path) -> str:
    """Say why another user may have written a path; empty if only this user or root can change it."""
    status = path.lstat()
    if status.st_uid not in (os.geteuid(), 0):
        return f"it belongs to user {status.st_uid}"
    if not stat.S_ISLNK(status.st_mode) and status.st_mode & _OTHERS_MAY_WRITE:
        return f"others can write it (mode {stat.S_IMODE(status.st_mode):04o})"
    return ""


def _demand_safe_parents(path: Path, remedy: str) -> None:
    """Raise MachineLacks if a parent, before or after resolving symbolic links, lets others replace the directory."""
    # The real root is unknown in a user namespace, so the owner of / is trusted.
    trusted = {0, os.geteuid(), Path("/").stat().st_uid}
    for parent in dict.fromkeys(
        [*path.absolute().parents, *path.parent.resolve().parents, path.parent.resolve()]
    ):
        if not parent.exists():
            continue
        status = parent.lstat()
        sticky = status.st_mode & stat.S_ISVTX
        open_to_others = (
            not stat.S_ISLNK(status.st_mode) and status.st_mode & _OTHERS_MAY_WRITE and not sticky
        )
        if status.st_uid not in trusted or open_to_others:
            raise MachineLacks(
                f"{path}: expected a directory that nobody else can put there, got one below {parent}, which "
                f"belongs to user {status.st_uid} and has mode {stat.S_IMODE(status.st_mode):04o}",
                remedy,
            )
