# SPDX-License-Identifier: Apache-2.0
"""Builds test beds of User-Mode Linux guests: each has its own kernel and its own process tree.

    netns espbench-<run>-tester
    tap west ── vec0 Home vec1 ══ middle link ══ vec1 Office vec0 ── tap east      (uml_links.py)
    tap west ── vec0 Home vec1 ══ tap east      (a single gateway: the tester is its ESP peer)

A guest's root is the host's, read-only, under an overlay in the guest's memory. The guest runs in a mount namespace, in
which the host's files are read-only even for a guest that mounts them itself, and in a PID namespace, so that all of
its processes end with its first process.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from espbench.errors import MachineLacks, UsageError
from espbench.platforms.addressing import GatewayAddressing, PairAddressing, configure
from espbench.platforms.base import (
    BUILD,
    Placement,
    PortName,
    Side,
    Testbed,
)
from espbench.platforms.gateway import AgentGateway
from espbench.platforms.link_errors import Errors
from espbench.platforms.tester_ports import ciphertext_side, tester_ports
from espbench.platforms.uml.cpu_group import CpuGroup
from espbench.platforms.uml.link_wire import ErringLinks, Wire, WireEnd
from espbench.platforms.uml.uml_guest import Guest, UmlMachine, boot
from espbench.platforms.uml.uml_kernel import UmlProfile, build_of, readiness
from espbench.platforms.uml.uml_links import GuestPorts, LinkMaker, queues
from espbench.this_machine.network import NETNS_DIR
from espbench.this_machine.processes import WaitAccount, pin, times_unknown, tree_cpu_ns
from espbench.this_machine.registry import Entry, Registry

__all__ = ["UmlPlatform", "UmlProfile", "UmlTestbed", "readiness"]

_LOSING_MS = 50
VECTOR_DEPTH = 64  # with 128 the fd transport loses every second batch of ESP
_PORTS: dict[PortName, str] = {"west": "west", "east": "east"}


@dataclass
class UmlTestbed(Testbed):
    """A running test bed; boot_s has the duration of each step of building it, s."""

    registry: Registry | None = None
    group: CpuGroup | None = None
    made: list[Entry] = field(default_factory=list)
    boot_s: dict[str, float] = field(default_factory=dict)
    guests: dict[Side, _Running] = field(default_factory=dict)
    # A process ends with the thread that started it, so power cycles need a thread that lives as long as the test bed.
    hands: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "power"))
    links: ErringLinks = field(default_factory=ErringLinks)

    def begin_trial(self, chance: str = "") -> None:
        """Restart the errors of the links with the seed of this trial."""
        self.links.begin(self.chance, chance)

    def end_trial(self) -> None:
        """Read the links' counts of errors; from now on the links have no errors."""
        self.links.end()

    @contextlib.contextmanager
    def as_one_trial(self, number: int) -> Iterator[None]:
        """Let the links have errors during this context; frames of a trial in it get the errors of that trial."""
        self.begin_trial(f"trial {number}")
        try:
            yield
        finally:
            self.end_trial()

    def link_errors(self) -> Mapping[str, Mapping[str, int]]:
        """Return the counts of the links' errors in the trial that ended."""
        return self.links.counts

    def no_power_switch(self, side: Side) -> str:
        """Return an empty text, because each guest can be switched off and on."""
        return ""

    def power_cycle(self, side: Side, guard: Callable[[], None]) -> dict[str, Any]:
        """Switch a gateway off and on again (platforms.base.PowerSwitch)."""
        return self.hands.submit(self._power_cycle, side, guard).result()

    def _power_cycle(self, side: Side, guard: Callable[[], None]) -> dict[str, Any]:
        assert self.registry is not None
        running = self.guests[side]
        used_ns, waited_ns, began = (
            running.gateway.cpu_ns(),
            running.gateway.waited_ns(),
            time.monotonic(),
        )
        self.registry.undo(running.entries)
        off = time.monotonic()
        already = len(self.registry.entries)
        with running.without_light():
            guest = running.start(running.cpus)
            running.entries = self.registry.entries[already:]
            self.made += running.entries
            guest.wait_ready()
        if self.group is not None:
            _take(self.group, {guest.process.pid: running.cpus})
        waits = _waits_of(guest)
        running.gateway.plug_in(
            guest.channel,
            lambda: _sum(used_ns, tree_cpu_ns(guest.process.pid)),
            lambda: _sum(waited_ns, waits()),
        )
        guard()
        configure(running.gateway, running.addressing)
        return {"off_s": round(off - began, 6), "boot_s": round(time.monotonic() - off, 6)}

    def close(self) -> None:
        """End the guests and remove everything that was made for them."""
        if self.registry is not None:
            self.registry.undo(self.made)
        self.hands.shutdown()


@dataclass(frozen=True)
class _Booting:
    """A guest that was started and has not sent its greeting yet; its fields are as in `_Running`."""

    guest: Guest
    entries: list[Entry]
    start: Callable[[list[int]], Guest]
    ports: GuestPorts


@dataclass
class _Running:
    """A running guest. start starts it again on given CPUs; entries are those of the guest in the registry."""

    gateway: AgentGateway
    addressing: GatewayAddressing
    entries: list[Entry]
    start: Callable[[list[int]], Guest]  # on these CPUs
    cpus: list[int]
    ports: GuestPorts

    @contextlib.contextmanager
    def without_light(self) -> Iterator[None]:
        """Discard the frames that the other guest sends in this context; if the socket filled up, its driver would
        panic.
        """
        if isinstance(self.ports.wan, str):
            yield
            return
        stop, end = threading.Event(), self.ports.wan

        def lose() -> None:
            waiting = select.poll()
            waiting.register(end, select.POLLIN)
            while not stop.is_set():
                if waiting.poll(_LOSING_MS):
                    with contextlib.suppress(BlockingIOError):
                        end.recv(1 << 16, socket.MSG_DONTWAIT)

        loser = threading.Thread(target=lose, name=f"dark {self.gateway.side}")
        loser.start()
        try:
            yield
        finally:
            stop.set()
            loser.join()


class UmlPlatform:
    """Builds test beds of one profile."""

    name = "uml"

    def __init__(
        self,
        profile: UmlProfile,
        addressing: PairAddressing,
        errors: Errors | None = None,
        wire: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        """errors: the errors on the links; None: no errors. wire returns the command of the program for these links."""
        if not 128 <= profile.memory_mb <= 512:
            raise UsageError(
                f"profile {profile.name}: memory_mb is {profile.memory_mb}; a UML gateway gets 128 to 512 MB"
            )
        self.profile = profile
        self._addressing = addressing
        self._errors = errors or Errors()
        self._wire = wire

    def build(
        self,
        registry: Registry,
        logs: Path,
        placement: Placement,
        *,
        capture: bool = False,
        single: bool = False,
        line_rate_bps: float = 1e9,
    ) -> UmlTestbed:
        """Boot Home and Office at the same time, and configure them as routers between west and east.

        capture: the middle link becomes a bridge, whose port Testbed.capture shows all its frames. single: there is
        only Home, whose ciphertext side is the tester's east port. Raise MachineLacks if something is missing,
        EspbenchError, which quotes the guest's console, if a guest died. What was made until then stays registered:
        leaving the registry's context undoes it.
        """
        self._require_parts()
        marks = [("", time.monotonic())]
        first = len(registry.entries)
        netns = registry.netns("tester")
        ports, links = self._links(registry, netns, placement, capture=capture, single=single).make()
        marks.append(("links", time.monotonic()))

        group = CpuGroup.make(registry, "gateways")  # before the guests, so that it is removed after them
        booting = {
            side: self._boot(registry, side, netns, ends, logs, placement) for side, ends in ports.items()
        }
        marks.append(("start", time.monotonic()))
        guests: dict[Side, _Running] = {}
        for side, starting in booting.items():
            guests[side], uptime_s = self._ready(side, starting, placement.cpus[side])
            marks.append((f"{side} up (guest uptime {uptime_s:.2f} s)", time.monotonic()))
        if group is not None:
            _take(group, {one.guest.process.pid: placement.cpus[side] for side, one in booting.items()})
        for running in guests.values():
            configure(running.gateway, running.addressing)
        marks.append(("configure", time.monotonic()))

        return UmlTestbed(
            platform=self.name,
            dut=self.profile.name,
            ports=tester_ports(netns, _PORTS, self._addressing, placement, line_rate_bps, single=single),
            **ciphertext_side(self._addressing, single=single),
            gateways={side: running.gateway for side, running in guests.items()},
            placement=placement,
            queues=self._queues(capture=capture, single=single),
            capture=("east" if single else "middle-home") if capture else None,
            capture_netns=str(NETNS_DIR / netns) if capture else None,
            cpu_unknown=times_unknown(),
            facts=self._facts(guests),
            kept_waiting_ns=group.kept_waiting_ns if group is not None else lambda: None,
            turns=group.turns if group is not None else lambda: None,
            registry=registry,
            group=group,
            made=registry.entries[first:],
            boot_s={what: at - before for (_, before), (what, at) in pairwise(marks)},
            guests=guests,
            links=links,
        )

    def _require_parts(self) -> None:
        """Raise MachineLacks for the first requirement that this machine does not meet."""
        for need in readiness(self.profile):
            if not need.ready:
                raise MachineLacks(need.missing, need.install)

    def _boot(
        self,
        registry: Registry,
        side: Side,
        netns: str,
        ports: GuestPorts,
        logs: Path,
        placement: Placement,
    ) -> _Booting:
        """Start one gateway, in a way that lets it be started again."""
        # Nothing is measured yet, so both gateways boot on all CPUs; later each one is pinned to its own.
        all_cpus = sorted({cpu for cpus in placement.cpus.values() for cpu in cpus})
        already = len(registry.entries)
        start = partial(self._start, registry, side, netns, ports, logs)
        return _Booting(start(all_cpus), registry.entries[already:], start, ports)

    def _ready(self, side: Side, booting: _Booting, cpus: list[int]) -> tuple[_Running, float]:
        """Wait for a gateway's agent and pin the guest to its CPUs; return the guest and its uptime, s."""
        guest = booting.guest
        greeting = guest.wait_ready()
        pin(guest.process.pid, cpus)
        gateway = AgentGateway(
            guest.channel,
            side,
            "vec0",
            "vec1",
            partial(tree_cpu_ns, guest.process.pid),
            guest.notebook,
            guest.console,
            _waits_of(guest),
        )
        addressing = self._addressing.gateway(side)
        running = _Running(gateway, addressing, booting.entries, booting.start, cpus, booting.ports)
        return running, greeting["uptime_s"]

    def calibration_bed(
        self,
        registry: Registry,
        placement: Placement,
        wire: list[str],
        *,
        single: bool = False,
        line_rate_bps: float = 1e9,
    ) -> UmlTestbed:
        """Return the tester's two taps without a DUT: `wire` copies frames from one tap to the other.

        wire: the command of the program that copies frames (`espbench-traffic wire`). It runs on Home's CPU, as the
        reader of the tap does in a run. Links with errors exist as in a run, with a wire in place of each gateway, so
        that the calibration includes these links. Raise EspbenchError, which quotes the wire, if it does not start.
        """
        first = len(registry.entries)
        netns = registry.netns("calibration")
        ports, links = self._links(registry, netns, placement, single=single).make()
        sides: dict[str, tuple[WireEnd, WireEnd]] = {"home": ("west", "east")}
        if self._errors.links:
            sides = {side: (end.lan, end.wan) for side, end in ports.items()}
        for side, ends in sides.items():
            cpus = placement.cpus[side]
            Wire.start(registry, f"wire for {side}", wire, ends, str(NETNS_DIR / netns), cpus)
        return UmlTestbed(
            platform=self.name,
            dut="none",
            ports=tester_ports(netns, _PORTS, self._addressing, placement, line_rate_bps, single=single),
            **ciphertext_side(self._addressing, single=single),
            gateways={},
            placement=placement,
            queues=self._queues(capture=False, single=single),
            registry=registry,
            made=registry.entries[first:],
            links=links,
        )

    def _links(
        self, registry: Registry, netns: str, placement: Placement, *, capture: bool = False, single: bool
    ) -> LinkMaker:
        """Return the LinkMaker for a test bed in this namespace."""
        return LinkMaker(
            registry, netns, self._addressing.mtu, self._errors,
            self._wire() if self._errors.links else (), placement.cpus["tester rx"],
            capture=capture and not single, single=single,
        )  # fmt: skip

    def _facts(self, sides: Iterable[Side]) -> dict[str, Any]:
        """Return the facts of the gateways and their links, for the Security Context."""
        builds = {BUILD: {side: build_of(self.profile.kernel_of(side)) for side in sides}}
        unknown = {"CPU time of the gateways": f"not told: {why}"} if (why := times_unknown()) else {}
        return builds | ({"links": self._errors.said_of_each} if self._errors.links else {}) | unknown

    def _queues(self, *, capture: bool, single: bool) -> dict[str, str]:
        """Return all queues on the path of a frame by name, with their lengths."""
        return {
            **queues(capture=capture, single=single, errors=self._errors),
            "UML vector rings": f"{VECTOR_DEPTH} frames",
            "queueing discipline of the guests": "pfifo_fast, 1000 frames",
        }

    def _start(
        self,
        registry: Registry,
        side: Side,
        netns: str,
        ports: GuestPorts,
        logs: Path,
        cpus: list[int],
    ) -> Guest:
        """Start one gateway, without waiting for its boot."""
        fds = () if isinstance(ports.wan, str) else (ports.wan.fileno(),)
        transport = f"transport=fd,fd={fds[0]}" if fds else f"transport=tap,ifname={ports.wan}"
        return boot(
            registry,
            side,
            UmlMachine(
                self.profile.kernel_of(side),
                self.profile.memory_mb,
                devices=[
                    f"vec0:transport=tap,ifname={ports.lan},depth={VECTOR_DEPTH},gro=1",
                    f"vec1:{transport},depth={VECTOR_DEPTH},gro=1",
                ],
                preload=self.profile.preload,
            ),
            logs,
            netns=str(NETNS_DIR / netns),
            cpus=cpus,
            pass_fds=fds,
        )


def _take(group: CpuGroup, guests: Mapping[int, Sequence[int]]) -> None:
    """Put guests into the group, and pin them again; guests: process id → CPUs.

    Before Linux 6.2 a move into a control group of cpuset undoes what a process was pinned to.
    """
    group.take(guests)
    for pid, cpus in guests.items():
        pin(pid, list(cpus))


def _sum(before_ns: int | None, since_ns: int | None) -> int | None:
    """Return the sum of two times, ns; None if one is not known."""
    return None if before_ns is None or since_ns is None else before_ns + since_ns


def _waits_of(guest: Guest) -> Callable[[], int | None]:
    return WaitAccount(lambda: [guest.process.pid]).ns
