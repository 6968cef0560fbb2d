# SPDX-License-Identifier: Apache-2.0
"""RC5-32/16: the key schedule, and the cipher itself, which the cryptography library does not have."""

from __future__ import annotations

from espbench.npcrypt.ciphers.arithmetic import MASK, little, rotate_left
from espbench.npcrypt.ciphers.kernel import Kernel, Tables, Vector

_ROUNDS = 16


def schedule(key: bytes, words: int) -> list[int]:
    """Return the expanded key, with this number of words; RC6 has the same key schedule."""
    secret = little(key)
    keys = [(0xB7E15163 + 0x9E3779B9 * at) & MASK for at in range(words)]
    a = b = 0
    for turn in range(3 * max(words, len(secret))):
        i, j = turn % words, turn % len(secret)
        a = keys[i] = rotate_left((keys[i] + a + b) & MASK, 3)
        b = secret[j] = rotate_left((secret[j] + a + b) & MASK, a + b)
    return keys


def tables(key: bytes) -> Tables:
    """Return the round keys."""
    return {"rc5_key": schedule(key, 2 * (_ROUNDS + 1))}


def expected(key: bytes, data: bytes, thread: int) -> bytes:
    """Encrypt each block separately (ECB) with RC5."""
    keys = schedule(key, 2 * (_ROUNDS + 1))
    words = little(data)
    for at in range(0, len(words), 2):
        a, b = (words[at] + keys[0]) & MASK, (words[at + 1] + keys[1]) & MASK
        for i in range(1, _ROUNDS + 1):
            a = rotate_left(a ^ b, b) + keys[2 * i] & MASK
            b = rotate_left(b ^ a, a) + keys[2 * i + 1] & MASK
        words[at : at + 2] = [a, b]
    return b"".join(word.to_bytes(4, "little") for word in words)


RC5 = Kernel(
    name="rc5",
    shown="RC5",
    kind="block cipher",
    order="little",
    key=bytes.fromhex("5269f149d41ba0152497574d7f153125"),
    tables=tables,
    expected=expected,
    vectors=(
        Vector(
            "RFC 2040, section 9, R = 16, key 01020304",
            bytes.fromhex("01020304"),
            bytes.fromhex("ffffffffffffffff"),
            bytes.fromhex("cf270ef9717ff7c4"),
        ),
    ),
)
