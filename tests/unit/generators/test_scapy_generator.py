# SPDX-License-Identifier: Apache-2.0
"""The Scapy generator's frames, judgements and counts, without a packet on any wire."""

from __future__ import annotations

import base64
import socket
import time
from collections import deque
from itertools import pairwise
from typing import Any, cast

import pytest
from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether

from espbench.generators.base import Offered
from espbench_scapy import neighbours
from espbench_scapy.failure import Failure
from espbench_scapy.frames import RunKey, Template, cycle
from espbench_scapy.histogram import Histogram
from espbench_scapy.judging import Expected, Kind, SequenceCount, judge
from espbench_scapy.pacing import Schedule
from espbench_scapy.port import Port
from espbench_scapy.receiving import StreamCount, whole_time
from espbench_scapy.render import rendered
from espbench_scapy.sending import Outgoing
from espbench_scapy.trial import Bench, check, run

KEY = RunKey(1, 2)
FIRST = 1000
TAGGED = "Ether()/Dot1Q(vlan=7)/IP(tos=46<<2)/UDP(sport=5060, dport=5060)"
FORMS: dict[str, dict[str, Any]] = {
    "ipv4": {},
    "ipv6": {"ip_version": 6, "src": "2001:2::2", "dst": "2001:2:0:2000::2"},
    "tagged": {"headers": [TAGGED]},
    "tcp": {"headers": ["Ether()/IP()/TCP(dport=443, options=[('MSS', 1460)])"]},
    "tcp over ipv6": {
        "headers": ["Ether()/IPv6(tc=3, fl=9)/TCP()"], "ip_version": 6, "src": "2001:2::2", "dst": "2001:2:0:2000::2",
    },
    "ip options": {"headers": ["Ether()/IP(options=[IPOption_Router_Alert()])/UDP()"]},
}  # fmt: skip


def stream(form: str = "ipv4", sizes: tuple[int, ...] = (128, 594), **more: Any) -> dict[str, Any]:
    made = {
        "id": 3, "from": "west", "to": "east", "rate_fps": 100.0, "frames": [{"size": size} for size in sizes],
        "src_mac": "02:00:00:00:00:01", "dst_mac": "02:00:00:00:00:02", "ip_version": 4, "src": "198.18.0.2",
        "dst": "198.19.0.2", "ttl": 10, "src_port": 49184, "dst_port": 7, **FORMS[form], **more,
    }  # fmt: skip
    made["headers"] = [base64.b64encode(rendered(text)).decode() for text in made.get("headers", ())]
    return made


def setting(form: str = "ipv4", **more: Any) -> tuple[Template, list[Expected]]:
    template = Template(stream(form, **more), KEY)
    return template, [Expected(template, KEY, FIRST, 100)]


def dissected(frame: bytes) -> Any:
    return Ether(frame)


@pytest.mark.parametrize("form", FORMS)
def test_scapy_agrees_with_every_length_and_checksum(form: str) -> None:
    """Scapy, asked to compute them itself, comes to the same bytes."""
    template, _ = setting(form, networks=3, ports=2)
    for index in range(12):
        frame = template.write(index, FIRST + index, 77)
        packet = dissected(frame)
        assert len(frame) == (124, 590)[index % 2]
        for layer, computed in (
            (IP, ("len", "chksum")),
            (IPv6, ("plen",)),
            (UDP, ("len", "chksum")),
            (TCP, ("chksum",)),
        ):
            if layer in packet:
                for name in computed:
                    packet[layer].delfieldval(name)
        assert bytes(packet) == frame


def test_the_generator_writes_what_is_its_own_and_leaves_the_rest() -> None:
    """MACs, addresses by network, TTL, identification, DF; tag, DSCP and ports are the template's."""
    template, _ = setting("tagged", networks=2, ports=3)
    packets = [dissected(template.write(i, FIRST + i, 0)) for i in range(6)]
    assert [p[IP].dst for p in packets] == ["198.19.0.2", "198.19.1.2"] * 3
    assert [p[UDP].sport for p in packets] == [5060, 5060, 5061, 5061, 5062, 5062]
    assert {(p[Dot1Q].vlan, p[IP].tos, p[IP].ttl, p[UDP].dport, p[IP].src) for p in packets} == {
        (7, 184, 10, 5060, "198.18.0.2")
    }
    assert [p[IP].id for p in packets] == [0, 1, 2, 3, 4, 5]
    assert {(p.src, p.dst) for p in packets} == {("02:00:00:00:00:01", "02:00:00:00:00:02")}
    whole, _ = setting(dont_fragment=True)
    packet = dissected(whole.write(5, 5, 0))
    assert (packet[IP].flags, packet[IP].id) == ("DF", 0)


def test_a_udp_checksum_of_zero_is_written_as_ffff() -> None:
    """Zero would say that there is none (RFC 768); of this stream the frame that leaves at 53175 ns comes to it."""
    template, expected = setting(sizes=(64,))
    frame = template.write(0, FIRST, 53175)
    assert frame[40:42] == b"\xff\xff"
    assert judge(expected, frame).kind is Kind.INTACT


def test_tunnels_move_both_addresses() -> None:
    """Frame k goes from subnet k to subnet k."""
    template, _ = setting(tunnels=1000, tunnel_bits=26)
    packet = dissected(template.write(999, 0, 0))
    assert (packet[IP].src, packet[IP].dst) == ("198.18.249.194", "198.19.249.194")


@pytest.mark.parametrize("form", FORMS)
def test_a_routed_frame_is_intact(form: str) -> None:
    """MAC addresses, TTL and DSCP changed, tags gone, padded to what a wire carries."""
    template, expected = setting(form)
    packet = dissected(template.write(0, FIRST + 5, 77))
    packet.src, packet.dst = "02:00:00:00:00:aa", "02:00:00:00:00:ab"
    if IP in packet:
        packet[IP].ttl, packet[IP].tos = 3, 0
        packet[IP].delfieldval("chksum")
    else:
        packet[IPv6].hlim = 3
    if Dot1Q in packet:
        packet = Ether(src=packet.src, dst=packet.dst) / packet[Dot1Q].payload
    verdict = judge(expected, bytes(packet))
    assert (verdict.kind, verdict.stream, verdict.number, verdict.time) == (Kind.INTACT, 0, 5, 77)


def test_a_short_frame_whose_tag_was_taken_is_intact_with_its_padding() -> None:
    """68 B with a tag are 64 B without, as 64 B they are padded; longer frames have no trailer."""
    template, expected = setting("tagged", sizes=(68,))
    frame = template.write(0, FIRST, 1)
    bare = frame[:12] + frame[16:]
    assert judge(expected, bare).kind is Kind.INTACT
    assert judge(expected, bare + bytes(60 - len(bare))).kind is Kind.INTACT
    template, expected = setting("tagged", sizes=(128,))
    frame = template.write(0, FIRST, 1)
    assert judge(expected, frame + bytes(4)).kind is Kind.CORRUPTED


@pytest.mark.parametrize("form", FORMS)
def test_every_flipped_bit_behind_the_ip_header_is_corruption(form: str) -> None:
    """Every bit that must arrive as it was sent is covered."""
    template, expected = setting(form, sizes=(128,))
    frame = template.write(0, FIRST, 1)
    for bit in range(8 * template.layouts[0].transport, 8 * len(frame)):
        hurt = bytearray(frame)
        hurt[bit // 8] ^= 1 << bit % 8
        assert judge(expected, bytes(hurt)).kind is Kind.CORRUPTED, bit


def test_words_that_changed_places_are_corruption() -> None:
    """No checksum shows it: the payload is compared."""
    template, expected = setting(sizes=(128,))
    frame = bytearray(template.write(0, FIRST, 1))
    frame[80:82], frame[82:84] = frame[82:84], frame[80:82]
    assert judge(expected, bytes(frame)).kind is Kind.CORRUPTED


def test_cut_and_lengthened_frames_are_corrupted_and_others_are_foreign() -> None:
    """Foreign frames are of another run, an earlier trial or somebody else; short ones raise nothing."""
    template, expected = setting()
    frame = template.write(1, FIRST, 1)
    assert judge(expected, frame[:200]).kind is Kind.CORRUPTED
    assert judge(expected, frame + bytes(4)).kind is Kind.CORRUPTED
    other = Template(stream(), RunKey(7, 2)).write(0, FIRST, 1)
    for foreign in (
        other, template.write(0, FIRST - 1, 1), template.write(0, FIRST + 100, 1), b"\x5a" * 300,
        *(frame[:length] for length in range(38)),
    ):  # fmt: skip
        assert judge(expected, foreign).kind is Kind.FOREIGN


def test_two_streams_of_one_port_are_told_apart() -> None:
    """The stream number in the test header says which stream it is."""
    templates = [Template(stream(id=number, src_port=number + 1), KEY) for number in (0, 1)]
    expected = [Expected(template, KEY, FIRST, 10) for template in templates]
    for number, template in enumerate(templates):
        frame = template.write(0, FIRST, 1)
        assert judge(expected, frame).stream == number
        assert judge(expected, frame[:100]).stream == number


@given(st.binary(max_size=200))
def test_no_frame_brings_down_the_judge(data: bytes) -> None:
    """Any bytes may arrive on a port."""
    _, expected = setting("tagged")
    for frame in (data, bytes(12) + b"\x08\x00\x45" + data, bytes(12) + b"\x81\x00" + data):
        judge(expected, frame)
        neighbours.read(frame)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=30))
def test_a_cycle_holds_each_size_as_often_as_its_weight(weights: list[int]) -> None:
    """It keeps their order where all weigh the same: an exact sequence (RFC 6985)."""
    order = cycle([{"size": 64, "weight": weight} for weight in weights])
    times = [order.count(i) for i in range(len(weights))]
    assert all(weight * times[0] == count * weights[0] for weight, count in zip(weights, times, strict=True))
    same = cycle([{"size": 64, "weight": weights[0]} for _ in weights])
    assert same == list(range(len(weights)))


def test_no_size_comes_in_clumps() -> None:
    """The simple IMIX: the commonest size never three times running."""
    order = cycle([{"size": 64, "weight": 7}, {"size": 594, "weight": 4}, {"size": 1518, "weight": 1}]) * 2
    assert not any(a == b == c for (a, b), (_, c) in pairwise(pairwise(order)))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"frames": [{"size": 64, "header": 1}]}, "a frame has header 1, there are 1"),
        ({"frames": [{"size": 63}]}, "with these headers a test frame has 64 to 65535 bytes"),
        ({"frames": [{"size": 64, "weight": 0}]}, "each with a weight of at least 1"),
        ({"src": "2001:2::2"}, "src 2001:2::2 and dst 198.19.0.2 are not IPv4"),
        ({"src_mac": "02:00"}, "'02:00' is not a MAC address"),
        ({"networks": 2, "tunnels": 2}, "2 networks and 2 tunnels at once"),
        ({"ip_version": 6, "src": "::1", "dst": "::2", "headers": ["Ether()/IP()/UDP()"]}, "is not Ethernet, IPv6"),
    ],
)  # fmt: skip
def test_a_stream_that_makes_no_sense_is_refused(change: dict[str, Any], said: str) -> None:
    """The refusal comes before any frame is sent."""
    with pytest.raises(Failure) as failure:
        Template(stream(**change), KEY)
    assert said in failure.value.message


def test_lost_duplicated_reordered_and_corrupted_are_each_counted_as_themselves() -> None:
    """Counts are the native generator's (RFC 4737 for reordering)."""
    count = SequenceCount()
    for number in (0, 1, 1, 4, 3, 5, 5, 5, 7):
        count.intact(number)
    assert (count.received, count.duplicated, count.reordered, count.lost(9)) == (6, 3, 1, 3)
    assert count.missing_runs(9) == [(2, 2), (6, 6), (8, 8)]
    count.damaged(7)  # a copy of one that is there
    count.damaged(2)
    count.damaged(2)
    count.damaged(None)
    count.intact(2)
    assert count.corrupted == 4
    assert count.lost(20) == 20 - 7 - 1


@given(st.lists(st.integers(1, 100_000_000_000), min_size=1, max_size=200))
def test_the_histogram_is_the_one_others_read(values: list[int]) -> None:
    """The HdrHistogram library decodes it to the same counts, and to the same percentiles."""
    mine, theirs = Histogram(), HdrHistogram(1, 100_000_000_000, 3)
    for value in values:
        mine.record(value)
        theirs.record_value(value)
    histogram = HdrHistogram.decode(mine.encoded())
    assert histogram.get_total_count() == len(values) == mine.total
    for value in values:
        assert histogram.get_count_at_value(value) == theirs.get_count_at_value(value)
    assert mine.quantile_ns(1.0) == max(values)


def test_a_stall_is_a_pause_and_overload_is_none() -> None:
    """A stall has what the native generator says: its beginning, its length, when it was made good."""

    def stalls(late_us: list[int]) -> list[tuple[int, float, int]]:
        out = Outgoing(cast(Template, None), Schedule(0, 1000.0, 1.0, None), 0, cast(Port, None))
        for number, late in enumerate(late_us):
            out.book(number * 1_000_000, number * 1_000_000 + late * 1000)
        out.close()
        return [(stall["at_ns"] // 1000, stall["ms"], stall["until_ns"] // 1000) for stall in out.stalls]

    assert stalls([10, 3010, 2900, 600, 120, 90, 20]) == [(1010, 3.0, 5090)]
    assert stalls([0, 2000, 1000, 3000, 1000, 0]) == [(1000, 4.0, 5000)]
    assert stalls([100 * number for number in range(500)]) == []


def test_a_schedule_keeps_the_clock_and_makes_no_burst_after_a_stall() -> None:
    """Frames leave when due; after 5 ms of standing still never faster than 1.1 times the rate."""
    schedule, left, now = Schedule(0, 50_000.0, 0.2, None), [], 0
    while now < 200_000_000:
        if not 50_000_000 <= now < 55_000_000 and schedule.may_send(now):
            left.append(now)
            schedule.took()
        now += 500
    assert len(left) == schedule.planned == 10_000
    assert left[:1000] == [i * 20_000 for i in range(1000)]
    for start in range(55, 100):
        assert sum(start * 1_000_000 <= at < (start + 1) * 1_000_000 for at in left) <= 57
    assert sum(150_000_000 <= at < 151_000_000 for at in left) == 50


def test_a_burst_stops_at_its_length_and_a_flood_never() -> None:
    """Neither is paced without a rate."""
    burst = Schedule(1000, None, 1.0, 3)
    assert not burst.may_send(999)
    for _ in range(3):
        assert burst.may_send(1000)
        burst.took()
    assert burst.finished
    assert not burst.may_send(2000)
    assert Schedule(0, None, 1.0, None).may_send(10**12)
    paced = Schedule(0, 1000.0, 1.0, 3)
    left = []
    for now in range(0, 5_000_000, 1000):
        if paced.may_send(now):
            left.append(now)
            paced.took()
    assert left == [0, 1_000_000, 2_000_000]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"steps": [{"at_s": 0.5, "rate_fps": 1.0}]}, "stream 3: expected no steps"),
        ({"tag_at_s": 0.5}, "stream 3: expected no tag_at_s, got 0.5; generator scapy tags no frame"),
        ({"gaps_over_s": 0.1}, "tells only the longest gap"),
        ({"noise": [{"id": 1}]}, "expected no noise beside the streams"),
    ],
)
def test_what_only_the_native_generator_can_is_refused(change: dict[str, Any], said: str) -> None:
    """The refusal comes before any frame is sent, and names the generator that can."""
    noise = change.pop("noise", None)
    asked = {"id": "t", "duration_s": 1.0, "streams": [stream(**change)], "noise": noise}
    with pytest.raises(Failure) as failure:
        check(asked, {})
    assert said in failure.value.message
    assert failure.value.hint == "use generator: native"


class Joined:
    """A port whose frames arrive at another one at once; never: a socket by which nothing arrives."""

    interface, mtu = "x", 1500
    merged = b""  # what the receive offload appends to each frame

    def __init__(self, never: socket.socket) -> None:
        self.other = self
        self.fileno = never.fileno
        self._arrived: deque[tuple[bytes, int]] = deque()

    def begin(self) -> None:
        self._arrived.clear()

    def send(self, frame: bytes) -> str:
        self.other._arrived.append((frame + self.merged, time.time_ns()))
        return "sent"

    def receive(self) -> tuple[bytes, int] | None:
        return self._arrived.popleft() if self._arrived else None

    def overrun(self) -> int:
        return 0


def trial(merged: bytes = b"") -> Offered:
    """Make a trial of five frames; merged: what the receive offload appends to each of them."""
    asked = {"id": "t", "duration_s": 0.05, "residue_s": 1.0, "quiet_s": 0.05, "streams": [stream()]}
    one, other = socket.socketpair()
    with one, other:
        west, east = Joined(one), Joined(other)
        west.other, west.merged = east, merged
        ports = cast(dict[str, Port], {"west": west, "east": east})
        bench = Bench(ports, KEY, lambda: False, lambda port, frame: None, lambda event: None)
        return Offered.model_validate(run(bench, asked))


def test_frames_that_the_receive_offload_merged_are_told() -> None:
    """They count as damaged, and the trial says why."""
    assert trial().warnings == []
    offered = trial(merged=bytes(1000))
    assert (offered.streams[0].rx_frames, offered.streams[0].corrupted) == (0, 5)
    assert [*map(str, offered.warnings)] == [
        "the receive offload of x merges frames, which then count as damaged (ethtool -K x gro off)"
    ]


def test_a_trial_says_that_nobody_watched_the_host() -> None:
    """Zero stalls without a watcher would look like a host that never stood still."""
    offered = trial()
    assert offered.streams[0].tx_frames == offered.streams[0].rx_frames == 5
    assert (offered.host_stalls, offered.host_stall_ms_total, offered.cpu_speed) == ([], {}, {})
    assert not offered.stalls_watched
    assert offered.not_measured == ["stalls of the host", "speed of the CPUs"]


def test_the_longest_gap_is_between_two_intact_arrivals() -> None:
    """A copy and a damaged frame end none; a stamp that goes back makes none."""
    count = StreamCount(0, 1000)
    for number, at_ns in enumerate((100, 200, 190, 450, 500)):
        count.intact(number, 50, at_ns)
    count.damaged(9, 2_000)
    count.intact(0, 50, 3_000)
    assert (count.arrived_ns, count.longest_gap) == ((100, 500), (200, 450))


def test_a_departure_time_is_made_whole_on_both_sides_of_a_wrap() -> None:
    """Frames carry its low 48 bits."""
    wrap = 1 << 48
    for sent, now in ((5, 100), (wrap - 10, wrap + 20), (3 * wrap + 7, 3 * wrap + 9), (wrap + 5, wrap - 5)):
        assert whole_time(sent & wrap - 1, now) == sent


@pytest.mark.parametrize("tags", [b"", bytes.fromhex("81000007"), bytes.fromhex("88a8000581000007")])
@pytest.mark.parametrize(("address", "gateway"), [("10.0.0.2", "10.0.0.1"), ("fd00::2", "fd00::1")])
def test_questions_and_answers_about_addresses_fit(tags: bytes, address: str, gateway: str) -> None:
    """The answer to our own question, read back, names the right MAC and bears the question's tags."""
    asked = neighbours.read(neighbours.question("02:00:00:00:00:0a", address, gateway, tags))
    assert asked is not None
    assert (asked.question, asked.target, asked.sender, asked.mac) == (
        True, gateway, address, "02:00:00:00:00:0a",
    )  # fmt: skip
    answer = neighbours.read(neighbours.answer("02:00:00:00:00:0b", asked))
    assert answer is not None
    assert (answer.question, answer.target, answer.mac, answer.tags) == (
        False,
        gateway,
        "02:00:00:00:00:0b",
        tags,
    )
