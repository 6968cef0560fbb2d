# SPDX-License-Identifier: Apache-2.0
"""Names addresses of a kernel, from its own table of functions (/proc/kallsyms)."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Literal, NamedTuple

KERNEL = "kernel"
# No function is longer than this; an address farther behind the start of a function does not belong to it.
_LONGEST = 1 << 16
_LINE = re.compile(r"^([0-9a-f]+) ([tTwW]) (\S+)(?:\t\[(\S+)\])?$", re.MULTILINE)
# Marks: names at the address of a function that are not the function's name.
_MARKS = ("__pfx_", "__cfi_", "__UNIQUE_ID", "__ksymtab")
_MARK_ENDS = ("_start", "_end", "_text", "_begin")


class Function(NamedTuple):
    """A function and its kernel module or file; module is `kernel` for the kernel itself."""

    name: str
    module: str = KERNEL

    def __str__(self) -> str:
        return self.name if self.module == KERNEL else f"{self.name} [{self.module}]"


UNNAMED = Function("[unnamed]", "")
KnownBy = Literal["name", "offset", "nothing"]
_OFFSET = "0x"  # the beginning of a function's name if only its offset in its file is known


def known_by(function: Function) -> KnownBy:
    """Return what is known of a function: its name, only its offset in a file without symbols, or nothing."""
    if function.name == UNNAMED.name:
        return "nothing"
    return "offset" if function.name.startswith(_OFFSET) else "name"


class Symbols:
    """The functions of a kernel and its modules by their addresses."""

    def __init__(self, functions: dict[int, Function]) -> None:
        self._starts = sorted(functions)
        self._functions = [functions[start] for start in self._starts]

    def __len__(self) -> int:
        return len(self._starts)

    def at(self, address: int) -> Function | None:
        """Return the function that contains an address; None if there is none."""
        place = bisect_right(self._starts, address) - 1
        if place < 0 or address - self._starts[place] >= _LONGEST:
            return None
        return self._functions[place]


def read(text: str) -> Symbols:
    """Read symbols from the text of /proc/kallsyms; if an address has several names, use the plainest one.

    Names that are no marks come first, then symbols that are not weak, then short names.
    """
    plainest: dict[int, tuple[tuple[bool, bool, int, str], Function]] = {}
    for line in _LINE.finditer(text):
        address, name = int(line[1], 16), line[3]
        if not address:
            continue
        mark = name.startswith(_MARKS) or name.endswith(_MARK_ENDS)
        rank = (mark, line[2] not in "tT", len(name), name)
        if address not in plainest or rank < plainest[address][0]:
            plainest[address] = rank, Function(name, line[4] or KERNEL)
    return Symbols({address: function for address, (_, function) in plainest.items()})
