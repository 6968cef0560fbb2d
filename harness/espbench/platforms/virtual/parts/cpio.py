# SPDX-License-Identifier: Apache-2.0
"""Makes archives that the kernel unpacks into a guest's root at boot. The same entries give the same bytes.

The format is newc (Linux, Documentation/driver-api/early-userspace/buffer-format.rst). The kernel also unpacks several
archives in a row (`joined`): the controller appends its own archive to the built one.
"""

from __future__ import annotations

import gzip
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_FIELDS = 13
_HEADER = 6 + 8 * _FIELDS
_TRAILER = "TRAILER!!!"


@dataclass(frozen=True)
class Entry:
    """A file, link (data: its target), folder or device (major and minor number) that root owns. path has no
    leading /.
    """

    path: str
    mode: int
    data: bytes = b""
    device: tuple[int, int] = (0, 0)

    @staticmethod
    def file(path: str, data: bytes, *, mode: int = 0o600) -> Entry:
        """Return a regular file."""
        return Entry(path.lstrip("/"), stat.S_IFREG | mode, data)

    @staticmethod
    def folder(path: str) -> Entry:
        """Return a folder."""
        return Entry(path.lstrip("/"), stat.S_IFDIR | 0o755)

    @staticmethod
    def link(path: str, target: str) -> Entry:
        """Return a symbolic link."""
        return Entry(path.lstrip("/"), stat.S_IFLNK | 0o777, target.encode())

    @staticmethod
    def character_device(path: str, major: int, minor: int) -> Entry:
        """Return a character device."""
        return Entry(path.lstrip("/"), stat.S_IFCHR | 0o600, device=(major, minor))


def archive(entries: Iterable[Entry]) -> bytes:
    """Return a newc archive of these entries in this order; all time stamps are 0."""
    parts = [_record(number, entry) for number, entry in enumerate(entries, start=1)]
    return b"".join([*parts, _record(0, Entry(_TRAILER, 0))])


def entries(data: bytes) -> Iterator[Entry]:
    """Read the entries of one archive that `archive` made."""
    at = 0
    while True:
        numbers = [int(data[at + 6 + 8 * n : at + 14 + 8 * n], 16) for n in range(_FIELDS)]
        mode, size, device, name_size = numbers[1], numbers[6], (numbers[9], numbers[10]), numbers[11]
        begins = at + _HEADER
        path = data[begins : begins + name_size - 1].decode()
        content = begins + name_size + (-(_HEADER + name_size) % 4)
        if path == _TRAILER:
            return
        yield Entry(path, mode, data[content : content + size], device)
        at = content + size + (-size % 4)


def files_of(archives: Iterable[bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield the path and the content of each entry of these archives."""
    for data in archives:
        yield from ((entry.path, entry.data) for entry in entries(data))


def joined(*archives: bytes) -> bytes:
    """Return the archives in a row, as the kernel accepts them: each begins at a multiple of 4 bytes."""
    return b"".join(_padded(archive) for archive in archives)


def zipped(data: bytes) -> bytes:
    """Return the data compressed as by `gzip -n -9`, without a file name and a time."""
    return gzip.compress(data, 9, mtime=0)


def _record(inode: int, entry: Entry) -> bytes:
    name = entry.path.encode() + b"\0"
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    fields = (
        inode, entry.mode, 0, 0, links, 0, len(entry.data), 0, 0, *entry.device, len(name), 0,
    )  # fmt: skip
    header = b"070701" + b"".join(b"%08X" % field for field in fields)
    return _padded(header + name) + _padded(entry.data)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
