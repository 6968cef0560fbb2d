# SPDX-License-Identifier: Apache-2.0
"""From a plan to test beds: which platform, which addresses, which stack."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from espbench.errors import MachineLacks, UsageError
from espbench.generators import native
from espbench.measure import machine
from espbench.plan import Case, Plan, Profile, ResolvedPlan, Topology, load_profile, load_topology
from espbench.plan.boards import Board
from espbench.plan.model import SINGLE
from espbench.platforms import capture, external, netns, own_ssh, placement, qemu_e500, remote, uml
from espbench.platforms.addressing import LinkEnd, PairAddressing
from espbench.platforms.base import SIDES, Placement, PortName, Readiness, Side, Testbed
from espbench.platforms.registry import Registry
from espbench.platforms.remote_gateway import Box
from espbench.platforms.ssh import Login
from espbench.procedures import emulated, stacking
from espbench.stacks import layers, netlink_xfrm
from espbench.stacks.base import Stack, Tunnel, split

REMOTE = "remote"
_SPARE_MB = 512  # of memory, left for the tester and everybody else
EMULATED = "qemu_e500"


@dataclass(frozen=True)
class Choice:
    """The profile a plan's `dut` came to, and why."""

    profile: Profile
    reason: str


def choose(resolved: ResolvedPlan) -> list[Choice]:
    """What each of the plan's DUTs came to, in its order; none for boxes espbench did not build."""
    if resolved.plan.topology == "external":
        return []
    return [
        Choice(profile, f"the plan asks for {dut}") if profile else _choose()
        for dut, profile in resolved.duts
    ]


def place(resolved: ResolvedPlan, choices: Sequence[Choice]) -> Placement:
    """Who runs where; this process is kept off the gateways' CPUs: what it uses there would look like their load.

    UsageError where there are too few CPUs for what the plan asks.
    """
    if virtual(choices):
        return qemu_e500.placement()
    here = any(c.profile.platform != REMOTE for c in choices)
    gateways = (1 if resolved.plan.topology == SINGLE else 2) if here else 0
    placed = placement.choose(gateways=gateways, senders=resolved.plan.generator.senders)
    placement.pin_controller(placed)
    return placed


def virtual(choices: Sequence[Choice]) -> bool:
    """Whether all of it is in virtual time, where nothing depends on who else uses the CPUs."""
    return bool(choices) and all(choice.profile.platform == EMULATED for choice in choices)


def _choose() -> Choice:
    """`auto`: namespaces where the running kernel has ESP, else UML."""
    lack = esp_missing()
    if not lack:
        return Choice(load_profile("netns"), "auto: the running kernel does ESP in namespaces")
    return Choice(load_profile("uml"), f"auto: {lack}; User-Mode Linux brings its own kernel")


def esp_missing() -> str:
    """Why the running kernel cannot do ESP; empty if it can."""
    probe = netlink_xfrm.SecurityAssociation(
        source="192.0.2.1", destination="192.0.2.2", spi=0x100, mode="tunnel", reqid=1,
        selector=netlink_xfrm.Selector("198.18.0.0/16", "198.19.0.0/16"),
        encryption=netlink_xfrm.Algorithm("ecb(cipher_null)", b""),
        integrity=netlink_xfrm.Algorithm("digest_null", b""),
    )  # fmt: skip
    return netns.kernel_lacks_esp(netlink_xfrm.new_sa(probe))


class PairLab:
    """Gateway pairs built on one platform, all alike but for the stack."""

    def __init__(
        self,
        resolved: ResolvedPlan,
        profile: Profile,
        registry: Registry,
        placed: Placement,
        logs: Path,
        on_note: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._plan = plan = resolved.plan
        self._path = resolved.path
        self._on_note = on_note
        self._profile = profile
        self._registry = registry
        self._logs = logs
        self._topology = load_topology(plan.topology)
        self._single = plan.topology == SINGLE
        addressing = addressing_of(self._topology, profile.mtu)
        self._placement = placed
        self.line_rate_bps = plan.line_rate or profile.line_rate
        self._netns = netns.NetnsPlatform(addressing)
        self._uml = uml.UmlPlatform(_uml_profile(profile), addressing)
        self._remote = (
            remote.RemotePlatform(boxes_of(profile), addressing) if profile.platform == REMOTE else None
        )
        self._e500 = qemu_e500.QemuE500Platform(profile.name, addressing, native.binary)

    @property
    def virtual_time(self) -> bool:
        """Emulated boards keep it."""
        return self._profile.platform == EMULATED

    def notes(self, case: Case) -> list[str]:
        """Where the board's core is not of the device's own kind."""
        return [self._profile.core_note] if self._profile.core_note else []

    def memory_mb(self) -> float:
        """What a pair takes of the machine's memory; infinite where its boxes exist but once."""
        if self._remote or self.virtual_time:
            return math.inf
        guests = 1 if self._single else 2
        return guests * self._profile.memory if self._profile.platform == "uml" else 0.0

    def apart(self, cases: Sequence[Case]) -> str:
        """By the machine's free memory."""
        return no_room([self.memory_mb() for _ in cases])

    def build(self, case: Case) -> Testbed:
        """A fresh pair; what was made before a failure is undone at once."""
        return self._whole(lambda: self._build(case))

    def calibration_bed(self) -> Testbed | None:
        """The tester's ports without a DUT between them; None where cables lead to boxes."""
        return None if self._remote else self._whole(self._build_calibration)

    def capturing(self, bed: Testbed, file: Path) -> AbstractContextManager[None]:
        """A pcap of the middle link."""
        return capture.capturing(self._registry, bed, file)

    def stack(self, bed: Testbed, case: Case) -> Stack:
        """The case's stack, neither blocking nor established; its daemons' files laid over the gateways."""
        return stacking.on_bed(bed, self._tunnel(case), case, self._path, self._on_note)

    def inspect(self, bed: Testbed, case: Case) -> tuple[dict[str, Any], list[str]]:
        """What emulated boards do with their crypto engine; other platforms have nothing to add."""
        return emulated.engines(bed, case) if self.virtual_time else ({}, [])

    def tunnel_bits(self, case: Case) -> int:
        """Prefix length of the subnet behind each tunnel."""
        if case.stack.tunnels == 1:
            return 0
        return ip_network(self._tunnel(case).pairs[0][0]).prefixlen

    def _tunnel(self, case: Case) -> Tunnel:
        addresses = self._topology.addresses(case.ip_version)
        return Tunnel(
            ip_version=case.ip_version,
            home=addresses.home_wan.partition("/")[0],
            office=addresses.office_wan.partition("/")[0],
            west=addresses.west,
            east=addresses.east,
            pairs=split(addresses.west, addresses.east, case.stack.tunnels),
        )

    def _whole(self, build: Callable[[], Testbed]) -> Testbed:
        before = len(self._registry.entries)
        try:
            return build()
        except BaseException:
            self._registry.undo(self._registry.entries[before:])
            raise

    def _build(self, case: Case) -> Testbed:
        rate = self.line_rate_bps
        if self._remote:
            bed: Testbed = self._remote.build(self._registry, self._logs, self._placement, line_rate_bps=rate)
        elif self._profile.platform == "netns":
            bed = self._netns.build(
                self._registry, self._logs, self._placement, single=self._single, line_rate_bps=rate
            )
        elif self._profile.board is not None:
            machine = _machine(self._profile, self._profile.board, case)
            facts = _board_facts(self._profile.board)
            bed = self._e500.build(
                self._registry, self._logs, self._placement, machine, facts,
                single=self._single, line_rate_bps=rate,
            )  # fmt: skip
        else:
            bed = self._uml.build(
                self._registry, self._logs, self._placement, capture=self._plan.capture, single=self._single,
                line_rate_bps=rate,
            )  # fmt: skip
        bed.dut = self._profile.name
        bed.queues |= self._profile.queues
        return bed

    def _build_calibration(self) -> Testbed:
        rate = self.line_rate_bps
        if self._profile.platform == "netns":
            return self._netns.calibration_bed(
                self._registry, self._placement, single=self._single, line_rate_bps=rate
            )
        wire = [str(native.binary()), "wire"]
        return self._uml.calibration_bed(
            self._registry, self._placement, wire, single=self._single, line_rate_bps=rate
        )


def line_rate_of(resolved: ResolvedPlan, profiles: Sequence[Profile]) -> float:
    """Bit/s: the plan's, else the profiles', else what the user's ports report; 0 where nobody knows."""
    plan = resolved.plan
    if plan.line_rate or profiles:
        return plan.line_rate or profiles[0].line_rate
    return external.line_rate_bps(_given(plan).values())


def _given(plan: Plan) -> dict[PortName, external.ExternalPort]:
    """The user's two ports."""
    if plan.ports is None:
        raise UsageError("ports: expected west and east for topology external, got none")
    return {
        "west": external.ExternalPort(**plan.ports.west.model_dump()),
        "east": external.ExternalPort(**plan.ports.east.model_dump()),
    }


class ExternalLab:
    """The user's own boxes between two ports."""

    virtual_time = False

    def __init__(self, resolved: ResolvedPlan, placed: Placement) -> None:
        self._plan = resolved.plan
        self._placement = placed
        self.line_rate_bps = line_rate_of(resolved, [])

    def apart(self, cases: Sequence[Case]) -> str:
        """There is one pair, the user's."""
        return no_room([math.inf for _ in cases])

    def build(self, case: Case) -> Testbed:
        return external.build(
            _given(self._plan),
            self._placement,
            dut=self._plan.duts[0],
            i_own_this_network=self._plan.i_own_this_network,
            line_rate_bps=self.line_rate_bps,
        )

    def notes(self, case: Case) -> list[str]:
        """Nothing is known of them."""
        return []

    def calibration_bed(self) -> None:
        """There is no way past the boxes."""

    def capturing(self, bed: Testbed, file: Path) -> AbstractContextManager[None]:
        """Never asked for: what the boxes encrypt, espbench has no keys to."""
        raise UsageError("capture: expected topology gateway-to-gateway, got external; remove it")

    def stack(self, bed: Testbed, case: Case) -> None:
        """Whatever the boxes run."""

    def inspect(self, bed: Testbed, case: Case) -> tuple[dict[str, Any], list[str]]:
        """Nobody there can be asked."""
        return {}, []

    def tunnel_bits(self, case: Case) -> int:
        """However many tunnels the boxes have, the plan does not say."""
        return 0


class Labs:
    """Several DUTs compared in one run: each case's own lab, one platform and line rate for all."""

    def __init__(self, labs: dict[str, PairLab]) -> None:
        self._labs = labs
        self._first = next(iter(labs.values()))

    @property
    def virtual_time(self) -> bool:
        return self._first.virtual_time

    def notes(self, case: Case) -> list[str]:
        return self._labs[case.dut].notes(case)

    def apart(self, cases: Sequence[Case]) -> str:
        return no_room([self._labs[case.dut].memory_mb() for case in cases])

    def build(self, case: Case) -> Testbed:
        return self._labs[case.dut].build(case)

    def calibration_bed(self) -> Testbed | None:
        """The tester's ports are the same for all."""
        return self._first.calibration_bed()

    def capturing(self, bed: Testbed, file: Path) -> AbstractContextManager[None]:
        return self._first.capturing(bed, file)

    def stack(self, bed: Testbed, case: Case) -> Stack:
        return self._labs[case.dut].stack(bed, case)

    def inspect(self, bed: Testbed, case: Case) -> tuple[dict[str, Any], list[str]]:
        return self._labs[case.dut].inspect(bed, case)

    def tunnel_bits(self, case: Case) -> int:
        return self._labs[case.dut].tunnel_bits(case)


def no_room(needs_mb: Sequence[float], free_mb: float | None = None) -> str:
    """Why pairs of gateways that need so much memory cannot stand at the same time; empty if they can."""
    if math.inf in needs_mb:
        return "the gateways are boxes of which there is one pair"
    free = machine.free_memory_mb() if free_mb is None else free_mb
    needed = sum(needs_mb) + _SPARE_MB
    if needed <= free:
        return ""
    return f"together they need {needed:,.0f} MB of memory, {free:,.0f} MB are free"


def addressing_of(topology: Topology, mtu: int) -> PairAddressing:
    """The topology's addresses, both IP versions, as the platforms take them."""
    by_version = {4: topology.addresses(4), 6: topology.addresses(6)}
    macs = topology.macs
    if macs is None:
        raise UsageError(f"topology {topology.name}: expected macs, got none")

    def end(role: str) -> LinkEnd:
        return LinkEnd(getattr(macs, role), {v: getattr(a, role) for v, a in by_version.items()})

    return PairAddressing(
        tester_west=end("tester_west"),
        home_lan=end("home_lan"),
        home_wan=end("home_wan"),
        office_wan=end("office_wan"),
        office_lan=end("office_lan"),
        tester_east=end("tester_east"),
        west={v: a.west for v, a in by_version.items()},
        east={v: a.east for v, a in by_version.items()},
        mtu=mtu,
    )


def boxes_of(profile: Profile) -> remote.RemoteProfile:
    """A profile's boxes and ports as the platform takes them."""
    boxes, ports = profile.boxes, profile.ports
    assert boxes is not None
    assert ports is not None

    def box(side: Side) -> Box:
        given = getattr(boxes, side)
        login = Login(
            given.host,
            given.user,
            given.port,
            Path(given.identity) if given.identity else None,
            Path(given.known_hosts) if given.known_hosts else None,
        )
        return Box(login, given.lan, given.wan, given.python, given.i_own_this_box)

    return remote.RemoteProfile(
        name=profile.name,
        boxes={side: box(side) for side in SIDES},
        ports={
            "west": remote.TesterPort(ports.west.interface, ports.west.netns),
            "east": remote.TesterPort(ports.east.interface, ports.east.netns),
        },
        i_own_this_network=profile.i_own_this_network,
    )


def _uml_profile(profile: Profile) -> uml.UmlProfile:
    return uml.UmlProfile(
        name=profile.name,
        kernel={"home": profile.kernel.home, "office": profile.kernel.office},
        modules={"home": Path(profile.modules.home), "office": Path(profile.modules.office)}
        if profile.modules
        else None,
        memory_mb=profile.memory,
    )


def _machine(profile: Profile, board: Board, case: Case) -> qemu_e500.Machine:
    return qemu_e500.Machine(
        memory_mb=profile.memory,
        ns_per_instruction=board.ns_per_instruction,
        sec_version=board.sec.version,
        sec_clock_hz=board.sec.clock,
        sec_costs=board.sec.costs,
        crypto=case.stack.crypto or "",
    )


def _board_facts(board: Board) -> dict[str, str]:
    """What the emulation makes of the board, for the Security Context."""
    said = board.model_dump(mode="json")
    return {
        "device": board.device,
        "core": board.core,
        "core clock": said["core_clock"],
        "memory clock": said["memory_clock"],
        "time per instruction": f"{said['ns_per_instruction']} ns",
        "security engine": f"SEC {board.sec.version} at {said['sec']['clock']}",
        "its cycles": ", ".join(f"{name} {price}" for name, price in said["sec"]["cycles"].items()),
    }


def demand(needs: list[Readiness]) -> None:
    """MachineLacks naming everything of these that is not there."""
    lacking = [need for need in needs if not need.ready]
    if lacking:
        what = "; ".join(need.missing for need in lacking)
        raise MachineLacks(what, "; ".join(dict.fromkeys(need.install for need in lacking)))


def require(resolved: ResolvedPlan, choices: Sequence[Choice], on_note: Callable[[str], None]) -> None:
    """MachineLacks if the machine cannot carry the plan's platforms and stacks, before anything is made.

    Daemons are looked for and their packages fetched here: a run that was begun should not fail for want of
    them. UsageError where a plan's prefix holds none.
    """
    plan = resolved.plan
    if not choices:
        demand(external.readiness())
        _require_own_ports(plan)
    for choice in choices:
        if choice.profile.platform == "netns":
            demand(netns.readiness())
            if any(stacking.kernel_esp(s) for s in plan.stacks) and (lack := esp_missing()):
                raise MachineLacks(
                    f"dut {choice.profile.name}: {lack}", "use dut: uml, or a kernel with CONFIG_INET_ESP"
                )
            if any(s.kind == "strongswan-libipsec" for s in plan.stacks):
                netns.need_tun(on_note)
        elif choice.profile.platform == EMULATED:
            demand(qemu_e500.readiness())
        elif choice.profile.platform == REMOTE:
            _require_boxes(resolved, choice.profile, on_note)
        else:
            demand(uml.readiness(_uml_profile(choice.profile)))
    if choices:
        for stack in plan.stacks:
            stacking.builds_of(stack, resolved.path, on_note)


def _require_own_ports(plan: Plan) -> None:
    if plan.ports is not None:
        for name, port in (("west", plan.ports.west), ("east", plan.ports.east)):
            netns = external.netns_path(port.netns) if port.netns else None
            own_ssh.refuse_port(f"ports: {name}", port.interface, netns)


def _require_boxes(resolved: ResolvedPlan, profile: Profile, on_note: Callable[[str], None]) -> None:
    """Both boxes answer, have what is needed, and can run the daemons that are brought to them."""
    demand(remote.readiness())
    facts = remote.examine(boxes_of(profile))
    for side, said in facts.items():
        kind = "a virtual machine, " if said["virtual"] else ""
        on_note(f"{side}: {kind}Linux {said['kernel']} on {said['machine']}, {said['cpus']} CPUs")
    strangers = remote.of_another_architecture(facts)
    for stack in resolved.plan.stacks:
        if stacking.daemons_of(stack) and strangers and stack.prefix is None:
            raise UsageError(
                f"stack {stack.shown}: expected boxes that run programs of this machine, got: "
                f"{'; '.join(strangers)}; measure plain and xfrm there, or give prefix: an image built for them"
            )
        for build in stacking.builds_of(stack, resolved.path, on_note).values():
            layers.refuse_elsewhere(build)
