# SPDX-License-Identifier: Apache-2.0
"""Makes small ELF files with chosen functions, for tests of code that reads them."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

TEXT = 0x1000  # where its code was linked to; it is at 0x200 in the file
TEXT_AT, TEXT_SIZE = 0x200, 0x800
_ALLOCATED_CODE = 6
_PROGRAM, _SYMBOL_TABLE = 1, 2


@dataclass(frozen=True)
class Made:
    """The contents of an ELF file.

    symbols: (name, address, local); a name that ends with `.c` is a source file, whose local symbols follow. unwound:
    first addresses of functions, for the unwind table. table: the name of the section with the symbols. wide: 64 bits.
    order: the byte order, as in struct.
    """

    symbols: Sequence[tuple[str, int, bool]] = ()
    unwound: Sequence[int] = ()
    table: str = ".symtab"
    build_id: str = ""
    wide: bool = True
    order: str = "<"

    def data(self) -> bytes:
        """Return the bytes of the file."""
        names, symbols = self._symbols()
        table = struct.pack(f"{self.order}BBBBiI", 1, 0x1B, 0x03, 0x3B, 0, len(self.unwound))
        table_at = TEXT + TEXT_SIZE
        table += b"".join(struct.pack(f"{self.order}ii", each - table_at, 0) for each in self.unwound)
        note = bytes.fromhex(self.build_id)
        parts = {
            ".text": bytes(TEXT_SIZE),
            ".eh_frame_hdr": table,
            self.table: symbols,
            ".strtab": names,
            ".note": struct.pack(f"{self.order}III", 4, len(note), 3) + b"GNU\0" + note,
        }
        titles = b"\0" + b"".join(name.encode() + b"\0" for name in (*parts, ".shstrtab"))
        parts[".shstrtab"] = titles
        places, at = {}, TEXT_AT
        for name, part in parts.items():
            places[name] = at
            at += len(part)
        head = self._header(at, len(parts) + 1) + self._segments(places, parts)
        return head.ljust(TEXT_AT, b"\0") + b"".join(parts.values()) + self._sections(places, parts, titles)

    def _symbols(self) -> tuple[bytes, bytes]:
        names, symbols = b"\0", self._symbol(0, 0, 0, 0)
        for name, address, local in self.symbols:
            source = name.endswith(".c")
            info = (0 if local or source else 0x10) + (4 if source else 2)
            symbols += self._symbol(len(names), info, 0xFFF1 if source else 1, address)
            names += name.encode() + b"\0"
        return names, symbols

    def _symbol(self, name: int, info: int, section: int, value: int) -> bytes:
        if self.wide:
            return struct.pack(f"{self.order}IBBHQQ", name, info, 0, section, value, 0)
        return struct.pack(f"{self.order}IIIBBH", name, value, 0, info, 0, section)

    def _header(self, sections: int, count: int) -> bytes:
        start = b"\x7fELF" + bytes([2 if self.wide else 1, 1 if self.order == "<" else 2, 1]) + bytes(9)
        sizes = (64, 56, 2, 64) if self.wide else (52, 32, 2, 40)
        words = "QQQ" if self.wide else "III"
        return start + struct.pack(
            f"{self.order}HHI{words}IHHHHHH", 3, 0, 1, 0, sizes[0], sections, 0, *sizes, count, count - 1
        )

    def _segments(self, places: Mapping[str, int], parts: Mapping[str, bytes]) -> bytes:
        loaded = (1, TEXT_AT, TEXT, TEXT_SIZE)
        note = (4, places[".note"], 0, len(parts[".note"]))
        return b"".join(self._segment(*each) for each in (loaded, note))

    def _segment(self, kind: int, offset: int, address: int, size: int) -> bytes:
        if self.wide:
            return struct.pack(f"{self.order}IIQQQQQQ", kind, 5, offset, address, 0, size, size, 0)
        return struct.pack(f"{self.order}IIIIIIII", kind, offset, address, 0, size, size, 5, 0)

    def _sections(self, places: Mapping[str, int], parts: Mapping[str, bytes], titles: bytes) -> bytes:
        form = f"{self.order}{'IIQQQQIIQQ' if self.wide else 'IIIIIIIIII'}"
        made = bytes(struct.calcsize(form))
        strings = [*parts].index(".strtab") + 1
        for name, part in parts.items():
            code = name == ".text"
            kind = _SYMBOL_TABLE if name == self.table else _PROGRAM
            address = TEXT if code else TEXT + TEXT_SIZE if name == ".eh_frame_hdr" else 0
            entry = (24 if self.wide else 16) if name == self.table else 0
            made += struct.pack(
                form, titles.index(b"\0" + name.encode() + b"\0") + 1, kind, _ALLOCATED_CODE if code else 0, address,
                places[name], len(part), strings, 0, 1, entry,
            )  # fmt: skip
        return made
