# SPDX-License-Identifier: Apache-2.0
"""Reads files that a user names: only regular ones of bounded size, since devices and pipes might never end."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_PIECE = 1 << 20  # bytes read at once, so that a large limit reserves no memory for a small file


class NotRead(Exception):
    """A file or a value that cannot or must not be read; the text says why."""


def bytes_of(path: Path, most: int) -> bytes:
    """Return the bytes of a regular file with at most `most` bytes. Raise NotRead."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise NotRead(error.strerror or str(error)) from error
    except ValueError as error:  # its name has a NUL or a lone surrogate
        raise NotRead(f"no path: {error}") from error
    data = bytearray()
    try:
        kind = os.fstat(fd).st_mode
        if not stat.S_ISREG(kind):
            raise NotRead("Is a directory" if stat.S_ISDIR(kind) else "not a regular file")
        while len(data) <= most and (more := os.read(fd, min(_PIECE, most + 1 - len(data)))):
            data += more
    except OSError as error:
        raise NotRead(error.strerror or str(error)) from error
    finally:
        os.close(fd)
    if len(data) > most:
        raise NotRead(f"more than {most >> 20} MiB" if most >> 20 else f"more than {most >> 10} KiB")
    return bytes(data)
