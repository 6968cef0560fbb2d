# SPDX-License-Identifier: Apache-2.0
"""Defines the interface of a platform: a test bed with two ports of the tester and up to two gateways.

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
"""The key of Testbed.facts that only emulated gateways have: what figures depend on."""
EMULATOR = "emulator"
"""The key of Testbed.facts with the digest of the program that emulates, on which no figure depends."""
BUILD = "kernel build"
"""The key of Testbed.facts with a digest of each gateway's kernel, if the kernel is a file that may be rebuilt."""


@dataclass(frozen=True)
class Port:
    """A tester port as the generator opens it.

    netns is a path such as /proc/123/ns/net (None: the initial namespace). tx_cpus and rx_cpu are the CPUs of its
    sending and receiving threads. line_rate_bps is the link's nominal rate. link is the file of a link in virtual time,
    which replaces the interface.
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
    """The result of a command on a gateway: its exit code, its standard output and its standard error."""

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
    """An action in a trial, at_s seconds of virtual time after the trial's start; frames flow meanwhile."""

    at_s: float
    act: Callable[[], None]


@runtime_checkable
class VirtualClock(Protocol):
    """The generator in its role as the clock of virtual time: it has one end of each link to a port.

    Between the generator's commands virtual time stands still (harness/emulator/LINK.md).
    """

    def console(self, port: PortName, line: str | None, until: str, timeout_s: float) -> list[str]:
        """Send a line to the console of the guest at this port (None: no line), and let time pass.

        Return the lines that the guest prints, up to the first that begins with `until`. timeout_s is virtual time.
        """

    def branch(self, between_guests: Sequence[Path], seed: int = 0, *, anew: bool = False) -> None:
        """Replace all guests by copies of the guests in the state of the first call.

        seed (64 bits) determines the faults of links. With anew, the state is that of the first call with anew, which
        must come before all other calls. After a call with anew, the next call without it counts as a first call again.
        """


@runtime_checkable
class TrialClock(Protocol):
    """The clock of virtual time while a trial runs."""

    def in_next_trial(self, moments: Sequence[Moment]) -> None:
        """Let the next trial stop at each of these moments, in the order of their times, and execute its action."""

    def now_ns(self) -> int:
        """Return the virtual time of the last answer."""


class Gateway(Protocol):
    """One gateway that espbench built, configured through its agent (agent.py).

    lan and wan are the names of its interfaces; byte_order is that of its kernel. The methods act inside the gateway.
    """

    side: Side
    lan: str
    wan: str
    byte_order: Literal["little", "big"]

    def run(self, argv: list[str], stdin: str = "", timeout_s: float = 60.0) -> CommandResult: ...

    def ip(self, lines: list[str]) -> None:
        """Feed lines to `ip -batch -`. Raise EspbenchError, which names the line that failed."""

    def netlink(self, protocol: int, messages: list[bytes]) -> list[list[bytes]]:
        """Send each netlink message, and return its replies (raw, with their headers, without the ACK).

        Raise NetlinkRefused, with errno, for a negative acknowledgement. Messages may contain keys, so they are never
        logged.
        """

    def udp_encap(self, port: int) -> None:
        """Let the kernel receive ESP in UDP on this port, for stacks without an IKE daemon that does so."""

    def read(self, paths: list[str]) -> dict[str, str | None]:
        """Return the texts of files inside the gateway; None where a file is missing."""

    def write(self, path: str, text: str) -> None: ...

    def deliver(self, folder: Path) -> str:
        """Return where the gateway finds a folder of this machine; copy the folder there if necessary."""

    def cpu_ns(self) -> int | None:
        """Return the CPU time that this gateway alone has used since it was made, ns; None if it is not measurable.

        Raise EspbenchError if the time since the last reading is lost.
        """

    def waited_ns(self) -> int | None:
        """Return how long its threads were ready to run but had no CPU since it was made, ns; None: not known.

        These are the threads whose time cpu_ns counts. Gateways that share a CPU also wait for each other.
        """

    def link_counters(self) -> dict[str, LinkCounters]:
        """Return the counters of the gateway's interfaces by name (from its /proc/net/dev)."""

    def alive(self) -> bool: ...

    def last_words(self) -> str:
        """Return the end of the gateway's console or log, for the message when it died."""


@dataclass(frozen=True)
class Placement:
    """The CPUs and the scheduling policy of tester and gateways; they are fixed for a run and recorded."""

    cpus: dict[str, list[int]]  # role (`tester tx`, `tester rx`, `home`, `office`) → CPUs
    policy: str
    shared: list[str] = field(default_factory=list)  # warnings: who shares a core, and a clock that changes


@dataclass(frozen=True)
class HeldDaemon:
    """A daemon that is part of the gateways' root: the paths of its programs, the versions of its packages.

    The user's build has no packages; own_name distinguishes it from other builds, and own_details describes it.
    """

    programs: Mapping[str, str]
    packages: Mapping[str, str] = field(default_factory=dict)
    own_name: str = ""
    own_details: str = ""


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
    # The longest time after which the counters of the gateways' ports show a frame, s.
    counters_late_s: float = 0.0
    # Other facts about the gateways, for the Security Context.
    facts: dict[str, Any] = field(default_factory=dict)
    # Daemons that are part of the gateways, by name; other programs cannot be added to them.
    held: Mapping[str, HeldDaemon] = field(default_factory=dict)
    # The reason why the CPU time of the gateways cannot be measured; empty if it can.
    cpu_unknown: str = ""
    # The time for which other programs kept the gateways from a CPU, since they were made, ns; None: not known.
    kept_waiting_ns: Callable[[], int | None] = field(default=_not_known)
    # The number of times that threads of the gateways were given a CPU, since they were made; None: not known.
    turns: Callable[[], int | None] = field(default=_not_known)

    def attached(self, generator: object) -> None:  # noqa: B027  (most have nothing to do)
        """Take note that the generator has opened the ports.

        In virtual time, the generator is a VirtualClock, and the gateways start.
        """

    # Samples the functions that the gateways execute, if a run in real time is profiled; None: no samples.
    sampler: Sampling | None = None

    def begin_trial(self, chance: str = "") -> None:
        """Restore the state of the first call, in virtual time; in real time, start the sampler if there is one.

        chance: with the same text, random events in the trial, such as faults of links, are the same.
        """
        if self.sampler is not None:
            self.sampler.start()

    profiled = False  # True: each trial's instructions are counted, so no trial's result may be used for another trial

    @property
    def same_each_time(self) -> bool:
        """True if a repeated trial is equal to the last instruction, unless there are actions on the gateways."""
        return False

    @contextmanager
    def as_one_trial(self, number: int) -> Iterator[None]:
        """Let all operations in this context belong to one trial of a case; number counts the case's trials from 0 on.

        In virtual time begin_trial does nothing in this context, and trials with different numbers begin at different
        phases of the gateways' timers.
        """
        yield

    def sampling(self, case: str) -> AbstractContextManager[None]:
        """Sample the functions that the gateways execute in this context, for a trial of this case, if there is a
        sampler.
        """
        return nullcontext() if self.sampler is None else self.sampler.during(case)

    def end_trial(self) -> None:
        """End a trial whose record is complete; later readings of the gateways do not belong to a trial."""
        if self.sampler is not None:
            self.sampler.finish()

    def link_errors(self) -> Mapping[str, Mapping[str, int]]:
        """Return the frames that links lost, damaged and delayed in the trial that ended, by link, in both directions.

        These are only links with errors that are processes of this machine; in virtual time the generator reports them.
        """
        return {}

    @abstractmethod
    def close(self) -> None:
        """Undo everything the platform made for it."""

    def release(self) -> None:
        """Release the bed after use without an error. Parts that the next bed of the same generator can use may
        stay.
        """
        self.close()


@runtime_checkable
class PowerSwitch(Protocol):
    """A test bed that can switch each of its gateways off and on."""

    def no_power_switch(self, side: Side) -> str:
        """Return why this gateway cannot be switched off, and what would make it possible; empty if it can."""

    def power_cycle(self, side: Side, guard: Callable[[], None]) -> dict[str, Any]:
        """Switch a gateway off without a warning, and on again at once; wait until it routes again, without a stack.

        guard blocks cleartext on it; it is called when the gateway answers, before it routes. The Gateway object stays
        the same. The result has, in seconds, `off_s` until the gateway was off and `boot_s`
        until it answered. `brought_anew`: espbench had to copy its programs to the gateway again. Raise NotBack if the
        gateway does not answer.
        """


@runtime_checkable
class Listener(Protocol):
    """A gateway that can record the packets on its WAN port by itself; on others a program of the agent does this."""

    def heard_esp(self, count: int, within_s: float) -> list[bytes]:
        """Return at most `count` ESP packets (whole IP packets) that the WAN port receives in the next within_s s."""


class NotBack(EspbenchError):
    """A gateway that was switched off does not answer any more: its pair cannot be used for more measurements."""


class NetlinkRefused(EspbenchError):
    """The gateway's kernel answered a netlink message with an error."""

    def __init__(self, errno: int, what: str = "") -> None:
        super().__init__(f"netlink error {errno} {what}".strip())
        self.errno = errno


@dataclass(frozen=True)
class Readiness:
    """One answer of `espbench doctor`: whether a platform, stack or generator can be used, and what is missing."""

    name: str
    ready: bool
    missing: str = ""
    install: str = ""
    note: str = ""
