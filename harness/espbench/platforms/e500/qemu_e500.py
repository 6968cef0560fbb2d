# SPDX-License-Identifier: Apache-2.0
"""Gateways as emulated PowerQUICC boards in virtual time: no clock of the host is in what they do.

    generator ══ west ══ eth0 Home eth1 ══ middle ══ eth1 Office eth0 ══ east ══ generator
    generator ══ west ══ eth0 Home eth1 ══ east ══ generator      (a single gateway: the tester is its ESP peer)

Each ══ is a link in shared memory (harness/emulator/LINK.md). The guests boot, and are asked anything, only while
the generator, which leads, lets virtual time pass; so they are configured when it has opened its ports. For a
trial all of them are copied as they stand, and the copy is thrown away: each trial begins in the same state.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from espbench.errors import EspbenchError
from espbench.platforms.addressing import PairAddressing, configure
from espbench.platforms.base import (
    EMULATION,
    SIDES,
    Gateway,
    Placement,
    Port,
    PortName,
    Side,
    Testbed,
    VirtualClock,
)
from espbench.platforms.e500 import e500_guest
from espbench.platforms.e500.e500_gateway import E500Gateway
from espbench.platforms.e500.e500_guest import Built, Guest, LinkEnd, Machine
from espbench.platforms.tester_ports import ciphertext_side, tester_end
from espbench.this_machine.registry import Entry, Registry

__all__ = ["Machine", "QemuE500Platform", "QemuE500Testbed", "placement"]

# Of each link: how far its ends may be apart in virtual time, and so the least that a frame takes.
LATENCY_NS = 50_000
# Between the guests: half of it lets one run ahead of the other without either waiting.
STEP_NS = 25_000
_FACING: dict[Side, PortName] = {"home": "west", "office": "east"}
_CARRIER_NS = 100_000_000
_CARRIER_TRIES = 100


@dataclass
class QemuE500Testbed(Testbed):
    """Two boards; they come to life when the generator has opened the ports."""

    registry: Registry | None = None
    made: list[Entry] = field(default_factory=list)
    between: list[Path] = field(default_factory=list)  # the links between boards
    addressing: PairAddressing | None = None
    clock: VirtualClock | None = None

    def attached(self, generator: object) -> None:
        """Boot the boards, make them routers, and wait until their ports are up.

        EspbenchError with the console of the one that does not come up.
        """
        assert self.addressing is not None
        if not isinstance(generator, VirtualClock):
            raise EspbenchError("in virtual time only the native generator can lead")
        if self.clock is not None:
            return
        self.clock = generator
        boards = {side: g for side, g in self.gateways.items() if isinstance(g, E500Gateway)}
        for gateway in boards.values():
            gateway.started_by(generator)
        for side, gateway in boards.items():
            configure(gateway, self.addressing.gateway(side))
        for gateway in boards.values():
            _wait_for_carrier(gateway)
            gateway.weigh_asking()

    def begin_trial(self) -> None:
        """Copy the boards as they stood when the first trial began; what was done since is forgotten."""
        assert self.clock is not None
        self.clock.branch(self.between)
        for gateway in self.gateways.values():
            if isinstance(gateway, E500Gateway):
                gateway.as_before_trials()

    def close(self) -> None:
        """End both boards and all copies of them, and remove the links."""
        if self.registry is not None:
            self.registry.undo(self.made)


class QemuE500Platform:
    """Builds pairs of one board. traffic finds the program that makes links, parts what a board is made of."""

    name = "qemu_e500"

    def __init__(
        self, dut: str, addressing: PairAddressing, traffic: Callable[[], Path], parts: Callable[[], Built]
    ) -> None:
        self._dut = dut
        self._addressing = addressing
        self._traffic = traffic
        self._parts = parts

    def build(
        self,
        registry: Registry,
        logs: Path,
        placement: Placement,
        machine: Machine,
        facts: dict[str, Any],
        *,
        single: bool = False,
        line_rate_bps: float = 1e9,
    ) -> QemuE500Testbed:
        """Start both boards; they wait for the generator. single: Home alone, whose eth1 is at the east link.

        MachineLacks when they are not built; EspbenchError quotes QEMU when it ends. What was made until
        then stays registered: leaving the registry undoes it. facts: of the board, for the Security Context.
        """
        built = self._parts()
        first = len(registry.entries)
        folder = _shared_memory(registry)
        links = {name: folder / name for name in ("west", "east", *([] if single else ["middle"]))}
        for name, path in links.items():
            self._make_link(path, line_rate_bps, between_guests=name == "middle")
        guests: dict[Side, Guest] = {
            side: e500_guest.start(registry, side, built, machine, ends, logs)
            for side, ends in self._ends(links, single=single).items()
        }
        gateways: dict[Side, Gateway] = {
            side: E500Gateway(side, _FACING[side], guest, logs / f"{side}.log")
            for side, guest in guests.items()
        }
        return QemuE500Testbed(
            platform=self.name,
            dut=self._dut,
            ports={
                name: self._port(name, links[name], line_rate_bps, single=single) for name in _FACING.values()
            },
            **ciphertext_side(self._addressing, single=single),
            gateways=gateways,
            placement=placement,
            queues={},
            virtual_time=True,
            facts={EMULATION: facts | {"links": f"{LATENCY_NS / 1e3:g} µs long"} | _facts_of(built)},
            registry=registry,
            made=registry.entries[first:],
            between=[] if single else [links["middle"]],
            addressing=self._addressing,
        )

    def _ends(self, links: dict[str, Path], *, single: bool) -> dict[Side, tuple[LinkEnd, LinkEnd]]:
        """eth0 and eth1 of each board; the generator, or Home, is at the links' other ends."""
        a = self._addressing
        home = LinkEnd(links["west"], 1, a.home_lan.mac)
        if single:
            return {"home": (home, LinkEnd(links["east"], 1, a.home_wan.mac))}
        return {
            "home": (home, LinkEnd(links["middle"], 0, a.home_wan.mac)),
            "office": (
                LinkEnd(links["east"], 1, a.office_lan.mac),
                LinkEnd(links["middle"], 1, a.office_wan.mac),
            ),
        }

    def _make_link(self, path: Path, line_rate_bps: float, *, between_guests: bool) -> None:
        step = ["--step-ns", str(STEP_NS)] if between_guests else []
        rate = ["--mbps", f"{line_rate_bps / 1e6:.0f}"]
        argv = [str(self._traffic()), "link", str(path), *rate, "--latency-ns", str(LATENCY_NS), *step]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode:
            raise EspbenchError(f"cannot make the link {path.name}: {done.stderr.strip()}")

    def _port(self, name: PortName, link: Path, line_rate_bps: float, *, single: bool) -> Port:
        mac, own, gateway = tester_end(name, self._addressing, single=single)
        return Port(
            name=name,
            interface="",
            netns=None,
            tx_cpus=(),
            rx_cpu=0,
            mac=mac,
            next_hop_mac=gateway.mac,
            address={version: own.host(version) for version in own.addresses},
            gateway={version: gateway.host(version) for version in gateway.addresses},
            line_rate_bps=line_rate_bps,
            mtu=self._addressing.mtu,
            link=link,
        )


def placement() -> Placement:
    """Nobody is anywhere: which CPU does the work, and when, changes nothing in virtual time."""
    roles = ("tester tx", "tester rx", "controller", *SIDES)
    return Placement(cpus={role: [] for role in roles}, policy="none: virtual time does not depend on it")


def _shared_memory(registry: Registry) -> Path:
    """A folder for links, only for this user."""
    where = Path("/dev/shm")
    return registry.directory("links", where if where.is_dir() else None)


def _facts_of(built: Built) -> dict[str, Any]:
    """Return what identifies the parts: another kernel, program or QEMU makes another device."""
    return {
        part: ", ".join(f"{name} sha256 {digest[:16]}" for name, digest in manifest["products"].items())
        for part, manifest in built.manifests.items()
    }


def _wait_for_carrier(gateway: E500Gateway) -> None:
    """The kernel looks at an emulated PHY about once a second."""
    paths = [f"/sys/class/net/{name}/operstate" for name in (gateway.lan, gateway.wan)]
    for _ in range(_CARRIER_TRIES):
        states = {text.strip() for text in gateway.read(paths).values() if text}
        if states == {"up"}:
            return
        now_ns = int(gateway.request("ping")["now_ns"])
        gateway.request(f"wait {now_ns + _CARRIER_NS}")
    raise EspbenchError(f"gateway {gateway.side}: its ports do not come up: {', '.join(sorted(states))}")
