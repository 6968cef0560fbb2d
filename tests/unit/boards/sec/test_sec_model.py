# SPDX-License-Identifier: Apache-2.0
"""The SEC model, driven through its registers as talitos drives the engine: ciphers, digests, and what it is."""

from __future__ import annotations

import hashlib
import hmac
import struct

import pytest

from support.sec import console as c
from support.sec.console import Make, Pointer, Sec
from support.sec.descriptors import (
    data,
    digest_of,
    expected_cipher,
    hash_descriptor,
    run_cipher,
    versions_with,
)

pytestmark = pytest.mark.needs("gcc", "nettle-dev")

NIST_KEY = bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c")
NIST_TEXT = bytes.fromhex(
    "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411e5fbc1191a0a52ef"
)
PUBLISHED_CIPHERS = {  # SP 800-38A F.1.1, F.2.1, F.5.1; FIPS 81 tables B1 and C1; SP 800-67 B.1
    "aes-ecb": ("aes", "ecb", NIST_KEY, b"", NIST_TEXT, "3ad77bb40d7a3660a89ecaf32466ef97f5d3d585"
                "03b9699de785895a96fdbaaf43b1cd7f598ece23881b00e3ed030688"),
    "aes-cbc": ("aes", "cbc", NIST_KEY, bytes(range(16)), NIST_TEXT, "7649abac8119b246cee98e9b12e9197d5086cb"
                "9b507219ee95db113a917678b273bed6b8e3c1743b7116e69e22229516"),
    "aes-ctr": ("aes", "ctr", NIST_KEY, bytes(range(0xF0, 0x100)), NIST_TEXT, "874d6191b620e3261bef6864990db6"
                "ce9806f66b7970fdff8617187bb9fffdff5ae4df3edbd5d35e5b4f09020db03eab"),
    "des-ecb": ("des", "ecb", bytes.fromhex("0123456789abcdef"), b"", b"Now is the time for all ",
                "3fa40e8a984d48156a271787ab8883f9893d51ec4b563b53"),
    "des-cbc": ("des", "cbc", bytes.fromhex("0123456789abcdef"), bytes.fromhex("1234567890abcdef"),
                b"Now is the time for all ", "e5c7cdde872bf27c43e934008c389c0f683788499a7c05f6"),
    "3des-ecb": ("3des", "ecb", bytes.fromhex("0123456789abcdef23456789abcdef01456789abcdef0123"), b"",
                 b"The qufck brown fox jump", "a826fd8ce53b855fcce21c8112256fe668d5c05dd9b6b900"),
}  # fmt: skip


@pytest.mark.parametrize("case", PUBLISHED_CIPHERS.values(), ids=PUBLISHED_CIPHERS)
def test_ciphers_give_the_published_results(
    sec: Sec, case: tuple[str, str, bytes, bytes, bytes, str]
) -> None:
    name, mode, key, iv, text, expected = case
    assert run_cipher(sec, name, mode, key, iv, text, True)[0].hex() == expected
    assert run_cipher(sec, name, mode, key, iv, bytes.fromhex(expected), False)[0] == text


@pytest.mark.parametrize(
    ("name", "mode", "key_length"),
    [("des", "cbc", 8), ("3des", "ecb", 24), ("3des", "cbc", 24), ("3des", "cbc", 16), ("aes", "ecb", 24),
     ("aes", "cbc", 16), ("aes", "cbc", 24), ("aes", "cbc", 32), ("aes", "ctr", 16), ("aes", "ctr", 32)],
)  # fmt: skip
def test_ciphers_agree_with_another_implementation(sec: Sec, name: str, mode: str, key_length: int) -> None:
    """Both directions, and the IV out with which the host continues."""
    block = 16 if name == "aes" else 8
    for seed, blocks in enumerate((1, 2, 7, 182)):
        key, text = data(seed, key_length), data(seed + 50, blocks * block - (3 if mode == "ctr" else 0))
        iv = b"" if mode == "ecb" else data(seed + 99, block - 1) + b"\xfe" if mode == "cbc" else b"\xff" * 16
        secret = expected_cipher(name, mode, key, iv, text)
        got, next_iv = run_cipher(sec, name, mode, key, iv, text, True)
        assert got == secret
        back, back_iv = run_cipher(sec, name, mode, key, iv, secret, False)
        assert back == text
        if mode == "cbc":
            assert next_iv == back_iv == secret[-block:]
        elif mode == "ctr":  # 2^128 - 1 and so many blocks on
            assert int.from_bytes(next_iv) == blocks - 1


@pytest.mark.parametrize("name", c.DIGESTS)
def test_digests_agree_with_another_implementation(make: Make, name: str) -> None:
    """Every length around the ends of blocks, where padding decides."""
    for version in versions_with(name):
        sec = make(version=version)
        for length in (0, 1, 3, 55, 56, 57, 63, 64, 65, 111, 112, 119, 120, 127, 128, 129, 1500, 9000):
            message, key = data(length, length), data(7, 1 + length % 64)
            assert digest_of(sec, name, [message]) == hashlib.new(name, message).digest()
            assert digest_of(sec, name, [message], key) == hmac.digest(key, message, name)


@pytest.mark.parametrize("name", c.DIGESTS)
def test_a_digest_continues_from_the_context_in_memory(make: Make, name: str) -> None:
    sec = make(version="3.0")
    block = hashlib.new(name).block_size
    parts = [data(n, blocks * block) for n, blocks in enumerate((1, 3, 2))] + [data(9, 21)]
    message = b"".join(parts)
    assert digest_of(sec, name, parts) == hashlib.new(name, message).digest()
    assert digest_of(sec, name, parts, b"key") == hmac.digest(b"key", message, name)
    assert digest_of(sec, name, [*parts[:2], b""]) == hashlib.new(name, b"".join(parts[:2])).digest()


PUBLISHED_HMACS = {  # RFC 2202 2 (2), 3 (2); RFC 4231 4.3
    "md5": "750c783e6ab0b503eaa86e310a5db738",
    "sha1": "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79",
    "sha224": "a30e01098bc6dbbf45690f3a7e9e6d0f8bbea2a39e6148008fd05e44",
    "sha256": "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
    "sha384": "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e8e2240ca5e69e2c78b3239ecfab21649",
    "sha512": "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fd"
              "caeab1a34d4a6b4b636e070a38bce737",
}  # fmt: skip


@pytest.mark.parametrize(("name", "expected"), PUBLISHED_HMACS.items())
def test_hmacs_give_the_published_results(make: Make, name: str, expected: str) -> None:
    sec = make(version="3.0")
    assert digest_of(sec, name, [b"what do ya want for nothing?"], b"Jefe").hex() == expected


def test_sha224_begun_by_software_runs_as_sha256(make: Make) -> None:
    """SEC 2.0 has no SHA-224: talitos loads its initial value as a context and asks for SHA-256."""
    sec = make(version="2.0")
    words = (0xC1059ED8, 0x367CD507, 0x3070DD17, 0xF70E5939, 0xFFC00B31, 0x68581511, 0x64F98FA7, 0xBEFA4FA4)
    out = sec.room(28)
    hash_descriptor(sec, "sha256", c.PAD, b"abc", out, struct.pack(">8IQ", *words, 0))
    assert sec.got(out) == hashlib.sha224(b"abc").digest()


def test_a_digest_is_checked_by_the_unit(sec: Sec) -> None:
    """common_nonsnoop with CICV: the verdict of the primary unit stands in ICCR0."""
    unit, algorithm = c.DIGESTS["sha1"]
    good = hmac.digest(b"key", b"message", "sha1")
    header = unit << 28 | (c.INIT | c.PAD | c.HMAC | c.CICV | algorithm) << 20 | c.COMMON | c.INBOUND
    for icv, verdict in ((good, 1), (good[:12], 1), (bytes([good[0] ^ 1]) + good[1:], 2)):
        pointers = [Pointer(), Pointer(), sec.at(b"key"), sec.at(b"message"), sec.at(icv), sec.room(20)]
        assert sec.run(header, pointers) == verdict << 27
        assert sec.got(pointers[5]) == good
