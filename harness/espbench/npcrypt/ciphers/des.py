# SPDX-License-Identifier: Apache-2.0
"""DES: the key schedule, and the tables that combine each S-box with the permutation P after it (FIPS 46-3)."""

from __future__ import annotations

from espbench.npcrypt.ciphers import library
from espbench.npcrypt.ciphers.arithmetic import rotate_left
from espbench.npcrypt.ciphers.kernel import Kernel, Tables, Vector

# Each S-box has one hexadecimal digit for each entry, row by row.
_S_BOXES = (
    "e4d12fb83a6c59070f74e2d1a6cb953841e8d62bfc973a50fc8249175b3ea06d",
    "f18e6b34972dc05a3d47f28ec01a69b50e7ba4d158c6932fd8a13f42b67c05e9",
    "a09e63f51dc7b428d709346a285ecbf1d6498f30b12c5ae71ad069874fe3b52c",
    "7de3069a1285bc4fd8b56f03472c1ae9a690cb7df13e52843f06a1d8945bc72e",
    "2c417ab6853fd0e9eb2c47d150fa3986421bad78f9c5630eb8c71e2d6f09a453",
    "c1af92680d34e75baf427c9561de0b389ef528c3704a1db6432c95fabe17608d",
    "4b2ef08d3c975a61d0b7491ae35c2f8614bdc37eaf6805926bd814a7950fe23c",
    "d2846fb1a93e50c71fd8a374c56b0e927b419ce206adf35821e74a8dfc90356b",
)
# Bits are numbered from 1, which is the highest bit.
_P = "16 7 20 21 29 12 28 17 1 15 23 26 5 18 31 10 2 8 24 14 32 27 3 9 19 13 30 6 22 11 4 25"
_PC1 = (
    "57 49 41 33 25 17 9 1 58 50 42 34 26 18 10 2 59 51 43 35 27 19 11 3 60 52 44 36 "
    "63 55 47 39 31 23 15 7 62 54 46 38 30 22 14 6 61 53 45 37 29 21 13 5 28 20 12 4"
)
_PC2 = (
    "14 17 11 24 1 5 3 28 15 6 21 10 23 19 12 4 26 8 16 7 27 20 13 2 "
    "41 52 31 37 47 55 30 40 51 45 33 48 44 49 39 56 34 53 46 42 50 36 29 32"
)
_SHIFTS = (1, 1, 2, 2, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 1)


def _permuted(bits: int, width: int, order: str) -> int:
    """Return the bits in another order; `width` is the number of input bits."""
    permuted = 0
    for place in order.split():
        permuted = permuted << 1 | bits >> (width - int(place)) & 1
    return permuted


def _s_and_p() -> list[int]:
    """Return a word for each S-box and each six bits of input: the four output bits after P, in a word of 32 bits.

    The words are rotated to the left by one bit, as the kernel has its halves.
    """
    words = []
    for number, box in enumerate(_S_BOXES):
        for six in range(64):
            row, column = six >> 4 & 2 | six & 1, six >> 1 & 15
            four = int(box[16 * row + column], 16) << (28 - 4 * number)
            words.append(rotate_left(_permuted(four, 32, _P), 1))
    return words


def tables(key: bytes) -> Tables:
    """Return the S-box tables, and two key words for each round.

    The first word has the keys of S-boxes 1, 3, 5 and 7, one in each byte; the second those of S-boxes 2, 4, 6 and 8.
    """
    halves = _permuted(int.from_bytes(key, "big"), 64, _PC1)
    c, d = halves >> 28, halves & 0xFFFFFFF
    schedule = []
    for shift in _SHIFTS:
        c, d = ((half << shift | half >> (28 - shift)) & 0xFFFFFFF for half in (c, d))
        round_key = _permuted(c << 28 | d, 56, _PC2)
        six = [round_key >> (42 - 6 * number) & 63 for number in range(8)]
        for first in (0, 1):
            schedule.append(int.from_bytes(bytes(six[first::2]), "big"))
    return {"des_key": schedule, "des_sp": _s_and_p()}


DES = Kernel(
    name="des",
    shown="DES",
    kind="block cipher",
    order="big",
    key=bytes.fromhex("0123456789abcdef"),
    tables=tables,
    expected=library.des,
    vectors=(
        Vector(
            "NBS Special Publication 500-20, first of the variable plaintexts",
            bytes.fromhex("0101010101010101"),
            bytes.fromhex("8000000000000000"),
            bytes.fromhex("95f8a5e5dd31d900"),
        ),
        Vector(
            "FIPS 81, table B1, first block",
            bytes.fromhex("0123456789abcdef"),
            b"Now is t",
            bytes.fromhex("3fa40e8a984d4815"),
        ),
    ),
)
