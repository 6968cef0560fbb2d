# SPDX-License-Identifier: Apache-2.0
"""Names addresses in user space, from the memory maps of a guest's processes and the functions of the mapped files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

from espbench.profile import elf
from espbench.profile.elf import Binary, NoElf
from espbench.profile.symbols import UNNAMED, Function

PROCESS = "process "  # the beginning of the line before a process's maps
# Debian's packages of debug symbols install them here, by build ID.
_SYMBOLS_HERE = Path("/usr/lib/debug/.build-id")


@dataclass(frozen=True)
class Mapping:
    """A part of a file, or of memory without a file such as `[vdso]`, at executable addresses of a process."""

    start: int
    end: int
    offset: int
    path: str

    @property
    def module(self) -> str:
        """The name of the file, without its folder."""
        return PurePosixPath(self.path).name


@dataclass(frozen=True)
class Process:
    """The executable mappings of a process; the first one is its program."""

    mappings: tuple[Mapping, ...]

    @cached_property
    def name(self) -> str:
        """The name of the process's program."""
        return self.mappings[0].module

    def mapping(self, address: int) -> Mapping | None:
        """Return the mapping that contains an address; None if there is none."""
        return next((each for each in self.mappings if each.start <= address < each.end), None)


class Programs:
    """The processes of a guest. binary: path in the guest's root → the file's functions; None if there is no file."""

    def __init__(self, processes: Collection[Process], binary: Callable[[str], Binary | None]) -> None:
        self._processes = processes
        self._binary = cache(binary)

    def running(self, addresses: Collection[int]) -> Process | None:
        """Return the process that executed these addresses; None if no process has them all, or several have."""
        could = [p for p in self._processes if all(p.mapping(address) is not None for address in addresses)]
        return could[0] if len(could) == 1 else None

    def at(self, process: Process, address: int) -> Function:
        """Return the function that contains an address of a process.

        In a file without symbols, its offset is its name. Memory of the kernel such as `[vdso]` counts as one function.
        """
        mapping = process.mapping(address)
        assert mapping is not None
        if mapping.path.startswith("["):
            return Function(mapping.path, mapping.path)
        binary = self._binary(mapping.path)
        name = binary.at(mapping.offset + address - mapping.start) if binary else None
        return Function(name or UNNAMED.name, mapping.module)


NO_PROGRAMS = Programs((), lambda path: None)


def read(maps: str, files: ZipFile) -> Programs:
    """Return the programs of these maps; files: the mapped files.

    maps: /proc/PID/maps of all processes, each after a line that begins with PROCESS.
    """

    def binary(path: str) -> Binary | None:
        name = path.lstrip("/")
        return with_symbols(files.read(name)) if name in files.namelist() else None

    return Programs(list(_processes(maps)), binary)


def with_symbols(data: bytes, symbols: Path = _SYMBOLS_HERE) -> Binary | None:
    """Return the functions of a file; if it is stripped, with names from its debug symbols on this machine.

    None if it is no ELF file.
    """
    try:
        binary = elf.read(data)
    except NoElf:
        return None
    beside = symbols / binary.build_id[:2] / f"{binary.build_id[2:]}.debug"
    if binary.has_symbols or not binary.build_id or not beside.is_file():
        return binary
    try:
        names = elf.read(beside.read_bytes()).functions
    except (OSError, NoElf):
        return binary
    return Binary(binary.segments, {**binary.functions, **names}, binary.build_id, has_symbols=True)


def _processes(maps: str) -> Iterator[Process]:
    for text in f"\n{maps}".split(f"\n{PROCESS}")[1:]:
        mappings = []
        for line in text.splitlines()[1:]:
            addresses, permissions, offset, _, _, *path = line.split(maxsplit=5)
            if permissions[2:3] == "x":
                start, end = (int(word, 16) for word in addresses.split("-"))
                mappings.append(Mapping(start, end, int(offset, 16), path[0] if path else "[anonymous]"))
        if mappings:  # a kernel thread has none
            yield Process(tuple(mappings))
