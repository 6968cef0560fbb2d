# SPDX-License-Identifier: Apache-2.0
"""AES-128: the key schedule, and the tables that combine the S-box with MixColumns (FIPS 197)."""

from __future__ import annotations

from functools import cache

from espbench.npcrypt.ciphers import library
from espbench.npcrypt.ciphers.arithmetic import big, rotate_left, rotate_right
from espbench.npcrypt.ciphers.kernel import Kernel, Tables, Vector


def _double(x: int) -> int:
    return x << 1 ^ (0x11B if x & 0x80 else 0)


@cache
def _s_box() -> list[int]:
    """Return the S-box: the inverse in GF(2^8), then an affine map."""
    powers = [1]
    for _ in range(254):
        powers.append(powers[-1] ^ _double(powers[-1]))  # of 3, which generates the group
    logarithm = {value: exponent for exponent, value in enumerate(powers)}
    box = []
    for x in range(256):
        inverse = powers[-logarithm[x] % 255] if x else 0
        bits = inverse
        for turn in range(1, 5):
            bits ^= inverse << turn | inverse >> (8 - turn)
        box.append(bits & 0xFF ^ 0x63)
    return box


def tables(key: bytes) -> Tables:
    """Return the round keys and the five tables."""
    box = _s_box()
    schedule = big(key)
    constant = 1
    for at in range(4, 44):
        word = schedule[-1]
        if at % 4 == 0:
            turned = rotate_left(word, 8).to_bytes(4, "big")
            word = int.from_bytes(bytes(box[byte] for byte in turned), "big") ^ constant << 24
            constant = _double(constant)
        schedule.append(schedule[-4] ^ word)
    first = [_double(s) << 24 | s << 16 | s << 8 | _double(s) ^ s for s in box]
    made = {f"aes_t{n}": [rotate_right(word, 8 * n) for word in first] for n in range(4)}
    return made | {"aes_key": schedule, "aes_t4": [s * 0x01010101 for s in box]}


AES = Kernel(
    name="aes",
    shown="AES",
    kind="block cipher",
    order="big",
    key=bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c"),
    tables=tables,
    expected=library.aes,
    vectors=(
        Vector(
            "FIPS 197, C.1",
            bytes(range(16)),
            bytes.fromhex("00112233445566778899aabbccddeeff"),
            bytes.fromhex("69c4e0d86a7b0430d8cdb78070b4c55a"),
        ),
        Vector(
            "FIPS 197, B",
            bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c"),
            bytes.fromhex("3243f6a8885a308d313198a2e0370734"),
            bytes.fromhex("3925841d02dc09fbdc118597196a0b32"),
        ),
    ),
)
