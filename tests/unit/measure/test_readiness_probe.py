# SPDX-License-Identifier: Apache-2.0
"""Before the first trial: probe frames that a busy host did not let leave, and frames that crossed in clear."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espbench.generators.base import EspCounts
from espbench.measure.inputs.setup import Setup
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.proof import counters
from espbench.measure.proof.counters import GatewayCounters
from espbench.measure.proof.readiness import InClear, NotReady, carried, establish
from espbench.platforms.base import LinkCounters
from espbench.sentences import Code
from espbench.stacks.base import SaCounters


def boxes(*counts: tuple[int, int]) -> Setup:
    """Boxes without a stack of ours; (sent, arrived) of each probe."""
    probes = iter(counts)

    def offer(*asked: Any, **settings: Any) -> Any:
        sent, arrived = next(probes)
        stream = SimpleNamespace(tx_frames=sent, rx_frames=arrived)
        return SimpleNamespace(streams=[stream], ports=[], faults=[])

    streams = cast(Any, lambda traffic, rate: cast(Sequence[Any], []))
    return cast(Setup, SimpleNamespace(stack=None, generator=SimpleNamespace(offer=offer), streams=streams))


ONE_WAY = Traffic(((64, 1),), 4, "one-way")


def test_half_of_them_is_enough() -> None:
    assert establish(boxes((25, 24)), ONE_WAY) == {"path": "24 of 25 probe frames came through the DUT"}


def test_what_did_not_leave_is_sent_again_and_all_of_it_counts() -> None:
    """The gateways' counters saw both."""
    shown = establish(boxes((9, 8), (50, 50)), ONE_WAY)
    assert shown == {"path": "58 of 59 probe frames came through the DUT"}


def test_a_probe_reaches_each_of_many_tunnels() -> None:
    """Half of the frames would be through half of the tunnels."""
    of_many = Traffic(((64, 1),), 4, "one-way", tunnels=100)
    shown = establish(boxes((60, 60), (100, 100)), of_many)
    assert shown == {"path": "160 of 160 probe frames came through the DUT"}
    with pytest.raises(NotReady, match="is the host busy"):
        establish(boxes((99, 99), (99, 99), (99, 99)), of_many)


def test_a_host_that_lets_none_leave_is_named() -> None:
    with pytest.raises(
        NotReady, match=r"sent 6 of 50 probe frames in 3 attempts; is the host busy\?"
    ) as busy:
        establish(boxes((2, 2), (2, 2), (2, 2)), ONE_WAY)
    assert busy.value.code == Code.PROBES_NOT_SENT


def pair(*counts: tuple[int, int], clear: int = 0, foreign: int | None = 0) -> Setup:
    """Gateways with an encrypting stack; (sent, arrived) of each probe, clear: frames that the tester saw in clear,
    foreign: frames of others, None if they count as received.
    """
    setup = boxes(*counts)
    esp = EspCounts(cleartext=clear)
    offer = setup.generator.offer

    def offered(*asked: Any, **settings: Any) -> Any:
        result: Any = offer(*asked, **settings)
        result.ports = [SimpleNamespace(esp=esp, foreign=foreign)]
        return result

    stack = SimpleNamespace(encrypts=True, block=lambda: None, establish=lambda: None)
    return cast(
        Setup,
        SimpleNamespace(
            stack=stack, bed=SimpleNamespace(virtual_time=False, ciphertext=None), streams=setup.streams,
            generator=SimpleNamespace(offer=offered), peer=None,
        ),
    )  # fmt: skip


QUIET = LinkCounters(0, 0, 0, 0, 0, 0)


def reads(monkeypatch: pytest.MonkeyPatch, *encrypted: int, spis: Sequence[int] = ()) -> None:
    """Let Home's SAs have encrypted this, read after read; spis: the SA of each, else always the same."""
    numbers = iter(spis or [1] * len(encrypted))
    readings = iter(encrypted)

    def read(*_: Any) -> Any:
        sas = SaCounters(encrypted=next(readings), spis=frozenset({next(numbers)}))
        return {"home": GatewayCounters(sas, QUIET, QUIET)}

    monkeypatch.setattr(counters, "read", read)


def test_cleartext_that_no_block_stops_is_a_leak() -> None:
    """The network works, cleartext is blocked, no tunnel is up, and yet a frame arrives."""
    with pytest.raises(InClear, match="1 of 50 probe frames arrived without an SA"):
        establish(pair((50, 50), (50, 1)), ONE_WAY)


def test_frames_that_cross_beside_the_sas_are_a_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    """All 50 arrive, Home's SAs counted 49 of them, however long they are waited for."""
    waits: list[float] = []
    reads(monkeypatch, 100, *[149] * 16)
    with pytest.raises(InClear, match="50 frames crossed, its SAs counted 49 encrypted"):
        carried(pair((50, 50)), ONE_WAY, waits.append)
    assert sum(waits) == pytest.approx(3.0)


def test_frames_of_others_are_no_leak_if_they_count_as_received(monkeypatch: pytest.MonkeyPatch) -> None:
    """One frame of another device came while cleartext was blocked, or in place of a frame that was lost."""
    with pytest.raises(NotReady, match="or others sent frames to the tester") as before:
        establish(pair((50, 50), (50, 1), foreign=None), ONE_WAY)
    reads(monkeypatch, 100, *[149] * 16)
    with pytest.raises(NotReady, match="its SAs counted 49 encrypted") as after:
        carried(pair((50, 50), foreign=None), ONE_WAY, lambda _: None)
    assert not any(isinstance(caught.value, InClear) for caught in (before, after))


def test_a_late_counter_is_no_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway was kept from its CPU: the next look has all."""
    reads(monkeypatch, 100, 149, 150)
    assert carried(pair((50, 50)), ONE_WAY, lambda _: None) == (50, 50)


@pytest.mark.parametrize(("after", "spis"), [((149,) * 16, (1, *[2] * 16)), ((151,), ())])
def test_sas_that_were_replaced_or_counted_more_show_no_leak(
    monkeypatch: pytest.MonkeyPatch, after: tuple[int, ...], spis: tuple[int, ...]
) -> None:
    """Nobody knows what the old SAs carried; more than was sent is other traffic. Not ready, no leak."""
    reads(monkeypatch, 100, *after, spis=spis)
    with pytest.raises(NotReady) as caught:
        carried(pair((50, 50)), ONE_WAY, lambda _: None)
    assert not isinstance(caught.value, InClear)


def test_what_the_tester_sees_in_clear_is_a_leak_whether_the_frames_arrive_or_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At the tester's own end of the tunnel such a frame does not count as received."""
    reads(monkeypatch, 100, 148)
    with pytest.raises(InClear, match="2 frames reached the tester in clear"):
        carried(pair((50, 48), clear=2), ONE_WAY, lambda _: None)


def opens(monkeypatch: pytest.MonkeyPatch, *decrypted: int, spis: Sequence[int] = ()) -> None:
    """Let Office's SAs have decrypted this, read after read, and Home's have encrypted every frame sent."""
    numbers = iter(spis or [1] * len(decrypted))
    readings = iter(decrypted)
    sent = iter(range(0, 50 * len(decrypted), 50))

    def read(*_: Any) -> Any:
        spi = frozenset({next(numbers)})
        home = SaCounters(encrypted=next(sent), spis=spi)
        office = SaCounters(decrypted=next(readings), spis=spi)
        return {
            side: GatewayCounters(sas, QUIET, QUIET) for side, sas in (("home", home), ("office", office))
        }

    monkeypatch.setattr(counters, "read", read)


def test_cleartext_in_a_probe_with_losses_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """30 of 50 arrive, Office decrypted 20 of them; that the next probe is whole does not matter."""
    waits: list[float] = []
    opens(monkeypatch, 100, *[120] * 16)
    with pytest.raises(InClear, match="30 of 50 frames arrived, the gateways' SAs counted only 20"):
        carried(pair((50, 30), (50, 50)), ONE_WAY, waits.append)
    assert sum(waits) == pytest.approx(3.0)


def test_losses_behind_the_decryption_are_no_cleartext(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that arrived were decrypted, the last ones a moment late; the next probe decides."""
    opens(monkeypatch, 0, 28, 30, 30, 80)
    assert carried(pair((50, 30), (50, 50)), ONE_WAY, lambda _: None) == (50, 50)


@pytest.mark.parametrize(
    ("first", "spis"), [((50, 30), (1, *[2] * 18)), ((29, 30), ())], ids=["SAs replaced", "tester in doubt"]
)
def test_counts_in_doubt_show_no_cleartext(
    monkeypatch: pytest.MonkeyPatch, first: tuple[int, int], spis: tuple[int, ...]
) -> None:
    opens(monkeypatch, 100, *[120] * 16, 120, 170, spis=spis)
    assert carried(pair(first, (50, 50)), ONE_WAY, lambda _: None) == (50, 50)


@given(st.integers(0, 49), st.integers(0, 50))
def test_no_more_may_arrive_than_were_opened(arrived: int, opened: int) -> None:
    """Whatever is lost, and wherever."""
    with pytest.MonkeyPatch.context() as patch:
        opens(patch, 0, *([opened] if opened >= arrived else [opened] * 16), opened, opened + 50)
        if arrived > opened:
            with pytest.raises(InClear):
                carried(pair((50, arrived), (50, 50)), ONE_WAY, lambda _: None)
        else:
            assert carried(pair((50, arrived), (50, 50)), ONE_WAY, lambda _: None) == (50, 50)
