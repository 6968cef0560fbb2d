# SPDX-License-Identifier: Apache-2.0
"""Makes the input data of kernels, and checks that their output is right."""

from __future__ import annotations

import hashlib
from functools import cache

from espbench.errors import EspbenchError
from espbench.npcrypt.ciphers import KERNELS
from espbench.npcrypt.ciphers.hashes import LENGTH_BYTES, padded
from espbench.npcrypt.ciphers.kernel import CHUNK_BYTES, Kernel, Vector

_LEAST_BYTES = 2 * CHUNK_BYTES  # hashes process blocks in pairs


@cache
def data_of(name: str, thread: int, size: int) -> bytes:
    """Return the input of a thread, `size` bytes: different for each thread, equal in every run, padded for a hash."""
    kernel = KERNELS[name]
    noise = hashlib.shake_256(f"{name} {thread}".encode()).digest(size)
    return padded(noise[: size - 1 - LENGTH_BYTES], kernel.order) if kernel.digest_bytes else noise


@cache
def expected_of(name: str, thread: int, size: int) -> bytes:
    """Return the right output of a kernel for the data of one thread."""
    kernel = KERNELS[name]
    return kernel.expected(kernel.key, data_of(name, thread, size), thread)


def lengthened(vector: Vector) -> bytes:
    """Return a vector's data, repeated up to two chunks; of a cipher's output only the beginning is compared."""
    return (vector.data * (_LEAST_BYTES // len(vector.data) + 1))[: max(_LEAST_BYTES, len(vector.data))]


def check(kernel: Kernel, got: bytes, wanted: bytes, what: str) -> None:
    """Raise EspbenchError if a byte of the output is wrong, or if the output is too short; what: its name in
    the text.
    """
    if got[: len(wanted)] == wanted:
        return
    at = next((i for i, (a, b) in enumerate(zip(got, wanted, strict=False)) if a != b), len(got))
    raise EspbenchError(
        f"{what}: {kernel.shown} computed something else\n"
        f"  expected: {wanted[at : at + 16].hex()} from byte {at} on\n"
        f"  got: {got[at : at + 16].hex()}\n"
        "  what to do: no figure of this kernel can be used; its C, the compiler or the machine is wrong"
    )
