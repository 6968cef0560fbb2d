# SPDX-License-Identifier: Apache-2.0
"""Gives a test a generator of its own and real links, in namespaces that are deleted at the test's end.

    t1 ── a0 ═══ a1 ── t2                          (wire)
    t1 ── a0 ═══ r0 ── router ── r1 ═══ a1 ── t2   (router)

IPv6 is off in the namespaces, so that the kernel sends no frames of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from espbench.errors import EspbenchError
from espbench.generators import native
from espbench.platforms.placement import NICE
from espbench.this_machine import network
from espbench.this_machine.processes import renice_sessions
from support.gateways.boxes import sh

# The number of attempts of a trial: if the host stalls at its end, the sender has no time for the last frames.
ATTEMPTS = 5
RESIDUE_S = 5.0
# The generator's paths to the wire.
WAYS = ("af_packet", "xdp", "af_xdp")
# The CPU on which a generator sends and receives; each worker of pytest-xdist has another one if there are enough.
CPUS = sorted(os.sched_getaffinity(0))
CPU = CPUS[int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % len(CPUS)]


class Generator:
    """One process `espbench-traffic serve`: it reads commands and writes events, each a JSON object on a line."""

    def __init__(self, tx: str = "auto", rx: str = "auto") -> None:
        self.paths = {"tx": tx, "rx": rx}
        self.process = subprocess.Popen(
            [native.binary(), "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        # Give it a high priority, as espbench does, if that is allowed.
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, self.process.pid, NICE)
        renice_sessions(self.process.pid, NICE)

    def tell(self, command: dict[str, Any] | str) -> None:
        """Send a command without waiting for an answer."""
        assert self.process.stdin is not None
        line = command if isinstance(command, str) else json.dumps(command)
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def next_line(self) -> str:
        """Return the next event that is not progress, as text."""
        assert self.process.stdout is not None
        while True:
            line = self.process.stdout.readline()
            assert line, "the generator ended"
            if json.loads(line)["event"] != "progress":
                return line

    def hear(self) -> dict[str, Any]:
        """Return the next event that is not progress."""
        event: dict[str, Any] = json.loads(self.next_line())
        return event

    def line(self, command: dict[str, Any]) -> str:
        """Send a command and return the event that answers it, as text."""
        self.tell(command)
        return self.next_line()

    def ask(self, command: dict[str, Any] | str) -> dict[str, Any]:
        """Send a command and return the event that answers it."""
        self.tell(command)
        return self.hear()

    def close(self) -> None:
        """End the process as its controller does, by closing its input; it must exit with 0."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(timeout=60) == 0
        assert self.process.stdout is not None
        self.process.stdout.close()


class Net:
    """Makes namespaces for one test, and deletes them with everything in them at its end."""

    def __init__(self) -> None:
        self.tag = uuid.uuid4().hex[:8]
        self.made: list[str] = []

    def namespace(self, name: str) -> str:
        """Make a namespace without IPv6; return its full name."""
        full = f"esp-{self.tag}-{name}"
        network.make_netns(full)
        self.made.append(full)
        network.write_sysctls(
            full, {f"net/ipv6/conf/{conf}/disable_ipv6": "1" for conf in ("all", "default")}
        )
        network.set_link(full, "lo", up=True)
        return full

    def inside(self, name: str, command: str) -> str:
        """Run a command in a namespace; return its output."""
        return sh(f"ip netns exec esp-{self.tag}-{name} {command}")

    def nft(self, name: str, rules: str) -> None:
        """Load nftables rules in a namespace."""
        subprocess.run(
            ["ip", "netns", "exec", f"esp-{self.tag}-{name}", "nft", "-f", "-"],
            input=rules,
            text=True,
            check=True,
        )

    def pair(self, left: str, a: str, right: str, b: str) -> None:
        """Connect two namespaces by a veth pair with the ends a and b."""
        one, two = f"esp-{self.tag}-{left}", f"esp-{self.tag}-{right}"
        network.make_veth(one, a, two, b, 1500)
        for space, end in ((one, a), (two, b)):
            network.set_features(space, end, gro=True)  # NAPI, so that it takes XDP frames
        network.set_link(one, a, up=True)
        network.set_link(two, b, up=True)

    def path(self, name: str) -> str:
        """Return the file of a namespace, which the generator needs."""
        return f"/run/netns/esp-{self.tag}-{name}"

    def close(self) -> None:
        """Delete all namespaces."""
        for name in self.made:
            with contextlib.suppress(EspbenchError):
                network.remove_netns(name)


@pytest.fixture
def net() -> Iterator[Net]:
    """Give a test namespaces of its own."""
    made = Net()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(params=WAYS)
def generator(request: pytest.FixtureRequest) -> Iterator[Generator]:
    """Start a generator for each path to the wire, because all must behave alike."""
    made = Generator(tx=request.param, rx=request.param)
    try:
        yield made
        made.close()
    finally:
        made.process.kill()
        made.process.wait()
        assert made.process.stdout is not None
        made.process.stdout.close()


@pytest.fixture
def wire(net: Net) -> Net:
    """Connect two ports directly."""
    net.namespace("t1")
    net.namespace("t2")
    net.pair("t1", "a0", "t2", "a1")
    return net


@pytest.fixture
def router(net: Net) -> Net:
    """Put a namespace between two ports that routes 198.18/16 and 198.19/16."""
    for name in ("t1", "dut", "t2"):
        net.namespace(name)
    net.pair("t1", "a0", "dut", "r0")
    net.pair("t2", "a1", "dut", "r1")
    net.inside("dut", "ip address add 198.18.0.1/16 dev r0")
    net.inside("dut", "ip address add 198.19.0.1/16 dev r1")
    net.inside("dut", "sysctl -qw net.ipv4.ip_forward=1")
    return net


def open_ports(generator: Generator, net: Net, cpu: int = CPU, **more: object) -> dict[str, dict[str, Any]]:
    """Open west (a0 in t1) and east (a1 in t2) on one CPU; return the generator's answer for each port, by name."""
    ports = [
        {
            "name": "west",
            "interface": "a0",
            "netns": net.path("t1"),
            "tx_cpus": [cpu],
            "rx_cpu": cpu,
            "rx_ring_mib": 16,
            **generator.paths,
        },
        {
            "name": "east",
            "interface": "a1",
            "netns": net.path("t2"),
            "tx_cpus": [cpu],
            "rx_cpu": cpu,
            "rx_ring_mib": 16,
            **generator.paths,
        },
    ]
    opened = generator.ask({"cmd": "open", "watch_cpus": [cpu], "ports": ports, **more})
    assert opened["event"] == "opened", opened
    return {port["name"]: port for port in opened["ports"]}


def stream(opened: dict[str, dict[str, Any]], /, **more: object) -> dict[str, Any]:
    """Return a stream of 64 B frames from west to east, 5,000 frames/s; `more` replaces keys."""
    return {
        "id": 0,
        "from": "west",
        "to": "east",
        "rate_fps": 5000.0,
        "frames": [{"size": 64, "weight": 1}],
        "src_mac": opened["west"]["mac"],
        "dst_mac": opened["east"]["mac"],
        "ip_version": 4,
        "src": "198.18.0.2",
        "dst": "198.19.0.2",
        "src_port": 49184,
        "dst_port": 7,
        **more,
    }


def back(opened: dict[str, dict[str, Any]], /, **more: object) -> dict[str, Any]:
    """Return the same stream from east to west, with the id 1."""
    turned = {
        "id": 1,
        "from": "east",
        "to": "west",
        "src_mac": opened["east"]["mac"],
        "dst_mac": opened["west"]["mac"],
        "src": "198.19.0.2",
        "dst": "198.18.0.2",
    }
    return stream(opened, **{**turned, **more})


def trial(generator: Generator, *streams: dict[str, Any], **more: object) -> dict[str, Any]:
    """Run a trial of half a second; `more` replaces keys of the command.

    residue_s is long, because frames may arrive late on a busy host; only a trial with missing frames waits that long.
    """
    command = {"cmd": "trial", "id": "t", "duration_s": 0.5, "residue_s": RESIDUE_S, "quiet_s": 0.1, **more}
    result = generator.ask({**command, "streams": list(streams)})
    assert result["event"] == "trial", result
    return result


def begin(generator: Generator, *streams: dict[str, Any], duration_s: float, **more: object) -> None:
    """Begin a trial, and return when frames of it have left; the generator's next event is its result."""
    command = {
        "cmd": "trial", "id": "t", "duration_s": duration_s, "residue_s": RESIDUE_S, "quiet_s": 0.1, **more,
    }  # fmt: skip
    generator.tell({**command, "streams": list(streams)})
    assert generator.process.stdout is not None
    while True:
        event = json.loads(generator.process.stdout.readline())
        assert event["event"] == "progress", event
        if event["tx_frames"]:
            return


def arrived(one: dict[str, Any]) -> None:
    """Check that all frames of a stream that the next device accepted arrived, once and intact."""
    assert one["rx_frames"] == one["tx_frames"] - one["tx_refused"] > 0
    assert (one["lost"], one["duplicated"], one["reordered"], one["corrupted"]) == (
        one["tx_refused"],
        0,
        0,
        0,
    )
