# SPDX-License-Identifier: Apache-2.0
"""Computes the expected output of those ciphers that the cryptography library has."""

from __future__ import annotations

from cryptography.hazmat.decrepit.ciphers.algorithms import ARC4, IDEA, Blowfish, TripleDES
from cryptography.hazmat.primitives.ciphers import Cipher, CipherAlgorithm
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB


def aes(key: bytes, data: bytes, thread: int) -> bytes:
    """Encrypt each block separately (ECB) with AES."""
    return _each_block(AES(key), data)


def des(key: bytes, data: bytes, thread: int) -> bytes:
    """Encrypt each block separately (ECB) with DES; triple DES with three equal keys is DES."""
    return _each_block(TripleDES(key * 3), data)


def blowfish(key: bytes, data: bytes, thread: int) -> bytes:
    """Encrypt each block separately (ECB) with Blowfish."""
    return _each_block(Blowfish(key), data)


def idea(key: bytes, data: bytes, thread: int) -> bytes:
    """Encrypt each block separately (ECB) with IDEA."""
    return _each_block(IDEA(key), data)


def rc4(key: bytes, data: bytes, thread: int) -> bytes:
    """Encrypt with RC4, from the beginning of the key stream."""
    return Cipher(ARC4(key), None).encryptor().update(data)


def _each_block(algorithm: CipherAlgorithm, data: bytes) -> bytes:
    return Cipher(algorithm, ECB()).encryptor().update(data)
