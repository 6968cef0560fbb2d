# SPDX-License-Identifier: Apache-2.0
"""A real TRex, where TREX_DIR has one, through two routers: what only its own field engine and rings show."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from espbench.generators.base import Offered
from espbench.generators.trex import TrexGenerator
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.validity.faults import tester_faults
from espbench.platforms import placement
from espbench.platforms.base import Testbed
from espbench.platforms.netns import NetnsPlatform
from espbench.sentences import Code
from espbench.this_machine.registry import Registry
from support.gateways.addresses import GATEWAY_TO_GATEWAY

pytestmark = [pytest.mark.root, pytest.mark.needs("TREX_DIR")]


TCP = bytes.fromhex(
    "00" * 12 + "0800 4500" + "00" * 7 + "06" + "00" * 10 + "0050 1388" + "00" * 8 + "5010 ffff 00000000"
)
UDP_WITH_TOS = bytes.fromhex("00" * 12 + "0800 45b8" + "00" * 7 + "11" + "00" * 10 + "1388 13c4 00000000")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TrexGenerator, Testbed]]:
    """TRex on both sides of two gateways that route and do not encrypt."""
    logs = tmp_path_factory.mktemp("logs")
    with Registry(secrets.token_hex(3)) as registry:
        bed = NetnsPlatform(GATEWAY_TO_GATEWAY).build(registry, logs, placement.choose())
        generator = TrexGenerator(registry, Path(logs) / "generator.log")
        generator.open(list(bed.ports.values()), [])
        yield generator, bed


def offer(
    pair: tuple[TrexGenerator, Testbed], rate: float | None, duration_s: float = 0.5, **traffic: Any
) -> Offered:
    generator, bed = pair
    usual: dict[str, Any] = {"frames": ((128, 1),), "ip_version": 4, "direction": "one-way"}
    hops = {name: port.next_hop_mac or "" for name, port in bed.ports.items()}
    streams = Traffic(**usual | traffic).streams(bed, hops, rate)
    return generator.offer(streams, duration_s, 0.5, quiet_s=0.2)


@pytest.mark.parametrize(
    "flows",
    [
        {},
        {"networks": 256},
        {"networks": 256, "ports": 3},
        {"tunnels": 50, "tunnel_bits": 26, "ports": 7},
        {"ports": 64},
        {"dont_fragment": True},
        {"ip_version": 6},
        {"frames": ((64, 7), (594, 4), (1518, 1)), "networks": 5, "direction": "both-ways"},
        {"frames": ((100, 3, 0), (200, 1, 1)), "headers": (TCP, UDP_WITH_TOS)},
    ],
    ids=lambda flows: ", ".join(flows) or "one",
)
def test_routers_forward_every_frame(pair: tuple[TrexGenerator, Testbed], flows: dict[str, Any]) -> None:
    """A header checksum that was wrong in any flow, or a MAC of TRex's own, would be dropped on the way."""
    for one in offer(pair, 1000.0, **flows).streams:
        assert one.tx_frames + one.unsent == one.intended_frames
        assert one.rx_frames == one.tx_frames > 0


def test_a_rate_it_cannot_keep_is_told_and_leaves_nothing_for_the_next_trial(
    pair: tuple[TrexGenerator, Testbed],
) -> None:
    """It would take much longer, losing nothing; thousands of frames wait in its ring when it is stopped."""
    offered = offer(pair, 8e6)
    assert tester_faults(offered, 0, {})[0].code == Code.SENT_FEWER
    after = offer(pair, 500.0).streams[0]
    assert after.rx_frames == after.tx_frames > 0
