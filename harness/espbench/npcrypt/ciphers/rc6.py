# SPDX-License-Identifier: Apache-2.0
"""RC6-32/20: the key schedule, and the cipher itself, which the cryptography library does not have."""

from __future__ import annotations

from espbench.npcrypt.ciphers.arithmetic import MASK, little, rotate_left
from espbench.npcrypt.ciphers.kernel import Kernel, Tables, Vector
from espbench.npcrypt.ciphers.rc5 import schedule

_ROUNDS = 20


def tables(key: bytes) -> Tables:
    """Return the round keys."""
    return {"rc6_key": schedule(key, 2 * _ROUNDS + 4)}


def expected(key: bytes, data: bytes, thread: int) -> bytes:
    """Encrypt each block separately (ECB) with RC6."""
    keys = schedule(key, 2 * _ROUNDS + 4)
    words = little(data)
    for at in range(0, len(words), 4):
        a, b, c, d = words[at : at + 4]
        b, d = b + keys[0] & MASK, d + keys[1] & MASK
        for i in range(1, _ROUNDS + 1):
            t = rotate_left(b * (2 * b + 1) & MASK, 5)
            u = rotate_left(d * (2 * d + 1) & MASK, 5)
            a, c = rotate_left(a ^ t, u) + keys[2 * i] & MASK, rotate_left(c ^ u, t) + keys[2 * i + 1] & MASK
            a, b, c, d = b, c, d, a
        words[at : at + 4] = [a + keys[-2] & MASK, b, c + keys[-1] & MASK, d]
    return b"".join(word.to_bytes(4, "little") for word in words)


RC6 = Kernel(
    name="rc6",
    shown="RC6",
    kind="block cipher",
    order="little",
    key=bytes.fromhex("0123456789abcdef0112233445566778"),
    tables=tables,
    expected=expected,
    vectors=(
        Vector(
            "The RC6 block cipher, version 1.1, appendix, first vector",
            bytes(16),
            bytes(16),
            bytes.fromhex("8fc3a53656b1f778c129df4e9848a41e"),
        ),
        Vector(
            "The RC6 block cipher, version 1.1, appendix, second vector",
            bytes.fromhex("0123456789abcdef0112233445566778"),
            bytes.fromhex("02132435465768798a9bacbdcedfe0f1"),
            bytes.fromhex("524e192f4715c6231f51f6367ea43f18"),
        ),
    ),
)
