# SPDX-License-Identifier: Apache-2.0
"""Makes gateways of network namespaces of the running kernel, each with its own measurement of CPU time.

    espbench-<run>-tester       espbench-<run>-home     espbench-<run>-office     …-tester
             west ───────────── lan  Home  wan ──────── wan  Office  lan ──────────── east
                                 ▲          ▲            ▲            ▲
                               napi/…     napi/…       napi/…       napi/…      (kernel threads)

By default a veth forwards in its *sender's* context: tester and DUT would share one CPU, and no frame would ever be
lost. With GRO a veth port has a NAPI ring of 256 frames. With threaded NAPI a kernel thread serves this ring. The
thread can be pinned, and its CPU time is that of its gateway alone.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from espbench.errors import EspbenchError, MachineLacks
from espbench.platforms.addressing import PairAddressing, configure
from espbench.platforms.base import SIDES, Gateway, Placement, PortName, Readiness, Side, Testbed
from espbench.platforms.channel import AGENT, AgentChannel
from espbench.platforms.gateway import AgentGateway, tail
from espbench.platforms.placement import NICE
from espbench.platforms.tester_ports import ciphertext_side, tester_ports
from espbench.this_machine import irq_time
from espbench.this_machine.network import (
    NETNS_DIR,
    ipv6_is_here,
    make_veth,
    set_features,
    set_link,
    thread_napi,
    write_sysctls,
)
from espbench.this_machine.processes import WaitAccount, times_unknown, tree_cpu_ns, tree_threads
from espbench.this_machine.registry import Entry, Registry, Surroundings, interpreter

_THREADED_SINCE = (5, 17)  # threaded NAPI of a veth
VETH_RING = 256  # VETH_RING_SIZE, drivers/net/veth.c
_AGENT_TIMEOUT_S = 120.0  # an agent that dies is detected at once
_BEDS = itertools.count()
_ESP_PROBE = (  # `doctor` runs this program in a new namespace to test whether the kernel accepts an ESP SA
    "import socket,struct,sys;"
    "s=socket.socket(socket.AF_NETLINK,socket.SOCK_RAW,6);s.send(bytes.fromhex(sys.argv[1]));"
    "r=s.recv(8192);print(-struct.unpack_from('=i',r,16)[0])"
)


@dataclass
class NetnsTestbed(Testbed):
    """A test bed of namespaces; closing it deletes the namespaces with their links, routes and SAs."""

    registry: Registry | None = None
    made: list[Entry] = field(default_factory=list)
    # Functions that return the present threads of each gateway.
    threads: Mapping[Side, Callable[[], set[int]]] = field(default_factory=dict)

    def close(self) -> None:
        """End the agents and remove the namespaces."""
        if self.registry is not None:
            self.registry.undo(self.made)


class NetnsPlatform:
    """Builds test beds of namespaces."""

    name = "netns"

    def __init__(self, addressing: PairAddressing) -> None:
        self._addressing = addressing

    def build(
        self,
        registry: Registry,
        logs: Path,
        placement: Placement,
        *,
        single: bool = False,
        line_rate_bps: float = 10e9,
    ) -> NetnsTestbed:
        """Return a test bed with three namespaces, three links and four pinned kernel threads.

        single: there is only Home, whose ciphertext side is the tester's east port. Raise EspbenchError if something
        cannot be made.
        """
        first = len(registry.entries)
        sides: tuple[Side, ...] = ("home",) if single else SIDES
        names = {role: registry.netns(role) for role in ("tester", *sides)}
        link = _Names.of(registry.run_id)
        self._make_links(names, link, single=single)

        cpu_unknown = times_unknown() or irq_time.left_out()
        gateways: dict[Side, Gateway] = {}
        threads_of: dict[Side, Callable[[], set[int]]] = {}
        for side in sides:
            lan, wan = link.of_gateway(side)
            threads = PortThreads(side, placement.cpus[side])
            gateway, agent = _start_agent(
                registry, side, names[side], lan, wan, threads, logs, cpu_booked=not cpu_unknown
            )
            configure(gateway, self._addressing.gateway(side))
            for device in (lan, wan):
                _give_thread(names[side], device, threads)
            gateways[side] = gateway
            threads_of[side] = partial(_threads, threads, agent)
        return NetnsTestbed(
            platform=self.name,
            dut="netns",
            ports=tester_ports(
                names["tester"], link.ports, self._addressing, placement, line_rate_bps, single=single
            ),
            **ciphertext_side(self._addressing, single=single),
            gateways=gateways,
            gateway_netns={side: str(NETNS_DIR / names[side]) for side in sides},
            placement=placement,
            queues={
                "ring of each gateway port": f"{VETH_RING} frames (veth NAPI)",
                "queueing discipline": "none (noqueue)",
            },
            tester_rings=True,
            cpu_unknown=cpu_unknown,
            facts={"CPU time of the gateways": f"not told: {cpu_unknown}"} if cpu_unknown else {},
            capture=link.home_wan,
            capture_netns=str(NETNS_DIR / names["home"]),
            registry=registry,
            made=registry.entries[first:],
            threads=threads_of,
        )

    def _make_links(self, names: Mapping[str, str], link: _Names, *, single: bool) -> None:
        """Connect the namespaces and open the tester's ports; names: the namespaces' names by role."""
        for netns in names.values():
            _no_ipv6_noise(netns)
        make_veth(names["tester"], link.west, names["home"], link.home_lan, self._addressing.mtu)
        if single:
            make_veth(names["tester"], link.east, names["home"], link.home_wan, self._addressing.mtu)
        else:
            make_veth(names["home"], link.home_wan, names["office"], link.office_wan, self._addressing.mtu)
            make_veth(names["tester"], link.east, names["office"], link.office_lan, self._addressing.mtu)
        for port in (link.west, link.east):
            _open_tester_port(names["tester"], port)

    def calibration_bed(
        self,
        registry: Registry,
        placement: Placement,
        *,
        single: bool = False,
        line_rate_bps: float = 10e9,
    ) -> NetnsTestbed:
        """Return a bed without gateways: the tester's ports are connected to each other.

        As in a run, the gateways' CPUs do the work of receiving frames.
        """
        first = len(registry.entries)
        netns = registry.netns("calibration")
        _no_ipv6_noise(netns)
        link = _Names.of(registry.run_id)
        make_veth(netns, link.west, netns, link.east, self._addressing.mtu)
        for port in (link.west, link.east):
            _open_tester_port(netns, port)
        for port in (link.west, link.east):
            set_features(netns, port, gro=True)
        other: Side = "home" if single else "office"
        sides: list[tuple[str, Side]] = [(link.east, "home"), (link.west, other)]
        for port, side in sides:
            thread_napi(netns, port)
            _pin(port, placement.cpus[side])
        return NetnsTestbed(
            platform=self.name,
            dut="none",
            ports=tester_ports(netns, link.ports, self._addressing, placement, line_rate_bps, single=single),
            **ciphertext_side(self._addressing, single=single),
            gateways={},
            placement=placement,
            queues={},
            registry=registry,
            made=registry.entries[first:],
        )


@dataclass(frozen=True)
class _Names:
    """The interfaces' names. They are unique on the host, because they identify the kernel threads."""

    west: str
    east: str
    home_lan: str
    home_wan: str
    office_wan: str
    office_lan: str

    @staticmethod
    def of(run_id: str) -> _Names:
        # Each bed has new names: the threads of a bed that was just deleted may still run for a moment.
        tag = f"{run_id[-5:]}{next(_BEDS):x}"
        return _Names(*(f"{role}{tag}" for role in ("w", "e", "hl", "hw", "ow", "ol")))

    @property
    def ports(self) -> dict[PortName, str]:
        return {"west": self.west, "east": self.east}

    def of_gateway(self, side: Side) -> tuple[str, str]:
        return (self.home_lan, self.home_wan) if side == "home" else (self.office_lan, self.office_wan)


def _start_agent(
    registry: Registry,
    side: Side,
    netns: str,
    lan: str,
    wan: str,
    threads: PortThreads,
    logs: Path,
    *,
    cpu_booked: bool,
) -> tuple[AgentGateway, int]:
    """Return a gateway, and the PID of its agent."""
    ours, theirs = socket.socketpair()
    console = logs / f"{side}-console.log"
    with theirs, console.open("ab") as output:
        fd = theirs.fileno()
        process = registry.spawn(
            [interpreter(), "-I", "-S", str(AGENT), "--fd", str(fd), str(fd)],
            f"agent of {side}",
            Surroundings(
                netns=str(NETNS_DIR / netns),
                # The gateway's daemons inherit this: they run on its CPU, and their CPU time is the gateway's.
                cpus=threads.cpus,
                nice=NICE,
                # A gateway's daemons are root; they must not write the host's files, only overlays.
                read_only=True,
                # Processes that the agent leaves running end with it. /sys shows the interfaces of the network
                # namespace in which it was mounted, /proc the processes of the PID namespace.
                own_pids=True,
                mounts=[("sysfs", "/sys", ""), ("proc", "/proc", "")],
            ),
            stdout=output,
            stderr=output,
            pass_fds=(fd,),
            grace_s=0,
        )
    channel = AgentChannel(side, ours, lambda: tail(console))
    registry.closing(f"channel to {side}", channel.close)
    channel.wait_ready(_AGENT_TIMEOUT_S)
    gateway = AgentGateway(
        channel,
        side,
        lan,
        wan,
        partial(_gateway_cpu_ns, threads, process.pid, booked=cpu_booked),
        logs / f"{side}.log",
        console,
        WaitAccount(lambda: [*threads.pids.values(), process.pid]).ns,
    )
    return gateway, process.pid


def _threads(ports: PortThreads, agent: int) -> set[int]:
    """Return the threads whose CPU time is the gateway's: those of its ports, and all below its agent."""
    return {*ports.pids.values(), *tree_threads(agent)}


def _give_thread(netns: str, device: str, threads: PortThreads) -> None:
    """Give a port of a gateway its own NAPI kernel thread."""
    # The port's frames must be eligible for GRO. Otherwise they bypass the next port's ring, and the work of the next
    # gateway is done in this gateway's thread.
    set_features(netns, device, gro=True, tso=False)
    thread_napi(netns, device)
    threads.adopt(device)


def _pin(device: str, cpus: list[int]) -> int:
    """Pin a port's kernel thread, named napi/<device>-<id>, and return its PID; raise EspbenchError without one."""
    for comm in Path("/proc").glob("[0-9]*/comm"):
        name = ""
        with contextlib.suppress(OSError):  # the process has ended
            name = comm.read_text()
        if name.startswith(f"napi/{device}-"):
            pid = int(comm.parent.name)
            try:
                os.sched_setaffinity(pid, cpus)
                os.setpriority(os.PRIO_PROCESS, pid, NICE)
            except PermissionError as error:
                raise EspbenchError(
                    f"cannot pin {name.strip()}, a kernel thread: {error.strerror} (needs CAP_SYS_NICE)"
                ) from error
            return pid
    raise EspbenchError(
        f"no kernel thread napi/{device}-*: this kernel cannot thread the NAPI of a veth (needs Linux 5.17)"
    )


class PortThreads:
    """The NAPI kernel threads that serve a gateway's ports, on the gateway's CPUs.

    The kernel ends a port's thread when the port goes down, and makes a new one when the port comes up.
    """

    def __init__(self, side: Side, cpus: list[int]) -> None:
        self.side = side
        self.cpus = cpus
        self.pids: dict[str, int] = {}  # by port
        self._ran_ns: dict[int, int] = {}  # PID → CPU time at the last reading, of past threads too

    def adopt(self, device: str) -> None:
        """Find and pin the thread of a port; raise EspbenchError if there is none."""
        self.pids[device] = _pin(device, self.cpus)

    def ran_ns(self) -> int:
        """Return the CPU time of all threads so far, ns.

        Raise EspbenchError once for each thread that was replaced: its CPU time since the last reading is lost, and the
        new thread was not pinned so far. From now on the new thread is pinned and counted.
        """
        for device, pid in self.pids.items():
            ran_ns = _ran_ns(device, pid)
            if ran_ns is None:
                raise EspbenchError(self._replaced(device))
            self._ran_ns[pid] = ran_ns
        return sum(self._ran_ns.values())

    def _replaced(self, device: str) -> str:
        where = f"gateway {self.side}: port {device} went down"
        try:
            self.adopt(device)
        except EspbenchError:
            return f"{where} and is not up again: it has no NAPI thread"
        return f"{where} and up: its NAPI thread was replaced, and what the first one used is lost"


def _ran_ns(device: str, pid: int) -> int | None:
    """Return the CPU time of a port's thread, ns, 0 if the kernel does not tell it; None if the thread has ended."""
    try:
        comm = Path(f"/proc/{pid}/comm").read_text()
        ran_ns = 0 if times_unknown() else int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
    except (FileNotFoundError, ProcessLookupError):
        return None
    return ran_ns if comm.startswith(f"napi/{device}-") else None


def _gateway_cpu_ns(threads: PortThreads, agent: int, *, booked: bool) -> int | None:
    """Return the CPU time of a gateway, ns: that of its ports' kernel threads, its agent and its daemons.

    booked: the kernel counts the time of threads and of interrupts; otherwise return None.
    """
    ports_ns, tree_ns = threads.ran_ns(), tree_cpu_ns(agent)
    return ports_ns + tree_ns if booked and tree_ns is not None else None


def _no_ipv6_noise(netns: str) -> None:
    """Switch off router solicitations, and link-local addresses with their multicast reports.

    A stray frame would make the proof of encryption inexact.
    """
    write_sysctls(
        netns,
        {
            f"net/ipv6/conf/{conf}/{key}": value
            for conf in ("all", "default")
            for key, value in (("router_solicitations", "0"), ("addr_gen_mode", "1"))
        },
    )


def _open_tester_port(netns: str, port: str) -> None:
    # The tester's frames must be eligible for GRO; otherwise they bypass the ring of the veth.
    set_features(netns, port, tso=False, gso=False)
    set_link(netns, port, arp=False, multicast=False, up=True)


def kernel_lacks_esp(new_sa: bytes) -> str:
    """Return why the running kernel cannot do ESP; empty if it can. new_sa: the message for an SA to try it with."""
    done = subprocess.run(
        ["unshare", "--net", interpreter(), "-I", "-S", "-c", _ESP_PROBE, new_sa.hex()],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return (
            f"cannot ask it: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else 'no answer'}"
        )
    errno = int(done.stdout)
    return "" if errno == 0 else f"the running kernel refuses an ESP SA: {os.strerror(errno)}"


def need_tun(on_note: Callable[[str], None]) -> None:
    """Load the kernel's module for TUN devices if necessary. Raise MachineLacks if there are no TUN devices."""
    if Path("/dev/net/tun").exists():
        return
    on_note(
        "modprobe tun: strongswan-libipsec needs TUN devices of the running kernel; the module stays loaded"
    )
    done = subprocess.run(["modprobe", "tun"], capture_output=True, text=True, check=False)
    if done.returncode or not Path("/dev/net/tun").exists():
        raise MachineLacks(
            f"no TUN devices: {done.stderr.strip() or 'no /dev/net/tun'}",
            "use dut: uml, or a kernel with CONFIG_TUN",
        )


def readiness() -> list[Readiness]:
    """Return for each requirement of this platform whether this machine meets it."""
    checks = [
        ("ip(8)", "ip", "iproute2"),
        ("unshare", "unshare", "util-linux"),
    ]
    answers = [
        Readiness(what, shutil.which(program) is not None, f"no {program}", f"apt-get install {package}")
        for what, program, package in checks
    ]
    answers.append(Readiness("root", os.geteuid() == 0, "namespaces need root", "run espbench as root"))
    return [*answers, *_of_the_kernel()]


def _of_the_kernel() -> list[Readiness]:
    """Return whether the ports' kernel threads can exist and be seen, and whether there is IPv6."""
    release = os.uname().release
    version = tuple(int(part) for part in re.findall(r"\d+", release)[:2])
    threads = Path("/proc/2/comm")
    seen = threads.exists() and threads.read_text().strip() == "kthreadd"
    return [
        Readiness(
            "threaded NAPI", version >= _THREADED_SINCE, f"Linux {release} cannot thread the NAPI of a veth",
            "run Linux 5.17 or newer",
        ),
        Readiness(
            "kernel threads", seen, "this PID namespace hides the kernel's threads",
            "run espbench outside of the container, or in one with the host's PID namespace",
        ),
        Readiness(
            "IPv6", ipv6_is_here(), "the running kernel has no IPv6", "boot it without ipv6.disable=1",
        ),
    ]  # fmt: skip
