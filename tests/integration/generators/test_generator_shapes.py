# SPDX-License-Identifier: Apache-2.0
"""Steps, bursts, tags, gaps and noise on real links, by every way to the wire: counts are exact.

Times are exact in virtual time only (test_truth_dut.py).
"""

from __future__ import annotations

import base64
import json
import os
import time

import pytest

from support.generators.wire import WAYS, Generator, Net, arrived, begin, open_ports, stream, trial
from support.session.slow import slow_but

pytestmark = [pytest.mark.root, pytest.mark.needs("generator"), pytest.mark.untimed]


STEPS = [
    {"at_s": 0.4, "rate_fps": 1_000.0},
    {"at_s": 0.6, "rate_fps": 0},
    {"at_s": 0.8, "rate_fps": 10_000.0},
]


def test_the_rate_steps(generator: Generator, wire: Net) -> None:
    """8,000 + 200 + 0 + 2,000 frames; the pause is where it was asked for, and nothing is lost in the steps.

    A tagged frame is one of those that were measured, and left when asked or later.
    """
    ports = open_ports(generator, wire)
    asked = stream(ports, rate_fps=20_000.0, steps=STEPS, gaps_over_s=0.15, tag_at_s=0.3)
    result = trial(generator, asked, duration_s=1.0)
    [one] = result["streams"]
    assert one["intended_frames"] == one["tx_frames"] + one["unsent"] == 10_200
    arrived(one)
    steps = one["steps"]
    assert [step["intended_frames"] for step in steps] == [8_000, 200, 0, 2_000]
    assert sum(step["tx_frames"] for step in steps) == one["tx_frames"]
    assert sum(step["lost"] for step in steps) == one["tx_refused"]
    since = [step["at_ns"] - result["start_ns"] for step in steps]
    assert since == [0, 4 * 10**8, 6 * 10**8, 8 * 10**8]
    if (
        one["unsent"] == 0 and one["lateness_us"]["max"] < 20_000
    ):  # else the host kept frames from their times
        longest = one["longest_gap"]
        assert longest in one["gaps"]
        # No frame left before its time, so the pause ends after its end.
        assert longest["to_ns"] >= result["start_ns"] + 8 * 10**8
        assert longest["to_ns"] - longest["from_ns"] > 150_000_000
    assert one["tagged"]["at_ns"] >= result["start_ns"] + 3 * 10**8
    # The histogram has three digits.
    latency = one["latency_us"]
    assert 0.999 * latency["min"] <= one["tagged"]["latency_us"] <= 1.001 * latency["max"]


def test_two_cpus_step_together(wire: Net) -> None:
    """Each has its share of every rate."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one CPU")
    generator = Generator("xdp", "xdp")
    try:
        generator.paths |= {"tx_cpus": [0, 1]}  # type: ignore[dict-item]
        ports = open_ports(generator, wire)
        asked = stream(ports, rate_fps=20_001.0, steps=STEPS, tag_at_s=0.3)
        [one] = trial(generator, asked, duration_s=1.0)["streams"]
    finally:
        generator.close()
    arrived(one)
    assert [step["intended_frames"] for step in one["steps"]] == [8_001, 200, 0, 1_999]
    assert one["tagged"]["latency_us"] > 0
    assert (
        one["first_rx_ns"] < one["longest_gap"]["from_ns"] < one["longest_gap"]["to_ns"] < one["last_rx_ns"]
    )


def test_a_burst_is_so_many_frames(generator: Generator, wire: Net) -> None:
    """There is not one more or less, and how fast they left is told."""
    ports = open_ports(generator, wire)
    for rate_fps in (None, 50_000.0):
        [one] = trial(generator, stream(ports, rate_fps=rate_fps, burst_frames=1_003))["streams"]
        assert (one["tx_frames"], one["unsent"], one["intended_frames"]) == (1_003, 0, 1_003)
        assert one["rx_frames"] + one["tx_refused"] == 1_003
        assert one["departure_fps"] > 0
        if rate_fps is not None:
            # After a stall they follow 1.1 times as fast, and two may leave together.
            assert one["departure_fps"] <= 1.2 * rate_fps


@pytest.mark.alone  # a receiver that waits for a CPU sees the outage shorter than it was
@pytest.mark.parametrize("generator", slow_but(["xdp"], WAYS), indirect=True)
def test_an_outage_is_one_gap(generator: Generator, router: Net) -> None:
    """A router drops all for a while: the gap, the lost frames' times and their number tell the same."""
    ports = open_ports(generator, router)
    hops = {}
    for port, number in (("west", 18), ("east", 19)):
        asked = {
            "cmd": "resolve",
            "port": port,
            "address": f"198.{number}.0.2",
            "gateway": f"198.{number}.0.1",
            "timeout_s": 60.0,
        }
        hops[port] = generator.ask(asked)["mac"]

    asked = stream(ports, dst_mac=hops["west"], rate_fps=5_000.0, gaps_over_s=0.1)
    begin(generator, asked, duration_s=2.0, residue_s=0.5)
    router.nft("dut", "table ip t { chain c { type filter hook forward priority 0; policy drop; }; }")
    time.sleep(0.3)
    router.nft("dut", "delete table ip t")
    [one] = generator.hear()["streams"]
    assert one["rx_frames"] + one["lost"] == one["tx_frames"]
    assert one["lost"] > 500
    [episode] = one["loss_episodes"]
    assert (episode["from_ns"], episode["to_ns"]) == (one["first_lost_ns"], one["last_lost_ns"])
    assert episode["frames"] == one["lost"]
    gap = one["longest_gap"]
    assert gap in one["gaps"]
    assert gap["from_ns"] < one["first_lost_ns"] < one["last_lost_ns"] < gap["to_ns"]


def bytes_in(net: Net) -> int:
    """Return the bytes of all frames that arrived at the receiver's port."""
    [link] = json.loads(net.inside("t2", "ip -j -s link show a1"))
    return int(link["stats64"]["rx"]["bytes"])


def test_noise_beside_a_stream(generator: Generator, wire: Net) -> None:
    """Packets of two sizes, as they are, in turn; the stream's books know nothing of them."""
    ports = open_ports(generator, wire)
    ends = bytes([10, 0, 0, 1, 10, 0, 0, 2])
    packets = [bytes.fromhex("4500001c0000000040320000") + ends + bytes(8), bytes.fromhex("60") + bytes(99)]
    noise = {
        "id": 7, "from": "west", "rate_fps": 3_000.0, "src_mac": ports["west"]["mac"],
        "dst_mac": ports["east"]["mac"], "packets": [base64.b64encode(packet).decode() for packet in packets],
    }  # fmt: skip
    before = bytes_in(wire)
    result = trial(generator, stream(ports, rate_fps=3_000.0), noise=[noise], duration_s=1.0)
    moved = bytes_in(wire) - before
    [one], [counted] = result["streams"], result["noise"]
    assert one["intended_frames"] == counted["intended_frames"] == 3_000
    arrived(one)
    assert counted["tx_frames"] + counted["unsent"] == 3_000
    assert counted["tx_frames"] > 0
    assert result["ports"][1]["foreign"] == counted["tx_frames"] - counted["tx_refused"]
    if counted["tx_refused"] == 0:
        short = -(-counted["tx_frames"] // 2)
        frames = one["rx_frames"] + counted["tx_frames"]
        length = 60 * (one["rx_frames"] + short) + 114 * (counted["tx_frames"] - short)
        assert moved in (
            length,
            length - 14 * frames,
        )  # a veth counts frames without their header, but XDP's with
    refused = generator.ask({"cmd": "trial", "id": "t", "duration_s": 1.0, "streams": [stream(ports)],
                             "noise": [{**noise, "packets": ["AAAA"]}]})  # fmt: skip
    assert "noise 7: packet 0 of 3 bytes is not IPv4 or IPv6" in refused["message"]
