# SPDX-License-Identifier: Apache-2.0
"""CPU time that the host takes while frames are sent counts; time before and after voids no trial."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from espbench.errors import GatewayFailed
from espbench.generators.base import Generator, Offered, PortCounts
from espbench.measure import trial
from espbench.measure.inputs.setup import Request, Setup, TrialBroken, Waits
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.proof import counters
from espbench.measure.record import OfCase
from espbench.measure.validity import host, network_events
from espbench.measure.validity.host import CpuTimes, HostSnapshot
from espbench.platforms import placement
from espbench.platforms.base import Gateway, LinkCounters, Testbed
from espbench.sentences import Code
from espbench.stacks.base import SaCounters
from espbench.terms import Reason, Trial
from support.generators.streams import counts

S = 10**9
PREPARING_S, SENDING_S, RESIDUE_S = 2.0, 2.0, 2.0


class Bed(Testbed):
    """No ports."""

    def close(self) -> None: ...


class World:
    """A generator and a gateway on a host that takes a share of all CPUs in each part of a trial."""

    name = "world"

    def __init__(
        self, lost: int, before: float, sending: float, after: float, *, by: str, tells: bool
    ) -> None:
        self.lost, self.shares, self.by, self.tells = lost, (before, sending, after), by, tells
        self.now_s = self.taken_s = 0.0
        self.broken = False

    def pass_by(self, seconds: float, share: float) -> None:
        self.now_s += seconds
        self.taken_s += share * seconds

    def look(self) -> HostSnapshot:
        taken_ns, now_ns = int(self.taken_s * S), int(self.now_s * S)
        times = CpuTimes(now_ns - taken_ns, 0, taken_ns)
        if self.by == "others":
            times = CpuTimes(now_ns - taken_ns, taken_ns, 0)
        return HostSnapshot(now_ns, 0, dict.fromkeys((0, 1, 2, 3), times))

    def cpu_ns(self) -> int:
        if self.broken:
            raise GatewayFailed("gateway home: what it used is not known")
        return 0

    def waited_ns(self) -> int:
        return int(self.taken_s * S)

    def offer(self, *_: Any, on_progress: Any = None, **__: Any) -> Offered:
        before, sending, after = self.shares if on_progress else (0.0, 0.0, 0.0)  # learning frames

        def tell(**event: Any) -> None:
            if self.tells and on_progress:
                on_progress(event)

        self.pass_by(PREPARING_S, before)
        tell(elapsed_s=0.0, sending=True)
        self.pass_by(SENDING_S / 2, sending)
        tell(elapsed_s=SENDING_S / 2, sending=True)
        self.pass_by(SENDING_S / 2, sending)
        self.broken = self.by == "nobody"
        tell(elapsed_s=SENDING_S, sending=False)
        self.broken = False
        self.pass_by(RESIDUE_S, after)
        tell(elapsed_s=SENDING_S + RESIDUE_S, sending=False)
        stream = counts(1000, 1000 - self.lost, latency_us=None)
        return Offered(
            stalls_watched=True,
            start_ns=0, last_tx_ns=int(SENDING_S * S), duration_s=SENDING_S, intended_duration_s=SENDING_S,
            streams=[stream], ports=[PortCounts(name="east", rx_overrun=0, foreign=0)],
        )  # fmt: skip


def made(monkeypatch: pytest.MonkeyPatch, world: World) -> Trial:
    """The record of a trial with a gateway on CPU 3."""
    monkeypatch.setattr(host, "look", world.look)
    gateway = cast(
        Gateway,
        SimpleNamespace(side="home", cpu_ns=world.cpu_ns, waited_ns=world.waited_ns, alive=lambda: True),
    )
    placed = placement.choose(allowed={0, 1, 2, 3})
    placed.cpus.update({"home": [3], "tester tx": [0], "tester rx": [1]})
    bed = Bed("netns", "", {}, {"home": gateway}, placed, {})
    setup = Setup(bed, cast(Generator, world), None, {})
    link = LinkCounters(0, 0, 0, 0, 0, 0)
    still = counters.GatewayCounters(SaCounters(), link, link)
    monkeypatch.setattr(counters, "read", lambda *_: {"home": still, "office": still})
    cast(Any, setup).streams = lambda *_: []
    return trial.measure(
        setup, Traffic(((64, 1),), 4, "one-way"), Request(500.0, SENDING_S, "final"), OfCase("0001", 0, 0.01),
        Waits(learning_s=0.0, residue_s=RESIDUE_S, settle_s=0.0), on_progress=lambda _: None, sleep=lambda _: None,
    )  # fmt: skip


@pytest.mark.parametrize("lost", [0, 3])
@pytest.mark.parametrize("by", ["others", "hypervisor"])
@pytest.mark.parametrize(
    ("before", "sending", "after", "void"),
    [
        (0.0, 0.08, 0.0, True),
        (0.0, 0.03, 0.0, False),
        (0.0, 0.0, 0.25, False),  # frames come late
        (0.0, 0.0, 0.90, True),  # they may not come at all
        (0.5, 0.0, 0.0, False),  # nothing was sent yet
    ],
)
def test_starvation_and_steal_are_those_of_the_time_of_sending(
    monkeypatch: pytest.MonkeyPatch,
    lost: int,
    by: str,
    before: float,
    sending: float,
    after: float,
    void: bool,
) -> None:
    recorded = made(monkeypatch, World(lost, before, sending, after, by=by, tells=True))
    assert (recorded.validity == "INVALID") is void
    assert recorded.disturbed is void


def test_a_generator_that_does_not_say_when_it_sends_is_judged_by_the_whole_trial(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """8 % of the 2 s of sending are 2.7 % of all 6 s."""
    recorded = made(monkeypatch, World(0, 0.0, 0.08, 0.0, by="hypervisor", tells=False))
    assert (recorded.validity, recorded.host["elapsed_s"], recorded.host["residue"]) == ("VALID", 6.0, None)


def test_the_record_says_which_time_was_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = made(monkeypatch, World(0, 0.0, 0.03, 0.0, by="hypervisor", tells=True))
    assert recorded.host["elapsed_s"] == SENDING_S
    assert recorded.host["residue"]["elapsed_s"] == RESIDUE_S


def test_a_gateway_that_cannot_be_read_in_mid_trial_breaks_no_conversation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The generator's answer is still to come. After it the trial is broken: CPU time may be lost."""
    world = World(0, 0.0, 0.0, 0.0, by="nobody", tells=True)
    with pytest.raises(TrialBroken, match="what it used is not known"):
        made(monkeypatch, world)
    assert world.now_s == 2 * (PREPARING_S + SENDING_S + RESIDUE_S)  # learning frames and the trial


def test_a_port_that_has_another_speed_than_before_voids_the_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    slower = Reason.of(Code.SPEED_CHANGED, port="west", interface="eth7", mbps=100.0, first_mbps=1000.0)
    monkeypatch.setattr(network_events, "other_speeds", lambda setup: [slower])
    trial_made = made(monkeypatch, World(0, 0.0, 0.0, 0.0, by="others", tells=True))
    assert (trial_made.validity, trial_made.reasons) == ("INVALID", [slower])
