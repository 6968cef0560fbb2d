# SPDX-License-Identifier: Apache-2.0
"""Builds test beds of guests in virtual time, whose behaviour does not depend on the host's clock.

    generator ══ west ══ eth0 Home eth1 ══ middle ══ eth1 Office eth0 ══ east ══ generator
    generator ══ west ══ eth0 Home eth1 ══ east ══ generator      (a single gateway: the tester is its ESP peer)

Each ══ is a link in shared memory (harness/emulator/LINK.md). The guests boot and answer requests only while the
generator lets virtual time pass; so they are configured after the generator has opened its ports. For each trial all
guests are copied, and the copies are discarded afterwards: each trial begins in the same state.

Guests that take long to boot are also copied just after their boot: each case gets a copy, and the booted guests stay
for the next case whose guests would boot in the same way.
"""

from __future__ import annotations

import math
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
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
    TrialClock,
    VirtualClock,
)
from espbench.platforms.gateway_time import pause
from espbench.platforms.link_errors import Errors, LinkErrors
from espbench.platforms.tester_ports import ciphertext_side, tester_end
from espbench.platforms.virtual.virtual_gateway import FACING, VirtualGateway
from espbench.platforms.virtual.virtual_guest import Built, LinkEnd, parts_of
from espbench.this_machine.registry import Entry, Registry

# The step of the link between the guests, ns: with half of the latency, a guest can run ahead of the other and neither
# has to wait.
STEP_NS = 25_000
# The length of a link's file, which is reserved when it is made (length_of in traffic/src/virtual_time/memory.rs).
LINK_BYTES = 4096 + 2 * (4 << 20)
_CARRIER_NS = 100_000_000
_CARRIER_TRIES = 100
# 2^64 divided by the golden ratio: its multiples modulo 2^64 are spread evenly.
_GOLDEN = 0x9E3779B97F4A7C15

Start = Callable[[Side, tuple[LinkEnd, LinkEnd]], VirtualGateway]
"""Starts the guest of a gateway; the arguments are the side and the link ends of (eth0, eth1)."""


@dataclass
class VirtualTestbed(Testbed):
    """A test bed of guests, which boot when the generator has opened the ports."""

    registry: Registry | None = None
    made: list[Entry] = field(default_factory=list)
    between: list[Path] = field(default_factory=list)  # the links between guests
    addressing: PairAddressing | None = None
    clock: VirtualClock | None = None
    profiled: bool = False
    errors: Errors = field(default_factory=Errors)
    # Keeps the released test bed for the next one whose guests boot in the same way; None: its guests are not kept.
    keep: Callable[[VirtualTestbed], None] | None = None
    booted: bool = False
    _is_aligned: bool = False
    _one_trial: bool = False

    def attached(self, generator: object) -> None:
        """Boot the guests, configure them as routers, and wait until their ports are up.

        Raise EspbenchError, with the guest's console, if a guest does not boot.
        """
        if not isinstance(generator, VirtualClock):
            raise EspbenchError("in virtual time only the native generator can lead")
        if self.clock is not None:
            return
        self.clock = generator
        guests = {side: g for side, g in self.gateways.items() if isinstance(g, VirtualGateway)}
        if not self.booted:
            for gateway in guests.values():
                gateway.started_by(generator)
            self.booted = True
        if self.keep is not None:
            generator.branch(self.between, anew=True)
        for gateway in guests.values():
            self._set_up(gateway)
        for gateway in guests.values():
            _wait_for_carrier(gateway)
            gateway.weigh_asking()

    def begin_trial(self, chance: str = "") -> None:
        """Replace the guests by copies in the state in which the first trial began; later changes are discarded.

        The first trial begins at a whole second of Home's clock. Then frames meet the kernel's timers at the same
        moments, also if another kernel module or daemon needs some instructions more or less until it is set up.
        """
        assert self.clock is not None
        if self._one_trial:
            return
        if not self._is_aligned and isinstance(home := self.gateways["home"], VirtualGateway):
            home.pause_until_a_whole_second()
            self._is_aligned = True
        self.clock.branch(self.between, self.errors.seed_for(self.chance, chance))
        for gateway in self.gateways.values():
            if isinstance(gateway, VirtualGateway):
                gateway.as_before_trials()

    @property
    def same_each_time(self) -> bool:
        """True unless trials meet the guests at different moments."""
        return not self._one_trial

    @contextmanager
    def as_one_trial(self, number: int) -> Iterator[None]:
        """Copy the guests once; all changes of them in this context belong to one trial, and are discarded with it.

        Otherwise all trials would be equal to the nanosecond. So before each trial but the first, up to a second of
        virtual time passes, which the seed determines.
        """
        self.begin_trial(f"trial {number}")
        if number:
            wait_ns = self.chance.number(f"trial {number}", number * _GOLDEN) % 1_000_000_000
            pause(self.gateways["home"], wait_ns / 1e9)
        self._one_trial = True
        try:
            yield
        finally:
            self._one_trial = False

    def end_trial(self) -> None:
        """If the run is profiled, save the names of the executed functions, before the copies are discarded."""
        for gateway in self.gateways.values() if self.profiled else ():
            if isinstance(gateway, VirtualGateway):
                gateway.tell_symbols()

    def no_power_switch(self, side: Side) -> str:
        """Implement platforms.base.PowerSwitch."""
        gateway = self.gateways[side]
        can = isinstance(gateway, VirtualGateway) and gateway.has_power_switch
        return "" if can else f"the machine that is emulated as {side} has no power switch: use dut: virt-x86"

    def power_cycle(self, side: Side, guard: Callable[[], None]) -> dict[str, Any]:
        """Implement platforms.base.PowerSwitch; the guest is off for 0 s, and boots from its image.

        The power cycle belongs to a trial: the copy that booted again is discarded with the trial.
        """
        gateway, clock = self.gateways[side], self.clock
        assert isinstance(gateway, VirtualGateway)
        assert isinstance(clock, TrialClock)
        began_ns = clock.now_ns()
        gateway.power_cycle()
        booted_ns = clock.now_ns()
        guard()
        self._set_up(gateway)
        _wait_for_carrier(gateway)
        return {"off_s": 0.0, "boot_s": round((booted_ns - began_ns) / 1e9, 6)}

    def _set_up(self, gateway: VirtualGateway) -> None:
        """Configure a guest that booted as a router."""
        assert self.addressing is not None
        configure(gateway, self.addressing.gateway(gateway.side))
        gateway.set_up_ports()

    def release(self) -> None:
        """Keep the booted guests for another test bed if possible, else close; their copies end when new ones are
        made.
        """
        if self.keep is not None and all(gateway.alive() for gateway in self.gateways.values()):
            self.keep(self)
        else:
            self.close()

    def close(self) -> None:
        """End the guests and all copies of them, and remove the links."""
        if self.registry is not None:
            self.registry.undo(self.made)


class VirtualPairs:
    """Builds test beds of guests. traffic returns the program that makes links; errors are those of the links."""

    def __init__(
        self,
        platform: str,
        dut: str,
        addressing: PairAddressing,
        traffic: Callable[[], Path],
        errors: Errors,
    ) -> None:
        self._platform = platform
        self._dut = dut
        self._addressing = addressing
        self._traffic = traffic
        self._errors = errors
        self._kept: tuple[Hashable, VirtualTestbed] | None = None

    def build(
        self,
        registry: Registry,
        placement: Placement,
        start: Start,
        ns_per_instruction: Fraction,
        facts: dict[str, Any],
        *,
        single: bool = False,
        line_rate_bps: float = 1e9,
        alike: Hashable = None,
    ) -> VirtualTestbed:
        """Return a test bed with two guests, which wait for the generator.

        single: there is only Home, whose eth1 is at the east link. alike: a key that is equal for test beds whose
        guests boot in the same way, so that a released test bed can be used again; None: it is never used again.
        facts: those of the emulation, for the Security Context.

        Raise EspbenchError, which quotes QEMU, if QEMU ends. What was made until then stays registered: leaving the
        registry's context undoes it.
        """
        if (again := self._again(alike)) is not None:
            return again
        if free_for_links_mb() < links_mb(single=single, kept=True):
            alike = None  # a container with little room: the next case boots
        first = len(registry.entries)
        folder = _shared_memory(registry)
        links = {name: folder / name for name in ("west", "east", *([] if single else ["middle"]))}
        for name, path in links.items():
            self._make_link(path, line_rate_bps, self._errors.of(name), between_guests=name == "middle")
        gateways: dict[Side, Gateway] = {
            side: start(side, ends) for side, ends in self._ends(links, single=single).items()
        }
        return VirtualTestbed(
            platform=self._platform,
            dut=self._dut,
            ports={
                name: self._port(name, links[name], line_rate_bps, single=single) for name in FACING.values()
            },
            **ciphertext_side(self._addressing, single=single),
            gateways=gateways,
            placement=placement,
            queues={},
            virtual_time=True,
            ns_per_instruction=ns_per_instruction,
            facts={EMULATION: facts},
            registry=registry,
            made=registry.entries[first:],
            between=[] if single else [links["middle"]],
            addressing=self._addressing,
            errors=self._errors,
            keep=None if alike is None else lambda bed: self._keep(alike, bed),
        )

    def _keep(self, alike: Hashable, bed: VirtualTestbed) -> None:
        self._kept = alike, bed

    def _again(self, alike: Hashable) -> VirtualTestbed | None:
        """Return a test bed of the guests that were kept after their boot; end these guests if their key differs."""
        kept, self._kept = self._kept, None
        if kept is None:
            return None
        key, bed = kept
        gateways = {side: g.as_booted() for side, g in bed.gateways.items() if isinstance(g, VirtualGateway)}
        if key != alike or not all(gateway.alive() for gateway in gateways.values()):
            bed.close()
            return None
        return replace(
            bed, gateways=dict(gateways), clock=None, queues={}, facts=dict(bed.facts), _is_aligned=False
        )

    def _ends(self, links: dict[str, Path], *, single: bool) -> dict[Side, tuple[LinkEnd, LinkEnd]]:
        """Return the link ends of each guest's (eth0, eth1)."""
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

    def _make_link(
        self, path: Path, line_rate_bps: float, errors: LinkErrors, *, between_guests: bool
    ) -> None:
        step = ["--step-ns", str(STEP_NS)] if between_guests else []
        rate = ["--mbps", f"{line_rate_bps / 1e6:.0f}"]
        argv = [str(self._traffic()), "link", str(path), *rate, *errors.flags, *step]
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
    """Return an empty placement: in virtual time, the results do not depend on which CPU does the work, and when."""
    roles = ("tester tx", "tester rx", "controller", *SIDES)
    return Placement(cpus={role: [] for role in roles}, policy="none: virtual time does not depend on it")


def facts_of(built: Built, errors: Errors) -> dict[str, Any]:
    """Return what identifies links and parts: another kernel, program or QEMU makes another device."""
    return {"links": errors.said, "first trial": "at a whole second of Home's clock"} | parts_of(built)


def _shared_memory(registry: Registry) -> Path:
    """Return a new folder for links that only this user may access."""
    return registry.directory("links", _memory())


def links_mb(*, single: bool, kept: bool = False) -> float:
    """Return the room that a test bed needs for links in a trial, MB: for its own links, and for a copy of each.

    kept: also for the links of the guests that are kept after their boot.
    """
    return (3 if kept else 2) * (2 if single else 3) * LINK_BYTES / 1e6


def free_for_links_mb() -> float:
    """Return the free room for links, MB; infinite if the file system has no limit."""
    usage = shutil.disk_usage(_memory())
    return usage.free / 1e6 if usage.total else math.inf


def _memory() -> Path:
    """Return the file system for links: one in memory, if there is one."""
    where = Path("/dev/shm")
    return where if where.is_dir() else Path(tempfile.gettempdir())


def _wait_for_carrier(gateway: VirtualGateway) -> None:
    """Wait until both ports have a carrier: the kernel polls an emulated PHY about once a second."""
    paths = [f"/sys/class/net/{name}/operstate" for name in (gateway.lan, gateway.wan)]
    for _ in range(_CARRIER_TRIES):
        states = {text.strip() for text in gateway.read(paths).values() if text}
        if states == {"up"}:
            return
        now_ns = int(gateway.request("ping")["now_ns"])
        gateway.request(f"wait {now_ns + _CARRIER_NS}")
    raise EspbenchError(f"gateway {gateway.side}: its ports do not come up: {', '.join(sorted(states))}")
