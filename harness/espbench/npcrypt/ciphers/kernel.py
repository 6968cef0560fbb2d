# SPDX-License-Identifier: Apache-2.0
"""Defines what espbench knows of a kernel beside its C: the tables that the control plane sets up, and its answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

Tables = Mapping[str, list[int]]
"""Words by the name of the variable in the kernel's C; of those that a level has not nothing is said to it."""

CHUNK_BYTES = 64


@dataclass(frozen=True)
class Vector:
    """A known answer: what comes of data that begin so. For a cipher the answer may be shorter than the data."""

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
        """The file of its C."""
        return f"{self.name}.c"

    def words(self, data: bytes) -> list[int]:
        """Return data as words of DRAM."""
        return [int.from_bytes(data[at : at + 4], self.order) for at in range(0, len(data), 4)]

    def bytes(self, words: list[int]) -> bytes:
        """Return words of DRAM as data."""
        return b"".join(word.to_bytes(4, self.order) for word in words)

    def output_bytes(self, data_bytes: int) -> int:
        """Return how many bytes come out of so many."""
        return self.digest_bytes or data_bytes
