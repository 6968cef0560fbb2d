# SPDX-License-Identifier: GPL-2.0-only
"""Counts times in a histogram with the HdrHistogram V2 encoding: 1 ns to 100 s, three significant digits."""

from __future__ import annotations

import base64
import struct
import zlib

LONGEST_NS = 100_000_000_000
_DIGITS = 3
_SUB_BUCKET_BITS = 11  # 2,048 sub-buckets distinguish values to three digits
_HALF = 1 << (_SUB_BUCKET_BITS - 1)
_COOKIE, _COMPRESSED_COOKIE = 0x1C849313, 0x1C849314


class Histogram:
    """A histogram of times in ns; values above LONGEST_NS count as LONGEST_NS, those below 1 as 1."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self.total = 0
        self._sum = 0
        self._least = LONGEST_NS
        self._most = 0

    def record(self, value_ns: int) -> None:
        """Add one value, ns."""
        value_ns = min(max(value_ns, 1), LONGEST_NS)
        index = _index(value_ns)
        self._counts[index] = self._counts.get(index, 0) + 1
        self.total += 1
        self._sum += value_ns
        self._least = min(self._least, value_ns)
        self._most = max(self._most, value_ns)

    def quantile_ns(self, quantile: float) -> int:
        """Return the highest value of the bucket that contains the quantile, ns; 0 if nothing was recorded."""
        wanted, seen = max(1, round(quantile * self.total)), 0
        for index in sorted(self._counts):
            seen += self._counts[index]
            if seen >= wanted:
                return min(_highest_of(index), self._most)
        return 0

    def statistics(self) -> dict[str, float | str] | None:
        """Return the statistics as in the protocol, µs, with the histogram as `hdr`; None if nothing was recorded."""
        if not self.total:
            return None
        quantiles = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
        return {
            "min": self._least / 1e3,
            "mean": self._sum / self.total / 1e3,
            **{name: self.quantile_ns(at) / 1e3 for name, at in quantiles.items()},
            "max": self._most / 1e3,
            "hdr": self.encoded(),
        }

    def lateness(self) -> dict[str, float] | None:
        """Return the statistics of late departures as in the protocol, µs; None if nothing was recorded."""
        if not self.total:
            return None
        quantiles = {"p50": 0.5, "p99": 0.99, "p999": 0.999}
        return {name: self.quantile_ns(at) / 1e3 for name, at in quantiles.items()} | {
            "max": self._most / 1e3
        }

    def encoded(self) -> str:
        """Return the histogram in the encoding HdrHistogram V2, compressed (zlib), in base64."""
        counts, last = bytearray(), -1
        for index in sorted(self._counts):
            if index - last > 1:
                counts += _zigzag(-(index - last - 1))  # a run of empty buckets
            counts += _zigzag(self._counts[index])
            last = index
        header = struct.pack(">iiiiqqd", _COOKIE, len(counts), 0, _DIGITS, 1, LONGEST_NS, 1.0)
        packed = zlib.compress(header + bytes(counts))
        return base64.b64encode(struct.pack(">ii", _COMPRESSED_COOKIE, len(packed)) + packed).decode()


def _index(value: int) -> int:
    bucket = max(0, value.bit_length() - _SUB_BUCKET_BITS)
    return (bucket + 1) * _HALF + (value >> bucket) - _HALF


def _highest_of(index: int) -> int:
    bucket, sub = index // _HALF - 1, index % _HALF + _HALF
    if bucket < 0:
        bucket, sub = 0, sub - _HALF
    return ((sub + 1) << bucket) - 1


def _zigzag(value: int) -> bytes:
    """Return the ZigZag LEB128 encoding of a count of at most 63 bits."""
    value = value << 1 if value >= 0 else ((-value) << 1) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
