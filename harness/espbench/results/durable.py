# SPDX-License-Identifier: Apache-2.0
"""Writes records as JSON, and files that are either complete or absent, also after a power cut."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from pathlib import Path

from espbench.errors import CannotWrite, EspbenchError
from espbench.terms import Record


def to_json(record: Record | dict[str, object], indent: int | None = None) -> str:
    """Return a record as JSON, with the keys in the order of its declaration.

    Floats are written in full (the shortest text that reads back as the same number), so a record that is read again is
    equal to the one written. Raise EspbenchError if a number is not finite.
    """
    plain = record.model_dump(mode="json") if isinstance(record, Record) else record
    separators = (",", ":") if indent is None else (",", ": ")
    try:
        return json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=separators, indent=indent)
    except ValueError as error:
        raise EspbenchError(f"a {type(record).__name__} cannot be written as JSON: {error}") from error


def write_failure(path: Path | str, error: OSError, kept: str) -> CannotWrite:
    """Return the error for a write that the file system refused; `kept` says what is still on disk."""
    return CannotWrite(
        f"{path}: cannot write: {error.strerror or error}\n  {kept}\n"
        "  to fix it: free space (or choose another disk with --out), then `espbench run --resume`"
    )


def refused_by_disk(error: OSError) -> bool:
    """Return whether a file system was full, over its quota, broken or read-only."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS)


def sync_directory(path: Path) -> None:
    """Make the names in a directory survive a power cut."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_atomically(path: Path, text: str) -> None:
    """Replace a file by a new text; a reader, or a power cut, sees the old or the new text, never a part.

    Bytes of a path that are not UTF-8 (Python has them as surrogates) are written as escapes, which JSON can read.
    Raise EspbenchError if the file cannot be written.
    """
    # The process id keeps two processes that write the same report apart.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_directory(path.parent)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise  # Ctrl-C
        raise write_failure(path, error, "the version before it is unchanged") from error
