# SPDX-License-Identifier: Apache-2.0
"""Holds the table of platforms by their names in DUT profiles; each platform is made from a plan and a profile."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from espbench.errors import MachineLacks, UsageError
from espbench.generators import native
from espbench.npcrypt import board as kernel_board
from espbench.npcrypt import compilers, machine
from espbench.plan import Case, Profile, ResolvedPlan, Topology, cases, load_topology
from espbench.plan.duts.boards import Board
from espbench.plan.duts.machines import ADAPTING, Machine
from espbench.plan.keys import links as link_keys
from espbench.plan.keys.ipsec_tests import PublicKey, SetUpRate
from espbench.plan.keys.model import NO_NETWORK, SINGLE
from espbench.plan.keys.stack_choice import StackChoice
from espbench.platforms import external, netns, sampling
from espbench.platforms.addressing import LinkEnd, PairAddressing
from espbench.platforms.base import SIDES, PortName, Readiness, Side, Testbed
from espbench.platforms.chance import Chance
from espbench.platforms.e500 import own_kernel, qemu_e500
from espbench.platforms.link_errors import Errors, LinkErrors
from espbench.platforms.remote import remote_platform, ssh
from espbench.platforms.remote.remote_gateway import Box
from espbench.platforms.remote.ssh import Login
from espbench.platforms.uml import uml_platform
from espbench.platforms.virtual import virtual_pair
from espbench.platforms.virtual.parts.build import Kit
from espbench.platforms.virtual.parts.kits import E500_KIT, E500_STRONGSWAN_KIT, X86_KIT
from espbench.platforms.virtual.parts.own_files import OwnFiles
from espbench.platforms.x86 import qemu_x86
from espbench.procedures.boards import emulated
from espbench.runs import labgrid_checks, stacking
from espbench.runs.platform import OnNote, Platform, Workspace, demand
from espbench.stacks import netlink_xfrm
from espbench.stacks.daemons import layers
from espbench.this_machine import own_ssh


class _FromProfile:
    """Holds the common parts of platforms whose gateways espbench builds or sets up from a profile."""

    virtual_time = False
    takes_cpus = True

    def __init__(self, resolved: ResolvedPlan, profile: Profile | None) -> None:
        assert profile is not None
        self._resolved = resolved
        self._plan = resolved.plan
        self._profile = profile
        self._single = resolved.plan.topology == SINGLE
        self._addressing = addressing_of(load_topology(resolved.plan.topology), profile.mtu)

    @property
    def line_rate_bps(self) -> float:
        return self._plan.line_rate or self._profile.line_rate

    def memory_mb(self) -> float:
        return 0.0

    def links_mb(self) -> float:
        return 0.0

    def notes(self) -> list[str]:
        return []

    def inspect(self, bed: Testbed, case: Case) -> tuple[dict[str, Any], list[str]]:
        return {}, []

    def _chance(self, case: Case) -> Chance:
        """Return the source of random numbers for the case's gateways or links; each repeat has its own."""
        return Chance(self._plan.seed, case.repeat)

    def _named(self, bed: Testbed) -> Testbed:
        """Give a test bed the profile's name and queues."""
        bed.dut = self._profile.name
        bed.queues |= self._profile.queues
        return bed


class Namespaces(_FromProfile):
    """Gateways that are network namespaces of the running kernel."""

    name = "netns"

    def __init__(self, resolved: ResolvedPlan, profile: Profile | None) -> None:
        super().__init__(resolved, profile)
        self._builder = netns.NetnsPlatform(self._addressing)

    def require(self, on_note: OnNote) -> None:
        """Require the programs and, if a stack needs them, the running kernel's ESP and TUN devices."""
        demand(netns.readiness())
        if any(stacking.kernel_esp(s) for s in self._plan.stacks) and (lack := esp_missing()):
            raise MachineLacks(
                f"dut {self._profile.name}: {lack}", "use dut: uml, or a kernel with CONFIG_INET_ESP"
            )
        if any(s.kind == "strongswan-libipsec" for s in self._plan.stacks):
            netns.need_tun(on_note)

    def build(self, case: Case, workspace: Workspace) -> Testbed:
        w = workspace
        bed = self._builder.build(
            w.registry, w.logs, w.placement, single=self._single, line_rate_bps=self.line_rate_bps
        )
        if w.profiled:
            bed.sampler = sampling.Sampler(w.registry, w.logs, [_this_machine(w, bed.threads)])
        return self._named(bed)

    def calibration_bed(self, workspace: Workspace) -> Testbed:
        return self._builder.calibration_bed(
            workspace.registry, workspace.placement, single=self._single, line_rate_bps=self.line_rate_bps
        )


class Guests(_FromProfile):
    """Gateways that are guests of User-Mode Linux."""

    name = "uml"

    def __init__(self, resolved: ResolvedPlan, profile: Profile | None) -> None:
        super().__init__(resolved, profile)
        self._guests = _guests_of(self._profile)
        self._builder = uml_platform.UmlPlatform(
            self._guests, self._addressing, _errors(self._plan.links), _wire
        )

    def require(self, on_note: OnNote) -> None:
        demand(uml_platform.readiness(self._guests))

    def build(self, case: Case, workspace: Workspace) -> Testbed:
        w = workspace
        bed = self._builder.build(
            w.registry, w.logs, w.placement, capture=self._plan.capture, single=self._single,
            line_rate_bps=self.line_rate_bps,
        )  # fmt: skip
        bed.chance = self._chance(case)
        return self._named(bed)

    def calibration_bed(self, workspace: Workspace) -> Testbed:
        return self._builder.calibration_bed(
            workspace.registry, workspace.placement, _wire(), single=self._single,
            line_rate_bps=self.line_rate_bps,
        )  # fmt: skip

    def memory_mb(self) -> float:
        return (1 if self._single else 2) * self._profile.memory


class Boards(_FromProfile):
    """Gateways that are emulated boards in virtual time."""

    name = "qemu_e500"
    virtual_time = True

    def __init__(self, resolved: ResolvedPlan, profile: Profile | None) -> None:
        super().__init__(resolved, profile)
        self._builder = qemu_e500.QemuE500Platform(
            self._profile.name, self._addressing, native.binary, E500_KIT.require, E500_STRONGSWAN_KIT.require,
            _errors(self._plan.links), _boards_kernels(self._profile),
        )  # fmt: skip

    @property
    def kits(self) -> list[Kit[Any]]:
        """List the kits of which the guests are built; strongSwan's only if a stack of the plan has a daemon."""
        daemons = any(stacking.daemons_of(stack) for stack in self._plan.stacks)
        return [E500_KIT, *([E500_STRONGSWAN_KIT] if daemons else [])]

    def require(self, on_note: OnNote) -> None:
        """Require the kits of the boards; UsageError if a board cannot boot the user's kernel."""
        demand([kit.readiness() for kit in self.kits])
        self._builder.examine()

    def build(self, case: Case, workspace: Workspace) -> Testbed:
        w, board = workspace, self._profile.board
        assert board is not None
        return self._named(
            self._builder.build(
                w.registry, w.logs, w.placement,
                _machine(self._profile, board, case, self._chance(case)), _facts_of(board),
                single=self._single, line_rate_bps=self.line_rate_bps,
                profile=w.profile(case),
            )
        )  # fmt: skip

    def calibration_bed(self, workspace: Workspace) -> Testbed | None:
        return None  # the generator's ceiling in virtual time is the line rate

    def memory_mb(self) -> float:
        return (1 if self._single else 2) * self._profile.memory

    def links_mb(self) -> float:
        return virtual_pair.links_mb(single=self._single)

    def notes(self) -> list[str]:
        """Say where the board's core is not of the device's own kind."""
        return [self._profile.core_note] if self._profile.core_note else []

    def inspect(self, bed: Testbed, case: Case) -> tuple[dict[str, Any], list[str]]:
        """Ask the boards how they use their crypto engine; return facts, and the mismatches with the plan."""
        return emulated.engines(bed, case)


class Machines(_FromProfile):
    """Gateways that are x86-64 machines in virtual time, with Debian's own kernel."""

    name = "qemu_x86"
    virtual_time = True

    def __init__(self, resolved: ResolvedPlan, profile: Profile | None) -> None:
        super().__init__(resolved, profile)
        self._builder = qemu_x86.QemuX86Platform(
            self._profile.name, self._addressing, native.binary, X86_KIT.require, _errors(self._plan.links),
            _own_kernels(self._profile),
        )  # fmt: skip
        self._images = x86_images(cases(resolved))
        self._own_daemons: dict[tuple[str, Path], qemu_x86.OwnDaemon] = {}

    def require(self, on_note: OnNote) -> None:
        """Require the kit of the guests; UsageError if a guest cannot run the user's kernel, modules or daemons."""
        demand([X86_KIT.readiness()])
        self._builder.examine()
        for stack in self._plan.stacks:
            self._own(stack)

    def own_files(self) -> list[OwnFiles]:
        """Pack the user's kernels and modules for workers on other machines."""
        return self._builder.own_files()

    def build(self, case: Case, workspace: Workspace) -> Testbed:
        w, machine = workspace, self._profile.machine
        assert machine is not None
        return self._named(
            self._builder.build(
                w.registry, w.logs, w.placement,
                _x86_machine(
                    self._profile.memory, machine, self._images[case.stack.shown], self._chance(case),
                    self._own(case.stack),
                ),
                _facts_of_machine(machine), single=self._single, line_rate_bps=self.line_rate_bps,
                profile=w.profile(case),
            )
        )  # fmt: skip

    def _own(self, choice: StackChoice) -> tuple[qemu_x86.OwnDaemon, ...]:
        """Return the user's own daemons that a stack names, packed once for all cases."""
        daemons = []
        for name, build in stacking.own_in_root(choice, self._resolved.path).items():
            key = name, build.folder
            if key not in self._own_daemons:
                root = build.folder if build.image else Path("/")
                files = qemu_x86.OwnBuild(name, root, build.base, tuple(build.programs.values()))
                self._own_daemons[key] = self._builder.pack(files)
            daemons.append(self._own_daemons[key])
        return tuple(daemons)

    def calibration_bed(self, workspace: Workspace) -> Testbed | None:
        return None  # the generator's ceiling in virtual time is the line rate

    def memory_mb(self) -> float:
        """Return the memory of a test bed, MiB. Each guest counts three times: booted, with its stack, in a trial."""
        return 3 * (1 if self._single else 2) * self._profile.memory

    def links_mb(self) -> float:
        return virtual_pair.links_mb(single=self._single, kept=True)


class NetworkProcessors:
    """Network processors that run cipher kernels alone, in virtual time, without a gateway or a test bed."""

    name = "ixp"
    virtual_time = True
    takes_cpus = False
    line_rate_bps = 0.0

    def __init__(self, resolved: ResolvedPlan, profile: Profile | None) -> None:
        assert profile is not None
        self._profile = profile
        self._compilers = [name for test in resolved.plan.cipher_kernels for name in test.compilers]

    def require(self, on_note: OnNote) -> None:
        demand([machine.readiness(), *compilers.readiness(self._compilers)])

    def build(self, case: Case, workspace: Workspace) -> Testbed:
        raise UsageError(
            f"dut {self._profile.name}: expected cipher_kernels, got {case.test}; it is no gateway"
        )

    def calibration_bed(self, workspace: Workspace) -> Testbed | None:
        return None

    def memory_mb(self) -> float:
        return 0.0

    def links_mb(self) -> float:
        return 0.0

    def notes(self) -> list[str]:
        return []

    def inspect(self, bed: Testbed, case: Case) -> tuple[dict[str, Any], list[str]]:
        return {}, []


class LoneBoards(NetworkProcessors):
    """Emulated boards whose cores run cipher kernels alone, without a gateway or a test bed."""

    name = "qemu_e500"

    def require(self, on_note: OnNote) -> None:
        demand([E500_KIT.readiness(), kernel_board.readiness()])
        if self._profile.own_kernel is not None:
            own_kernel.identified(Path(self._profile.own_kernel.home))

    @property
    def kits(self) -> list[Kit[Any]]:
        """List the kits of which a board is built."""
        return [E500_KIT]

    def notes(self) -> list[str]:
        """Say where the board's core is not of the device's own kind."""
        return [self._profile.core_note] if self._profile.core_note else []


def _boards(resolved: ResolvedPlan, profile: Profile | None) -> Platform:
    return (LoneBoards if resolved.plan.topology == NO_NETWORK else Boards)(resolved, profile)


def ixp_readiness() -> list[Readiness]:
    """List what network processors need on this machine: compilers for their code, and the emulator that runs it."""
    return [machine.readiness(), *compilers.readiness()]


class Boxes(_FromProfile):
    """Gateways that are boxes reached over ssh."""

    name = "remote"
    takes_cpus = False

    def __init__(self, resolved: ResolvedPlan, profile: Profile | None) -> None:
        super().__init__(resolved, profile)
        self._boxes = boxes_of(self._profile)
        self._builder = remote_platform.RemotePlatform(self._boxes, self._addressing)
        self._boards_open = False

    def require(self, on_note: OnNote) -> None:
        """Require that both boxes answer, have the programs needed, and can run the daemons that are copied to them."""
        demand(remote_platform.readiness())
        labgrid_checks.check(self._resolved)
        self._builder = remote_platform.RemotePlatform(self._boxes, self._addressing, on_note)
        facts = remote_platform.examine(self._boxes)
        for side, said in facts.items():
            kind = "a virtual machine, " if said["virtual"] else ""
            on_note(f"{side}: {kind}Linux {said['kernel']} on {said['machine']}, {said['cpus']} CPUs")
        strangers = remote_platform.of_another_architecture(facts)
        for stack in self._plan.stacks:
            if stacking.daemons_of(stack) and strangers and stack.prefix is None:
                raise UsageError(
                    f"stack {stack.shown}: expected boxes that run programs of this machine, got: "
                    f"{'; '.join(strangers)}; measure plain and xfrm there, or give prefix: an image built for them"
                )
            for build in stacking.builds_of(stack, self._resolved.path, on_note).values():
                layers.refuse_elsewhere(build)

    def build(self, case: Case, workspace: Workspace) -> Testbed:
        w = workspace
        if not self._boards_open:  # once for a run: from here on its logs have the boxes' consoles
            self._builder.open_boards(w.registry, w.logs)
            self._boards_open = True
        bed = self._builder.build(w.registry, w.logs, w.placement, line_rate_bps=self.line_rate_bps)
        if w.profiled:
            bed.sampler = sampling.Sampler(w.registry, w.logs, _boxes_to_sample(self._boxes))
        return self._named(bed)

    def calibration_bed(self, workspace: Workspace) -> Testbed | None:
        return None  # cables lead to the boxes

    def memory_mb(self) -> float:
        return math.inf


class External:
    """The user's own boxes between two ports of the tester; espbench builds, asks and undoes nothing on them."""

    name = "external"
    virtual_time = False
    takes_cpus = False

    def __init__(self, resolved: ResolvedPlan, profile: Profile | None = None) -> None:
        self._plan = resolved.plan

    @cached_property
    def line_rate_bps(self) -> float:
        """The plan's line rate; without one, the rate that the ports report, bit/s."""
        return self._plan.line_rate or external.line_rate_bps(self._ports().values())

    def require(self, on_note: OnNote) -> None:
        demand(external.readiness())
        for name, port in self._ports().items():
            netns_file = external.netns_path(port.netns) if port.netns else None
            own_ssh.refuse_port(f"ports: {name}", port.interface, netns_file)

    def build(self, case: Case, workspace: Workspace) -> Testbed:
        return external.build(
            self._ports(),
            workspace.placement,
            dut=self._plan.duts[0],
            i_own_this_network=self._plan.i_own_this_network,
            line_rate_bps=self.line_rate_bps,
        )

    def calibration_bed(self, workspace: Workspace) -> Testbed | None:
        return None  # there is no way past the boxes

    def memory_mb(self) -> float:
        return math.inf

    def links_mb(self) -> float:
        return 0.0

    def notes(self) -> list[str]:
        return []

    def inspect(self, bed: Testbed, case: Case) -> tuple[dict[str, Any], list[str]]:
        return {}, []

    def _ports(self) -> dict[PortName, external.ExternalPort]:
        """Return the user's two ports."""
        if self._plan.ports is None:
            raise UsageError("ports: expected west and east for topology external, got none")
        return {
            "west": external.ExternalPort(**self._plan.ports.west.model_dump()),
            "east": external.ExternalPort(**self._plan.ports.east.model_dump()),
        }


@dataclass(frozen=True)
class Kind:
    """One kind of platform: how it is made from a plan and a profile, and what it needs on this machine.

    kits: returns the kits of which a platform's guests are built; empty if it builds none.
    """

    make: Callable[[ResolvedPlan, Profile | None], Platform]
    readiness: Callable[[], list[Readiness]]
    kits: Callable[[Any], list[Kit[Any]]] = lambda platform: []


PLATFORMS: Mapping[str, Kind] = {
    Namespaces.name: Kind(Namespaces, netns.readiness),
    Guests.name: Kind(Guests, uml_platform.readiness),
    External.name: Kind(External, external.readiness),
    Boxes.name: Kind(Boxes, remote_platform.readiness),
    Boards.name: Kind(_boards, lambda: [E500_KIT.readiness()], lambda boards: boards.kits),
    Machines.name: Kind(Machines, lambda: [X86_KIT.readiness()], lambda machines: [X86_KIT]),
    NetworkProcessors.name: Kind(NetworkProcessors, ixp_readiness),
}


def kits_of(platforms: Iterable[Platform]) -> list[Kit[Any]]:
    """Return the kits of which the guests of these platforms are built, each once."""
    kits = (kit for platform in platforms for kit in PLATFORMS[platform.name].kits(platform))
    return [*{kit.name: kit for kit in kits}.values()]


def own_files_of(platforms: Iterable[Platform]) -> list[OwnFiles]:
    """Return the user's own files that the guests of these platforms boot, each path once."""
    files = (
        each for platform in platforms if isinstance(platform, Machines) for each in platform.own_files()
    )
    return [*{each.path: each for each in files}.values()]


def esp_missing() -> str:
    """Say why the running kernel cannot do ESP; empty if it can."""
    probe = netlink_xfrm.SecurityAssociation(
        source="192.0.2.1", destination="192.0.2.2", spi=0x100, mode="tunnel", reqid=1,
        selector=netlink_xfrm.Selector("198.18.0.0/16", "198.19.0.0/16"),
        encryption=netlink_xfrm.Algorithm("ecb(cipher_null)", b""),
        integrity=netlink_xfrm.Algorithm("digest_null", b""),
    )  # fmt: skip
    return netns.kernel_lacks_esp(netlink_xfrm.new_sa(probe))


def addressing_of(topology: Topology, mtu: int) -> PairAddressing:
    """Return the topology's addresses of both IP versions, in the form that the platforms take."""
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


def boxes_of(profile: Profile) -> remote_platform.RemoteProfile:
    """Return a profile's boxes and ports in the form that the platform takes."""
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
        labgrid = labgrid_checks.target_of(given.labgrid) if given.labgrid else None
        return Box(login, given.lan, given.wan, given.python, given.i_own_this_box, labgrid)

    return remote_platform.RemoteProfile(
        name=profile.name,
        boxes={side: box(side) for side in SIDES},
        ports={
            "west": remote_platform.TesterPort(ports.west.interface, ports.west.netns),
            "east": remote_platform.TesterPort(ports.east.interface, ports.east.netns),
        },
        i_own_this_network=profile.i_own_this_network,
    )


def _this_machine(workspace: Workspace, threads: Mapping[Side, Callable[[], set[int]]]) -> sampling.Sampled:
    """Return the sampling of gateways that are namespaces: their CPUs, and the threads of each."""
    cpus = sorted({cpu for side in threads for cpu in workspace.placement.cpus[side]})
    folder = workspace.registry.directory("perf")
    return sampling.Sampled("this machine", cpus, threads, lambda argv: ["env", f"TMPDIR={folder}", *argv])


def _boxes_to_sample(profile: remote_platform.RemoteProfile) -> list[sampling.Sampled]:
    """Return the sampling of boxes: each as a whole, because its CPU time is counted as a whole too."""
    return [
        sampling.Sampled(f"{side} ({box.login})", [], {side: None}, partial(ssh.command, box.login))
        for side, box in profile.boxes.items()
    ]


def _guests_of(profile: Profile) -> uml_platform.UmlProfile:
    return uml_platform.UmlProfile(
        name=profile.name,
        kernel={"home": profile.kernel.home, "office": profile.kernel.office},
        modules={"home": Path(profile.modules.home), "office": Path(profile.modules.office)}
        if profile.modules
        else None,
        memory_mb=profile.memory,
    )


def _machine(profile: Profile, board: Board, case: Case, chance: Chance) -> qemu_e500.Machine:
    return qemu_e500.Machine(
        memory_mb=profile.memory,
        ns_per_instruction=board.ns_per_instruction,
        sec_version=board.sec.version,
        sec_clock_hz=case.engine_mhz * 1_000_000 if case.engine_mhz else board.sec.clock,
        sec_costs=board.sec.costs,
        sec_at_once=board.sec.at_once,
        crypto=case.stack.crypto or "",
        coalescing=_coalescing(board),
        bus_bytes_per_second=board.bus_bytes_per_second,
        images=_images(case.stack),
        chance=chance,
    )


def _wire() -> list[str]:
    """Return the command of the program that joins taps."""
    return [str(native.binary()), "wire"]


def _errors(links: link_keys.Links | None) -> Errors:
    if links is None:
        return Errors()
    return Errors({name: _link_errors(of) for name, of in links.by_name.items()}, links.seed)


def _link_errors(of: link_keys.LinkErrors) -> LinkErrors:
    late = of.reordering
    return LinkErrors(
        loss=of.loss,
        bit_errors=of.bit_errors,
        delay_ns=of.delay or 0,
        late=late.share if late else 0.0,
        late_ns=late.by if late else 0,
        said=str(of),
    )


def _coalescing(board: Board) -> qemu_e500.Coalescing:
    rx, tx = board.coalescing.receive, board.coalescing.transmit
    return qemu_e500.Coalescing(
        rx_frames=rx.frames if rx else 0,
        rx_us=rx.time if rx else 0,
        tx_frames=tx.frames if tx else 0,
        tx_us=tx.time if tx else 0,
    )


def _facts_of(board: Board) -> dict[str, str]:
    """Return the emulated board's properties, for the Security Context."""
    said = board.model_dump(mode="json")
    return {
        "device": board.device,
        "core": board.core,
        "core clock": said["core_clock"],
        "memory clock": said["memory_clock"],
        "time per instruction": f"{said['ns_per_instruction']} ns",
        "security engine": f"SEC {board.sec.version} at {said['sec']['clock']}",
        "its cycles": ", ".join(f"{name} {price}" for name, price in said["sec"]["cycles"].items()),
        "interrupts": "; ".join(
            f"{direction}: one for {gathered or 'each frame'}"
            for direction, gathered in (
                ("receiving", board.coalescing.receive),
                ("sending", board.coalescing.transmit),
            )
        ),
    } | _facts_of_options(board)


def _facts_of_options(board: Board) -> dict[str, str]:
    facts = {}
    if board.sec.at_once > 1:
        facts["requests served at once"] = f"{board.sec.at_once}, with execution units for each"
    if board.bus is not None:
        facts["memory's bus"] = f"{board.bus}; {(board.bus_bytes_per_second or 0) / 1e6:g} MB/s for devices"
    return facts


def _x86_machine(
    memory_mb: int,
    machine: Machine,
    images: tuple[str, ...],
    chance: Chance,
    own: tuple[qemu_x86.OwnDaemon, ...],
) -> qemu_x86.Machine:
    return qemu_x86.Machine(
        memory_mb=memory_mb,
        ns_per_instruction=machine.ns_per_instruction,
        cpu=machine.cpu,
        receive_ring=machine.rings.receive,
        transmit_ring=machine.rings.transmit,
        interrupts=machine.interrupts,
        images=images,
        own=own,
        chance=chance,
    )


def _boards_kernels(profile: Profile) -> dict[Side, Path]:
    """Return the kernels that the profile of a board names, by gateway; empty if both are espbench's."""
    kernel = profile.own_kernel
    return {side: Path(getattr(kernel, side)) for side in SIDES} if kernel else {}


def _own_kernels(profile: Profile) -> dict[Side, qemu_x86.Own]:
    """Return the kernels and modules that a profile names, by gateway; empty if all are Debian's."""
    kernel, modules = profile.own_kernel, profile.modules
    if kernel is None and modules is None:
        return {}
    return {
        side: qemu_x86.Own(
            Path(getattr(kernel, side)) if kernel else None, Path(getattr(modules, side)) if modules else None
        )
        for side in SIDES
    }


def _images(choice: StackChoice) -> tuple[str, ...]:
    """Return the userland parts that a stack's guests need: daemons, and ip(8) for devices that init cannot make."""
    daemons = stacking.daemons_of(choice)
    devices = choice.interface or choice.mode == "transport"
    return ("base", *daemons) if daemons or devices else ()


def x86_images(cases: Iterable[Case]) -> dict[str, tuple[str, ...]]:
    """Return the userland parts of each stack's guests, by the stack's name, for all cases of a plan.

    They are the same in each case of a stack, so that all its cases have one configuration: if one test runs the
    program openssl, the guests of the other tests have it too.
    """
    of_stack: dict[str, tuple[str, ...]] = {}
    for case in cases:
        images = of_stack.get(case.stack.shown, _images(case.stack))
        of_stack[case.stack.shown] = (
            tuple(dict.fromkeys(("base", *images, "openssl"))) if _runs_openssl(case) else images
        )
    return of_stack


def _runs_openssl(case: Case) -> bool:
    settings = case.settings
    return isinstance(settings, PublicKey) or (isinstance(settings, SetUpRate) and settings.public_key)


def _facts_of_machine(machine: Machine) -> dict[str, str]:
    """Return the emulated machine's properties, for the Security Context."""
    adapting = machine.interrupts == ADAPTING
    return {
        "cpu": machine.cpu,
        "time per instruction": f"{machine.ns_per_instruction} ns, whichever it is",
        "ports": f"e1000e, rings of {machine.rings.receive} (receive) and {machine.rings.transmit} (transmit) frames",
        "interrupts": "as the driver adapts them" if adapting else f"at most {machine.interrupts} a second",
    }
