# SPDX-License-Identifier: Apache-2.0
"""The checksum of the Internet's protocols, computed in another way than espbench does."""

from __future__ import annotations

import struct


def ones_sum(data: bytes) -> int:
    """Return the Internet sum (RFC 1071): 0xffff over data whose checksum is right."""
    data += b"\0" * (len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total
