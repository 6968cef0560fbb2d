# SPDX-License-Identifier: Apache-2.0
"""Tests what share of a trial stalls cover, whatever their number and its load (docs/method.md, rule 7)."""

from __future__ import annotations

from typing import Any

import pytest

from espbench.generators.base import LossEpisode, Offered, Stall, StreamCounts
from espbench.measure.inputs.setup import Request, Shape
from espbench.measure.validity.backlog import judge
from espbench.measure.validity.standing_still import StandingStill, standing_still
from espbench.sentences import Code
from support.generators.streams import counts

MS = 1_000_000


def stream(seconds: float, frames: int, lost: int = 0, **more: Any) -> StreamCounts:
    """A stream that lost its frames at the middle of the trial."""
    at_ns = int(seconds * 5e8)
    listed = [LossEpisode(from_ns=at_ns, to_ns=at_ns, frames=lost)] if lost else []
    usual: dict[str, Any] = {"duration_s": seconds, "loss_episodes": listed}
    return counts(frames, frames - lost, **usual | more)


def still(
    seconds: float, *streams: StreamCounts, shape: Shape | None = None, host: Any = None, **more: Any
) -> StandingStill:
    """Return what stalls did to a trial of this length, final or, with a shape, of a test that does not search."""
    offered = Offered.model_validate(
        {
            "start_ns": 0, "last_tx_ns": int(seconds * 1e9), "duration_s": seconds, "intended_duration_s": seconds,
            "streams": [], "ports": [], "stalls_watched": True, **more,
        }
    ).model_copy(update={"streams": list(streams)})  # fmt: skip
    request = Request(100_000.0, seconds, "measure" if shape else "final", shape=shape or Shape())
    quiet = [judge([], seconds, 0.01) for _ in streams]
    return standing_still(request, offered, host or {}, None, quiet, 0.01, outage=False)


@pytest.mark.parametrize(
    ("last_lost_s", "listed", "void"),
    [(97.01, True, True), (60.2, True, False), (59.0, True, False), (97.5, True, False), (97.5, False, True)],
)
def test_a_recovery_does_not_end_with_a_frame_that_was_lost_in_a_stall(
    last_lost_s: float, listed: bool, void: bool
) -> None:
    """An overload of 60 s lost thousands of frames; the host stands still for 20 ms 37 s later."""
    overload = LossEpisode(from_ns=10**9, to_ns=60 * 10**9, frames=9_990)
    late = LossEpisode(from_ns=int(last_lost_s * 1e9), to_ns=int(last_lost_s * 1e9), frames=10)
    lossy = stream(
        120.0, 1_000_000, 10_000, loss_episodes=[overload, late], first_lost_ns=10**9,
        last_lost_ns=int(last_lost_s * 1e9),
    )  # fmt: skip
    more = {} if listed else {"host_stalls_more": 1, "host_stalls_more_ms": 3.0}
    steps = Shape(steps=((60.0, 0.5),))
    made = still(120.0, lossy, shape=steps, host_stalls=[Stall(at_ns=97 * 10**9, ms=20.0)], **more)
    assert [reason.code for reason in made.reasons] == [Code.HOST_STALL_AT_THE_END] * void


@pytest.mark.parametrize(("in_stall", "outside", "void"), [
    (0, 0, False), (3, 0, True), (0, 3, False), (500, 50, True), (50, 500, False), (50, 50, False),
])  # fmt: skip
@pytest.mark.parametrize("searched", [False, True])
def test_a_measured_trial_is_void_if_most_of_its_loss_was_in_a_stall(
    in_stall: int, outside: int, void: bool, searched: bool
) -> None:
    """The host stands still for 20 ms of 10 s. A search's trial stands in any case: the search excuses the loss."""
    listed = [
        LossEpisode(from_ns=at * MS, to_ns=at * MS, frames=frames)
        for at, frames in ((5_000, in_stall), (8_000, outside))
        if frames
    ]
    one = stream(10.0, 1_000_000, in_stall + outside, loss_episodes=listed)
    shape = None if searched else Shape(tag_at_s=5.0)
    judged = still(10.0, one, shape=shape, host_stalls=[Stall(cpu=0, at_ns=4_990 * MS, ms=20.0)])
    assert judged.lost == [in_stall]
    assert [reason.code for reason in judged.reasons] == [Code.HOST_STALL_OF_LOSS] * (void and not searched)


@pytest.mark.parametrize(("lost", "stalls", "inside", "void"), [
    (10_000, 1, 0, False),  # fewer than the DUT loses in the same time without the stall
    (11_500, 1, 1_610, False),
    (20_000, 5, 10_450, True),
    (30_000, 1, 2_079, False),  # no more frames left in the stall
    (30_000, 0, 0, False),
])  # fmt: skip
def test_losses_that_are_not_listed_are_compared_with_those_that_are(
    lost: int, stalls: int, inside: int, void: bool
) -> None:
    """The DUT lost 1,000 frames in 100 ms, then the list was full; the host stood still later."""
    listed = [LossEpisode(from_ns=at * MS, to_ns=at * MS, frames=10) for at in range(100)]
    one = stream(1.0, 100_000, lost, loss_episodes=listed, loss_episodes_more=lost // 10 - 100)
    late = [Stall(cpu=0, at_ns=(200 + 90 * n) * MS, ms=8.0) for n in range(stalls)]
    judged = still(1.0, one, shape=Shape(tag_at_s=0.5), host_stalls=late)
    assert judged.lost == [pytest.approx(inside, abs=200)]
    assert [r.code for r in judged.reasons if r.code == Code.HOST_STALL_OF_LOSS] == [
        Code.HOST_STALL_OF_LOSS
    ] * void


def test_a_list_that_was_full_in_a_stall_at_the_beginning_excuses_no_more() -> None:
    """The DUT loses each tenth frame all the time; it is not known how many it loses outside the stalls."""
    listed = [LossEpisode(from_ns=at * 50_000, to_ns=at * 50_000, frames=1) for at in range(1000)]
    one = stream(2.0, 400_000, 40_000, loss_episodes=listed, loss_episodes_more=39_000)
    judged = still(2.0, one, host_stalls=[Stall(cpu=0, at_ns=at * MS, ms=90.0) for at in (0, 1000)])
    assert judged.lost == [1000]


@pytest.mark.parametrize("lost", [0, 30])
@pytest.mark.parametrize(("ms", "void"), [(3.0, False), (12.0, True)])
def test_whether_a_burst_counts_does_not_depend_on_its_loss(lost: int, ms: float, void: bool) -> None:
    """The longest burst is searched: if only bursts that lost frames were repeated, a burst would pass by luck."""
    listed = [LossEpisode(from_ns=150 * MS, to_ns=150 * MS, frames=lost)] if lost else []
    one = stream(0.2, 20_000, lost, loss_episodes=listed)
    judged = still(
        0.2, one, shape=Shape(burst_frames=20_000), host_stalls=[Stall(cpu=0, at_ns=149 * MS, ms=ms)]
    )
    assert [reason.code for reason in judged.reasons] == [Code.HOST_STALL] * void


@pytest.mark.parametrize(("listed", "excused"), [(True, 3), (False, 0)])
def test_no_loss_is_excused_whose_time_is_not_known(listed: bool, excused: int) -> None:
    """Three frames were lost; if some frames never left, the generator lists none of them."""
    at = LossEpisode(from_ns=5_000 * MS, to_ns=5_000 * MS, frames=3)
    one = stream(10.0, 1_000_000, 3, loss_episodes=[at] * listed, loss_episodes_more=int(not listed))
    judged = still(10.0, one, host_stalls=[Stall(cpu=0, at_ns=4_990 * MS, ms=20.0)])
    assert (judged.lost, judged.reasons) == ([excused], [])


def pauses(per_second: int, seconds: float, listed: int) -> dict[str, Any]:
    """So many pauses of 2 ms a second, each made good after 20 ms more; the generator lists the first of them."""
    whole = [
        Stall(at_ns=int(n * 1e9 / per_second), ms=2.0, until_ns=int(n * 1e9 / per_second) + 22 * MS)
        for n in range(round(per_second * seconds))
    ]
    more = len(whole) - listed
    return {"tx_stalls": whole[:listed], "tx_stalls_more": more, "tx_stalls_more_ms": 22.0 * more}


@pytest.mark.parametrize("lost", [0, 3])
def test_stalls_of_senders_that_are_not_listed_cover_the_trial_too(lost: int) -> None:
    """40 pauses a second for 60 s leave no time without one, whether all 2,400 are listed, or 200 of them."""
    whole = still(60.0, stream(60.0, 6_000_000, lost, **pauses(40, 60.0, listed=2400)))
    cut = still(60.0, stream(60.0, 6_000_000, lost, **pauses(40, 60.0, listed=200)))
    assert whole.share == pytest.approx(1.0, abs=0.01)
    assert cut.share == pytest.approx(whole.share, abs=0.01)
    assert [reason.code for reason in cut.reasons] == [reason.code for reason in whole.reasons] != []


def test_few_stalls_beyond_the_list_do_not_void_a_trial() -> None:
    """Four pauses a second cover 10 % of the time, two cover 5 %: the same by the sum as by the list."""
    whole = still(600.0, stream(600.0, 60_000_000, **pauses(2, 600.0, listed=1200)))
    cut = still(600.0, stream(600.0, 60_000_000, **pauses(2, 600.0, listed=1000)))
    assert cut.share == pytest.approx(whole.share, rel=0.01)
    assert cut.reasons == []


def test_stalls_in_both_directions_at_once_are_counted_once() -> None:
    """One CPU sends both ways: each pause is in both streams, in the list and beyond it."""
    one = stream(60.0, 3_000_000, **pauses(2, 60.0, listed=60))
    assert still(60.0, one, one).share == pytest.approx(still(60.0, one).share, rel=0.01)


def test_pauses_that_made_no_burst_count_no_more_beyond_the_list() -> None:
    """At 1,000 frames/s, 2 ms hold back two frames, which no ring notices."""
    assert still(60.0, stream(60.0, 60_000, **pauses(40, 60.0, listed=200))).share == 0.0


def test_what_may_be_the_duts_softirq_voids_no_trial_because_a_senders_list_was_cut() -> None:
    """A DUT kept its CPU for 600 ms of 2 s, 2 ms at a time. One pause of the sender was not listed."""
    of_dut: dict[str, Any] = {"host_stall_ms_total": {"1": 600.0}}
    one = stream(2.0, 200_000, **pauses(1, 2.0, listed=1))
    assert still(2.0, one, **of_dut).reasons == []


def test_stalls_of_the_host_that_are_not_listed_cover_the_trial_too() -> None:
    """Stalls of 5 ms every 50 ms: 600 are listed, 600 not; those of 2 ms may be the DUT's, and do not count."""
    every = [Stall(cpu=0, at_ns=n * 50 * MS, ms=5.0) for n in range(1200)]
    whole = still(60.0, stream(60.0, 6_000_000), host_stalls=every)
    cut: dict[str, Any] = {"host_stalls": every[:600], "host_stalls_more": 600, "host_stalls_more_ms": 3000.0}
    assert still(60.0, stream(60.0, 6_000_000), **cut).share == pytest.approx(whole.share, rel=0.01)
    assert whole.reasons
    short = [stall.model_copy(update={"ms": 2.0}) for stall in every[:600]]
    assert still(60.0, stream(60.0, 6_000_000), **(cut | {"host_stalls": short})).share == 0.0


def test_stalls_seen_by_a_watcher_that_waited_itself_are_not_the_hosts() -> None:
    """Without SCHED_FIFO it cannot tell."""
    many: dict[str, Any] = {
        "host_stalls": [Stall(cpu=0, at_ns=0, ms=900.0)],
        "host_stalls_more": 9,
        "host_stalls_more_ms": 500.0,
    }
    assert still(1.0, stream(1.0, 100_000), **many).reasons
    assert still(1.0, stream(1.0, 100_000), stalls_watched=False, **many).share == 0.0


@pytest.mark.parametrize("lost", [0, 1])
@pytest.mark.parametrize(
    ("stalls", "host", "void"),
    [
        ([Stall(cpu=0, at_ns=n * 50 * MS, ms=30.0) for n in range(20)], {}, True),
        ([], {"starved_pct": 50.0}, True),
        ([], {"steal_pct": {"0": 9.0}}, True),
        ([Stall(cpu=0, at_ns=100 * MS, ms=5.0)], {"starved_pct": 4.0}, False),
    ],
)
def test_a_burst_is_void_by_the_same_rule_whether_it_passed_or_lost(
    lost: int, stalls: list[Stall], host: dict[str, Any], void: bool
) -> None:
    """A burst of 1 s while the host stood still, or others had the gateways' CPUs."""
    judged = still(
        1.0, stream(1.0, 100_000, lost), shape=Shape(burst_frames=100_000), host=host, host_stalls=stalls
    )
    assert bool(judged.reasons) is void


def test_pauses_of_its_sender_void_no_burst() -> None:
    """Frames held back arrive no faster than others: the procedure judges what the DUT drained meanwhile."""
    judged = still(1.0, stream(1.0, 100_000, **pauses(40, 1.0, listed=20)), shape=Shape(burst_frames=100_000))
    assert (judged.share, judged.reasons) == (0.0, [])
