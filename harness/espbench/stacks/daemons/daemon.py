# SPDX-License-Identifier: Apache-2.0
"""Says what an IKE daemon on one gateway is asked for, and what every one of them offers."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from espbench.catalogue.certificate_keys import DEFAULT_KEY, CertificateKey
from espbench.catalogue.suites import Suite
from espbench.errors import EspbenchError
from espbench.sentences import Code
from espbench.stacks.base import StackOptions
from espbench.stacks.daemons.sa_events import Phase, SaEvent
from espbench.stacks.xfrm_devices import XFRM_IF_ID

PKCS12_PASSWORD = "espbench"  # the file is the secret; NSS wants it wrapped
# Daemons count in seconds, so one less could be none.
SHORTEST_MARGIN_S = 3
# Answers of a peer that has understood and refuses (RFC 7296 3.10.1), and the words of its own log then.
_FINAL = re.compile(
    r"AUTH(?:ENTICATION)?_FAILED|NO_PROPOSAL_CHOSEN|TS_UNACCEPTABLE|"
    r"MAC mismatched|computed hash does not match|no local proposal matches"
)


class NegotiationFailed(EspbenchError):
    """IKE did not bring the tunnel up, or the daemon is gone; the text quotes the daemon's own reason.

    final: the daemons will say the same however often they are asked. Silence is not: a host may be busy.
    """

    code = Code.NEGOTIATION_FAILED

    def __init__(self, text: str, *, final: bool = False) -> None:
        super().__init__(text)
        self.final = final


def margin_s(lifetime_s: float) -> int:
    """Return how much longer than its lifetime an SA is kept for its rekeying, whole s: a tenth, and not too short."""
    return max(math.ceil(lifetime_s / 10), SHORTEST_MARGIN_S)


def hard_bytes(lifetime_bytes: int) -> int:
    """Return the bytes after which an SA ends even if it was not replaced by then: a tenth more, as with times."""
    return lifetime_bytes + lifetime_bytes // 10


def final_words(text: str) -> bool:
    """Return whether a daemon's words say that trying again will not help."""
    return bool(_FINAL.search(text))


@dataclass(frozen=True)
class IkeOptions(StackOptions):
    """Says what both ends must agree on; the plan's keys of a stack. Times in s, 0: the SA never expires."""

    ike: str = "aes128-sha256-ecp256"  # IKE proposal: encryption-integrity-group, strongSwan's names
    auth: Literal["psk", "certificates"] = "psk"
    certificate: CertificateKey = DEFAULT_KEY  # the kind of key in certificates
    lifetime_s: float = 0.0
    lifetime_bytes: int = 0  # of IP packets, as the kernel counts them for an SA; 0: any number
    idle_s: float = (
        0.0  # without traffic, after which Home deletes its CHILD SAs; traffic brings them up again
    )
    ike_lifetime_s: float = 0.0
    # Options that tests of IKE itself need beside the plan's.
    ike_sa_each: bool = False  # an IKE SA of its own for each tunnel
    on_demand: bool = False  # traffic brings the tunnels up, Home's
    dpd_s: float = 0.0  # Home asks a silent peer whether it lives (RFC 7296 2.4), else begins anew; 0: never
    open_to_all: bool = False  # IKE from any address is answered, not from the peer's alone

    @property
    def waits_for_traffic(self) -> bool:
        """Return whether traffic brings the tunnels up: at first, or after it had ceased."""
        return self.on_demand or bool(self.idle_s)

    @property
    def interface_id(self) -> int:
        """Return the id of the XFRM interface the traffic is routed to; 0: by policy alone."""
        return XFRM_IF_ID if self.interface else 0


@dataclass(frozen=True)
class Credentials:
    """Holds what one end proves who it is with, and checks the other by; made for each pair, never written to a log.

    PEM texts are there with auth: certificates only; pkcs12 is certificate, key and CA under
    PKCS12_PASSWORD, for libreswan's NSS database.
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
    """Holds what the running daemon says of itself and its SAs; free of keys."""

    version: str  # with the build it is: `strongSwan 5.9.8 (5.9.8-5+deb12u6)`
    ike: str  # the negotiated IKE proposal in the daemon's words
    tunnels_up: int
    details: dict[str, Any] = field(default_factory=dict)  # more facts for the Security Context
    mismatches: list[str] = field(default_factory=list)  # its differences from End


class Daemon(Protocol):
    """One IKE daemon on one gateway, its files already laid over the gateway's root."""

    name: str
    end: End
    """The end that the next `start` configures."""

    def install(self) -> None:
        """Lay its files over the root of a gateway that has lost them."""

    def start(self) -> None:
        """Write the configuration and start the daemon, which knows no connection yet.

        NegotiationFailed (or EspbenchError) quotes the daemon's own words if it does not start.
        """

    def load(self) -> None:
        """Load the connections into the running daemon: ready to answer, nothing initiated; errors as `start`."""

    def initiate(self, timeout_s: float) -> None:
        """Bring every tunnel up (asked of Home only). NegotiationFailed quotes the daemon's own reason:
        wrong PSK, no common proposal, dead peer; within timeout_s, however the peer behaves.
        """

    def stop(self, *, suddenly: bool) -> None:
        """End the daemon and wait for its end.

        suddenly: as by a crash, its peer is told nothing and the kernel keeps SAs and policies. Otherwise as an
        administrator does: SAs are deleted on both ends.
        """

    def bring_up(self, numbers: Sequence[int], timeout_s: float) -> None:
        """Bring these tunnels up one after the other, each when the one before is; errors as `initiate`."""

    def rekey(self, phase: Phase) -> None:
        """Have every IKE SA (1) or CHILD SA (2) replaced now; NegotiationFailed quotes the daemon.

        It may return before all are: `events` tells.
        """

    def mark(self) -> int:
        """Remember where its log ends, for `events`; a start begins it anew."""

    def events(self, after: int = 0) -> list[SaEvent]:
        """Return what it has done with SAs it initiated since then."""

    def reason(self) -> str:
        """Return the daemon's own last words about a failed negotiation, from its log; empty if it has none.

        Asked of both ends, since often only the responder knows why. Never holds a secret.
        """

    def alive(self) -> bool:
        """Return whether its process runs."""

    def reading(self) -> IkeReading:
        """Ask it about itself and its SAs; a daemon that died is a mismatch, not an exception."""
