# SPDX-License-Identifier: Apache-2.0
"""Loss in a stall of the host is the host's; loss beside it is the DUT's."""

from __future__ import annotations

from espbench.generators.base import LossEpisode, Stall, StreamCounts
from espbench.measure.validity.stalls import (
    covered,
    lost_within,
    of_the_sender,
    own_ms,
    share_of_outage,
    windows,
)
from support.generators.streams import counts

MS = 1_000_000


def stream(*episodes: tuple[int, int, int]) -> StreamCounts:
    lost = sum(n for _, _, n in episodes)
    listed = [LossEpisode(from_ns=a, to_ns=b, frames=n) for a, b, n in episodes]
    return counts(1000, 1000 - lost, loss_episodes=listed)


def test_loss_during_a_host_stall_is_booked_to_the_stall() -> None:
    """Frames due while a CPU stood still."""
    spans = windows([Stall(cpu=1, at_ns=100 * MS, ms=5.0)], [])
    assert lost_within(stream((101 * MS, 104 * MS, 27)), spans) == 27


def test_loss_long_after_a_stall_is_the_duts() -> None:
    """A stall at one time does not excuse a loss at another."""
    spans = windows([Stall(cpu=1, at_ns=100 * MS, ms=5.0)], [])
    assert lost_within(stream((500 * MS, 501 * MS, 27)), spans) == 0


def test_what_the_dut_itself_may_do_in_softirq_is_no_stall_of_the_host() -> None:
    """A kernel forwards for up to 2 ms at a stretch: that delays a watcher too, and excuses nothing."""
    assert windows([Stall(cpu=1, at_ns=100 * MS, ms=2.0)], []) == []
    assert windows([Stall(cpu=1, at_ns=100 * MS, ms=2.6)], []) != []


def test_a_slow_dut_keeps_its_cpu_for_a_poll_of_64_frames_longer() -> None:
    """At 40 µs a frame its softirq may end 2.56 ms after the time was up: 4.5 ms is its own doing, 6 ms is not."""
    slow = own_ms(40.0)
    assert 4.5 < slow < 6.0
    assert windows([Stall(cpu=1, at_ns=100 * MS, ms=4.5)], [], slow) == []
    assert windows([Stall(cpu=1, at_ns=100 * MS, ms=6.0)], [], slow) != []
    assert own_ms(None) == 2.5


def test_a_sender_says_itself_when_it_had_made_a_stall_good() -> None:
    """Until then its frames left faster than the load; from then on they did not."""
    spans = windows([], [Stall(at_ns=100 * MS, ms=5.0, until_ns=120 * MS)])
    assert spans == [(99 * MS, 122 * MS)]


def test_a_pause_that_held_back_a_few_frames_made_no_burst() -> None:
    """At 1,000 frames/s one of 7 ms held back 7 frames, which no ring notices; one of 9 ms held back 9."""
    sent = stream().model_copy(update={"tx_stalls": [Stall(at_ns=0, ms=7.0), Stall(at_ns=100 * MS, ms=9.0)]})
    assert [stall.ms for stall in of_the_sender(sent, 1.0)] == [9.0]
    assert [stall.ms for stall in of_the_sender(sent, 0.1)] == [7.0, 9.0]


def test_windows_cover_a_share_of_the_trial() -> None:
    """Only what lies within it counts."""
    assert covered([(0, 10), (90, 120)], 0, 100) == 0.2
    assert covered([], 0, 100) == 0.0


def test_a_single_lost_frame_has_a_time_too() -> None:
    """An episode of one frame has no length; it counts where it was due."""
    spans = windows([], [Stall(at_ns=100 * MS, ms=2.0)])
    assert lost_within(stream((110 * MS, 110 * MS, 1), (900 * MS, 900 * MS, 1)), spans) == 1


def test_a_long_episode_is_shared_between_stall_and_dut() -> None:
    """Half of the time in which frames were lost lay in the stall's window."""
    spans = windows([Stall(cpu=0, at_ns=100 * MS, ms=10.0)], [])
    ((start, end),) = spans
    episode = (end - 5 * MS, end + 5 * MS, 100)
    assert start < episode[0]
    assert lost_within(stream(episode), spans) == 50


def test_overlapping_stalls_are_counted_once() -> None:
    """Sender and watcher see the same stall: its frames are not booked twice."""
    spans = windows([Stall(cpu=0, at_ns=100 * MS, ms=5.0)], [Stall(at_ns=100 * MS, ms=5.0)])
    assert len(spans) == 1
    assert lost_within(stream((100 * MS, 105 * MS, 40)), spans) == 40


def test_a_stall_while_catching_up_has_both_to_make_good() -> None:
    """Two stalls of 20 ms, 100 ms apart: at 1.1 times the rate the second is made good 400 ms later."""
    spans = windows([], [Stall(at_ns=200 * MS, ms=20.0), Stall(at_ns=100 * MS, ms=20.0)])
    assert len(spans) == 1
    assert lost_within(stream((515 * MS, 515 * MS, 7)), spans) == 7
    assert lost_within(stream((530 * MS, 530 * MS, 7)), spans) == 0


def test_the_hosts_share_of_an_outage() -> None:
    """A CPU stood still for 20 of 100 ms without traffic, the sender for 5: 20 count, none outside."""
    out = stream((1000 * MS, 1100 * MS, 100)).model_copy(
        update={
            "first_lost_ns": 1000 * MS,
            "last_lost_ns": 1100 * MS,
            "tx_stalls": [Stall(at_ns=1050 * MS, ms=5.0)],
        }
    )
    stood = [
        Stall(cpu=0, at_ns=990 * MS, ms=20.0),
        Stall(cpu=0, at_ns=1060 * MS, ms=10.0),
        Stall(cpu=1, at_ns=1200 * MS, ms=500.0),
    ]
    assert round(share_of_outage(out, stood), 3) == 0.2
    assert round(share_of_outage(out, []), 3) == 0.05
    assert share_of_outage(stream(), stood) == 0.0
