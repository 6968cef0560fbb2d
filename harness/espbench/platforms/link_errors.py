# SPDX-License-Identifier: Apache-2.0
"""Defines the errors on the links of a test bed, and the options by which the links' programs get them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from espbench.platforms.chance import Chance

# The latency of each link in virtual time, ns: the times of its two ends may differ by this much, and each frame takes
# at least this long.
LATENCY_NS = 50_000


@dataclass(frozen=True)
class LinkErrors:
    """The errors on one link: shares of frames and bits (0 to 1), and delays in ns; said: the errors as text."""

    loss: float = 0.0
    bit_errors: float = 0.0
    delay_ns: int = 0
    late: float = 0.0
    late_ns: int = 0
    said: str = ""

    @property
    def flags(self) -> list[str]:
        """The options of `espbench-traffic link` for these errors."""
        return ["--latency-ns", str(LATENCY_NS + self.delay_ns), *self._chances]

    @property
    def flags_of_wire(self) -> list[str]:
        """The options of `espbench-traffic wire` for these errors."""
        delay = ["--delay-ns", str(self.delay_ns)] if self.delay_ns else []
        return [*delay, *self._chances]

    @property
    def _chances(self) -> list[str]:
        shares = {"--lose": self.loss, "--flip": self.bit_errors, "--late": self.late}
        flags = [word for flag, share in shares.items() if share for word in (flag, repr(share))]
        return [*flags, "--late-ns", str(self.late_ns)] if self.late else flags


@dataclass(frozen=True)
class Errors:
    """The errors on each link that has errors, by the link's name; the seed determines the frames with errors."""

    links: Mapping[str, LinkErrors] = field(default_factory=dict)
    seed: int = 0

    @property
    def said_of_each(self) -> dict[str, str]:
        """The errors on each link that has errors, as text, by the link's name."""
        return {name: of.said for name, of in self.links.items()}

    def of(self, link: str) -> LinkErrors:
        """Return the errors of a link; a link without errors has a LinkErrors of zeros."""
        return self.links.get(link, LinkErrors())

    def seed_for(self, chance: Chance, trial: str) -> int:
        """Return the seed of the errors in this trial, 64 bits; it is the same for the same chance; 0: no errors."""
        if not self.links:
            return 0
        of_chance = f"{chance.said} " if chance.said else ""
        return int.from_bytes(hashlib.sha256(f"{self.seed} {of_chance}{trial}".encode()).digest()[:8])

    @property
    def said(self) -> str:
        """The latency of the links, and the errors on each link that has errors, as text."""
        each = "".join(f"; {name}: {said}" for name, said in self.said_of_each.items())
        return f"{LATENCY_NS / 1e3:g} µs long{each}"
