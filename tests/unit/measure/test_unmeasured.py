# SPDX-License-Identifier: Apache-2.0
"""Learning and warm-up frames are in no figure, but cleartext among them is a leak as any other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from espbench.generators.base import EspCounts, Offered, PortCounts
from espbench.measure import trial
from espbench.measure.inputs.setup import Request, Setup, TrialBroken, Waits
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.proof import counters
from espbench.measure.proof.counters import Counters, GatewayCounters
from espbench.measure.proof.readiness import InClear
from espbench.measure.record import OfCase
from espbench.measure.unmeasured import learn, warm_up
from espbench.measure.validity import daemons
from espbench.platforms import placement
from espbench.platforms.base import LinkCounters, Testbed
from espbench.stacks.base import SaCounters
from support.generators.streams import counts

TRAFFIC = Traffic(((64, 1),), 4, "one-way")


class Bed(Testbed):
    """There are no ports and no gateways: the tests say what the counters are."""

    def close(self) -> None: ...


def setup(
    sent: int = 10,
    arrived: int = 10,
    *,
    virtual_time: bool = False,
    clear: int = 0,
    faults: Sequence[str] = (),
) -> Setup:
    """Make gateways that encrypt, and a generator with these counts. clear: frames it saw in clear itself."""
    stream = counts(sent, arrived, latency_us=None)
    esp = EspCounts(cleartext=clear) if clear else None
    offered = Offered(
        stalls_watched=True,
        start_ns=0, last_tx_ns=10**8, duration_s=0.1, intended_duration_s=0.1, streams=[stream], faults=[*faults],
        ports=[PortCounts(name="east", rx_overrun=0, foreign=0, esp=esp)],
    )  # fmt: skip
    bed = Bed("netns", "", {}, {}, placement.choose(allowed={0, 1}), {}, virtual_time=virtual_time)
    stack = SimpleNamespace(encrypts=True, rest=lambda: None, sas=1)
    made = Setup(bed, cast(Any, SimpleNamespace(offer=lambda *_, **__: offered)), cast(Any, stack), {})
    cast(Any, made).streams = lambda traffic, load_fps: []
    return made


def counted(encrypted: int, left_home: int, decrypted: int, left_office: int, spi: int = 1) -> Counters:
    def link(tx: int) -> LinkCounters:
        return LinkCounters(0, tx, 0, 0, 0, 0)

    spis = frozenset({spi})
    return {
        "home": GatewayCounters(SaCounters(encrypted=encrypted, spis=spis), link(0), link(left_home)),
        "office": GatewayCounters(SaCounters(decrypted=decrypted, spis=spis), link(left_office), link(0)),
    }


NONE, ALL = counted(0, 0, 0, 0), counted(10, 10, 10, 10)
CLEAR = counted(8, 10, 8, 8)


def reads(monkeypatch: pytest.MonkeyPatch, *readings: Counters) -> None:
    """The counters, read after read; then they stay as they are."""
    left = [*readings]
    monkeypatch.setattr(counters, "read", lambda *_: left.pop(0) if len(left) > 1 else left[0])


def learning(of: Setup) -> None:
    learn(of, TRAFFIC, 2.0, fragments=False, sleep=lambda _: None)


def warming(of: Setup) -> None:
    warm_up(of, TRAFFIC, 1000.0, 1.0, fragments=False, sleep=lambda _: None)


@pytest.mark.parametrize(("send", "name"), [(learning, "learning frames"), (warming, "warm-up")])
def test_frames_that_cross_in_clear_before_a_trial_are_a_leak(
    monkeypatch: pytest.MonkeyPatch, send: Callable[[Setup], None], name: str
) -> None:
    """Two of ten left Home beside its SA, and Office dropped them."""
    reads(monkeypatch, NONE, NONE, CLEAR)
    with pytest.raises(InClear, match=f"{name}: west-east: 10 frames left home, it encrypted 8: cleartext"):
        send(setup(arrived=8))
    reads(monkeypatch, NONE, NONE, ALL)
    send(setup())


def test_a_trial_is_not_made_after_such_a_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says that there is cleartext, and not that a trial broke."""
    reads(monkeypatch, NONE, NONE, CLEAR)
    with pytest.raises(InClear) as caught:
        trial.measure(
            setup(arrived=8), TRAFFIC, Request(1000.0, 1.0, "final"), OfCase("0001", 0, 0.01), Waits(),
            sleep=lambda _: None,
        )  # fmt: skip
    assert not isinstance(caught.value, TrialBroken)


@pytest.mark.parametrize(
    ("after", "error"),
    [
        (counted(18, 20, 18, 18), InClear), (counted(20, 20, 20, 20), TrialBroken),
        (counted(18, 20, 18, 18, spi=2), TrialBroken),
    ],
    ids=["cleartext", "all encrypted", "SAs replaced"],
)  # fmt: skip
def test_cleartext_counts_even_if_the_daemon_died_in_the_trial(
    monkeypatch: pytest.MonkeyPatch, after: Counters, error: type[Exception]
) -> None:
    """Otherwise the gateways would be built again, and a clean trial would end the case as proven."""
    reads(monkeypatch, NONE, NONE, ALL, ALL, ALL, ALL, after)
    monkeypatch.setattr(daemons, "dead", lambda _: ["charon of home died"])
    with pytest.raises(error) as caught:
        trial.measure(
            setup(), TRAFFIC, Request(1000.0, 1.0, "final"), OfCase("0001", 0, 0.01), Waits(), sleep=lambda _: None
        )  # fmt: skip
    assert type(caught.value) is error


@pytest.mark.parametrize(
    "readings",
    [
        [NONE, NONE, CLEAR, CLEAR, ALL],  # a counter was late
        [NONE, NONE, counted(8, 10, 8, 8, spi=2)],  # what the old SAs carried is not known
        [NONE, NONE, counted(8, 10, 8, -1)],  # a counter ran backwards
        [NONE, *(counted(n, n + 2, n, n) for n in range(1, 40))],  # nothing ever came to rest
    ],
    ids=["late", "SAs replaced", "backwards", "never at rest"],
)
def test_counters_in_doubt_accuse_nobody(monkeypatch: pytest.MonkeyPatch, readings: list[Counters]) -> None:
    reads(monkeypatch, *readings)
    learning(setup(arrived=8))


def test_the_testers_counts_accuse_only_if_they_are_not_in_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten arrived, eight of them were decrypted; nothing else left a gateway."""
    reads(monkeypatch, NONE, NONE, counted(8, 8, 8, 8))
    with pytest.raises(InClear, match="10 frames arrived, office decrypted 8"):
        learning(setup())
    for doubt in (setup(faults=["it does not know"]), setup(sent=9)):
        reads(monkeypatch, NONE, NONE, counted(8, 8, 8, 8))
        learning(doubt)


def test_in_virtual_time_only_what_the_tester_saw_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a counter costs the gateway instructions there, which its figures would contain."""
    asked: list[int] = []
    monkeypatch.setattr(counters, "read", lambda *_: asked.append(1))
    learning(setup(virtual_time=True))
    with pytest.raises(InClear, match="3 frames reached the tester in clear"):
        learning(setup(virtual_time=True, clear=3))
    assert asked == []
