# SPDX-License-Identifier: Apache-2.0
"""The kernels' tables and expected answers, against published vectors and against each other."""

from __future__ import annotations

import pytest

from espbench.errors import EspbenchError
from espbench.npcrypt.ciphers import KERNELS
from espbench.npcrypt.ciphers.blowfish import pi_words
from espbench.npcrypt.ciphers.hashes import padded
from espbench.npcrypt.ciphers.kernel import Kernel
from espbench.npcrypt.proof import check, data_of, expected_of, lengthened

ALL = [*KERNELS.values()]


@pytest.mark.parametrize("kernel", ALL, ids=[*KERNELS])
def test_what_must_come_out_is_what_is_published(kernel: Kernel) -> None:
    """The answers that runs are compared with are right because of it."""
    assert kernel.vectors
    for vector in kernel.vectors:
        output = kernel.expected(vector.key, vector.data, 0)
        assert output[: len(vector.answer)] == vector.answer, vector.source


@pytest.mark.parametrize("kernel", ALL, ids=[*KERNELS])
def test_every_byte_of_data_counts(kernel: Kernel) -> None:
    """Another byte at the end of a block gives another answer."""
    data = data_of(kernel.name, 0, 128)
    other = (
        kernel.expected(kernel.key, data[:-1] + bytes([data[-1] ^ 1]), 0) if not kernel.digest_bytes else b""
    )
    assert expected_of(kernel.name, 0, 128) != other
    assert len(expected_of(kernel.name, 0, 128)) == kernel.output_bytes(128)


@pytest.mark.parametrize("kernel", ALL, ids=[*KERNELS])
def test_threads_get_other_data_and_every_run_the_same(kernel: Kernel) -> None:
    assert data_of(kernel.name, 0, 256) != data_of(kernel.name, 1, 256)
    assert len(data_of(kernel.name, 3, 256)) == 256
    data_of.cache_clear()
    assert data_of(kernel.name, 0, 256) == data_of(kernel.name, 0, 256)


def test_words_of_memory_are_of_the_algorithms_order() -> None:
    assert KERNELS["aes"].words(b"\1\2\3\4\5\6\7\x08") == [0x01020304, 0x05060708]
    assert KERNELS["md5"].words(b"\1\2\3\4") == [0x04030201]
    for kernel in ALL:
        assert kernel.bytes(kernel.words(bytes(range(64)))) == bytes(range(64))


def test_blowfish_begins_with_pi() -> None:
    """3.243f6a88 85a308d3 13198a2e …, and as many digits as it takes."""
    words = pi_words()
    assert words[:3] == [0x243F6A88, 0x85A308D3, 0x13198A2E]
    assert len(words) == 18 + 4 * 256
    assert words[-1] == 0x3AC372E6  # of its reference implementation


def test_streams_of_seal_differ_by_thread() -> None:
    seal = KERNELS["seal"]
    assert seal.expected(seal.key, bytes(64), 0) != seal.expected(seal.key, bytes(64), 1)


def test_a_message_is_padded_as_the_standards_have_it() -> None:
    assert padded(b"abc", "big") == b"abc\x80" + bytes(52) + (24).to_bytes(8, "big")
    assert padded(b"", "little") == b"\x80" + bytes(63)
    assert len(padded(bytes(56), "big")) == 128


def test_vectors_fill_two_chunks() -> None:
    """Hashes take blocks in pairs, and bursts are of 64 bytes; the answer is at the beginning."""
    for kernel in ALL:
        for vector in kernel.vectors:
            assert len(lengthened(vector)) == 128
            assert lengthened(vector).startswith(vector.data)


def test_a_wrong_byte_is_told_with_its_place() -> None:
    kernel = KERNELS["aes"]
    check(kernel, b"abcdef", b"abcd", "here")
    with pytest.raises(
        EspbenchError, match="here: AES computed something else\n  expected: 63 from byte 2 on"
    ):
        check(kernel, b"abxd", b"abc", "here")
    with pytest.raises(EspbenchError, match="from byte 2 on"):
        check(kernel, b"ab", b"abc", "too short")
