# SPDX-License-Identifier: Apache-2.0
"""The SEC model: public keys, random numbers, identification, configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.sec import console as c
from support.sec.console import Make, Pointer, Sec
from support.sec.descriptors import data, quick

pytestmark = pytest.mark.needs("gcc", "nettle-dev")

CLOCKS_MHZ = (33, 50, 66, 83, 100, 133, 166, 333)
PUBLISHED_MS = {  # "Understanding Public-Key Performance", Freescale, 2005, table 1: bits of modulus and exponent
    (512, 512): (8.09, 5.34, 4.05, 3.22, 2.67, 2.01, 1.61, 0.80),
    (512, 3): (0.43, 0.29, 0.22, 0.17, 0.14, 0.11, 0.09, 0.04),
    (1024, 1024): (54.71, 36.11, 27.35, 21.75, 18.05, 13.57, 10.88, 5.42),
    (1024, 3): (1.48, 0.97, 0.74, 0.59, 0.49, 0.37, 0.29, 0.15),
    (2048, 2048): (406.50, 268.29, 203.25, 161.62, 134.14, 100.86, 80.81, 40.28),
    (2048, 3): (5.40, 3.56, 2.70, 2.15, 1.78, 1.34, 1.07, 0.53),
}


def public_key(sec: Sec, mode: int, n: int, a: int = 0, e: int = 0, b: int = 0) -> int:
    """Run a pkeu_mm descriptor; the number it gives."""
    size = (n.bit_length() + 7) // 8
    out = sec.room(size)
    operands = [sec.at(n.to_bytes(size)), sec.at(b.to_bytes(size)), sec.at(a.to_bytes(size)),
                sec.at(e.to_bytes(max(1, (e.bit_length() + 7) // 8)))]  # fmt: skip
    sec.run(c.PK | mode << 20 | c.PKEU_MM, [*operands, out])
    return int.from_bytes(sec.got(out))


@pytest.mark.parametrize("bits", PUBLISHED_MS, ids=lambda bits: f"{bits[0]}/{bits[1]}")
def test_rsa_takes_as_long_as_published(make: Make, bits: tuple[int, int]) -> None:
    """All eight clocks of the table, to the last digit it prints; and the result is right."""
    n = (1 << bits[0]) - 159
    e = (1 << bits[1]) - 3
    a = int.from_bytes(data(1, bits[0] // 8 - 1))
    for mhz, published in zip(CLOCKS_MHZ, PUBLISHED_MS[bits], strict=True):
        sec = make(clock=mhz * 1_000_000, costs=c.costs(descriptor="0"))
        assert public_key(sec, 0x80, n, a, e) == pow(a, e, n)
        assert abs(sec.now / 1e6 - published) <= 0.005000001


def test_exponentiation_in_montgomerys_steps(sec: Sec) -> None:
    """R^2, into Montgomery's form, exponentiation out of it: together the same as RSA in one step."""
    n, a, e = (1 << 521) - 1, 0x1234567890ABCDEF << 400, 0x10001
    r2 = public_key(sec, 0x03, n)
    form = public_key(sec, 0x30, n, a, b=r2)
    assert form == a * (1 << 576) % n
    assert public_key(sec, 0x02, n, form, e) == pow(a, e, n) == public_key(sec, 0x80, n, a, e)


def test_results_of_other_lengths_end_at_the_same_place(sec: Sec) -> None:
    """Big-endian numbers: zeros in front in more room, the low bytes in less."""
    n, a = (1 << 127) - 1, 0x0123456789ABCDEF0123456789ABCD
    for size in (16, 20, 4):
        out = sec.room(size)
        sec.run(c.PK | 0x80 << 20 | c.PKEU_MM,
                [sec.at(n.to_bytes(16)), Pointer(), sec.at(a.to_bytes(15)), sec.at(b"\1"), out])  # fmt: skip
        assert sec.got(out) == a.to_bytes(20)[-size:]


def test_pkeu_refuses_what_it_cannot_do(sec: Sec) -> None:
    size = {"n": 64, "b": 0, "a": 64, "e": 3}
    for changes, last, mode, bits in (({}, 0xFE, 0x80, c.KPE), ({"n": 257}, 0xFF, 0x80, c.DSE),
                                      ({"a": 65}, 0xFF, 0x80, c.DSE), ({"e": 257}, 0xFF, 0x80, c.KSE),
                                      ({"e": 0}, 0xFF, 0x80, c.KSE), ({"n": 0, "a": 0}, 0xFF, 0x80, c.DSE),
                                      ({}, 0xFF, 0x05, c.ME)):  # fmt: skip
        sizes = size | changes
        numbers = {name: b"\xff" * length for name, length in sizes.items()}
        numbers["n"] = numbers["n"][:-1] + bytes([last]) if numbers["n"] else b""
        pointers = [sec.at(numbers[name]) if numbers[name] else Pointer() for name in ("n", "b", "a", "e")]
        sec.submit(c.PK | mode << 20 | c.PKEU_MM, [*pointers, sec.room(64)])
        sec.idle()
        assert (sec.error(), sec.read(c.PKEU + c.EU_ISR + 4)) == (c.EU, bits), changes
        sec.carry_on()


def test_random_numbers_are_ready_and_the_same_for_the_same_seed(make: Make) -> None:
    """They come from the registers, as talitos's hwrng reads them, and by descriptor."""

    def some(seed: int) -> tuple[list[int], bytes]:
        sec = make(seed=seed)
        sec.set_bits(c.RNGU + c.EU_RESET + 4, 1)
        assert sec.read(c.RNGU + c.EU_STATUS + 4) & 1
        assert sec.read(c.RNGU + c.EU_STATUS + 4) & 0xFF0000
        words = [sec.read(c.RNGU + c.EU_FIFO + offset) for offset in (0, 4, 0, 4)]
        out = sec.room(100)
        sec.run(c.RNG | c.COMMON, [Pointer()] * 4 + [out])
        return words, sec.got(out)

    assert some(1) == some(1)
    words, block = some(2)
    assert (words, block) != some(3)
    assert len(set(words)) == 4
    assert len(set(block)) > 60


@pytest.mark.parametrize(
    ("version", "identity", "revision"),
    [("2.0", 0x40, 0), ("2.1", 0x40, 0x30 << 48), ("2.2", 0xA0, 0xA0), ("2.4", 0x30 << 48 | 3, 0x30 << 48 | 3),
     ("3.0", 0x3003 << 40, 0x3003 << 40)],
)  # fmt: skip
def test_each_version_says_what_it_is(make: Make, version: str, identity: int, revision: int) -> None:
    sec = make(version=version)
    assert (sec.read64(c.ID), sec.read64(c.REVISION)) == (identity, revision)
    sec.write(sec.channel(3, c.CCR) + 4, 0x20)
    assert sec.read(sec.channel(3, c.CCR) + 4) == (0 if version == "2.2" else 0x20)
    quick(sec)
    quick(sec)
    level_word, other = (4, 0) if version == "3.0" else (0, 4)
    assert sec.read(sec.channel(0, c.CPSR) + level_word) >> 24 == 1
    assert sec.read(sec.channel(0, c.CPSR) + other) >> 24 == 0
    assert sec.read64(c.EUASR) >> 40 & 0xF == 1
    sec.idle()
    assert sec.read64(c.EUASR) >> 40 & 0xF == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the cost of 'descriptor' is missing"),
        (c.costs().replace("sha384=1:", ""), "the cost of 'sha384' is missing"),
        (c.costs() + ":rc4=1", "'rc4' is no cost"),
        (c.costs() + ":des=1", "'des' is there twice"),
        (c.costs(des="1.2345"), "'des=1.2345' needs a number of cycles with at most three decimals"),
        (c.costs(des="-1"), "'des=-1' needs a number"),
        (c.costs(des="1."), "'des=1.' needs a number"),
        (c.costs(des=""), "'des=' needs a number"),
        (c.costs(des="1000001"), "'des=1000001' needs a number"),
        (c.costs(des="99999999999999999999"), "needs a number"),
    ],
)
def test_wrong_costs_are_refused_with_the_reason(console: Path, text: str, message: str) -> None:
    result = c.refused(console, "2.1", text)
    assert message in result


def test_an_unknown_sec_version_is_refused_with_the_known_ones(console: Path) -> None:
    assert "SEC version '2.3': there are 2.0, 2.1, 2.2, 2.4, 3.0" in c.refused(console, "2.3", c.costs())
