# SPDX-License-Identifier: Apache-2.0
"""Records as JSON, and files that are either whole or not there, also after a power cut."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from pathlib import Path

from espbench.errors import CannotWrite, EspbenchError
from espbench.terms import Record


def to_json(record: Record | dict[str, object], indent: int | None = None) -> str:
    """Return a record as JSON, keys in the order of its declaration; NaN and infinity are refused.

    Floats are written in full (the shortest text that reads back as the same number), so a
    record read again is equal to the one written. EspbenchError where a number is not finite.
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
    """Replace a file by a new text: a reader, or a power cut, sees the old or the new, never half.

    Bytes of a path that are no UTF-8 (surrogates, as Python has them) are written as escapes, which JSON reads back.
    """
    # The process id keeps two reports of one run, written at once, out of each other's file.
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
