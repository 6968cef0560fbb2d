# SPDX-License-Identifier: Apache-2.0
"""Every kind of traffic profile, sent by the Scapy generator over a pair of veth ports and read by tcpdump.

tester namespace: west ═══ east
"""

from __future__ import annotations

import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Raw
from scapy.utils import rdpcap, wrpcap

from espbench.errors import EspbenchError
from espbench.generators.base import Offered
from espbench.generators.native import NativeGenerator
from espbench.generators.scapy import ScapyGenerator
from espbench.measure.inputs.traffic import Traffic
from espbench.plan import ResolvedPlan, cases, load_plan
from espbench.plan.traffic.traffic_profiles import rfc2544_frame
from espbench.platforms import placement
from espbench.platforms.base import Testbed
from espbench.platforms.netns import NetnsPlatform
from espbench.terms import WITH_FIGURE
from espbench.this_machine.registry import Registry
from support.gateways.addresses import GATEWAY_TO_GATEWAY
from support.gateways.boxes import RouterBox
from support.plans import plan_text, quick
from support.runs import ENDED, espbench, rows

pytestmark = [pytest.mark.root, pytest.mark.untimed]

BINARY = Path(__file__).parents[3] / "traffic" / "target" / "release" / "espbench-traffic"
FRAMES, RATE = 60, 200.0
OFFERS = 5  # tries
RESIDUE_S, PATIENCE_S = 30.0, 60.0  # neither is waited for if all arrive


@dataclass
class AttachedTester:
    """An open Scapy generator on a pair of ports, and a folder for plans and recordings."""

    generator: ScapyGenerator
    bed: Testbed
    folder: Path
    registry: Registry

    def plan(self, profile: str | dict[str, Any]) -> ResolvedPlan:
        """A plan with one of espbench's profiles, or one written for it. Any topology: nothing runs it."""
        if isinstance(profile, dict):
            text = yaml.safe_dump({"name": "mine", "description": "d", **profile})
            (self.folder / "mine.yaml").write_text(text)
        four = [("west", "198.18.0.", "24"), ("east", "198.19.0.", "24")]
        six = [("west", "2001:2:0:1000::", "64"), ("east", "2001:2:0:2000::", "64")]
        for ends in (four, six):
            plan = {
                "name": "p", "topology": "external", "tests": [{"throughput": {}}], "generator": "scapy",
                "traffic": profile if isinstance(profile, str) else "./mine.yaml",
                "ports": {
                    side: {"netns": "n", "interface": side, "address": f"{net}2/{bits}", "gateway": f"{net}1"}
                    for side, net, bits in ends
                },
            }  # fmt: skip
            path = self.folder / "plan.yaml"
            path.write_text(yaml.safe_dump(plan))
            try:
                return load_plan(path)
            except EspbenchError:
                if ends is six:
                    raise
        raise AssertionError

    def offer(self, profile: str | dict[str, Any], direction: Any = "one-way") -> tuple[Offered, list[Any]]:
        """FRAMES frames of the plan's first case; what was counted, and what tcpdump saw on the east port.

        A sender that had no CPU until its time was over, on a busy machine, sends again.
        """
        plan = self.plan(profile)
        case = cases(plan)[0]
        frame = rfc2544_frame()
        traffic = Traffic(
            case.sizes, case.ip_version, direction, networks=plan.plan.flows.networks, ports=plan.plan.flows.ports,
            ttl=frame.ttl, src_port=frame.udp_source, dst_port=frame.udp_destination, headers=case.headers,
        )  # fmt: skip
        hops = {name: port.next_hop_mac or "" for name, port in self.bed.ports.items()}
        for _ in range(OFFERS):
            with self.seeing() as seen:
                streams = traffic.streams(self.bed, hops, RATE * traffic.directions)
                offered = self.generator.offer(streams, FRAMES / RATE, RESIDUE_S, quiet_s=0.3)
                seen.least = sum(s.rx_frames for s in offered.streams if s.to == "east")
            if all(s.tx_frames > FRAMES / 2 for s in offered.streams):
                break
        return offered, seen.frames

    def seeing(self) -> Seen:
        east = self.bed.ports["east"]
        assert east.netns is not None
        return Seen(self.folder / f"{secrets.token_hex(4)}.pcap", east.netns, east.interface)


class Seen:
    """Collects what comes in on a port while the context lasts, and awaits `least` frames at its end."""

    least = 1

    def __init__(self, file: Path, netns: str, interface: str) -> None:
        self._file = file
        self._command = [
            "ip", "netns", "exec", Path(netns).name, "tcpdump", "-i", interface, "-Q", "in", "-U",
            "--immediate-mode", "-w", str(file),
        ]  # fmt: skip
        self.frames: list[Any] = []

    def __enter__(self) -> Seen:
        self._process = subprocess.Popen(self._command, stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        while "listening on" not in (line := self._process.stderr.readline()):
            assert line, "tcpdump ended"
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while kind is None and self._written() < self.least and time.monotonic() < deadline:
            time.sleep(0.05)
        self._process.terminate()
        assert self._process.stderr is not None
        self._process.stderr.close()
        self._process.wait(PATIENCE_S)
        self.frames = list(rdpcap(str(self._file)))

    def _written(self) -> int:
        """Count the frames that are whole in the file."""
        data, at, frames = self._file.read_bytes(), 24, 0
        while at + 16 <= len(data):
            at += 16 + int.from_bytes(data[at + 8 : at + 12], sys.byteorder)
            frames += at <= len(data)
        return frames


@pytest.fixture
def tester(tmp_path: Path) -> Iterator[AttachedTester]:
    with Registry(secrets.token_hex(3)) as registry:
        bed = NetnsPlatform(GATEWAY_TO_GATEWAY).calibration_bed(registry, placement.choose())
        west, east = bed.ports["west"], bed.ports["east"]
        bed.ports = {
            "west": replace(west, next_hop_mac=east.mac), "east": replace(east, next_hop_mac=west.mac)
        }  # fmt: skip
        generator = ScapyGenerator(registry, tmp_path / "generator.log")
        generator.open(list(bed.ports.values()), [])
        yield AttachedTester(generator, bed, tmp_path, registry)
        generator.close()


def all_arrived(offered: Offered) -> None:
    """Each frame once and intact; a busy machine may have kept the sender from the last ones."""
    for s in offered.streams:
        assert s.tx_frames + s.unsent == FRAMES
        assert s.rx_frames == s.tx_frames > FRAMES / 2
        assert (s.lost, s.duplicated, s.reordered, s.corrupted) == (0, 0, 0, 0)
        assert s.latency_us is not None
    assert [p.rx_overrun for p in offered.ports] == [0, 0]


def sizes(seen: list[Any]) -> list[int]:
    """Return the sizes of frames, with FCS."""
    return [len(frame) + 4 for frame in seen]


def in_order(seen: list[Any], expected: list[int]) -> None:
    """The sizes come in exactly this cycle from the first frame on."""
    assert sizes(seen) == (expected * FRAMES)[: len(seen)]


@pytest.mark.alone
def test_rfc2544_frames(tester: AttachedTester) -> None:
    """They are as appendix C.2.6.4 has them, both ways at once."""
    offered, seen = tester.offer("rfc2544", "both-ways")
    all_arrived(offered)
    assert {(len(f) + 4, f[IP].ttl, f[UDP].sport, f[UDP].dport) for f in seen} == {(64, 10, 49184, 7)}


def test_mixes(tester: AttachedTester) -> None:
    """Sizes come in the proportions of each mix, over IPv4 and IPv6."""
    for name, weights in (
        ("simple-imix", {64: 7, 594: 4, 1518: 1}),
        ("csit-imix", {64: 7, 570: 4, 1518: 1}),
        ("csit-imix-ipv6", {84: 7, 570: 4, 1518: 1}),
    ):
        offered, seen = tester.offer(name)
        all_arrived(offered)
        whole = len(seen) // 12 * 12
        assert {s: sizes(seen[:whole]).count(s) for s in weights} == {
            s: w * whole // 12 for s, w in weights.items()
        }
        assert (IPv6 in seen[0]) == (name == "csit-imix-ipv6")


def test_a_genome_keeps_its_exact_order(tester: AttachedTester) -> None:
    """The example of RFC 6985, and one with a letter of its own."""
    offered, seen = tester.offer("imix-genome")
    all_arrived(offered)
    in_order(seen, [64, 64, 64, 1280, 1518])
    offered, seen = tester.offer({"genome": "aaaeeeefA", "custom": {"A": 777}})
    all_arrived(offered)
    in_order(seen, [64, 64, 64, 1024, 1024, 1024, 1024, 1280, 777])


def test_calls(tester: AttachedTester) -> None:
    """G.711 and G.729 in packets of 20 ms, DSCP EF."""
    for name, size in (("voip-g711", 218), ("voip-g729", 78)):
        offered, seen = tester.offer(name)
        all_arrived(offered)
        assert {(len(f) + 4, f[IP].tos, f[UDP].dport) for f in seen} == {(size, 184, 16384)}


def test_256_networks(tester: AttachedTester) -> None:
    """The third octet counts up frame by frame."""
    offered, seen = tester.offer("networks-256")
    all_arrived(offered)
    assert [f[IP].dst for f in seen] == [f"198.19.{i}.2" for i in range(len(seen))]


def test_ipv6(tester: AttachedTester) -> None:
    """The smallest IPv6 frame, of 84 B, arrives."""
    offered, seen = tester.offer("ipv6")
    all_arrived(offered)
    assert {(len(f) + 4, f[IPv6].hlim, f[IPv6].nh) for f in seen} == {(84, 10, 17)}


def test_vlan(tester: AttachedTester) -> None:
    """Tagged on the wire; a receiver that strips the tag changes nothing about the frame."""
    for name, tag in (("vlan", (2, 0)), ("priority-tag", (0, 5))):
        offered, seen = tester.offer(name)
        all_arrived(offered)
        assert {(f[Dot1Q].vlan, f[Dot1Q].prio, len(f) + 4) for f in seen} == {(*tag, 68)}


def test_templates(tester: AttachedTester) -> None:
    """Each part of a mix with headers of its own: TCP with options, IPv4 options."""
    offered, seen = tester.offer(
        {
            "mix": [
                {"size": 128, "weight": 1, "template": "Ether()/IP()/TCP(dport=443, flags='PA', options=[('MSS', 9)])"},
                {"size": 256, "weight": 1, "template": "Ether()/IP(options=[IPOption_Router_Alert()])/UDP(dport=99)"},
            ]
        }
    )  # fmt: skip
    all_arrived(offered)
    in_order(seen, [128, 256])
    assert {(f[TCP].dport, str(f[TCP].flags), f[TCP].options[0]) for f in seen[::2]} == {
        (443, "PA", ("MSS", 9))
    }
    assert {(f[UDP].dport, f[IP].ihl) for f in seen[1::2]} == {(99, 6)}


def test_a_recording_is_replayed_with_addresses_of_the_tester(tester: AttachedTester) -> None:
    """Headers, sizes and order are the recording's; nobody the recorded frames were for gets any."""
    macs = {"src": "02:00:00:00:00:aa", "dst": "02:00:00:00:00:bb"}
    addresses = {"src": "203.0.113.5", "dst": "203.0.113.9"}
    recorded = [
        Ether(**macs) / IP(**addresses, tos=8, ttl=200) / TCP(sport=33000, dport=443, flags="S"),  # type: ignore[arg-type]
        Ether(**macs) / ARP(),  # type: ignore[arg-type]
        Ether(**macs) / IP(**addresses) / UDP(sport=5000, dport=53) / Raw(bytes(500)),  # type: ignore[arg-type]
        Ether(**macs) / IP(**addresses) / UDP(sport=5000, dport=53) / Raw(bytes(100)),  # type: ignore[arg-type]
    ]
    wrpcap(str(tester.folder / "recorded.pcap"), recorded)
    offered, seen = tester.offer({"pcap": "./recorded.pcap"}, "both-ways")
    all_arrived(offered)
    in_order(seen, [76, 546, 146])
    west, east = tester.bed.ports["west"], tester.bed.ports["east"]
    ours = (west.mac, east.mac, west.address[4], east.address[4])
    assert {(f.src, f.dst, f[IP].src, f[IP].dst) for f in seen} == {ours}
    assert {(f[IP].tos, f[IP].ttl, f[TCP].sport, str(f[TCP].flags)) for f in seen[::3]} == {
        (8, 10, 33000, "S")
    }


def test_the_gateway_is_asked_and_answered_in_its_vlan(tester: AttachedTester) -> None:
    """A box whose port is a VLAN interface hears no untagged question. Both ends are the generator's here."""
    tags = bytes.fromhex("81000002")
    with pytest.raises(EspbenchError, match=r"gateway 10\.0\.0\.1 did not answer 10\.0\.0\.2"):
        tester.generator.resolve("east", "10.0.0.2", "10.0.0.1", 0.1, tags)  # it answers from now on
    with tester.seeing() as seen:
        neighbour = tester.generator.resolve("west", "10.0.0.1", "10.0.0.2", PATIENCE_S, tags)
    interface = tester.bed.ports["east"].interface
    netns = Path(tester.bed.ports["east"].netns or "").name
    shown = subprocess.run(
        ["ip", "-n", netns, "link", "show", interface], capture_output=True, text=True, check=True
    )
    assert neighbour in shown.stdout
    assert {(f[Dot1Q].vlan, f[ARP].pdst) for f in seen.frames if ARP in f} == {(2, "10.0.0.2")}


# Frames are compared by their places, so none may be left unsent for want of a CPU.
@pytest.mark.alone
@pytest.mark.needs("generator")
@pytest.mark.parametrize(
    "traffic",
    [
        Traffic(((64, 7), (594, 4), (1518, 1)), 4, "one-way", networks=5, ports=3, ttl=10),
        Traffic(((64, 1), (64, 1), (1280, 1), (128, 1)), 4, "one-way", tunnels=7, tunnel_bits=24, dont_fragment=True),
        Traffic(((84, 1), (1518, 2)), 6, "one-way", networks=3, ports=2, ttl=10),
    ],
    ids=["flows", "tunnels and a sequence", "ipv6"],
)  # fmt: skip
def test_both_generators_send_the_same_frames(tester: AttachedTester, traffic: Traffic) -> None:
    """Two implementations that share no code: frame by frame the same bytes but key, time and checksum."""
    ports = list(tester.bed.ports.values())
    native = NativeGenerator(tester.registry, tester.folder / "native.log", tx="af_packet", rx="af_packet")
    hops = {name: port.next_hop_mac or "" for name, port in tester.bed.ports.items()}
    sent = []
    for generator in (tester.generator, native):
        generator.open(ports, [])
        with tester.seeing() as seen:
            streams = traffic.streams(tester.bed, hops, RATE)
            offered = generator.offer(streams, FRAMES / RATE, RESIDUE_S, quiet_s=0.3)
            seen.least = offered.streams[0].rx_frames
        all_arrived(offered)
        sent.append([bytes(frame) for frame in seen.frames])
    native.close()
    assert len(sent[0]) > FRAMES / 2
    payload = 14 + (20 if traffic.ip_version == 4 else 40) + 8
    for mine, theirs in zip(*sent, strict=False):
        for frame in (mine, theirs):
            packet = Ether(frame)
            del packet[UDP].chksum
            assert bytes(packet) == frame
        assert mine[: payload - 2] + mine[payload + 18 :] == theirs[: payload - 2] + theirs[payload + 18 :]


@pytest.mark.alone
def test_a_run_with_a_profile_beside_its_plan(tmp_path: Path) -> None:
    """Calibration, search and report through a box; with other frames it may not be resumed."""
    (tmp_path / "mine.yaml").write_text(
        "name: odd\ndescription: d\nsizes: [150]\n"
        "template: Ether()/IP(tos=1)/TCP(dport=80, flags='A', options=[('Timestamp', (1, 2))])\n"
    )
    with RouterBox() as box:
        plan = box.plan(throughput=quick()) | {"generator": "scapy", "traffic": "./mine.yaml"}
        del plan["frame_sizes"]
        file = tmp_path / "plan.yaml"
        file.write_text(yaml.safe_dump(plan))
        done = espbench("run", "--no-report", file, "--out", tmp_path / "runs")
    assert done.returncode in ENDED, done.stderr
    (run,) = (tmp_path / "runs").iterdir()
    (row,) = rows(run)
    assert row["frame_size"] == "150"
    assert row["status"] in WITH_FIGURE
    assert '"traffic": "odd (' in (run / "manifest.json").read_text()
    (tmp_path / "mine.yaml").write_text(
        "name: odd\ndescription: d\nsizes: [150]\ntemplate: Ether()/IP(tos=2)/TCP()\n"
    )
    resumed = espbench("run", "--resume", run)
    assert resumed.returncode == 2
    assert "expected: the frames it was begun with, odd (" in resumed.stderr


def test_a_plan_that_its_generator_cannot_serve_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    """Exit code 2, one message, no namespace."""
    text = plan_text(frame_sizes=None, generator="scapy", traffic="vlan")
    (tmp_path / "plan.yaml").write_text(text)
    done = espbench("run", tmp_path / "plan.yaml", "--out", tmp_path / "runs")
    assert done.returncode == 2
    assert "they have no VLAN interfaces" in done.stderr
    assert not (tmp_path / "runs").exists()
