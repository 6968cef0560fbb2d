# SPDX-License-Identifier: Apache-2.0
"""Defines a kernel as espbench uses it besides its C source: the tables of the control plane, and the known answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

Tables = Mapping[str, list[int]]
"""The words of each table by the name of its variable in the kernel's C; a level may not have all of the variables."""

CHUNK_BYTES = 64


@dataclass(frozen=True)
class Vector:
    """A known answer: the output for input that begins with `data`. A cipher's answer may be shorter than the data."""

    source: str
    key: bytes
    data: bytes
    answer: bytes


@dataclass(frozen=True)
class Kernel:
    """One of the ten.

    order: of the bytes in a word of DRAM, the algorithm's own, so that no kernel has to swap them. key: the one that
    throughput is measured with. tables: of a key. expected: of key, data and the thread's number, computed without
    the kernel. digest_bytes: of a hash; 0: as much comes out as went in. vectors: published. byte_tables: those whose
    words hold four bytes each, the first one in the least place.
    """

    name: str
    shown: str
    kind: Literal["block cipher", "stream cipher", "hash"]
    order: Literal["big", "little"]
    key: bytes
    tables: Callable[[bytes], Tables]
    expected: Callable[[bytes, bytes, int], bytes]
    vectors: tuple[Vector, ...]
    digest_bytes: int = 0
    byte_tables: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        """The file name of the kernel's C source."""
        return f"{self.name}.c"

    def words(self, data: bytes) -> list[int]:
        """Return data as words of DRAM."""
        return [int.from_bytes(data[at : at + 4], self.order) for at in range(0, len(data), 4)]

    def bytes(self, words: list[int]) -> bytes:
        """Return words of DRAM as data."""
        return b"".join(word.to_bytes(4, self.order) for word in words)

    def output_bytes(self, data_bytes: int) -> int:
        """Return the number of output bytes for this number of input bytes."""
        return self.digest_bytes or data_bytes
