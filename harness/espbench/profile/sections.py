# SPDX-License-Identifier: Apache-2.0
"""Reads the counts that QEMU made between two readings of a guest's idle time (harness/emulator/qemu/profile.c)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from espbench.errors import EspbenchError


class How(IntEnum):
    """The ways in which a node of the tree of calls is entered."""

    CALL = 0
    INTERRUPT = 1
    EXCEPTION = 2
    USER = 3


@dataclass(frozen=True)
class Node:
    """A function in the tree of calls; entry: its address, or the number of a user-space program. 0 is the root."""

    parent: int
    how: How
    entry: int


@dataclass(frozen=True)
class Run:
    """A block of instructions, and how many times one node executed it.

    cuts: index of an instruction in the block → how many of these times the block ended before that instruction.
    """

    node: int
    block: int
    times: int
    cuts: Mapping[int, int]


@dataclass(frozen=True)
class Section:
    """All instructions that were executed from one reading of the idle time (begin) to the next (end).

    Both are in instructions since the machine's start. blocks: number of a block → addresses of its instructions.
    """

    begin: int
    end: int
    nodes: Mapping[int, Node]
    blocks: Mapping[int, Sequence[int]]
    runs: Sequence[Run]

    @property
    def clock(self) -> int:
        """The instructions that the clock counted."""
        return self.end - self.begin

    @property
    def counted(self) -> int:
        """The instructions that were counted by address."""
        return sum(times for _, _, times in self.executed())

    def executed(self) -> Iterator[tuple[int, int, int]]:
        """Yield (node, address, times executed) of each instruction of each block."""
        for run in self.runs:
            left = run.times
            for place, address in enumerate(self.blocks[run.block]):
                left -= run.cuts.get(place, 0)
                if left:
                    yield run.node, address, left


def sections(text: str) -> list[Section]:
    """Return all sections of a file, in their order; EspbenchError if one is incomplete."""
    whole = []
    for part in text.split("section ")[1:]:
        try:
            whole.append(_section(part))
        except (ValueError, IndexError, KeyError) as error:
            raise EspbenchError(f"expected a section of an instruction profile, got {error!r}") from None
    return whole


def _section(part: str) -> Section:
    first, *lines = part.splitlines()
    begin, end = (int(word, 16) for word in first.split())
    nodes: dict[int, Node] = {}
    blocks: dict[int, list[int]] = {}
    runs: list[Run] = []
    if not lines or lines.pop() != "end":
        raise ValueError("no end")
    for line in lines:
        kind, *words = line.split()
        if kind == "ran":
            node, block, times = (int(word, 16) for word in words[:3])
            cuts = dict(_cut(word) for word in words[3:])
            runs.append(Run(node, block, times, cuts))
        elif kind == "block":
            number, *steps = (int(word, 16) for word in words)
            addresses = [steps[0]]
            for step in steps[1:]:
                addresses.append((addresses[-1] + step) & 0xFFFF_FFFF_FFFF_FFFF)
            blocks[number] = addresses
        elif kind == "node":
            number, parent, how, entry = (int(word, 16) for word in words)
            nodes[number] = Node(parent, How(how), entry)
        else:
            raise ValueError(line)
    return Section(begin, end, nodes, blocks, runs)


def _cut(word: str) -> tuple[int, int]:
    place, _, times = word.partition("-")
    return int(place, 16), int(times, 16)
