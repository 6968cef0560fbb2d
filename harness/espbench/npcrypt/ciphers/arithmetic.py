# SPDX-License-Identifier: Apache-2.0
"""Arithmetic on words of 32 bits, and words of bytes."""

from __future__ import annotations

MASK = 0xFFFFFFFF


def rotate_left(word: int, by: int) -> int:
    """Rotate a word; of `by` the lowest five bits count."""
    by &= 31
    return (word << by | word >> (32 - by)) & MASK


def rotate_right(word: int, by: int) -> int:
    """Rotate a word the other way."""
    return rotate_left(word, -by)


def big(data: bytes) -> list[int]:
    """Return words of bytes, the highest first."""
    return [int.from_bytes(data[at : at + 4], "big") for at in range(0, len(data), 4)]


def little(data: bytes) -> list[int]:
    """Return words of bytes, the lowest first."""
    return [int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data), 4)]
