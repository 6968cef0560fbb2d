# SPDX-License-Identifier: Apache-2.0
"""Random numbers in virtual time: all numbers for a test bed are functions of the plan's seed and of the repeat."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True)
class Chance:
    """The seed of a plan, and the number of the repeat for which a test bed is built.

    The first repeat of the first seed gives the numbers that were used before plans had seeds, so that the figures of
    older runs stay the same.
    """

    seed: int = 1
    repeat: int = 1

    @property
    def said(self) -> str:
        """The seed and the repeat as text, which alone determines the numbers; empty for the default."""
        if self == Chance():
            return ""
        return f"seed {self.seed}, repeat {self.repeat}"

    def number(self, use: str, first: int) -> int:
        """Return a number of 64 bits for one use, such as `guest home`; first: the number for the default chance."""
        if not self.said:
            return first
        return int.from_bytes(hashlib.sha256(f"{self.said}: {use}".encode()).digest()[:8])
