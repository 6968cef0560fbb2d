# SPDX-License-Identifier: Apache-2.0
"""Blowfish: its subkeys and S-boxes are the digits of pi, changed by repeated encryption with the key."""

from __future__ import annotations

from functools import cache

from espbench.npcrypt.ciphers import library
from espbench.npcrypt.ciphers.arithmetic import MASK
from espbench.npcrypt.ciphers.kernel import Kernel, Tables, Vector

_WORDS = 18 + 4 * 256
_SPARE_BITS = 64


def _arctangent(inverse: int, one: int) -> int:
    """Return arctan(1 / inverse) by its series, in units of 1 / one."""
    power = one // inverse
    total, divisor = power, 1
    while power:
        power //= -inverse * inverse
        divisor += 2
        total += power // divisor
        if power == -1:  # floor division stays at −1
            break
    return total


@cache
def pi_words() -> list[int]:
    """Return the digits of pi after the point, by Machin's formula, 32 bits a word."""
    bits = 32 * _WORDS
    one = 1 << bits + _SPARE_BITS
    pi = 4 * (4 * _arctangent(5, one) - _arctangent(239, one))
    fraction = (pi - 3 * one) >> _SPARE_BITS
    return [fraction >> (bits - 32 * (at + 1)) & MASK for at in range(_WORDS)]


@cache
def _scheduled(key: bytes) -> tuple[list[int], list[int]]:
    digits = pi_words()
    p, s = digits[:18], digits[18:]
    repeated = key * 18
    for at in range(18):
        p[at] ^= int.from_bytes(repeated[4 * at : 4 * at + 4], "big")
    left = right = 0
    for box in (p, s):
        for at in range(0, len(box), 2):
            left, right = _encrypted(left, right, p, s)
            box[at : at + 2] = [left, right]
    return p, s


def _encrypted(left: int, right: int, p: list[int], s: list[int]) -> tuple[int, int]:
    for at in range(16):
        left ^= p[at]
        f = s[left >> 24] + s[256 + (left >> 16 & 255)] & MASK
        right ^= (f ^ s[512 + (left >> 8 & 255)]) + s[768 + (left & 255)] & MASK
        left, right = right, left
    return right ^ p[17], left ^ p[16]


def tables(key: bytes) -> Tables:
    """Return the subkeys and the four S-boxes."""
    p, s = _scheduled(key)
    return {"blowfish_p": p} | {f"blowfish_s{n}": s[256 * n : 256 * (n + 1)] for n in range(4)}


BLOWFISH = Kernel(
    name="blowfish",
    shown="Blowfish",
    kind="block cipher",
    order="big",
    key=bytes.fromhex("f0e1d2c3b4a5968778695a4b3c2d1e0f"),
    tables=tables,
    expected=library.blowfish,
    vectors=(
        Vector(
            "Schneier's test vectors, first",
            bytes(8),
            bytes(8),
            bytes.fromhex("4ef997456198dd78"),
        ),
        Vector(
            "Schneier's test vectors, third",
            bytes.fromhex("3000000000000000"),
            bytes.fromhex("1000000000000001"),
            bytes.fromhex("7d856f9a613063f2"),
        ),
    ),
)
