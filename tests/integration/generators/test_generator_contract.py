# SPDX-License-Identifier: Apache-2.0
"""Every generator of this machine keeps the promises that all make, over a pair of veth ports.

tester namespace: west ═══ east
"""

from __future__ import annotations

import os
import secrets
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from espbench.errors import EspbenchError, UsageError
from espbench.generators import choose
from espbench.generators.base import Generator, Offered
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.validity.faults import tester_faults
from espbench.plan.keys.generator_choice import GeneratorChoice
from espbench.platforms import placement
from espbench.platforms.base import Testbed
from espbench.platforms.netns import NetnsPlatform
from espbench.sentences import Code
from espbench.this_machine.processes import start_time
from espbench.this_machine.registry import Registry
from support.gateways.addresses import GATEWAY_TO_GATEWAY

pytestmark = [pytest.mark.root, pytest.mark.untimed]


# Name, and a rate it keeps on a busy machine (frames/s).
GENERATORS = [
    pytest.param(("native", 2000.0), marks=pytest.mark.needs("generator"), id="native"),
    pytest.param(("trex", 1000.0), marks=pytest.mark.needs("TREX_DIR"), id="trex"),
    pytest.param(("scapy", 50.0), id="scapy"),
]


@dataclass
class AttachedTester:
    """An open generator on its ports."""

    generator: Generator
    bed: Testbed
    rate: float
    registry: Registry
    before: int  # entries of the registry before the generator was made

    def offer(
        self, rate: float | None = None, duration_s: float = 0.5, flood: bool = False, **traffic: Any
    ) -> Offered:
        usual: dict[str, Any] = {"frames": ((128, 1),), "ip_version": 4, "direction": "one-way"}
        hops = {name: port.next_hop_mac or "" for name, port in self.bed.ports.items()}
        wanted = Traffic(**usual | traffic)
        load = None if flood else (rate or self.rate) * wanted.directions
        return self.generator.offer(wanted.streams(self.bed, hops, load), duration_s, 2.0, quiet_s=0.2)


@pytest.fixture(params=GENERATORS)
def tester(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AttachedTester]:
    name, rate = request.param
    with Registry(secrets.token_hex(3)) as registry:
        bed = NetnsPlatform(GATEWAY_TO_GATEWAY).calibration_bed(registry, placement.choose())
        # Frames of this pair of ports are for each other.
        west, east = bed.ports["west"], bed.ports["east"]
        bed.ports = {
            "west": replace(west, next_hop_mac=east.mac), "east": replace(east, next_hop_mac=west.mac)
        }  # fmt: skip
        before = len(registry.entries)
        settings = GeneratorChoice.model_validate(name).settings
        generator = choose.new(name, settings, registry, tmp_path / "generator.log")
        generator.open(list(bed.ports.values()), [])
        yield AttachedTester(generator, bed, rate, registry, before)


def the_books_balance(offered: Offered) -> None:
    """Check that what was counted adds up, and that what was not counted is named."""
    for s in offered.streams:
        if s.intended_frames is not None:
            # A frame that the next device refused may have been offered again.
            assert 0 <= s.tx_frames + s.unsent - s.intended_frames <= s.tx_refused
        assert s.rx_frames <= s.tx_frames
        assert s.lost == s.tx_frames - s.rx_frames
        assert s.never_came == s.lost - (s.corrupted or 0)
        assert (s.latency_us is None) == ("latency" in offered.not_measured)
        assert (s.rx_after_stop is None) == (s.drain_s is None) == ("backlog" in offered.not_measured)
        assert (s.corrupted is None) == any("corrupted" in text for text in offered.not_measured)
    assert {p.name for p in offered.ports} == {"west", "east"}
    assert offered.start_ns < offered.last_tx_ns < time.monotonic_ns()


def all_arrived(offered: Offered, intended: int) -> None:
    """Every frame that the next device took; a busy machine may have kept the sender from some."""
    the_books_balance(offered)
    for s in offered.streams:
        assert s.intended_frames == intended
        assert s.rx_frames == s.tx_frames - s.tx_refused > 0


def test_a_host_that_nobody_watches_is_named(tester: AttachedTester) -> None:
    """Either the CPUs were watched as asked, or the trial says that they were not."""
    cpu = min(os.sched_getaffinity(0))
    tester.generator.open(list(tester.bed.ports.values()), [cpu])
    offered = tester.offer()
    if str(cpu) not in offered.host_stall_ms_total:
        assert not offered.stalls_watched
        assert any("stalls of the" in text for text in offered.not_measured)
    if tester.generator.name == "native":
        assert str(cpu) in offered.host_stall_ms_total


@pytest.mark.alone
def test_an_idle_pair_loses_nothing(tester: AttachedTester) -> None:
    """All that was intended is sent and arrives; nobody is to blame for more than that the machine stood still."""
    offered = tester.offer()
    all_arrived(offered, round(tester.rate * 0.5))
    faults = tester_faults(offered, sum(p.rx_overrun for p in offered.ports), {})
    assert [fault for fault in faults if fault.code not in (Code.SENT_FEWER, Code.SENT_SLOWLY)] == []


def test_both_ways_at_once(tester: AttachedTester) -> None:
    """Each direction has its own account."""
    offered = tester.offer(direction="both-ways")
    assert [(s.from_, s.to) for s in offered.streams] == [("west", "east"), ("east", "west")]
    all_arrived(offered, round(tester.rate * 0.5))


def test_a_mix_of_sizes_and_ipv6(tester: AttachedTester) -> None:
    """Three sizes in their proportions: as many frames as of one size."""
    offered = tester.offer(frames=((84, 7), (594, 4), (1518, 1)), ip_version=6)
    all_arrived(offered, round(tester.rate * 0.5))


def test_many_flows(tester: AttachedTester) -> None:
    """256 networks: not a frame less."""
    offered = tester.offer(networks=256)
    all_arrived(offered, round(tester.rate * 0.5))


def test_what_was_not_sent_is_told(tester: AttachedTester) -> None:
    """A rate that no machine reaches ends in time, and the trial is the tester's fault."""
    offered = tester.offer(rate=40e6, duration_s=0.3)
    the_books_balance(offered)
    (one,) = offered.streams
    assert one.intended_frames == 12_000_000
    assert one.unsent > 0
    assert tester_faults(offered, 0, {})[0].code == Code.SENT_FEWER


def test_a_flood_has_no_plan(tester: AttachedTester) -> None:
    """It sends what it can."""
    offered = tester.offer(flood=True, duration_s=2.0)
    the_books_balance(offered)
    (one,) = offered.streams
    assert one.intended_frames is None
    assert one.tx_frames > 0


def test_a_burst_is_so_many_frames(tester: AttachedTester) -> None:
    """They leave at the rate asked for, and how fast they left is told; what cannot be sent so is refused."""
    hops = {name: port.next_hop_mac or "" for name, port in tester.bed.ports.items()}
    one_way = Traffic(frames=((128, 1),), ip_version=4, direction="one-way")
    [stream] = one_way.streams(tester.bed, hops, tester.rate)
    burst = [stream.model_copy(update={"burst_frames": 20})]
    if tester.generator.name == "trex":
        with pytest.raises(UsageError, match="got a burst back to back"):
            tester.generator.offer(burst, 2.0, 0.5)
        return
    offered = tester.generator.offer(burst, 2.0, 30.0, quiet_s=0.2)
    all_arrived(offered, 20)
    [counts] = offered.streams
    assert counts.unsent == 0
    assert counts.departure_fps is not None
    assert 0 < counts.departure_fps <= 1.2 * tester.rate  # after a stall they follow faster
    assert counts.longest_gap is not None


def test_trials_do_not_leak_into_each_other(tester: AttachedTester) -> None:
    """Opening the ports again does not do so either."""
    all_arrived(tester.offer(), round(tester.rate * 0.5))
    all_arrived(tester.offer(rate=2 * tester.rate), round(tester.rate))
    tester.generator.open(list(tester.bed.ports.values()), [])
    all_arrived(tester.offer(), round(tester.rate * 0.5))


def test_its_death_is_an_error_and_nothing_else(tester: AttachedTester) -> None:
    """One espbench knows, so that the run goes on with a new generator."""
    tester.generator.ping()
    os.killpg(tester.generator.pid(), signal.SIGKILL)
    with pytest.raises(EspbenchError, match="died"):
        tester.generator.ping()
    with pytest.raises(EspbenchError):
        tester.offer()
    tester.generator.close()


def test_closing_leaves_nothing(tester: AttachedTester) -> None:
    """No process, nothing in the registry."""
    pid = tester.generator.pid()
    tester.generator.close()
    assert start_time(pid) is None
    assert len(tester.registry.entries) == tester.before
