# SPDX-License-Identifier: Apache-2.0
"""The boxes of known truth in real time are what they say, by the generator's counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.gateways.boxes import RouterBox
from support.generators.wire import Generator, stream, trial

pytestmark = [pytest.mark.root, pytest.mark.needs("generator")]


class AttachedTester:
    """A box and a generator whose streams go through it."""

    def __init__(self, box: RouterBox, generator: Generator) -> None:
        self.box, self._generator = box, generator
        ports = [
            {"name": name, "interface": interface, "netns": f"/run/netns/{netns}", "tx": "af_packet", "rx": "af_packet"}
            for name, interface, netns in (("west", "a0", box.west), ("east", "a1", box.east))
        ]  # fmt: skip
        opened = generator.ask({"cmd": "open", "ports": ports})["ports"]
        self._ports = {port["name"]: port for port in opened}
        hops = {}
        for number, port in enumerate(("west", "east"), start=1):
            asked = {"port": port, "address": f"10.0.{number}.2", "gateway": f"10.0.{number}.1"}
            hops[port] = generator.ask({"cmd": "resolve", "timeout_s": 60.0, **asked})["mac"]
        self._asked = {"src": "10.0.1.2", "dst": "10.0.2.2", "dst_mac": hops["west"]}

    def offer(self, duration_s: float = 1.0, **more: object) -> dict[str, Any]:
        asked = stream(self._ports, **self._asked, **more)
        result = trial(self._generator, asked, duration_s=duration_s, residue_s=0.5)
        one: dict[str, Any] = result["streams"][0]
        return one


@pytest.fixture
def tester() -> Iterator[AttachedTester]:
    with RouterBox() as box:
        generator = Generator()
        try:
            yield AttachedTester(box, generator)
        finally:
            generator.close()


def test_a_delay(tester: AttachedTester) -> None:
    tester.box.delay(20_000)
    one = tester.offer(rate_fps=500.0)
    assert one["rx_frames"] == one["tx_frames"] > 0
    assert one["latency_us"]["min"] >= 0.999 * 20_000


def test_a_queue_of_so_many_frames(tester: AttachedTester) -> None:
    """A burst goes in before the server, of 100 frames of 60 B a second, has let many out."""
    tester.box.hold(50, 48_000)
    one = tester.offer(rate_fps=None, burst_frames=500)
    at_once = 1600 // 60
    assert 50 <= one["rx_frames"] <= 50 + at_once + 10
    assert one["rx_frames"] + one["lost"] == 500


def test_an_outage(tester: AttachedTester) -> None:
    with tester.box.drops_all(0.4, 0.3):
        one = tester.offer(1.5, rate_fps=2_000.0)
    assert one["lost"] >= 0.9 * 600
    gap = one["longest_gap"]
    assert gap["to_ns"] - gap["from_ns"] >= 300_000_000
    assert one["loss_episodes"][0]["from_ns"] == one["first_lost_ns"] > gap["from_ns"]
