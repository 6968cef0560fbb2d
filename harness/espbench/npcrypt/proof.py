# SPDX-License-Identifier: Apache-2.0
"""Makes the data that kernels work on, and proves that what came out of the machine is right."""

from __future__ import annotations

import hashlib
from functools import cache

from espbench.errors import EspbenchError
from espbench.npcrypt.ciphers import KERNELS
from espbench.npcrypt.ciphers.hashes import LENGTH_BYTES, padded
from espbench.npcrypt.ciphers.kernel import CHUNK_BYTES, Kernel, Vector

_LEAST_BYTES = 2 * CHUNK_BYTES  # hashes take blocks in pairs


@cache
def data_of(name: str, thread: int, size: int) -> bytes:
    """Return so many bytes for a thread: different for each, the same in every run, and padded for a hash."""
    kernel = KERNELS[name]
    noise = hashlib.shake_256(f"{name} {thread}".encode()).digest(size)
    return padded(noise[: size - 1 - LENGTH_BYTES], kernel.order) if kernel.digest_bytes else noise


@cache
def expected_of(name: str, thread: int, size: int) -> bytes:
    """Return the right output of a kernel for the data of one thread."""
    kernel = KERNELS[name]
    return kernel.expected(kernel.key, data_of(name, thread, size), thread)


def lengthened(vector: Vector) -> bytes:
    """Repeat a vector's data until it makes two chunks: of a cipher, only the beginning is compared."""
    return (vector.data * (_LEAST_BYTES // len(vector.data) + 1))[: max(_LEAST_BYTES, len(vector.data))]


def check(kernel: Kernel, got: bytes, wanted: bytes, what: str) -> None:
    """Raise EspbenchError at the first byte that differs, or if too few came."""
    if got[: len(wanted)] == wanted:
        return
    at = next((i for i, (a, b) in enumerate(zip(got, wanted, strict=False)) if a != b), len(got))
    raise EspbenchError(
        f"{what}: {kernel.shown} computed something else\n"
        f"  expected: {wanted[at : at + 16].hex()} from byte {at} on\n"
        f"  got: {got[at : at + 16].hex()}\n"
        "  what to do: no figure of this kernel can be used; its C, the compiler or the machine is wrong"
    )
