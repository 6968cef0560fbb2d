# SPDX-License-Identifier: Apache-2.0
"""What every stack offers: cleartext blocked, the tunnel up, its counters, its context read back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from espbench.platforms.base import Gateway, Side, Testbed


@dataclass(frozen=True)
class Tunnel:
    """What is to be protected: traffic between two prefixes, through two gateways' WAN addresses."""

    ip_version: int
    home: str
    office: str
    west: str
    east: str


@dataclass(frozen=True)
class StackOptions:
    """Keys of a stack in the plan; replay_window in packets (0 switches the check off)."""

    mode: Literal["transport", "tunnel"] = "tunnel"
    replay_window: int = 32
    esn: bool = False


@dataclass(frozen=True)
class SaCounters:
    """What one gateway's SAs have carried since they were made, frames, and its XFRM errors by name."""

    encrypted: int = 0
    decrypted: int = 0
    errors: dict[str, int] = field(default_factory=dict)


class Stack(Protocol):
    """A stack installed on the gateways of one test bed."""

    name: str
    encrypts: bool

    def block(self) -> None:
        """Forbid cleartext between the prefixes; from here on nothing passes without an SA."""

    def establish(self) -> None:
        """Bring the tunnel up."""

    def counters(self, side: Side) -> SaCounters: ...

    def security_context(self) -> dict[str, Any]:
        """The Security Context read back from the running gateways (ipsec-meth), without keys.

        Its key `mismatches` lists what differs from the plan; anything there makes the case INVALID.
        """

    def secrets(self) -> list[dict[str, Any]]:
        """The SAs with their keys, for the decrypting of a capture; never written anywhere."""


def xfrm_errors(gateway: Gateway) -> dict[str, int]:
    """/proc/net/xfrm_stat of a gateway: counters that are not zero, by name."""
    text = gateway.read(["/proc/net/xfrm_stat"])["/proc/net/xfrm_stat"] or ""
    counters = (line.split() for line in text.splitlines())
    return {name: int(value) for name, value in counters if int(value)}


def both(bed: Testbed) -> list[tuple[Gateway, Gateway]]:
    """(gateway, its peer) for Home and Office."""
    home, office = bed.gateways["home"], bed.gateways["office"]
    return [(home, office), (office, home)]
