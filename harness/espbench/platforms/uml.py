# SPDX-License-Identifier: Apache-2.0
"""Gateways as User-Mode Linux guests: a kernel and a process tree of its own for each.

    netns espbench-<run>-tester
    tap west ── vec0 Home vec1 ══ socketpair, or taps and a bridge ══ vec1 Office vec0 ── tap east
    tap west ── vec0 Home vec1 ══ tap east      (a single gateway: the tester is its ESP peer)

A guest's root is the host's, read-only, under an overlay in its memory; it runs in a mount namespace where
even a guest that mounts the host's files itself finds them read-only, and in a PID namespace, so that all of
its processes end with its first.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path

from espbench.errors import EspbenchError, MachineLacks, UsageError
from espbench.platforms.addressing import PairAddressing, configure
from espbench.platforms.base import (
    SIDES,
    Gateway,
    Placement,
    PortName,
    Side,
    Testbed,
)
from espbench.platforms.gateway import AgentGateway
from espbench.platforms.placement import NICE
from espbench.platforms.ports import ciphertext_side, tester_ports
from espbench.platforms.processes import tree_cpu_ns
from espbench.platforms.registry import NETNS_DIR, Entry, Registry
from espbench.platforms.uml_guest import BOOT_TIMEOUT_S, Guest, boot
from espbench.platforms.uml_kernel import UmlProfile, readiness

__all__ = ["UmlPlatform", "UmlProfile", "UmlTestbed", "readiness"]

TAP_QUEUE = 10_000
MIDDLE_BUFFER = 8 << 20
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33  # linux/asm-generic/socket.h; the socket module does not name them
VECTOR_DEPTH = 64  # with 128 the fd transport loses every second batch of ESP
_PORTS: dict[PortName, str] = {"west": "west", "east": "east"}
LAN_OF: dict[Side, PortName] = {"home": "west", "office": "east"}


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


class UmlPlatform:
    """Builds gateway pairs of one profile."""

    name = "uml"

    def __init__(self, profile: UmlProfile, addressing: PairAddressing) -> None:
        if not 128 <= profile.memory_mb <= 512:
            raise UsageError(
                f"profile {profile.name}: memory_mb is {profile.memory_mb}; a UML gateway gets 128 to 512 MB"
            )
        self.profile = profile
        self._addressing = addressing

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
        """Boot Home and Office side by side and make them routers between west and east.

        capture: the middle link becomes a bridge whose port Testbed.capture shows what crosses it. single: Home
        alone, whose ciphertext side is the tester's east port.
        MachineLacks when something is missing; EspbenchError quotes the console of a guest that died. What
        was made until then stays registered: leaving the registry undoes it.
        """
        for need in readiness(self.profile):
            if not need.ready:
                raise MachineLacks(need.missing, need.install)
        marks = [("", time.monotonic())]
        first = len(registry.entries)

        netns = registry.netns("tester")
        self._make_links(netns, self._addressing.mtu, capture and not single)
        marks.append(("links", time.monotonic()))

        with self._middle(capture, single) as ends:
            guests = {
                side: self._start(registry, side, netns, end, logs, placement.cpus[side])
                for side, end in ends.items()
            }
        marks.append(("start", time.monotonic()))
        gateways: dict[Side, Gateway] = {}
        for side, guest in guests.items():
            greeting = guest.channel.wait_ready(BOOT_TIMEOUT_S)
            marks.append((f"{side} up (guest uptime {greeting['uptime_s']:.2f} s)", time.monotonic()))
            gateways[side] = AgentGateway(
                guest.channel,
                side,
                "vec0",
                "vec1",
                partial(tree_cpu_ns, guest.process.pid),
                guest.notebook,
                guest.console,
            )
        for side, gateway in gateways.items():
            configure(gateway, self._addressing.gateway(side))
        marks.append(("configure", time.monotonic()))

        return UmlTestbed(
            platform=self.name,
            dut=self.profile.name,
            ports=tester_ports(netns, _PORTS, self._addressing, placement, line_rate_bps, single=single),
            **ciphertext_side(self._addressing, single=single),
            gateways=gateways,
            placement=placement,
            queues=_queues(capture, single),
            capture=("east" if single else "middle-home") if capture else None,
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
        single: bool = False,
        line_rate_bps: float = 1e9,
    ) -> UmlTestbed:
        """The tester's two taps without a DUT: `wire` copies frames from one to the other.

        wire: the command of a program that does so (`espbench-traffic wire`); it runs on Home's CPU, as
        what reads the tap does in a run. EspbenchError with its own words when it does not start.
        """
        first = len(registry.entries)
        netns = registry.netns("calibration")
        self._make_links(netns, self._addressing.mtu, capture=False)
        path = str(NETNS_DIR / netns)
        process = registry.spawn(
            [*wire, "--a", "west", "--b", "east", "--netns", path],
            "wire",
            cpus=placement.cpus["home"],
            nice=NICE,
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
            ports=tester_ports(netns, _PORTS, self._addressing, placement, line_rate_bps, single=single),
            **ciphertext_side(self._addressing, single=single),
            gateways={},
            placement=placement,
            queues=_queues(capture=False, single=single),
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
    def _middle(self, capture: bool, single: bool) -> Iterator[dict[Side, tuple[str, tuple[int, ...]]]]:
        """How each guest opens its end of the middle link, and the descriptors it needs for it."""
        if single:
            yield {"home": ("transport=tap,ifname=east", ())}
            return
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
    ) -> Guest:
        """Start one gateway; it boots while the other does."""
        transport, middle_fds = middle
        return boot(
            registry,
            side,
            self.profile.kernel_of(side),
            logs,
            memory_mb=self.profile.memory_mb,
            preload=self.profile.preload,
            devices=[
                f"vec0:transport=tap,ifname={LAN_OF[side]},depth={VECTOR_DEPTH},gro=1",
                f"vec1:{transport},depth={VECTOR_DEPTH},gro=1",
            ],
            netns=str(NETNS_DIR / netns),
            cpus=cpus,
            pass_fds=middle_fds,
        )


def _queues(capture: bool, single: bool) -> dict[str, str]:
    middle = f"2 taps of {TAP_QUEUE} frames and a bridge" if capture else f"{MIDDLE_BUFFER} bytes each way"
    return {
        "west tap": f"{TAP_QUEUE} frames",
        "east tap": f"{TAP_QUEUE} frames",
        **({} if single else {"middle link": middle}),
        "UML vector rings": f"{VECTOR_DEPTH} frames",
        "queueing discipline of the guests": "pfifo_fast, 1000 frames",
    }
