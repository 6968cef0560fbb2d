# SPDX-License-Identifier: Apache-2.0
"""What an IKE daemon on one gateway is asked for, and what every one of them offers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from espbench.errors import EspbenchError
from espbench.stacks.suites import Suite


class NegotiationFailed(EspbenchError):
    """IKE did not bring the tunnel up; the text quotes the daemon's own reason. Trying again won't help."""


@dataclass(frozen=True)
class IkeOptions:
    """What both ends must agree on; the plan's keys of a stack. Times in s, 0: the SA never expires.

    interface_id is that of the XFRM interface the traffic is routed to; 0: by policy alone.
    """

    ike: str = "aes128-sha256-ecp256"  # IKE proposal: encryption-integrity-group, strongSwan's names
    auth: Literal["psk", "certificates"] = "psk"
    replay_window: int = 32
    esn: bool = False
    udp_encapsulation: bool = False
    df: Literal["copy", "clear", "set"] = "copy"
    lifetime_s: float = 0.0
    ike_lifetime_s: float = 0.0
    interface_id: int = 0


@dataclass(frozen=True)
class Credentials:
    """What one end proves who it is with, and checks the other by; made for each pair, never written to a log.

    PEM texts are there with auth: certificates only; pkcs12 is certificate, key and CA under the
    password `espbench`, for libreswan's NSS database.
    """

    psk: str = field(default="", repr=False)
    ca_pem: str = ""
    certificate_pem: str = ""
    key_pem: str = field(default="", repr=False)
    pkcs12: bytes = field(default=b"", repr=False)


@dataclass(frozen=True)
class End:
    """One daemon's view: own and peer WAN address, IKE identities (FQDN `home`, `office`), and the
    tunnels as (own prefix, peer's prefix), one CHILD SA each, all under one IKE SA.
    """

    own: str
    peer: str
    own_id: str
    peer_id: str
    tunnels: tuple[tuple[str, str], ...]
    suite: Suite
    options: IkeOptions
    credentials: Credentials
    initiates: bool  # Home; it also rekeys


@dataclass(frozen=True)
class IkeReading:
    """What the running daemon says of itself and its SAs; free of keys."""

    version: str  # such as `strongSwan 5.9.8`
    ike: str  # the negotiated IKE proposal in the daemon's words
    tunnels_up: int
    details: dict[str, Any] = field(default_factory=dict)  # what else belongs into the Security Context
    mismatches: list[str] = field(default_factory=list)  # what it says that is not what End asks for


class Daemon(Protocol):
    """One IKE daemon on one gateway, its files already laid over the gateway's root."""

    name: str

    def start(self) -> None:
        """Write the configuration, start the daemon, load it: ready to answer, nothing initiated.

        NegotiationFailed (or EspbenchError) quotes the daemon's own words if it does not start.
        """

    def initiate(self, timeout_s: float) -> None:
        """Bring every tunnel up (asked of Home only). NegotiationFailed quotes the daemon's own reason:
        wrong PSK, no common proposal, dead peer; within timeout_s, however the peer behaves.
        """

    def reason(self) -> str:
        """The daemon's own last words about a failed negotiation, from its log; empty if it has none.

        Asked of both ends, since often only the responder knows why. Never holds a secret.
        """

    def reading(self) -> IkeReading: ...

    def stop(self) -> None:
        """End it and its SAs; used where it is restarted between trials."""
