# SPDX-License-Identifier: Apache-2.0
"""RC4: the state after the key schedule, once for each flow."""

from __future__ import annotations

from espbench.npcrypt.ciphers import library
from espbench.npcrypt.ciphers.arithmetic import little
from espbench.npcrypt.ciphers.kernel import Kernel, Tables, Vector

_FLOWS = 8  # the number of the kernel's flows at level 1


def tables(key: bytes) -> Tables:
    """Return the state in words, and in bytes for each of eight flows."""
    state = list(range(256))
    j = 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    return {"rc4_words": state, "rc4_bytes": little(bytes(state)) * _FLOWS}


RC4 = Kernel(
    name="rc4",
    shown="RC4",
    kind="stream cipher",
    order="little",
    key=bytes.fromhex("0102030405060708"),
    tables=tables,
    expected=library.rc4,
    byte_tables=("rc4_bytes",),
    vectors=(
        Vector(
            "RFC 6229, 64 bit key, offsets 0 and 16",
            bytes.fromhex("0102030405060708"),
            bytes(32),
            bytes.fromhex("97ab8a1bf0afb96132f2f67258da15a88263efdb45c4a18684ef87e6b19e5b09"),
        ),
        Vector(
            "RFC 6229, 40 bit key, offsets 0 and 16",
            bytes.fromhex("0102030405"),
            bytes(32),
            bytes.fromhex("b2396305f03dc027ccc3524a0a1118a86982944f18fc82d589c403a47a0d0919"),
        ),
    ),
)
