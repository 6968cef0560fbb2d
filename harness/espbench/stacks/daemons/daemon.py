# SPDX-License-Identifier: Apache-2.0
"""Defines the interface of an IKE daemon on one gateway, its options, and what it reports."""

from __future__ import annotations

import errno
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from espbench.catalogue.certificate_keys import DEFAULT_KEY, CertificateKey
from espbench.catalogue.suites import Suite
from espbench.errors import EspbenchError
from espbench.platforms.base import CommandResult, Gateway
from espbench.platforms.channel import AgentRefused
from espbench.sentences import Code
from espbench.stacks.base import StackOptions
from espbench.stacks.daemons.sa_events import Phase, SaEvent
from espbench.stacks.xfrm_devices import XFRM_IF_ID

PKCS12_PASSWORD = "espbench"  # not a secret: the file itself is secret, but NSS requires a password
# The daemons' times are whole seconds, so a shorter margin could become 0 s.
SHORTEST_MARGIN_S = 3
# A peer that understood the request and refuses it answers with these notifications (RFC 7296 3.10.1), or writes these
# words into its own log.
_FINAL = re.compile(
    r"AUTH(?:ENTICATION)?_FAILED|NO_PROPOSAL_CHOSEN|TS_UNACCEPTABLE|"
    r"MAC mismatched|computed hash does not match|no local proposal matches"
)


class NegotiationFailed(EspbenchError):
    """IKE did not bring the tunnel up, or the daemon is gone; the text quotes the daemon's own reason.

    final: another attempt would fail in the same way. A peer that does not answer is not final: its host may be busy.
    """

    code = Code.NEGOTIATION_FAILED

    def __init__(self, text: str, *, final: bool = False) -> None:
        super().__init__(text)
        self.final = final


def ended_in_time(gateway: Gateway, argv: list[str], timeout_s: float, done: str) -> CommandResult:
    """Run a program of the gateway that waits for negotiations; return its result.

    Raise NegotiationFailed, which says that it was not `done`, if the program does not end within timeout_s: a daemon
    that is slow is an answer of the test, and no gateway is broken.
    """
    try:
        return gateway.run(argv, timeout_s=timeout_s)
    except AgentRefused as refused:
        if refused.errno != errno.ETIMEDOUT:
            raise
        raise NegotiationFailed(f"{gateway.side}: {done} within {timeout_s:g} s") from refused


def margin_s(lifetime_s: float) -> int:
    """Return the time for which an SA stays after its lifetime, so that it can be rekeyed, in whole seconds.

    It is a tenth of the lifetime, but at least SHORTEST_MARGIN_S.
    """
    return max(math.ceil(lifetime_s / 10), SHORTEST_MARGIN_S)


def hard_bytes(lifetime_bytes: int) -> int:
    """Return the bytes after which an SA ends even if it was not replaced: a tenth more than the lifetime in bytes."""
    return lifetime_bytes + lifetime_bytes // 10


def final_words(text: str) -> bool:
    """Return whether a daemon's message means that another attempt would fail too."""
    return bool(_FINAL.search(text))


@dataclass(frozen=True)
class IkeOptions(StackOptions):
    """The options of a stack with IKE from the plan, equal on both ends. Lifetimes in s; 0: the SA never expires."""

    ike: str = "aes128-sha256-ecp256"  # IKE proposal: encryption-integrity-group, strongSwan's names
    auth: Literal["psk", "certificates"] = "psk"
    certificate: CertificateKey = DEFAULT_KEY  # the kind of key in certificates
    lifetime_s: float = 0.0
    lifetime_bytes: int = 0  # of IP packets, as the kernel counts them for an SA; 0: any number
    # Home deletes CHILD SAs after this time without traffic, s; traffic brings them up again. 0: never.
    idle_s: float = 0.0
    ike_lifetime_s: float = 0.0
    # The options below are not keys of the plan; tests of IKE itself set them.
    ike_sa_each: bool = False  # an IKE SA of its own for each tunnel
    on_demand: bool = False  # traffic at Home brings the tunnels up
    # Home checks after this time whether a silent peer is alive (RFC 7296 2.4), and reconnects if it is not. 0: never.
    dpd_s: float = 0.0
    open_to_all: bool = False  # the daemon answers IKE from any address, not only from its peer

    @property
    def waits_for_traffic(self) -> bool:
        """True if traffic brings the tunnels up: the first time, or after a time without traffic."""
        return self.on_demand or bool(self.idle_s)

    @property
    def interface_id(self) -> int:
        """The id of the XFRM interface to which the traffic is routed; 0 if the VPN is policy-based."""
        return XFRM_IF_ID if self.interface else 0


@dataclass(frozen=True)
class Credentials:
    """One end's secrets and certificates, to authenticate itself and its peer. They must never be written to a log.

    With auth: certificates, the PEM texts are set, and pkcs12 has the certificate, its key and the CA under
    PKCS12_PASSWORD, for libreswan's NSS database. pkcs12 is empty if the keys are derived from a seed.
    """

    psk: str = field(default="", repr=False)
    ca_pem: str = ""
    certificate_pem: str = ""
    key_pem: str = field(default="", repr=False)
    pkcs12: bytes = field(default=b"", repr=False)


@dataclass(frozen=True)
class End:
    """One daemon's configuration: own and peer WAN address, IKE identities (FQDN `home`, `office`), and the tunnels.

    tunnels are (own prefix, peer's prefix). Each is one CHILD SA. All are under one IKE SA, unless the option
    ike_sa_each is set.
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
    """The state of the running daemon and its SAs, as the daemon reports it, without keys."""

    version: str  # with the name of the build: `strongSwan 5.9.8 (5.9.8-5+deb12u6)`
    ike: str  # the negotiated IKE proposal in the daemon's words
    tunnels_up: int
    details: dict[str, Any] = field(default_factory=dict)  # more facts for the Security Context
    mismatches: list[str] = field(default_factory=list)  # its differences from End


class Daemon(Protocol):
    """An IKE daemon on one gateway; its files have already been laid over the gateway's root."""

    name: str
    end: End
    """The end that the next `start` configures."""

    def install(self) -> None:
        """Lay the daemon's files over the root of a gateway that has lost them by a restart."""

    def start(self) -> None:
        """Write the configuration and start the daemon, which has no connections yet.

        Raise NegotiationFailed or another EspbenchError, which quotes the daemon, if it does not start.
        """

    def load(self) -> None:
        """Load the connections into the running daemon. It then answers, but initiates nothing. Raise errors as
        `start`.
        """

    def initiate(self, timeout_s: float) -> None:
        """Bring every tunnel up; called for Home only.

        Raise NegotiationFailed, which quotes the daemon's own reason (wrong PSK, no common proposal, dead peer), at the
        latest after timeout_s, whatever the peer does.
        """

    def stop(self, *, suddenly: bool) -> None:
        """Stop the daemon and wait until its process has ended.

        suddenly: as in a crash, its peer gets no message, and the kernel keeps SAs and policies. Otherwise as an
        administrator does it: SAs are deleted on both ends.
        """

    def bring_up(self, numbers: Sequence[int], timeout_s: float) -> None:
        """Bring these tunnels up one after the other; raise the errors of `initiate`."""

    def rekey(self, phase: Phase) -> None:
        """Rekey every IKE SA (phase 1) or CHILD SA (phase 2) now. Raise NegotiationFailed, which quotes the daemon.

        The method may return before all SAs are replaced; `events` shows when they are.
        """

    def mark(self) -> int:
        """Return the present size of the daemon's log, bytes, for `events`. A start of the daemon empties the log."""

    def events(self, after: int = 0) -> list[SaEvent]:
        """Return the events of SAs that this daemon initiated, from the log after this mark (`mark`)."""

    def reason(self) -> str:
        """Return the last lines of the daemon's log about a failed negotiation; empty if there are none.

        Callers ask both ends, since often only the responder knows the cause. The lines contain no secret.
        """

    def alive(self) -> bool:
        """Return whether the daemon's process runs."""

    def reading(self) -> IkeReading:
        """Return what the daemon reports of itself and its SAs; a daemon that died is a mismatch, not an exception."""
