# SPDX-License-Identifier: Apache-2.0
"""Gateways as User-Mode Linux guests: a kernel and a process tree of its own for each.

    netns espbench-<run>-tester
    tap west ── vec0 Home vec1 ══ socketpair, or taps and a bridge ══ vec1 Office vec0 ── tap east

A guest's root is the host's, read-only, under an overlay in its memory; it runs in a mount namespace where
even a guest that mounts the host's files itself finds them read-only, and in a PID namespace, so that all of
its processes end with its first.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from espbench.errors import EspbenchError, MachineLacks, UsageError
from espbench.platforms.addressing import GATEWAY_TO_GATEWAY, PairAddressing, configure
from espbench.platforms.base import (
    SIDES,
    Gateway,
    Placement,
    PortName,
    Side,
    Testbed,
)
from espbench.platforms.channel import AgentChannel
from espbench.platforms.gateway import AgentGateway, tail
from espbench.platforms.ports import tester_ports
from espbench.platforms.processes import tree_cpu_ns
from espbench.platforms.registry import NETNS_DIR, Entry, Registry, interpreter
from espbench.platforms.uml_kernel import (
    UmlProfile,
    build_xstate_shim,
    find_kernel,
    find_modules,
    needs_xstate_shim,
    readiness,
)

__all__ = ["UmlPlatform", "UmlProfile", "UmlTestbed", "readiness"]

AGENT = Path(__file__).with_name("agent.py")
TAP_QUEUE = 10_000
MIDDLE_BUFFER = 8 << 20
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33  # linux/asm-generic/socket.h; the socket module does not name them
VECTOR_DEPTH = 64  # with 128 the fd transport loses every second batch of ESP
BOOT_TIMEOUT_S = 60.0
_PORTS: dict[PortName, str] = {"west": "west", "east": "east"}
LAN_OF: dict[Side, PortName] = {"home": "west", "office": "east"}

INIT = """\
#!/bin/sh
# Process 1 of the guest: an overlay over the host's root, the modules, then the agent until it ends.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
fail() {{ echo "espbench: $1 failed"; exit 1; }}
mount -t proc proc /proc || fail "mount /proc"
mount -t tmpfs tmpfs /tmp || fail "mount /tmp"
cd /tmp
version=$(uname -r)
mkdir -p lower upper work root boot/lib/modules
ln -s {modules} "boot/lib/modules/$version"
modprobe -d /tmp/boot overlay || fail "modprobe overlay"
mount -t hostfs -o ro,/ none lower || fail "mount hostfs"
mount -t overlay -o lowerdir=/tmp/lower,upperdir=/tmp/upper,workdir=/tmp/work overlay root || fail overlay
cd root
mkdir -p lib/modules .old-root
ln -sfn {modules} "lib/modules/$version"
# pivot_root, not chroot: the kernel's own calls of modprobe must find the modules too.
pivot_root . .old-root || fail pivot_root
mount -t proc proc /proc && mount -t sysfs sysfs /sys && mount -t devtmpfs devtmpfs /dev || fail "mount /dev"
umount -l /.old-root
modprobe -a {preload} || fail modprobe
{agent}
echo o > /proc/sysrq-trigger
exec sleep 60
"""


@dataclass
class UmlTestbed(Testbed):
    """A running pair; boot_s says where the time to build it went, s."""

    registry: Registry | None = None
    made: list[Entry] = field(default_factory=list)
    boot_s: dict[str, float] = field(default_factory=dict)

    def close(self) -> None:
        """End both guests and remove everything built for them."""
        if self.registry is not None:
            self.registry.undo(self.made)


@dataclass
class _Guest:
    """A guest between its start and its agent's greeting."""

    side: Side
    process: subprocess.Popen[bytes]
    channel: AgentChannel
    notebook: Path
    console: Path


class UmlPlatform:
    """Builds gateway pairs of one profile."""

    name = "uml"

    def __init__(self, profile: UmlProfile) -> None:
        if not 128 <= profile.memory_mb <= 512:
            raise UsageError(
                f"profile {profile.name}: memory_mb is {profile.memory_mb}; a UML gateway gets 128 to 512 MB"
            )
        self.profile = profile

    def build(
        self,
        registry: Registry,
        logs: Path,
        placement: Placement,
        *,
        addressing: PairAddressing = GATEWAY_TO_GATEWAY,
        capture: bool = False,
        line_rate_bps: float = 1e9,
    ) -> UmlTestbed:
        """Boot Home and Office side by side and make them routers between west and east.

        capture: the middle link becomes a bridge whose port Testbed.capture shows what crosses it.
        MachineLacks when something is missing; EspbenchError quotes the console of a guest that died. What
        was made until then stays registered: leaving the registry undoes it.
        """
        for need in readiness(self.profile):
            if not need.ready:
                raise MachineLacks(need.missing, need.install)
        marks = [("", time.monotonic())]
        first = len(registry.entries)

        netns = registry.netns("tester")
        self._make_links(netns, addressing.mtu, capture)
        marks.append(("links", time.monotonic()))

        with self._middle(capture) as middle:
            guests = [
                self._start(registry, side, netns, middle[side], logs, placement.cpus[side]) for side in SIDES
            ]
        marks.append(("start", time.monotonic()))
        gateways: dict[Side, Gateway] = {}
        for guest in guests:
            greeting = guest.channel.wait_ready(BOOT_TIMEOUT_S)
            marks.append((f"{guest.side} up (guest uptime {greeting['uptime_s']:.2f} s)", time.monotonic()))
            gateways[guest.side] = AgentGateway(
                guest.channel,
                guest.side,
                "vec0",
                "vec1",
                lambda pid=guest.process.pid: tree_cpu_ns(pid),  # type: ignore[misc]
                guest.notebook,
                guest.console,
            )
        for side, gateway in gateways.items():
            configure(gateway, addressing.gateway(side))
        marks.append(("configure", time.monotonic()))

        return UmlTestbed(
            platform=self.name,
            dut=self.profile.name,
            ports=tester_ports(netns, _PORTS, addressing, placement, line_rate_bps),
            gateways=gateways,
            placement=placement,
            queues=_queues(capture),
            capture="middle-home" if capture else None,
            capture_netns=str(NETNS_DIR / netns) if capture else None,
            registry=registry,
            made=registry.entries[first:],
            boot_s={what: at - before for (_, before), (what, at) in pairwise(marks)},
        )

    def calibration_bed(
        self,
        registry: Registry,
        placement: Placement,
        wire: list[str],
        *,
        addressing: PairAddressing = GATEWAY_TO_GATEWAY,
        line_rate_bps: float = 1e9,
    ) -> UmlTestbed:
        """The tester's two taps without a DUT: `wire` copies frames from one to the other.

        wire: the command of a program that does so (`espbench-traffic wire`); it runs on Home's CPU, as
        what reads the tap does in a run. EspbenchError with its own words when it does not start.
        """
        first = len(registry.entries)
        netns = registry.netns("calibration")
        self._make_links(netns, addressing.mtu, capture=False)
        path = str(NETNS_DIR / netns)
        process = registry.spawn(
            [*wire, "--a", "west", "--b", "east", "--netns", path],
            "wire",
            cpus=placement.cpus["home"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            grace_s=0,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        registry.closing("input of the wire", process.stdin.close)
        registry.closing("output of the wire", process.stdout.close)
        ready = process.stdout.readline().decode()
        if '"wired"' not in ready:
            raise EspbenchError(f"cannot join the taps: {ready.strip() or 'the wire ended'}")
        return UmlTestbed(
            platform=self.name,
            dut="none",
            ports=tester_ports(netns, _PORTS, addressing, placement, line_rate_bps),
            gateways={},
            placement=placement,
            queues=_queues(capture=False),
            registry=registry,
            made=registry.entries[first:],
        )

    def _make_links(self, netns: str, mtu: int, capture: bool) -> None:
        """The taps of the tester's namespace, deaf to everything but the generator."""
        taps = ["west", "east"] + (["middle-home", "middle-office"] if capture else [])
        lines = []
        for tap in taps:
            lines += [
                f"tuntap add dev {tap} mode tap vnet_hdr",
                f"link set dev {tap} txqueuelen {TAP_QUEUE} mtu {mtu} arp off multicast off",
            ]
        if capture:
            bridge = "type bridge stp_state 0 forward_delay 0 mcast_snooping 0"
            lines.append(f"link add middle mtu {mtu} {bridge}")
            lines += [f"link set dev {tap} master middle" for tap in taps[2:]]
            lines.append("link set dev middle arp off multicast off up")
        lines += [f"link set dev {tap} up" for tap in taps]
        # Before the links: no router solicitation, no multicast report may count as a frame of the DUT.
        script = (
            "cd /proc/sys/net/ipv6/conf; echo 1 >all/disable_ipv6; echo 1 >default/disable_ipv6; ip -batch -"
        )
        done = subprocess.run(
            ["ip", "netns", "exec", netns, "sh", "-c", script],
            input="".join(f"{line}\n" for line in lines),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise EspbenchError(f"cannot make the tester's links in {netns}: {done.stderr.strip()}")

    @contextlib.contextmanager
    def _middle(self, capture: bool) -> Iterator[dict[Side, tuple[str, tuple[int, ...]]]]:
        """How each guest opens its end of the middle link, and the descriptors it needs for it."""
        if capture:
            yield {side: (f"transport=tap,ifname=middle-{side}", ()) for side in SIDES}
            return
        ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in ends:
            for option in (SO_SNDBUFFORCE, SO_RCVBUFFORCE):
                # The kernel doubles what it is given.
                end.setsockopt(socket.SOL_SOCKET, option, MIDDLE_BUFFER // 2)
        try:
            yield {
                side: (f"transport=fd,fd={end.fileno()}", (end.fileno(),))
                for side, end in zip(SIDES, ends, strict=True)
            }
        finally:
            for end in ends:
                end.close()

    def _start(
        self,
        registry: Registry,
        side: Side,
        netns: str,
        middle: tuple[str, tuple[int, ...]],
        logs: Path,
        cpus: list[int],
    ) -> _Guest:
        """Start one guest; it boots while the other does."""
        kernel = self.profile.kernel_of(side)
        executable = find_kernel(kernel)
        private = registry.directory(side)
        if len(str(private).split()) != 1:
            raise UsageError(
                f"TMPDIR must not contain a space ({private}): it stands on a kernel command line"
            )
        state = private / "state"
        state.mkdir(mode=0o700)
        init = private / "init"
        init.write_text(
            INIT.format(
                modules=shlex.quote(str(find_modules(kernel))),
                preload=shlex.join(self.profile.preload),
                agent=shlex.join([interpreter(), "-I", "-S", str(AGENT), "--tty", "/dev/ttyS0"]),
            )
        )
        init.chmod(0o700)
        transport, middle_fds = middle
        console = logs / f"{side}-console.log"
        ours, theirs = socket.socketpair()
        channel = AgentChannel(side, ours, lambda: tail(console))
        registry.closing(f"channel to {side}", channel.close)
        fd = theirs.fileno()
        memory = self.profile.memory_mb
        argv = [
            executable,
            f"mem={memory}M",
            f"umid={side}",
            f"uml_dir={state}",
            "root=/dev/root",
            "rootfstype=hostfs",
            "ro",
            f"init={init}",
            "con=null",
            "con0=null,fd:1",
            "ssl=null",
            f"ssl0=fd:{fd},fd:{fd}",
            f"vec0:transport=tap,ifname={LAN_OF[side]},depth={VECTOR_DEPTH},gro=1",
            f"vec1:{transport},depth={VECTOR_DEPTH},gro=1",
        ]
        env = {"PATH": os.defpath, "TMPDIR": str(state)}
        if needs_xstate_shim(kernel):
            env["LD_PRELOAD"] = str(build_xstate_shim(private))
        notebook = logs / f"{side}.log"
        notebook.write_text(f"# {shlex.join(argv)}\n")
        with theirs, console.open("wb") as output:
            process = registry.spawn(
                argv,
                f"{side} ({executable})",
                netns=str(NETNS_DIR / netns),
                cpus=cpus,
                own_pids=True,
                read_only=True,
                # The guest's memory and control socket: gone with its mount namespace.
                mounts=[("tmpfs", str(state), f"size={memory + 16}m,mode=0700")],
                stdout=output,
                stderr=output,
                pass_fds=(fd, *middle_fds),
                env=env,
                grace_s=0,
            )
        return _Guest(side, process, channel, notebook, console)


def _queues(capture: bool) -> dict[str, str]:
    middle = f"2 taps of {TAP_QUEUE} frames and a bridge" if capture else f"{MIDDLE_BUFFER} bytes each way"
    return {
        "west tap": f"{TAP_QUEUE} frames",
        "east tap": f"{TAP_QUEUE} frames",
        "middle link": middle,
        "UML vector rings": f"{VECTOR_DEPTH} frames",
        "queueing discipline of the guests": "pfifo_fast, 1000 frames",
    }
