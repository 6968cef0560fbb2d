# SPDX-License-Identifier: Apache-2.0
"""The native generator against real links whose faults are known: each fault is counted as itself.

    t1 ── a0 ═══ a1 ── t2                          (wire)
    t1 ── a0 ═══ r0 ── router ── r1 ═══ a1 ── t2   (router)

Every test makes its own namespaces; the kernel's own chatter (IPv6) is switched off in them.
"""

from __future__ import annotations

import base64
import ipaddress
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]

from espbench.generators import native
from support.gateways.boxes import sh
from support.generators.wire import (
    ATTEMPTS,
    CPU,
    WAYS,
    Generator,
    Net,
    arrived,
    back,
    begin,
    open_ports,
    stream,
    trial,
)
from support.session.slow import slow_but

pytestmark = [pytest.mark.root, pytest.mark.needs("generator"), pytest.mark.untimed]


def test_idle_pair_loses_nothing(generator: Generator, wire: Net) -> None:
    """Every frame that a bare veth pair takes arrives once and intact, and the report is consistent with itself."""
    ports = open_ports(generator, wire)
    result = trial(generator, stream(ports, rate_fps=20000.0))
    [one] = result["streams"]
    assert one["tx_frames"] + one["unsent"] == one["intended_frames"] == 10000
    arrived(one)
    assert one["tx_refused"] or one["loss_episodes"] == []
    assert sum(part["rx_frames"] for part in one["slices"]) == one["rx_frames"]
    assert result["start_ns"] < result["last_tx_ns"] < time.monotonic_ns()
    assert {port["name"]: port["foreign"] for port in result["ports"]} == {"west": 0, "east": 0}
    assert result["clock_step_ns"] == 0


def test_the_speed_of_a_cpu_is_told_unless_the_generator_works_there(generator: Generator, wire: Net) -> None:
    """Its own CPUs are left out, because the work that measures the speed would make frames late."""
    cpus = sorted(os.sched_getaffinity(0))
    ports = open_ports(generator, wire, watch_cpus=cpus)
    result = trial(generator, stream(ports))
    assert {int(cpu) for cpu in result["cpu_speed"]} == {*cpus} - {CPU}
    assert all(0 < speed["mean_per_ms"] <= speed["fastest_per_ms"] for speed in result["cpu_speed"].values())


@pytest.mark.parametrize(("tx", "rx"), [("xdp", "af_packet"), ("af_packet", "xdp")])
@pytest.mark.parametrize("version", [4, 6])
def test_each_way_understands_the_other(wire: Net, tx: str, rx: str, version: int) -> None:
    """Each path finds intact, to the last byte, what the other sends in a mix of sizes; the counts agree."""
    generator = Generator(tx, rx)
    try:
        ports = open_ports(generator, wire)
        addresses = {} if version == 4 else {"src": "2001:2::2", "dst": "2001:2:0:8000::2"}
        frames = [
            {"size": size, "weight": weight} for size, weight in ((84, 7), (85, 1), (594, 4), (1518, 1))
        ]
        mixed = stream(ports, frames=frames, ip_version=version, ports=100, networks=7, **addresses)
        [one] = trial(generator, mixed)["streams"]
    finally:
        generator.close()
    assert one["rx_frames"] == one["tx_frames"] > 500
    assert (one["lost"], one["duplicated"], one["reordered"], one["corrupted"]) == (0, 0, 0, 0)
    assert sum(part["rx_frames"] for part in one["slices"]) == one["rx_frames"]


def test_auto_takes_xdp_where_the_other_end_has_napi(wire: Net) -> None:
    """A veth whose other end has none is sent to by AF_PACKET, and the port's note says how to change that."""
    generator = Generator()
    try:
        with_napi = open_ports(generator, wire)
        wire.inside("t2", "ethtool -K a1 gro off")
        # The receiving program of a1 gives it NAPI, whatever ethtool says: without it the link has none.
        generator.paths["rx"] = "af_packet"
        without = open_ports(generator, wire)
        generator.paths["tx"] = "xdp"
        west = {"name": "west", "interface": "a0", "netns": wire.path("t1"), "tx": "xdp", "rx": "af_packet"}
        refused = generator.ask({"cmd": "open", "ports": [west]})
    finally:
        generator.close()
    assert (with_napi["west"]["sender"], with_napi["east"]["receiver"]) == ("xdp live frames", "xdp, native")
    assert without["west"]["sender"].startswith("af_packet")
    assert any("gro on" in note for note in without["west"]["notes"])
    assert "gro on" in refused["hint"]


def test_histogram_is_readable_elsewhere(generator: Generator, wire: Net) -> None:
    """The latency histogram decodes with the Python library and holds every received frame."""
    ports = open_ports(generator, wire)
    [one] = trial(generator, stream(ports))["streams"]
    histogram = HdrHistogram.decode(one["latency_us"]["hdr"])
    assert histogram.get_total_count() == one["rx_frames"]
    assert histogram.get_max_value() / 1e3 == pytest.approx(one["latency_us"]["max"], rel=0.01)


def test_both_ways_imix_many_flows(generator: Generator, router: Net) -> None:
    """Both directions, three sizes, 256 networks × 4 ports through a router: all frames arrive."""
    router.inside("dut", "ip route add 10.0.0.0/8 via 198.19.0.2 dev r1")
    ports = open_ports(generator, router)
    for address, side, device in (("198.18.0.2", "west", "r0"), ("198.19.0.2", "east", "r1")):
        router.inside("dut", f"ip neigh replace {address} lladdr {ports[side]['mac']} dev {device}")
    r0, r1 = (json.loads(router.inside("dut", f"ip -j link show {r}"))[0]["address"] for r in ("r0", "r1"))
    imix = [{"size": 64, "weight": 7}, {"size": 594, "weight": 4}, {"size": 1518, "weight": 1}]
    result = trial(
        generator,
        stream(ports, dst_mac=r0, dst="10.0.0.9", networks=256, ports=4, frames=imix),
        back(ports, dst_mac=r1, frames=imix),
    )
    for one in result["streams"]:
        assert one["rx_frames"] == one["tx_frames"] > 0
        assert one["corrupted"] == one["lost"] == 0


def test_ipv6_and_burst(generator: Generator, wire: Net) -> None:
    """A burst of IPv6 frames leaves back to back, stops at its length and arrives whole."""
    ports = open_ports(generator, wire)
    six = {"ip_version": 6, "src": "2001:2::2", "dst": "2001:2:0:8000::2", "networks": 9}
    result = trial(generator, stream(ports, **six, frames=[{"size": 84}], burst_frames=777))
    [one] = result["streams"]
    assert (one["tx_frames"], one["rx_frames"], one["lost"]) == (777, 777, 0), result


SEEN = """table netdev t {{
  set seen {{ type {kind} . {kind}; flags dynamic; size 65535; }}
  chain c {{
    type filter hook ingress device {port} priority 0
    update @seen {{ {ip} saddr . {ip} daddr }}
  }}
}}
"""


@pytest.mark.parametrize(
    ("version", "bits", "size", "src", "dst"),
    [(4, 26, 64, "198.18.0.2", "198.19.0.2"), (6, 62, 84, "2001:2:0:1000::2", "2001:2:0:2000::2")],
)
def test_frames_are_spread_over_the_tunnels_both_ways(
    generator: Generator, wire: Net, version: int, bits: int, size: int, src: str, dst: str
) -> None:
    """1000 tunnels: the kernel sees 1000 pairs of addresses, subnet i with subnet i, each host's part kept."""
    generator.paths["rx"] = "af_packet"  # an XDP program would take the frames before nftables sees them
    for name, port in (("t1", "a0"), ("t2", "a1")):
        wire.nft(
            name,
            SEEN.format(
                kind="ipv4_addr" if version == 4 else "ipv6_addr",
                port=port,
                ip="ip" if version == 4 else "ip6",
            ),
        )
    ports = open_ports(generator, wire)
    both = {
        "ip_version": version, "tunnels": 1000, "tunnel_bits": bits, "frames": [{"size": size}], "ports": 3,
    }  # fmt: skip
    there, here = stream(ports, src=src, dst=dst, **both), back(ports, src=dst, dst=src, **both)
    result = trial(generator, there, here, duration_s=2.0)  # at least 1,000 of 10,000 frames leave
    for one in result["streams"]:
        assert one["rx_frames"] == one["tx_frames"] > 1000
        assert one["corrupted"] == one["lost"] == 0
    step = 1 << ((32 if version == 4 else 128) - bits)
    west, east = (int(ipaddress.ip_address(address)) for address in (src, dst))
    for name, first, second in (("t2", west, east), ("t1", east, west)):
        listed = json.loads(wire.inside(name, "nft -j list set netdev t seen"))["nftables"][-1]["set"]["elem"]
        pairs = {tuple(int(ipaddress.ip_address(a)) for a in opened["concat"]) for opened in listed}
        assert pairs == {(first + i * step, second + i * step) for i in range(1000)}


def test_duplicates_are_duplicates(generator: Generator, router: Net) -> None:
    """A router whose port sends every frame twice: each is received once and duplicated once, none lost."""
    router.nft(
        "dut",
        'table netdev t { chain c { type filter hook egress device "r1" priority 0; '
        'meta mark != 7 meta mark set 7 dup to "r1"; }\n}\n',
    )
    ports = open_ports(generator, router)
    [one] = trial(generator, through(router, ports))["streams"]
    assert one["rx_frames"] == one["duplicated"] == one["tx_frames"] > 0
    assert (one["lost"], one["corrupted"], one["reordered"]) == (0, 0, 0)


def test_drops_are_lost(generator: Generator, router: Net) -> None:
    """A router that drops one frame in ten: a tenth is lost, in episodes of one frame, at the right times."""
    ports = open_ports(generator, router)
    router.nft(
        "dut",
        "table ip t { chain c { type filter hook forward priority 0; numgen inc mod 10 == 3 drop; }\n}\n",
    )
    result = trial(generator, through(router, ports))
    [one] = result["streams"]
    assert one["lost"] == (one["tx_frames"] + 6) // 10 > 0  # frames 3, 13, …
    assert one["rx_frames"] == one["tx_frames"] - one["lost"]
    assert (one["duplicated"], one["reordered"], one["corrupted"]) == (0, 0, 0)
    assert [episode["frames"] for episode in one["loss_episodes"]] == [1] * one["lost"]
    times = [episode["from_ns"] for episode in one["loss_episodes"]]
    assert times == sorted(times)
    assert result["start_ns"] <= times[0] <= times[-1] <= result["last_tx_ns"]


def test_changed_bytes_are_corruption(generator: Generator, router: Net) -> None:
    """A router that overwrites two payload bytes of every tenth frame: a tenth is corrupted, none lost."""
    ports = open_ports(generator, router)
    router.nft(
        "dut",
        "table ip t { chain c { type filter hook forward priority 0; "
        "numgen inc mod 10 == 3 @th,224,16 set 0x1234; }\n}\n",
    )
    [one] = trial(generator, through(router, ports, frames=[{"size": 128}]))["streams"]
    assert one["corrupted"] == (one["tx_frames"] + 6) // 10 > 0  # frames 3, 13, …
    assert (one["lost"], one["duplicated"]) == (0, 0)
    assert one["rx_frames"] == one["tx_frames"] - one["corrupted"]


def through(router: Net, ports: dict[str, dict[str, Any]], **more: object) -> dict[str, Any]:
    """West to east by way of the router, whose neighbours are set by hand."""
    router.inside("dut", f"ip neigh replace 198.19.0.2 lladdr {ports['east']['mac']} dev r1")
    [r0] = json.loads(router.inside("dut", "ip -j link show r0"))
    return stream(ports, dst_mac=r0["address"], **more)


FORWARDER = """
import socket, sys
out, into = (socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) for _ in range(2))
out.bind((sys.argv[2], 0))
into.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)  # SO_RCVBUFFORCE: what comes while Python has no CPU
into.bind((sys.argv[1], 3))
held, n = None, 0
print("ready", flush=True)
while True:
    frame, address = into.recvfrom(2048)
    if address[2] == 4:
        continue
    n += 1
    if sys.argv[3] == "swap" and n % 10 == 0:
        held = frame
        continue
    out.send(frame)
    if sys.argv[3] == "double" and n % 10 == 0:
        out.send(frame)
    if held is not None:
        out.send(held)
        held = None
"""


@pytest.mark.parametrize(("fault", "reordered", "duplicated"), [("swap", 50, 0), ("double", 0, 50)])
def test_forwarder_faults_are_counted(
    generator: Generator, router: Net, fault: str, reordered: int, duplicated: int
) -> None:
    """A forwarder that swaps (or doubles) each tenth frame: one reordered (or duplicated) frame in ten."""
    router.inside("dut", "sysctl -qw net.ipv4.ip_forward=0")
    inside = ["ip", "netns", "exec", f"esp-{router.tag}-dut"]
    for _ in range(ATTEMPTS):
        with subprocess.Popen(
            [*inside, sys.executable, "-c", FORWARDER, "r0", "r1", fault], stdout=subprocess.PIPE, text=True
        ) as forwarder:
            try:
                assert forwarder.stdout is not None
                assert forwarder.stdout.readline() == "ready\n"
                ports = open_ports(generator, router)
                # One frame more than a multiple of ten, so that no held frame stays behind.
                asked = stream(ports, rate_fps=501.0)
                # Python may be kept from its CPU: its frames are waited for.
                result = trial(generator, asked, duration_s=1.0, residue_s=60.0, quiet_s=0.5)
                one = result["streams"][0]
            finally:
                forwarder.kill()
        if not one["unsent"]:
            break
    assert one["tx_frames"] == one["rx_frames"] == 501
    assert (one["reordered"], one["duplicated"]) == (reordered, duplicated)
    assert (one["lost"], one["corrupted"]) == (0, 0)


@pytest.mark.alone
def test_deadline_reports_what_was_not_sent(generator: Generator, wire: Net) -> None:
    """A rate no machine reaches: sending ends at the bound, the rest is unsent, the load is what left until then."""
    ports = open_ports(generator, wire)
    result = trial(generator, stream(ports, rate_fps=40e6), duration_s=0.3, residue_s=0.5)
    [one] = result["streams"]
    assert one["unsent"] > 0
    assert one["tx_frames"] + one["unsent"] == one["intended_frames"] == 12_000_000
    assert one["duration_s"] >= 1.5 * 0.3 + 0.5 - 0.001
    assert one["departure_fps"] == pytest.approx(one["tx_frames"] / one["duration_s"], rel=0.1)


@pytest.mark.alone
@pytest.mark.parametrize("generator", slow_but(["xdp"], WAYS), indirect=True)
def test_a_sender_that_was_stopped_sends_all_the_same(generator: Generator, wire: Net) -> None:
    """The stall is listed as long as it was, no frame is unsent; one at the end, or within the leeway, takes longer.

    Every way has the first case; what makes the difference in the others is the same for all ways.
    """
    ports = open_ports(generator, wire)
    cases = [(0.3, 0.0, 1.999), (1.7, 0.0, 2.02), (0.3, 0.1, 2.09)]

    def stop() -> None:
        generator.process.send_signal(signal.SIGSTOP)
        time.sleep(0.1)
        generator.process.send_signal(signal.SIGCONT)

    # 100 ms are made good in 1,000 ms, at a tenth more than the rate.
    for after_s, leeway, least_s in cases if generator.paths["tx"] == "xdp" else cases[:1]:
        timer = threading.Timer(after_s, stop)
        timer.start()
        result = trial(generator, stream(ports, rate_fps=4000.0, leeway=leeway), duration_s=2.0)
        timer.join()
        [one] = result["streams"]
        assert (one["tx_frames"], one["unsent"]) == (8000, 0)
        assert one["duration_s"] > least_s
        assert one["departure_fps"] == pytest.approx(one["tx_frames"] / one["duration_s"], rel=0.01)
        longest = max(one["tx_stalls"], key=lambda stall: stall["ms"])
        assert longest["ms"] > 99
        # A pause that only puts off need not be made good.
        assert (longest["until_ns"] - longest["at_ns"] < 2e6 * longest["ms"]) == (leeway > 0)
        assert all(
            stall["at_ns"] + stall["ms"] * 1e6 <= stall["until_ns"] + 1e3 for stall in one["tx_stalls"]
        )


def test_frames_come_in_by_any_queue(generator: Generator, net: Net) -> None:
    """Many flows through four queues of the receiving port lose nothing, or it is refused with advice."""
    for name in ("t1", "dut", "t2"):
        net.namespace(name)
    net.pair("t1", "a0", "dut", "r0")
    queues = "numrxqueues 4 numtxqueues 4"
    one, two = f"esp-{net.tag}-dut", f"esp-{net.tag}-t2"
    sh(f"ip link add r1 netns {one} {queues} type veth peer name a1 netns {two} {queues}")
    for name, end in (("dut", "r1"), ("t2", "a1")):
        net.inside(name, f"ethtool -K {end} gro on")
        sh(f"ip -n esp-{net.tag}-{name} link set {end} up")
    net.inside("dut", "ip address add 198.18.0.1/16 dev r0")
    net.inside("dut", "ip address add 198.19.0.1/16 dev r1")
    net.inside("dut", "sysctl -qw net.ipv4.ip_forward=1")
    if generator.paths["rx"] == "af_xdp":
        port = {"name": "east", "interface": "a1", "netns": net.path("t2"), **generator.paths}
        refused = generator.ask({"cmd": "open", "ports": [port]})
        assert "a1 receives by 4 queues" in refused["message"]
        assert "ethtool -L a1 rx 1" in refused["hint"]
        net.inside("dut", "ethtool -L r1 tx 1")
        net.inside("t2", "ethtool -L a1 rx 1")
    ports = open_ports(generator, net)
    for name, address, gateway in (
        ("west", "198.18.0.2", "198.18.0.1"), ("east", "198.19.0.2", "198.19.0.1")
    ):  # fmt: skip
        neighbour = generator.ask(
            {"cmd": "resolve", "port": name, "address": address, "gateway": gateway, "timeout_s": 60.0}
        )
        ports[name]["hop"] = neighbour["mac"]
    result = trial(generator, stream(ports, rate_fps=20_000.0, ports=64, dst_mac=ports["west"]["hop"]))
    [one_way] = result["streams"]
    assert one_way["intended_frames"] == one_way["tx_frames"] + one_way["unsent"] == 10_000
    assert one_way["rx_frames"] + one_way["tx_refused"] == one_way["tx_frames"] > 1000
    assert (one_way["duplicated"], one_way["corrupted"]) == (0, 0)
    if generator.paths["rx"] == "xdp":
        lines = net.inside("t2", "ethtool -S a1").split("\n")
        used = [
            line for line in lines if "_xdp_packets" in line and "tx" not in line and not line.endswith(" 0")
        ]
        assert len(used) > 1, lines


def test_stop_ends_a_trial(generator: Generator, wire: Net) -> None:
    """`stop` ends a long trial at once, and the result says so and counts what was sent."""
    ports = open_ports(generator, wire)
    begin(generator, stream(ports), duration_s=60.0)
    result = generator.ask({"cmd": "stop"})
    assert result["stopped_early"] is True
    assert 0 < result["streams"][0]["tx_frames"] < 60 * 5000
    assert generator.ask({"cmd": "hello"})["protocol"] == 2


def test_initial_namespace_is_refused(generator: Generator) -> None:
    """Interfaces of the machine's own namespace are refused unless the user says they own the network."""
    port = {"name": "west", "interface": "lo", "netns": None}
    answer = generator.ask({"cmd": "open", "ports": [port]})
    assert answer["event"] == "error"
    assert "initial network namespace" in answer["message"]
    assert "i_own_this_network" in answer["hint"]
    allowed = generator.ask({"cmd": "open", "ports": [{**port, "i_own_this_network": True}]})
    assert "initial" not in allowed["message"]  # loopback is then refused for what it is
    assert "not an Ethernet interface" in allowed["message"]


@pytest.mark.parametrize(
    ("interface", "words"), [("nope", "there is no interface nope"), ("a0", "a0"), ("", "''")]
)
def test_bad_interface_is_named(generator: Generator, wire: Net, interface: str, words: str) -> None:
    """A missing, a downed and an impossible interface each get a message that names it."""
    wire.inside("t1", "ip link set a0 down")
    port = {"name": "west", "interface": interface, "netns": wire.path("t1")}
    answer = generator.ask({"cmd": "open", "ports": [port]})
    assert answer["event"] == "error"
    assert words in answer["message"]
    assert "port west" in answer["message"]
    assert ("is down" in answer["message"]) == (interface == "a0")


def test_link_that_goes_down_is_an_error(generator: Generator, wire: Net) -> None:
    """A port that goes down in mid-trial ends the trial with an error that names it."""
    ports = open_ports(generator, wire)
    begin(generator, stream(ports), duration_s=120.0)
    wire.inside("t1", "ip link set a0 down")
    answer = generator.hear()
    assert answer["event"] == "error", answer
    assert "a0" in answer["message"]


@pytest.mark.parametrize("generator", ["af_packet"], indirect=True)  # no way to the wire reads commands
@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '"x"',
        '{"cmd":"fly"}',
        '{"cmd":"open"}',
        '{"cmd":"open","ports":[]}',
        '{"cmd":"trial","id":"t","duration_s":1,"streams":[]}',
        '{"cmd":"resolve","port":"west","address":"x","gateway":"y"}',
        '{"cmd":"open","ports":[{"name":"west","interface":"a0","netns":"/nowhere","speed":1}]}',
    ],
)
def test_bad_commands_are_answered(generator: Generator, line: str) -> None:
    """Whatever comes in, one error comes out and the next command works."""
    answer = generator.ask(line)
    assert answer["event"] == "error"
    assert answer["message"]
    assert generator.ask({"cmd": "hello"})["event"] == "hello"


@pytest.mark.parametrize("generator", ["af_packet"], indirect=True)  # no way to the wire reads commands
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"frames": [{"size": 63}]}, "63"),
        ({"frames": [{"size": 9000}]}, "9000"),
        ({"frames": []}, "frames"),
        ({"rate_fps": 0}, "rate_fps"),
        ({"rate_fps": -1}, "rate_fps"),
        ({"networks": 257}, "257 networks"),
        ({"tunnels": 1025, "tunnel_bits": 26}, "1025 tunnels of /26 from 198.18.0.2 and 198.19.0.2"),
        ({"tunnels": 2}, "tunnel_bits is 0"),
        ({"tunnels": 2, "tunnel_bits": 24, "networks": 2}, "2 networks and 2 tunnels at once"),
        ({"ports": 0}, "0 ports"),
        ({"dst": "2001:2::2"}, "IPv4"),
        ({"to": "north"}, "north"),
        ({"dst_mac": "zz"}, "zz"),
    ],
)
def test_bad_streams_are_refused(generator: Generator, wire: Net, change: dict[str, Any], words: str) -> None:
    """A stream that makes no sense is refused with the value that is wrong."""
    ports = open_ports(generator, wire)
    command = {"cmd": "trial", "id": "t", "duration_s": 1.0, "streams": [stream(ports, **change)]}
    answer = generator.ask(command)
    assert answer["event"] == "error"
    assert words in answer["message"]


def test_gateway_is_resolved_and_answered(generator: Generator, router: Net) -> None:
    """ARP finds the router, and the router then finds the tester without any static neighbour."""
    ports = open_ports(generator, router)
    macs = {}
    for side, address, gateway in (
        ("west", "198.18.0.2", "198.18.0.1"),
        ("east", "198.19.0.2", "198.19.0.1"),
    ):
        asked = {"cmd": "resolve", "port": side, "address": address, "gateway": gateway, "timeout_s": 60.0}
        answer = generator.ask(asked)
        assert answer["event"] == "resolved", answer
        macs[side] = answer["mac"]
    [r0] = json.loads(router.inside("dut", "ip -j link show r0"))
    assert macs["west"] == r0["address"]
    streams = stream(ports, dst_mac=macs["west"]), back(ports, dst_mac=macs["east"])
    for one in trial(generator, *streams)["streams"]:
        assert one["rx_frames"] == one["tx_frames"]


def test_ipv6_gateway_is_resolved_and_answered(generator: Generator, router: Net) -> None:
    """The same by neighbour discovery."""
    router.inside("dut", "sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.all.forwarding=1")
    for device, address in (("r0", "2001:2::1/64"), ("r1", "2001:2:0:8000::1/64")):
        router.inside("dut", f"sysctl -qw net.ipv6.conf.{device}.disable_ipv6=0")
        router.inside("dut", f"ip address add {address} dev {device} nodad")
    ports = open_ports(generator, router)
    near, far = "2001:2::", "2001:2:0:8000::"
    macs = {}
    for side, net in (("west", near), ("east", far)):
        asked = {"cmd": "resolve", "port": side, "address": f"{net}2", "gateway": f"{net}1"}
        answer = generator.ask({**asked, "timeout_s": 60.0})
        assert answer["event"] == "resolved", answer
        macs[side] = answer["mac"]
    six = {
        "ip_version": 6,
        "src": f"{near}2",
        "dst": f"{far}2",
        "frames": [{"size": 84}],
        "dst_mac": macs["west"],
    }
    [one] = trial(generator, stream(ports, **six))["streams"]
    assert one["rx_frames"] == one["tx_frames"] > 0


def test_wrong_gateway_is_named(generator: Generator, router: Net) -> None:
    """A gateway that is not there gives an error with address, gateway and interface."""
    open_ports(generator, router)
    asked = {
        "cmd": "resolve",
        "port": "west",
        "address": "198.18.0.2",
        "gateway": "198.18.0.77",
        "timeout_s": 0.7,
    }
    answer = generator.ask(asked)
    assert answer["event"] == "error"
    for words in ("198.18.0.77", "198.18.0.2", "a0"):
        assert words in answer["message"]


@pytest.mark.alone
def test_another_runs_frames_are_foreign(wire: Net) -> None:
    """Two generators on one link with the same addresses: each counts only its own frames.

    Alone, since beside others the machine's kernel stood still while these two sent (decision 0047). Alone, and on one
    CPU beside other programs, the second often began only when the first had ended: so each has another CPU where there
    are two, and they do it again if they still did not send at the same time.
    """
    other_cpu = max(os.sched_getaffinity(0) - {CPU}, default=CPU)
    for _ in range(3):
        one, two = Generator(), Generator()
        try:
            ports = open_ports(one, wire)
            open_ports(two, wire, other_cpu)
            begin(one, stream(ports), duration_s=8.0)
            trial(two, stream(ports, rate_fps=1000.0), residue_s=0.5)
            result = one.ask({"cmd": "stop"})
        finally:
            one.close()
            two.close()
        [mine] = result["streams"]
        assert (mine["rx_frames"], mine["corrupted"]) == (mine["tx_frames"], 0)
        if foreign := result["ports"][1]["foreign"]:
            break
    assert foreign > 0


def test_generator_dies_with_its_parent() -> None:
    """Killing the process that started the generator, stdin still open elsewhere, ends it."""
    read, write = os.pipe()
    script = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.argv[1], 'serve'], stdin=int(sys.argv[2]))\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(native.binary()), str(read)],
        pass_fds=[read],
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        # Once it answers, it has told the kernel whose death is its own; its stdout is the parent's.
        os.write(write, b'{"cmd": "hello"}\n')
        assert json.loads(parent.stdout.readline())["pid"] == child
        os.kill(parent.pid, signal.SIGKILL)
    deadline = time.monotonic() + 60
    while alive(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.close(write)
    os.close(read)
    assert not alive(child)


def alive(pid: int) -> bool:
    """Say whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


ETHERNET = bytes(12)
IP = bytes.fromhex("4500000000000000 0011 0000 00000000 00000000".replace(" ", ""))
UDP = bytes.fromhex("13c413c400000000")
SYN = bytes.fromhex("0050c001 00000001 00000002 6002 0400 0000 0000 020405b4".replace(" ", ""))
HEADERS = {
    "VLAN 7, DSCP EF": ETHERNET + bytes.fromhex("810000070800") + IP[:1] + b"\xb8" + IP[2:] + UDP,
    "two tags": ETHERNET + bytes.fromhex("88a80005810000070800") + IP + UDP,
    "IPv4 options": ETHERNET + b"\x08\x00\x46" + IP[1:] + bytes.fromhex("94040000") + UDP,
    "TCP with an option": ETHERNET + b"\x08\x00" + IP[:9] + b"\x06" + IP[10:] + SYN,
}
HEADERS_V6 = {
    "TCP": ETHERNET + bytes.fromhex("86dd6f0000000000 0640".replace(" ", "")) + bytes(32) + SYN,
    "VLAN 7": ETHERNET + bytes.fromhex("8100000786dd600000000000 1140".replace(" ", "")) + bytes(32) + UDP,
}


@pytest.mark.parametrize(("version", "headers"), [(4, HEADERS), (6, HEADERS_V6)])
def test_other_headers_arrive_as_they_were_made(
    generator: Generator, wire: Net, version: int, headers: dict[str, bytes]
) -> None:
    """Mixed with each other in several sizes; every byte is checked, and the checksums the generator wrote."""
    ports = open_ports(generator, wire)
    addresses = {} if version == 4 else {"src": "2001:2::2", "dst": "2001:2:0:8000::2"}
    frames = [{"size": size, "header": number} for number in range(len(headers)) for size in (128, 129, 1518)]
    encoded = [base64.b64encode(header).decode() for header in headers.values()]
    asked = stream(
        ports,
        headers=encoded,
        frames=frames,
        ip_version=version,
        networks=3,
        ports=5,
        rate_fps=2400.0,
        **addresses,
    )
    result = trial(generator, asked)
    [one] = result["streams"]
    assert one["rx_frames"] == one["tx_frames"] > 100
    assert (one["lost"], one["duplicated"], one["reordered"], one["corrupted"]) == (0, 0, 0, 0)
    assert [port["foreign"] for port in result["ports"]] == [0, 0]


def test_other_headers_that_are_damaged_are_corruption(generator: Generator, router: Net) -> None:
    """A router changes one byte of the TCP header of every second frame: the checksum tells."""
    router.nft(
        "dut",
        "table ip t { chain c { type filter hook forward priority 0;"
        " numgen inc mod 2 == 0 @th,104,8 set 0x3; }; }",
    )
    generator.paths["rx"] = "af_packet" if generator.paths["rx"] == "af_xdp" else generator.paths["rx"]
    ports = open_ports(generator, router)
    hops = {}
    for port, address, gateway in (
        ("west", "198.18.0.2", "198.18.0.1"),
        ("east", "198.19.0.2", "198.19.0.1"),
    ):
        asked = {"cmd": "resolve", "port": port, "address": address, "gateway": gateway, "timeout_s": 60.0}
        hops[port] = generator.ask(asked)["mac"]
    header = base64.b64encode(HEADERS["TCP with an option"]).decode()
    [one] = trial(
        generator,
        stream(ports, dst_mac=hops["west"], headers=[header], frames=[{"size": 128}], rate_fps=1000.0),
    )["streams"]
    assert one["rx_frames"] + one["corrupted"] == one["tx_frames"] > 200
    assert abs(one["rx_frames"] - one["corrupted"]) <= 2


def test_two_cpus_send_one_stream_together(wire: Net) -> None:
    """Each sends its share with numbers of its own: nothing is lost, nothing counts as reordered, rates add up."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one CPU")
    generator = Generator("xdp", "xdp")
    try:
        generator.paths |= {"tx_cpus": [0, 1]}  # type: ignore[dict-item]
        ports = open_ports(generator, wire)
        shared = stream(ports, rate_fps=10001.0, networks=16, ports=4)
        [one] = trial(generator, shared, duration_s=1.0)["streams"]
        [burst] = trial(generator, stream(ports, rate_fps=None, burst_frames=1001))["streams"]
    finally:
        generator.close()
    assert one["intended_frames"] == 10001
    assert one["tx_frames"] + one["unsent"] == 10001
    assert one["rx_frames"] == one["tx_frames"] > 1000
    assert (one["lost"], one["duplicated"], one["reordered"], one["corrupted"]) == (0, 0, 0, 0)
    assert sum(part["rx_frames"] for part in one["slices"]) == one["rx_frames"]
    assert one["duration_s"] > 0.99  # as long as it took
    assert burst["tx_frames"] == 1001


@pytest.mark.alone
@pytest.mark.parametrize("way", ["xdp", pytest.param("af_packet", marks=pytest.mark.slow)])
def test_a_million_flows(wire: Net, tmp_path: Path, way: str) -> None:
    """256 networks × 4,096 ports: no flow comes a second time before all have been sent, and all are counted."""
    file = tmp_path / "flows.pcap"
    command = ["ip", "netns", "exec", f"esp-{wire.tag}-t2", "tcpdump", "-i", "a1", "-Q", "in", "-s", "42",
               "-B", "262144", "-w", str(file), "udp port 7"]  # fmt: skip
    generator = Generator(way, "af_packet")
    capture = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert capture.stderr is not None
    try:
        for line in capture.stderr:
            if "listening" in line:
                break
        ports = open_ports(generator, wire)
        many = stream(ports, src_port=20000, networks=256, ports=4096, rate_fps=250_000.0)
        [one] = trial(generator, many, duration_s=4.1, residue_s=0.5)["streams"]
    finally:
        capture.terminate()
        capture.wait(timeout=120)
        capture.stderr.close()
        generator.close()
    assert one["lost"] == one["tx_refused"]
    assert one["corrupted"] == one["duplicated"] == 0
    recorded, length = file.read_bytes(), 16 + 42
    frames = (recorded[at + 16 : at + length] for at in range(24, len(recorded), length))
    flows = [frame[30:36] for frame in frames]  # destination address and source port
    assert len(flows) > 0.9 * one["rx_frames"]
    assert len(set(flows)) == len(flows)


@pytest.mark.alone
def test_a_flood_leaves_nothing_in_the_ports_own_rings(wire: Net) -> None:
    """AF_XDP takes more than its driver sends at once: every frame it counts as sent left when the trial ends."""
    generator = Generator("af_xdp", "xdp")
    try:
        ports = open_ports(generator, wire)
        [one] = trial(generator, stream(ports, rate_fps=None), duration_s=0.5, residue_s=0.5)["streams"]
    finally:
        generator.close()
    [link] = json.loads(wire.inside("t1", "ip -j -s link show a0"))
    refused = link["stats64"]["tx"]["dropped"]
    assert one["tx_frames"] > 1000
    assert one["tx_frames"] == one["rx_frames"] + refused


def test_what_the_driver_has_no_room_for_was_not_sent(wire: Net) -> None:
    """The kernel drops live frames above the MTU, which was lowered meanwhile, without a word: no DUT lost them."""
    generator = Generator("xdp", "xdp")
    try:
        ports = open_ports(generator, wire)
        wire.inside("t1", "ip link set a0 mtu 1000")
        frames = [{"size": 64, "weight": 1}, {"size": 1518, "weight": 1}]
        result = trial(generator, stream(ports, frames=frames))
    finally:
        generator.close()
    [one] = result["streams"]
    [note] = [note for note in result["notes"] if "never left" in note]
    vanished = int(note.split()[2])
    assert vanished == pytest.approx((one["tx_frames"] + vanished) / 2, abs=50)
    assert one["unsent"] >= vanished
    assert one["tx_frames"] == one["rx_frames"] == 2500 - one["unsent"] > 0
    assert one["lost"] == 0
