# SPDX-License-Identifier: Apache-2.0
"""The IMIX genome: an exact sequence of frame sizes as a word (RFC 6985)."""

from __future__ import annotations

from collections.abc import Mapping

# These are the sizes of RFC 6985 4, bytes with FCS; z, the MTU, has no size of its own.
LETTERS = {
    "a": 64, "b": 128, "c": 256, "d": 512, "e": 1024, "f": 1280, "g": 1518, "h": 2112, "i": 9000, "j": 16000,
}  # fmt: skip
LONGEST = 255


def sizes(genome: str, custom: Mapping[str, int]) -> list[int]:
    """Return the frame sizes in the genome's order. Raise KeyError with the first letter that has no size."""
    known = LETTERS | dict(custom)
    return [known[letter] for letter in genome]
