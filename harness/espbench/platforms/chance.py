# SPDX-License-Identifier: Apache-2.0
"""Chance in virtual time: whatever is drawn for a test bed is a function of the plan's seed and of the repeat."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True)
class Chance:
    """The seed of a plan, and which repeat of it a test bed is built for.

    The first repeat of the first seed draws what was drawn before plans had seeds: its figures stay the same.
    """

    seed: int = 1
    repeat: int = 1

    @property
    def said(self) -> str:
        """The seed and the repeat, which alone determine the draws; empty for the default."""
        if self == Chance():
            return ""
        return f"seed {self.seed}, repeat {self.repeat}"

    def number(self, use: str, first: int) -> int:
        """Draw 64 bits for one use, such as `guest home`; first: what the first chance of all draws."""
        if not self.said:
            return first
        return int.from_bytes(hashlib.sha256(f"{self.said}: {use}".encode()).digest()[:8])
