# SPDX-License-Identifier: Apache-2.0
"""Builds test beds of real boxes: two network ports of this machine, and between them two gateways behind SSH.

    tester NIC west ── lan  Home box  wan ── wan  Office box  lan ── tester NIC east
                         ╎ ssh                     ╎ ssh
                       a management network that carries nothing else

On a box the agent has a network namespace with the box's two ports, a mount and a PID namespace, as in the netns
platform: the same stacks run there, nothing is installed, and everything disappears with the agent (remote_box.py).
Ports keep their own MAC addresses; their IP addresses and routes are those of the topology.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from espbench.errors import EspbenchError, UsageError
from espbench.platforms.addressing import LinkEnd, PairAddressing, configure
from espbench.platforms.base import SIDES, Gateway, Placement, Port, PortName, Readiness, Side, Testbed
from espbench.platforms.external import netns_path
from espbench.platforms.remote import cpu_tick, ssh
from espbench.platforms.remote.labgrid_board import Board
from espbench.platforms.remote.remote_gateway import Box, RemoteGateway, connect, console_log_of, survey
from espbench.platforms.remote.remote_power import PoweredBox
from espbench.this_machine import own_ssh
from espbench.this_machine.interfaces import Interface, read_interface
from espbench.this_machine.registry import Entry, Registry

CARRIER_S = 60.0
LATE_COUNTERS_S = 2.0
# These drivers count each frame at once; "" is that of a device without hardware.
_COUNT_THEMSELVES = {"", "uml-vector", "virtio_net"}


@dataclass(frozen=True)
class TesterPort:
    """A network port of this machine; netns: its namespace, None: the initial namespace."""

    interface: str
    netns: str | None = None


@dataclass(frozen=True)
class RemoteProfile:
    """The settings of a DUT profile for real boxes."""

    name: str
    boxes: Mapping[Side, Box]
    ports: Mapping[PortName, TesterPort]
    i_own_this_network: bool = False


@dataclass
class RemoteTestbed(Testbed):
    """A test bed of two boxes; closing it waits until both have given their ports back."""

    registry: Registry | None = None
    made: list[Entry] = field(default_factory=list)
    powered: Mapping[Side, PoweredBox] = field(default_factory=dict)
    wait_for_links: Callable[[], None] = field(default=lambda: None)
    # ssh ends with the thread that started it, so power cycles need a thread that lives as long as the test bed.
    hands: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "power"))

    def no_power_switch(self, side: Side) -> str:
        """Implement platforms.base.PowerSwitch."""
        if side in self.powered:
            return ""
        return (
            f"what: power: {side} has no power switch; give it one that labgrid switches (labgrid: under boxes, {side} "
            "in the DUT profile; docs/remote.md), or ask for daemon or sa-flush"
        )

    def power_cycle(self, side: Side, guard: Callable[[], None]) -> dict[str, Any]:
        """Implement platforms.base.PowerSwitch."""
        return self.hands.submit(self._power_cycle, self.powered[side], guard).result()

    def _power_cycle(self, powered: PoweredBox, guard: Callable[[], None]) -> dict[str, Any]:
        try:
            return powered.cycle(guard, self.wait_for_links)
        finally:
            self.made += powered.entries

    def close(self) -> None:
        """Close both connections, so that both boxes restore their ports at the same time, and wait for each."""
        for gateway in self.gateways.values():
            if isinstance(gateway, RemoteGateway):
                gateway.hang_up()
        if self.registry is not None:
            self.registry.undo(self.made)
        self.hands.shutdown()


class RemotePlatform:
    """Builds test beds of two boxes, one at a time."""

    name = "remote"

    def __init__(
        self,
        profile: RemoteProfile,
        addressing: PairAddressing,
        on_note: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._profile = profile
        self._addressing = addressing
        self._on_note = on_note
        self._boards: dict[Side, Board] = {}

    def open_boards(self, registry: Registry, logs: Path) -> None:
        """Open the profile's power switches and consoles; from now on the consoles' output is in the logs.

        Raise EspbenchError if labgrid cannot open them.
        """
        for side, box in self._profile.boxes.items():
            if box.labgrid is not None:
                board = Board(registry, side, box.labgrid, console_log_of(logs, side))
                self._boards[side] = board
                boards = [
                    name
                    for name, there in (("power", board.has_power), ("console", board.has_console))
                    if there
                ]
                self._on_note(f"{side}: {' and '.join(boards) or 'nothing'} through {box.labgrid}")

    def build(
        self, registry: Registry, logs: Path, placement: Placement, *, line_rate_bps: float
    ) -> RemoteTestbed:
        """Connect to both boxes, configure them as routers, wait for the links, and return the test bed.

        Raise UsageError if a box refuses and another attempt would not help, EspbenchError for other failures. What
        was made until then stays registered.
        """
        first = len(registry.entries)
        waiting: dict[Side, Callable[[], RemoteGateway]] = {}
        entries: dict[Side, list[Entry]] = {}
        for side, box in self._profile.boxes.items():
            already = len(registry.entries)
            waiting[side] = connect(registry, side, box, logs)
            entries[side] = registry.entries[already:]
        gateways = {side: wait() for side, wait in waiting.items()}
        addressing = self._with_real_macs(gateways)
        for side, gateway in gateways.items():
            configure(gateway, addressing.gateway(side))
        self._wait_for_links(gateways)
        ends: dict[PortName, tuple[LinkEnd, LinkEnd]] = {
            "west": (addressing.tester_west, addressing.home_lan),
            "east": (addressing.tester_east, addressing.office_lan),
        }
        built: dict[Side, Gateway] = {**gateways}
        return RemoteTestbed(
            platform=self.name,
            dut=self._profile.name,
            ports={
                name: self._port(name, own, lan, placement, line_rate_bps)
                for name, (own, lan) in ends.items()
            },
            gateways=built,
            placement=replace(placement, shared=[*placement.shared, *_warnings(gateways)]),
            queues={},
            counters_late_s=_counters_late_s(gateways),
            registry=registry,
            made=registry.entries[first:],
            powered={
                side: PoweredBox(
                    registry,
                    logs,
                    self._profile.boxes[side],
                    board,
                    gateways[side],
                    addressing.gateway(side),
                    entries[side],
                    self._on_note,
                )
                for side, board in self._boards.items()
                if board.has_power
            },
            wait_for_links=lambda: self._wait_for_links(gateways),
        )

    def _with_real_macs(self, gateways: Mapping[Side, RemoteGateway]) -> PairAddressing:
        a = self._addressing
        home, office = (_macs(gateways[side]) for side in SIDES)
        tester = {name: _interface(port).mac for name, port in self._profile.ports.items()}
        return replace(
            a,
            tester_west=replace(a.tester_west, mac=tester["west"]),
            tester_east=replace(a.tester_east, mac=tester["east"]),
            home_lan=replace(a.home_lan, mac=home[0]),
            home_wan=replace(a.home_wan, mac=home[1]),
            office_lan=replace(a.office_lan, mac=office[0]),
            office_wan=replace(a.office_wan, mac=office[1]),
        )

    def _port(
        self, name: PortName, own: LinkEnd, gateway: LinkEnd, placement: Placement, line_rate_bps: float
    ) -> Port:
        port = self._profile.ports[name]
        return Port(
            name=name,
            interface=port.interface,
            netns=netns_path(port.netns) if port.netns else None,
            tx_cpus=tuple(placement.cpus["tester tx"]),
            rx_cpu=placement.cpus["tester rx"][0],
            mac=own.mac,
            next_hop_mac=gateway.mac,
            address={version: own.host(version) for version in own.addresses},
            gateway={version: gateway.host(version) for version in gateway.addresses},
            line_rate_bps=line_rate_bps,
            mtu=self._addressing.mtu,
            i_own_this_network=self._profile.i_own_this_network,
        )

    def _wait_for_links(self, gateways: Mapping[Side, RemoteGateway]) -> None:
        """Wait for the links: copper takes seconds to come up again, and a missing cable never comes up."""
        deadline = time.monotonic() + CARRIER_S
        while down := self._without_carrier(gateways):
            if time.monotonic() > deadline:
                raise EspbenchError(
                    f"no link after {CARRIER_S:g} s: {', '.join(down)}; check the cables, and that the tester's "
                    "ports are up (ip link set … up)"
                )
            time.sleep(0.2)

    def _without_carrier(self, gateways: Mapping[Side, RemoteGateway]) -> list[str]:
        down = [
            f"tester {name} ({port.interface})"
            for name, port in self._profile.ports.items()
            if not _interface(port).link_up
        ]
        for side, gateway in gateways.items():
            for role, device in (("lan", gateway.lan), ("wan", gateway.wan)):
                path = f"/sys/class/net/{device}/carrier"
                if (gateway.read([path])[path] or "").strip() != "1":
                    down.append(f"{side} {role} ({device})")
        return down


def examine(profile: RemoteProfile) -> dict[Side, dict[str, Any]]:
    """Return the facts about both boxes (`survey`), before anything is made.

    Raise MachineLacks if this machine lacks files or programs, UsageError if the profile is wrong or a box cannot be
    used.
    """
    for name, port in profile.ports.items():
        try:
            _interface(port)
        except EspbenchError as error:
            raise UsageError(f"ports: {name}: {error}") from None
        own_ssh.refuse_port(f"ports: {name}", port.interface, netns_path(port.netns) if port.netns else None)
    return {side: survey(side, box) for side, box in profile.boxes.items()}


def of_another_architecture(facts: Mapping[Side, Mapping[str, Any]]) -> list[str]:
    """Return a text for each box that cannot run programs of this machine."""
    own = os.uname().machine
    return [
        f"{side} is {said['machine']}, this machine {own}"
        for side, said in facts.items()
        if said["machine"] != own
    ]


def readiness() -> list[Readiness]:
    """Return for each requirement of boxes over SSH whether this machine meets it."""
    root = Readiness("root", os.geteuid() == 0, "the tester's ports need root", "run espbench as root")
    return [root, ssh.readiness()]


def _macs(gateway: RemoteGateway) -> tuple[str, str]:
    paths = [f"/sys/class/net/{device}/address" for device in (gateway.lan, gateway.wan)]
    texts = gateway.read(paths)
    lan, wan = ((texts[path] or "").strip() for path in paths)
    return lan, wan


def _interface(port: TesterPort) -> Interface:
    where = f"namespace {port.netns}" if port.netns else "the initial namespace"
    return read_interface(
        netns_path(port.netns) if port.netns else None,
        port.interface,
        f"expected a network interface in {where}, got {port.interface}",
    )


def _counters_late_s(gateways: Mapping[Side, RemoteGateway]) -> float:
    """Return after how many seconds the counters of the boxes' ports show a frame at the latest.

    Many network cards keep the counts themselves, and their drivers fetch them every one or two seconds.
    """
    ports = [(gateway, name) for gateway in gateways.values() for name in (gateway.lan, gateway.wan)]
    drivers = {
        Path(g.run(["readlink", f"/sys/class/net/{name}/device/driver"]).out.strip()).name
        for g, name in ports
    }
    return 0.0 if drivers <= _COUNT_THEMSELVES else LATE_COUNTERS_S


def _warnings(gateways: Mapping[Side, RemoteGateway]) -> list[str]:
    """Return warnings about the CPU figures of boxes, which are shown with every result."""
    warnings = []
    for side, gateway in gateways.items():
        times = gateway.cpu_times()
        warnings.append(
            f"CPU of {side} is that of its whole box ({times.cpus} CPUs, 100 % is one of them); "
            f"{cpu_tick.accuracy(gateway.run(cpu_tick.READ_HZ).out)}"
        )
        if times.steal_ns:
            warnings.append(
                f"{side} runs under a hypervisor that takes CPU time from it: a loss may be the hypervisor's"
            )
    return warnings
