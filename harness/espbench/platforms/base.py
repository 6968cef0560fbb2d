# SPDX-License-Identifier: Apache-2.0
"""What every platform offers to the parts above it: a test bed of two ports and up to two gateways.

    tester west port ── Home ══ middle link (ESP) ══ Office ── tester east port

A platform knows where a gateway lives, not which test is run or which stack it carries.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from espbench.errors import EspbenchError

Side = Literal["home", "office"]
PortName = Literal["west", "east"]
SIDES: tuple[Side, ...] = ("home", "office")


@dataclass(frozen=True)
class Port:
    """A tester port as the generator opens it.

    netns is a path such as /proc/123/ns/net (None: the initial namespace); cpus are where its
    sending and receiving threads run; line_rate_bps is the link's nominal rate.
    """

    name: PortName
    interface: str
    netns: str | None
    tx_cpus: tuple[int, ...]
    rx_cpu: int
    mac: str  # source of the frames sent here
    next_hop_mac: str | None  # destination; None: resolve `gateway`
    address: dict[int, str]  # IP version → the tester's own address
    gateway: dict[int, str]  # IP version → the DUT's address on this link
    line_rate_bps: float
    mtu: int
    i_own_this_network: bool = False


@dataclass(frozen=True)
class CommandResult:
    """What a command run on a gateway returned."""

    rc: int
    out: str
    err: str


@dataclass(frozen=True)
class LinkCounters:
    """Interface counters of one port of a gateway, frames."""

    rx_packets: int
    tx_packets: int
    rx_dropped: int
    tx_dropped: int
    rx_errors: int
    tx_errors: int


class Gateway(Protocol):
    """One DUT that espbench built, configured through its agent (see agent.py).

    lan and wan are the names of its interfaces; the methods run inside the gateway.
    """

    side: Side
    lan: str
    wan: str

    def run(self, argv: list[str], stdin: str = "", timeout_s: float = 30.0) -> CommandResult: ...

    def ip(self, lines: list[str]) -> None:
        """Feed lines to `ip -batch -`; EspbenchError names the line that failed."""

    def netlink(self, protocol: int, messages: list[bytes]) -> list[list[bytes]]:
        """Send each netlink message, return its replies (raw, header included, without the ACK).

        A negative acknowledgement raises NetlinkRefused with errno. Messages may hold keys:
        they go through a pipe and are never logged.
        """

    def udp_encap(self, port: int) -> None:
        """Have the kernel receive ESP in UDP on this port; for stacks without an IKE daemon that does."""

    def read(self, paths: list[str]) -> dict[str, str | None]:
        """The texts of files inside the gateway; None where a file is missing."""

    def write(self, path: str, text: str) -> None: ...

    def deliver(self, folder: Path) -> str:
        """Where the gateway finds a folder of this machine; it is brought there if the gateway is elsewhere."""

    def cpu_ns(self) -> int:
        """CPU time this gateway alone has used since it was made, ns."""

    def link_counters(self) -> dict[str, LinkCounters]:
        """Counters of its interfaces by name (from /proc/net/dev inside it)."""

    def alive(self) -> bool: ...

    def last_words(self) -> str:
        """The end of its console or log, for the message when it died."""


@dataclass(frozen=True)
class Placement:
    """Who runs on which CPU under which scheduling policy; fixed once per run, recorded."""

    cpus: dict[str, list[int]]  # role (`tester tx`, `tester rx`, `home`, `office`) → CPUs
    policy: str
    shared: list[str] = field(default_factory=list)  # warnings: who shares a core with whom


@dataclass
class Testbed(ABC):
    """A built topology, ready to carry traffic; close() undoes everything it made."""

    platform: str
    dut: str
    ports: dict[PortName, Port]
    gateways: dict[Side, Gateway]  # empty: boxes espbench did not build
    placement: Placement
    queues: dict[str, str]  # name of every queue on the path → its length, for the report
    capture: str | None = None  # interface of the middle link where ESP can be captured
    capture_netns: str | None = None
    # Whether what a gateway's LAN port could not pass on is the tester's port's full ring.
    tester_rings: bool = False

    @abstractmethod
    def close(self) -> None:
        """Undo everything the platform made for it."""


class NetlinkRefused(EspbenchError):
    """The gateway's kernel answered a netlink message with an error."""

    def __init__(self, errno: int, what: str = "") -> None:
        super().__init__(f"netlink error {errno} {what}".strip())
        self.errno = errno


@dataclass(frozen=True)
class Readiness:
    """doctor's answer for one platform, stack or generator."""

    name: str
    ready: bool
    missing: str = ""
    install: str = ""
    note: str = ""
