# SPDX-License-Identifier: Apache-2.0
"""Computes the Internet checksum, independently of espbench's own code."""

from __future__ import annotations

import struct


def ones_sum(data: bytes) -> int:
    """Return the ones' complement sum of data (RFC 1071); it is 0xffff if the checksum in the data is right."""
    data += b"\0" * (len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total
