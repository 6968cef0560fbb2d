# SPDX-License-Identifier: Apache-2.0
"""SEAL 2.0: the tables, made by SHA-1's compression function from counters, and the cipher itself.

The cryptography library does not have this cipher. Source: Menezes, van Oorschot, Vanstone: Handbook of Applied
Cryptography, algorithm 6.68 and the test vectors after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from espbench.npcrypt.ciphers.arithmetic import MASK, big, rotate_left, rotate_right
from espbench.npcrypt.ciphers.kernel import Kernel, Tables, Vector

_KILOBYTES = 4  # the length of the key stream for which the table R suffices
_FIRST_NUMBER = 0x013577AF


def _compressed(state: list[int], first_word: int) -> list[int]:
    """Return SHA-1's compression of a block that has one word followed by zeros."""
    w = [first_word] + [0] * 15
    for t in range(16, 80):
        w.append(rotate_left(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1))
    a, b, c, d, e = state
    for t in range(80):
        f, k = (
            ((b & c) | (~b & d), 0x5A827999),
            (b ^ c ^ d, 0x6ED9EBA1),
            ((b & c) | (b & d) | (c & d), 0x8F1BBCDC),
            (b ^ c ^ d, 0xCA62C1D6),
        )[t // 20]
        total = rotate_left(a, 5) + (f & MASK) + e + k + w[t]
        a, b, c, d, e = total & MASK, a, rotate_left(b, 30), c, d
    return [before + after & MASK for before, after in zip(state, (a, b, c, d, e), strict=True)]


def _gamma(key: list[int], first: int, count: int) -> list[int]:
    """Return `count` words of the table generator, from word number `first` on."""
    blocks = {at // 5: [0] for at in range(first, first + count)}
    made = {number: _compressed(key, number) for number in blocks}
    return [made[at // 5][at % 5] for at in range(first, first + count)]


@cache
def _tables(key: bytes) -> tuple[list[int], list[int], list[int]]:
    words = big(key)
    return _gamma(words, 0, 512), _gamma(words, 0x1000, 256), _gamma(words, 0x2000, 4 * _KILOBYTES)


def tables(key: bytes) -> Tables:
    """Return T, S and R, and the number of the first thread's stream."""
    t, s, r = _tables(key)
    return {"seal_t": t, "seal_s": s, "seal_r": r, "seal_n": [_FIRST_NUMBER]}


def key_stream(key: bytes, number: int) -> Iterator[int]:
    """Yield the words of the key stream with this number, four kilobytes in all."""
    t, s, r = _tables(key)

    def look(x: int) -> int:
        return t[(x & 0x7FC) // 4]

    for kilobyte in range(_KILOBYTES):
        registers = [rotate_right(number, 8 * n) ^ r[4 * kilobyte + n] for n in range(4)]

        def turn(registers: list[int] = registers) -> None:
            for n in range(4):
                registers[(n + 1) % 4] = registers[(n + 1) % 4] + look(registers[n]) & MASK
                registers[n] = rotate_right(registers[n], 9)

        turn()
        turn()
        a, b, c, d = registers
        n1, n2, n3, n4 = d, b, a, c
        turn()
        a, b, c, d = registers
        for i in range(64):
            p = a & 0x7FC
            b, a = b + look(p) & MASK, rotate_right(a, 9)
            b ^= a
            q = b & 0x7FC
            c, b = c ^ look(q), rotate_right(b, 9)
            c = c + b & MASK
            p = p + c & 0x7FC
            d, c = d + look(p) & MASK, rotate_right(c, 9)
            d ^= c
            q = q + d & 0x7FC
            a, d = a ^ look(q), rotate_right(d, 9)
            a = a + d & MASK
            p = p + a & 0x7FC
            b, a = b ^ look(p), rotate_right(a, 9)
            q = q + b & 0x7FC
            c, b = c + look(q) & MASK, rotate_right(b, 9)
            p = p + c & 0x7FC
            d, c = d ^ look(p), rotate_right(c, 9)
            q = q + d & 0x7FC
            a, d = a + look(q) & MASK, rotate_right(d, 9)
            yield b + s[4 * i] & MASK
            yield c ^ s[4 * i + 1]
            yield d + s[4 * i + 2] & MASK
            yield a ^ s[4 * i + 3]
            a, c = (a + n3 & MASK, c + n4 & MASK) if i % 2 else (a + n1 & MASK, c + n2 & MASK)


def expected(key: bytes, data: bytes, thread: int) -> bytes:
    """Encrypt data with SEAL; each thread has its own key stream."""
    stream = key_stream(key, _FIRST_NUMBER + thread)
    return b"".join((word ^ next(stream)).to_bytes(4, "big") for word in big(data))


SEAL = Kernel(
    name="seal",
    shown="SEAL",
    kind="stream cipher",
    order="big",
    key=bytes.fromhex("67452301efcdab8998badcfe10325476c3d2e1f0"),
    tables=tables,
    expected=expected,
    vectors=(
        Vector(
            "Handbook of Applied Cryptography, 6.70: n = 013577af, first twelve words",
            bytes.fromhex("67452301efcdab8998badcfe10325476c3d2e1f0"),
            bytes(48),
            bytes.fromhex(
                "37a005959b84c49ca4be1e050673530f0ac8389dc5878ec8da6666d06da71328"
                "1419bdf2d258bebbb6a42a4d8a311a72"
            ),
        ),
    ),
)
