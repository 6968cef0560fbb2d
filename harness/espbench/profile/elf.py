# SPDX-License-Identifier: Apache-2.0
"""Reads the functions of a program or library from its ELF file, stripped or not.

A file that is not stripped has all functions in .symtab. A stripped file has only those that other files may call
(.dynsym). Of the others only the address is known, from the unwind table (.eh_frame_hdr); it is their name: `0x3a40`.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

_MAGIC = b"\x7fELF"
_LOAD, _NOTE = 1, 4  # kinds of segments
_NOT_IN_FILE = 8  # SHT_NOBITS, a kind of section: without content, as in a file of debug information
_EXECUTABLE = 4  # SHF_EXECINSTR, a flag of a section
_FILE, _LOCAL = 4, 0  # STT_FILE, a kind of symbol, and STB_LOCAL, a binding
_FUNCTIONS = (0, 2, 10)  # STT_NOTYPE (labels of the assembler), STT_FUNC, STT_GNU_IFUNC
_BUILD_ID = 3
# Linkers write this form of the unwind table: its version, the encoding of the count (4 bytes) and of the entries
# (4 bytes each, relative to the table's own address).
_USUAL_TABLE = (1, 0x03, 0x3B)


class NoElf(ValueError):
    """The file is no ELF file, or is cut short."""


@dataclass(frozen=True)
class Segment:
    """A part of the file that is mapped: its offset in the file, and the address for which it was linked."""

    offset: int
    address: int
    size: int


@dataclass(frozen=True)
class Binary:
    """The functions of a program or library.

    functions: first address, as it was linked → name. build_id: in hexadecimal; empty if the file has none.
    has_symbols: the file is not stripped.
    """

    segments: tuple[Segment, ...]
    functions: Mapping[int, str]
    build_id: str
    has_symbols: bool

    @cached_property
    def _starts(self) -> list[int]:
        return sorted(self.functions)

    def at(self, offset: int) -> str | None:
        """Return the function that contains an offset in the file; None if no function of its segment begins before."""
        for segment in self.segments:
            if segment.offset <= offset < segment.offset + segment.size:
                place = bisect_right(self._starts, segment.address + offset - segment.offset) - 1
                if place >= 0 and self._starts[place] >= segment.address:
                    return self.functions[self._starts[place]]
        return None


@dataclass(frozen=True)
class _Section:
    name: str
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    entry: int


def read(data: bytes) -> Binary:
    """Read an ELF file, of 32 or 64 bits, in either byte order; NoElf if it is not an ELF file, or is cut short."""
    if data[:4] != _MAGIC:
        raise NoElf("no ELF file")
    try:
        return _File(data).binary()
    except (struct.error, IndexError, ValueError) as error:
        raise NoElf(str(error)) from None


class _File:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._wide = data[4] == 2
        self._order = "<" if data[5] == 1 else ">"
        word = "QQQ" if self._wide else "III"
        _, _, _, _, segments, sections, *rest = self._unpacked(f"HHI{word}IHHHHHH", 16)
        _, _, size, count, section_size, section_count, names = rest
        self._segments = [self._segment(segments + n * size) for n in range(count)]
        raw = [self._section(sections + n * section_size) for n in range(section_count)]
        self._sections = [
            _Section(self._text(raw[names][4], each[0]), *each[1:]) for each in raw
        ]  # fmt: skip

    def binary(self) -> Binary:
        """Return the functions and the build ID of the file."""
        tables = {section.name: section for section in self._sections if section.kind != _NOT_IN_FILE}
        whole = ".symtab" in tables
        functions = {start: hex(start) for start in self._unwound(tables.get(".eh_frame_hdr"))}
        functions |= {
            s.address: f"[{s.name.lstrip('.')}]" for s in self._sections if s.name.startswith(".plt")
        }
        for name in (".dynsym", ".symtab"):
            if name in tables:
                functions |= self._symbols(tables[name])
        loaded = tuple(Segment(o, a, size) for kind, o, a, size in self._segments if kind == _LOAD)
        return Binary(loaded, functions, self._build_id(), whole)

    def _symbols(self, table: _Section) -> dict[int, str]:
        """Return first address → name for each function.

        If an address has several names, the shortest is used. A local name that occurs more than once is followed by
        the name of its source file.
        """
        code = {n for n, section in enumerate(self._sections) if section.flags & _EXECUTABLE}
        names = self._sections[table.link].offset
        found: dict[int, tuple[str, str]] = {}
        source = ""
        for at in range(table.offset, table.offset + table.size, table.entry):
            name_at, info, place, value = self._symbol(at)
            if info & 15 == _FILE:
                source = self._text(names, name_at)
            elif info & 15 in _FUNCTIONS and place in code and (name := self._text(names, name_at)):
                of = source if info >> 4 == _LOCAL else ""
                known = found.get(value)
                if known is None or (len(name), name) < (len(known[0]), known[0]):
                    found[value] = name, of
        doubles = Counter(name for name, _ in found.values())
        return {
            value: f"{name} ({of})" if of and doubles[name] > 1 else name
            for value, (name, of) in found.items()
        }

    def _unwound(self, table: _Section | None) -> Iterator[int]:
        """Yield the first address of each function in the unwind table."""
        if table is None:
            return
        version, _, count_as, table_as = self._data[table.offset : table.offset + 4]
        if (version, count_as, table_as) == _USUAL_TABLE:
            (count,) = self._unpacked("I", table.offset + 8)
            for n in range(count):
                (step,) = self._unpacked("i", table.offset + 12 + 8 * n)
                yield table.address + step

    def _build_id(self) -> str:
        for kind, offset, _, size in self._segments:
            at = offset
            while kind == _NOTE and at + 12 <= offset + size:
                name_size, length, what = self._unpacked("III", at)
                begins = at + 12 + name_size + (-name_size % 4)
                if what == _BUILD_ID and self._data[at + 12 : at + 16] == b"GNU\0":
                    return self._data[begins : begins + length].hex()
                at = begins + length + (-length % 4)
        return ""

    def _segment(self, at: int) -> tuple[int, int, int, int]:
        """Return (kind, offset, address, size in the file)."""
        if self._wide:
            kind, _, offset, address, _, size = self._unpacked("IIQQQQ", at)
        else:
            kind, offset, address, _, size = self._unpacked("IIIII", at)
        return kind, offset, address, size

    def _section(self, at: int) -> tuple[int, int, int, int, int, int, int, int]:
        """Return (name's offset, kind, flags, address, offset, size, link, size of an entry), in `_Section`'s order."""
        name, kind, flags, address, offset, size, link, _, _, entry = self._unpacked(
            "IIQQQQIIQQ" if self._wide else "IIIIIIIIII", at
        )
        return name, kind, flags, address, offset, size, link, entry

    def _symbol(self, at: int) -> tuple[int, int, int, int]:
        """Return (name's offset, info, section, value)."""
        if self._wide:
            name, info, _, place, value = self._unpacked("IBBHQ", at)
        else:
            name, value, _, info, _, place = self._unpacked("IIIBBH", at)
        return name, info, place, value

    def _text(self, table: int, place: int) -> str:
        begins = table + place
        return self._data[begins : self._data.index(b"\0", begins)].decode(errors="replace")

    def _unpacked(self, form: str, at: int) -> tuple[int, ...]:
        return struct.unpack_from(self._order + form, self._data, at)
