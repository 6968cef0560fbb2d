# SPDX-License-Identifier: Apache-2.0
"""MD5 and SHA-1: they have no tables; the control plane pads the message, the kernel only compresses blocks."""

from __future__ import annotations

import hashlib

from espbench.npcrypt.ciphers.kernel import CHUNK_BYTES, Kernel, Tables, Vector

LENGTH_BYTES = 8


def padded(message: bytes, order: str) -> bytes:
    """Return a message with its padding up to a multiple of CHUNK_BYTES; order: the byte order of its length.

    Kernels process blocks in pairs, so callers need messages whose padded length is an even number of blocks.
    """
    zeros = -(len(message) + 1 + LENGTH_BYTES) % CHUNK_BYTES
    length = (8 * len(message)).to_bytes(LENGTH_BYTES, "big" if order == "big" else "little")
    return message + b"\x80" + bytes(zeros) + length


def _no_tables(key: bytes) -> Tables:
    return {}


def _md5(key: bytes, data: bytes, thread: int) -> bytes:
    return hashlib.md5(_message(data, "little"), usedforsecurity=False).digest()


def _sha1(key: bytes, data: bytes, thread: int) -> bytes:
    return hashlib.sha1(_message(data, "big"), usedforsecurity=False).digest()


def _message(data: bytes, order: str) -> bytes:
    """Return the message without its padding."""
    bits = int.from_bytes(data[-LENGTH_BYTES:], "big" if order == "big" else "little")
    message = data[: bits // 8]
    assert padded(message, order) == data, "not a padded message"
    return message


_EIGHTY = b"1234567890" * 8  # 80 bytes, which are two blocks with their padding

MD5 = Kernel(
    name="md5",
    shown="MD5",
    kind="hash",
    order="little",
    key=b"",
    tables=_no_tables,
    expected=_md5,
    vectors=(
        Vector(
            "RFC 1321, A.5, the last",
            b"",
            padded(_EIGHTY, "little"),
            bytes.fromhex("57edf4a22be3c955ac49da2e2107b67a"),
        ),
    ),
    digest_bytes=16,
)
SHA1 = Kernel(
    name="sha1",
    shown="SHA-1",
    kind="hash",
    order="big",
    key=b"",
    tables=_no_tables,
    expected=_sha1,
    vectors=(
        Vector(
            "FIPS 180-2, A.2",
            b"",
            padded(b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "big"),
            bytes.fromhex("84983e441c3bd26ebaae4aa1f95129e5e54670f1"),
        ),
    ),
    digest_bytes=20,
)
