# SPDX-License-Identifier: Apache-2.0
"""IDEA: its 52 subkeys are the words of the key, which is rotated by 25 bits after each eight subkeys."""

from __future__ import annotations

from espbench.npcrypt.ciphers import library
from espbench.npcrypt.ciphers.kernel import Kernel, Tables, Vector

_SUBKEYS = 52


def tables(key: bytes) -> Tables:
    """Return the subkeys, a word for each."""
    bits = int.from_bytes(key, "big")
    subkeys: list[int] = []
    while len(subkeys) < _SUBKEYS:
        subkeys += [bits >> shift & 0xFFFF for shift in range(112, -1, -16)]
        bits = (bits << 25 | bits >> 103) & (1 << 128) - 1
    return {"idea_key": subkeys[:_SUBKEYS]}


IDEA = Kernel(
    name="idea",
    shown="IDEA",
    kind="block cipher",
    order="big",
    key=bytes.fromhex("00010002000300040005000600070008"),
    tables=tables,
    expected=library.idea,
    vectors=(
        Vector(
            "Lai, On the Design and Security of Block Ciphers: the example of the encryption process",
            bytes.fromhex("00010002000300040005000600070008"),
            bytes.fromhex("0000000100020003"),
            bytes.fromhex("11fbed2b01986de5"),
        ),
    ),
)
