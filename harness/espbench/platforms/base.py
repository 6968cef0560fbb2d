# SPDX-License-Identifier: Apache-2.0
"""Defines what every platform offers to the parts above it: a test bed of two ports and up to two gateways.

    tester west port ── Home ══ middle link (ESP) ══ Office ── tester east port

A platform knows where a gateway runs. It does not know the test or the stack.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from espbench.errors import EspbenchError
from espbench.platforms.chance import Chance

Side = Literal["home", "office"]
PortName = Literal["west", "east"]
SIDES: tuple[Side, ...] = ("home", "office")
EMULATION = "emulation"
"""The key of Testbed.facts that only emulated gateways have."""
BUILD = "kernel build"
"""The key of Testbed.facts with a digest of each gateway's kernel, where it is a file that may be built anew."""


@dataclass(frozen=True)
class Port:
    """A tester port as the generator opens it.

    netns is a path such as /proc/123/ns/net (None: the initial namespace); cpus are where its
    sending and receiving threads run; line_rate_bps is the link's nominal rate. link, in place of an
    interface, is the file of a link in virtual time.
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
    link: Path | None = None


@dataclass(frozen=True)
class CommandResult:
    """Holds what a command run on a gateway returned."""

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


@dataclass(frozen=True)
class Moment:
    """Something that is done in a trial, so many seconds of virtual time after its start; frames flow meanwhile."""

    at_s: float
    act: Callable[[], None]


@runtime_checkable
class VirtualClock(Protocol):
    """The generator, as the clock of virtual time: it has one end of each link to a port.

    Between its commands virtual time stands still (harness/emulator/LINK.md).
    """

    def console(self, port: PortName, line: str | None, until: str, timeout_s: float) -> list[str]:
        """Type a line into the guest at this port, let time pass until it prints one that begins with `until`.

        Returns all it printed until then; line None: nothing is typed. timeout_s is of virtual time.
        """

    def branch(self, between_guests: Sequence[Path], seed: int = 0, *, anew: bool = False) -> None:
        """Continue with copies of all guests in the state of the first call, instead of the present guests.

        seed (64 bits) determines the faults of links. anew: in the state of the first call that was anew, before which
        there was no other; the next call that is not continues from there.
        """


@runtime_checkable
class TrialClock(Protocol):
    """The same clock while a trial runs."""

    def in_next_trial(self, moments: Sequence[Moment]) -> None:
        """Let the next trial stand still at these moments, in the order of their times, and act at each."""

    def now_ns(self) -> int:
        """Return the virtual time of the last answer."""


class Gateway(Protocol):
    """One DUT that espbench built, configured through its agent (see agent.py).

    lan and wan are the names of its interfaces; byte_order is its kernel's; the methods run inside the gateway.
    """

    side: Side
    lan: str
    wan: str
    byte_order: Literal["little", "big"]

    def run(self, argv: list[str], stdin: str = "", timeout_s: float = 60.0) -> CommandResult: ...

    def ip(self, lines: list[str]) -> None:
        """Feed lines to `ip -batch -`; EspbenchError names the line that failed."""

    def netlink(self, protocol: int, messages: list[bytes]) -> list[list[bytes]]:
        """Send each netlink message, return its replies (raw, header included, without the ACK).

        A negative acknowledgement raises NetlinkRefused with errno. Messages may hold keys:
        they go through a pipe and are never logged.
        """

    def udp_encap(self, port: int) -> None:
        """Let the kernel receive ESP in UDP on this port, for stacks without an IKE daemon that does so."""

    def read(self, paths: list[str]) -> dict[str, str | None]:
        """Return the texts of files inside the gateway; None where a file is missing."""

    def write(self, path: str, text: str) -> None: ...

    def deliver(self, folder: Path) -> str:
        """Return where the gateway finds a folder of this machine; copy the folder there if necessary."""

    def cpu_ns(self) -> int | None:
        """Return CPU time that this gateway alone has used since it was made, ns; None: not measurable here.

        EspbenchError if the time since the last reading is lost.
        """

    def waited_ns(self) -> int | None:
        """Return how long its threads were ready to run but had no CPU since it was made, ns; None: not known.

        These are the threads whose time cpu_ns counts. Gateways that share a CPU also wait for each other.
        """

    def link_counters(self) -> dict[str, LinkCounters]:
        """Return counters of its interfaces by name (from /proc/net/dev inside it)."""

    def alive(self) -> bool: ...

    def last_words(self) -> str:
        """Return the end of its console or log, for the message when it died."""


@dataclass(frozen=True)
class Placement:
    """Says who runs on which CPU under which scheduling policy; fixed once per run, recorded."""

    cpus: dict[str, list[int]]  # role (`tester tx`, `tester rx`, `home`, `office`) → CPUs
    policy: str
    shared: list[str] = field(default_factory=list)  # warnings: who shares a core with whom


@dataclass(frozen=True)
class HeldDaemon:
    """A daemon that is part of the gateways' root: the paths of its programs, the versions of its packages."""

    programs: Mapping[str, str]
    packages: Mapping[str, str]


class Sampling(Protocol):
    """Samples the trials of a test bed (see sampling.py)."""

    def start(self) -> None: ...

    def during(self, case: str) -> AbstractContextManager[None]: ...

    def finish(self) -> None: ...


def _not_known() -> None:
    return None


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
    # True if a frame that a gateway's LAN port could not send was refused by the full ring of the tester's port.
    tester_rings: bool = False
    # The tester's port that is the other end of the tunnels, and its outer addresses by IP version.
    ciphertext: PortName | None = None
    esp_address: dict[int, str] = field(default_factory=dict)
    # The file of each gateway's network namespace, where gateways are namespaces of this machine.
    gateway_netns: dict[Side, str] = field(default_factory=dict)
    # The host has no influence: there are no stalls and no waits, and each trial begins in the same state.
    virtual_time: bool = False
    # The source of all random numbers in virtual time.
    chance: Chance = Chance()  # noqa: RUF009  (frozen)
    # The time of each instruction of a gateway in virtual time, ns; None: not known.
    ns_per_instruction: Fraction | None = None
    # Other facts about the gateways, for the Security Context.
    facts: dict[str, Any] = field(default_factory=dict)
    # Daemons that are part of the gateways, by name; other programs cannot be added to them.
    held: Mapping[str, HeldDaemon] = field(default_factory=dict)
    # The reason why the CPU time of the gateways cannot be measured; empty if it can.
    cpu_unknown: str = ""
    # The time for which other programs kept the gateways from a CPU, since they were made, ns; None: not known.
    kept_waiting_ns: Callable[[], int | None] = field(default=_not_known)

    def attached(self, generator: object) -> None:  # noqa: B027  (most have nothing to do)
        """Take note that the generator has opened the ports.

        In virtual time, the generator is a VirtualClock, and the gateways start.
        """

    # Samples what the gateways execute, where a run in real time is profiled.
    sampler: Sampling | None = None

    def begin_trial(self, chance: str = "") -> None:
        """Return to the state of the first call, in virtual time; in real time, get ready to sample.

        chance: with the same text, random events in the trial, such as faults of links, are the same.
        """
        if self.sampler is not None:
            self.sampler.start()

    profiled = False  # what each trial executes is counted, so that no trial may stand for another

    @property
    def same_each_time(self) -> bool:
        """True if a trial that is made again is the same to the last instruction, if nobody acts on the gateways."""
        return False

    @contextmanager
    def as_one_trial(self, number: int) -> Iterator[None]:
        """Let everything in this context belong to one trial of a case, which counts them from 0.

        In virtual time begin_trial does nothing in it, and each number meets the gateways' timers at another moment.
        """
        yield

    def sampling(self, case: str) -> AbstractContextManager[None]:
        """Sample what the gateways execute while the context lasts, for a trial of this case, if they are sampled."""
        return nullcontext() if self.sampler is None else self.sampler.during(case)

    def end_trial(self) -> None:
        """Note that the trial's record is complete; what is read from the gateways after this belongs to no trial."""
        if self.sampler is not None:
            self.sampler.finish()

    def link_errors(self) -> Mapping[str, Mapping[str, int]]:
        """Return the frames that links lost, damaged and delayed in the trial that ended, by link, both directions.

        Only of links that err and are processes of this machine; in virtual time the generator tells.
        """
        return {}

    @abstractmethod
    def close(self) -> None:
        """Undo everything the platform made for it."""

    def release(self) -> None:
        """End its use; nothing went wrong. What the next test bed of the same generator can use may stay."""
        self.close()


@runtime_checkable
class PowerSwitch(Protocol):
    """A test bed that can switch one of its gateways off and on."""

    def no_power_switch(self, side: Side) -> str:
        """Return why this gateway cannot be switched off, and what would make it possible; empty if it can."""

    def power_cycle(self, side: Side) -> dict[str, Any]:
        """Switch it off without a warning, and on again at once; return when it routes again, without any stack.

        Its Gateway object stays the same. The result has, in seconds, `off_s` until it was off and `boot_s` until it
        answered. `brought_anew`: espbench had to bring its programs to the gateway again. NotBack if it never answers.
        """


@runtime_checkable
class Listener(Protocol):
    """A gateway that itself tells what it hears on its WAN port; on others a program of the agent's does."""

    def heard_esp(self, count: int, within_s: float) -> list[bytes]:
        """Return ESP packets, whole IP packets and at most so many, that its WAN port receives within so long."""


class NotBack(EspbenchError):
    """A gateway that was switched off and did not come back: nothing more can be measured with its pair."""


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
