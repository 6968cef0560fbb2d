# SPDX-License-Identifier: Apache-2.0
"""Arithmetic on words of 32 bits, and the conversion of bytes into words."""

from __future__ import annotations

MASK = 0xFFFFFFFF


def rotate_left(word: int, by: int) -> int:
    """Return a word rotated to the left; only the lowest five bits of `by` count."""
    by &= 31
    return (word << by | word >> (32 - by)) & MASK


def rotate_right(word: int, by: int) -> int:
    """Return a word rotated to the right; only the lowest five bits of `by` count."""
    return rotate_left(word, -by)


def big(data: bytes) -> list[int]:
    """Return bytes as big-endian words."""
    return [int.from_bytes(data[at : at + 4], "big") for at in range(0, len(data), 4)]


def little(data: bytes) -> list[int]:
    """Return bytes as little-endian words."""
    return [int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data), 4)]
