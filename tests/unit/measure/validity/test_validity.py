# SPDX-License-Identifier: Apache-2.0
"""A bad trial was the fault of the tester, of the host, or of the DUT (docs/method.md, rules 2 and 7)."""

from __future__ import annotations

from typing import Any

import pytest

from espbench.generators.base import NoiseCounts, Offered, PortCounts
from espbench.measure.inputs.actions import Action, Performed, untimely
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.validity.faults import disturbance, taken_from_senders, tester_faults, virtual_faults
from espbench.measure.validity.host import CpuTimes, HostSnapshot, compare, cpu_times
from espbench.sentences import Code
from support.generators.streams import counts


def offered(tx: int = 1000, rx: int = 1000, intended: int = 1000, **changes: Any) -> Offered:
    stream = counts(tx, rx, intended_frames=intended, unsent=intended - tx)
    base = Offered(
        stalls_watched=True,
        start_ns=0, last_tx_ns=10**9, duration_s=1.0, intended_duration_s=1.0, streams=[stream],
        ports=[PortCounts(name="west", rx_overrun=0, foreign=0), PortCounts(name="east", rx_overrun=0, foreign=0)],
    )  # fmt: skip
    return base.model_copy(update=changes)


def test_a_clean_trial_has_no_fault() -> None:
    """All sent, all received, nothing odd."""
    assert tester_faults(offered(), 0, {}) == []


def test_too_few_frames_sent_is_the_generators_fault() -> None:
    """994 of 1000 is below 99.5 %, 995 is not."""
    assert "generator sent 994 of 1000" in tester_faults(offered(994, 994), 0, {})[0].text
    assert tester_faults(offered(995, 995), 0, {}) == []


def test_an_attack_that_was_weaker_than_asked_is_none() -> None:
    """Legitimate traffic under a weaker attack says nothing about the attack that was asked for."""
    noise = NoiseCounts.model_validate(
        {"id": 9, "from": "west", "intended_frames": 1000, "tx_frames": 994, "tx_refused": 0, "unsent": 6,
         "duration_s": 1.0, "departure_fps": None}
    )  # fmt: skip
    assert "noise 9: 994 of 1000" in tester_faults(offered(noise=[noise]), 0, {})[0].text
    flood = noise.model_copy(update={"intended_frames": None})
    strong = noise.model_copy(update={"tx_frames": 995})
    assert tester_faults(offered(noise=[strong, flood]), 0, {}) == []


def test_a_starved_tester_is_told_from_a_slow_one() -> None:
    """Too few frames sent while others had its CPU: a second reason, so that nothing is concluded of the DUT."""
    assert len(tester_faults(offered(500, 500), 0, {"sender_foreign_pct": 30.0})) == 2
    assert len(tester_faults(offered(500, 500), 0, {"sender_foreign_pct": 1.0})) == 1


def test_a_receiver_overrun_is_the_testers_fault() -> None:
    """A frame that reached the tester was not lost by the DUT."""
    assert "receiver overrun: 3 frames" in tester_faults(offered(rx=997), 3, {})[0].text


def test_more_received_than_sent_is_a_fault() -> None:
    """Counters that contradict each other cannot be trusted."""
    assert "more received" in tester_faults(offered(rx=1001), 0, {})[0].text


def test_a_direction_that_sent_nothing_is_a_fault() -> None:
    """It lost 0 frames of 0, which is no pass, also in a search, which takes the offered load."""
    both = offered()
    silent = both.streams[0].model_copy(update={"tx_frames": 0, "rx_frames": 0})
    both = both.model_copy(update={"streams": [*both.streams, silent]})
    assert [reason.code for reason in tester_faults(both, 0, {}, as_offered=True)] == [Code.SENT_NOTHING]


def test_a_clock_step_is_a_fault() -> None:
    """Latencies, and the backlog judged from them, are void when the clock jumps."""
    assert "clock stepped by -50.0 ms" in tester_faults(offered(clock_step_ns=-50_000_000), 0, {})[0].text
    assert "clock stepped by -0.8 ms" in tester_faults(offered(clock_step_ns=-800_000), 0, {})[0].text
    assert tester_faults(offered(clock_step_ns=20_000), 0, {}) == []


def test_a_search_takes_what_was_offered_for_the_load() -> None:
    """A search's trial that sent less, or later, is no fault: its load is what was offered."""
    assert tester_faults(offered(500, 500), 0, {"sender_foreign_pct": 30.0}, as_offered=True) == []
    assert len(tester_faults(offered(rx=997), 3, {}, as_offered=True)) == 1


def test_a_test_at_a_load_wants_that_load() -> None:
    """All frames left, in 1.2 s instead of 1 s: what it measured is another load's."""
    assert "in 1.200 s instead of 1.000 s" in tester_faults(offered(duration_s=1.2), 0, {})[0].text
    assert tester_faults(offered(duration_s=1.004), 0, {}) == []


@pytest.mark.parametrize(
    ("share", "host", "void"),
    [
        (0.24, {}, False),
        (0.26, {}, True),
        (0.0, {"starved_pct": 4.0}, False),
        (0.0, {"starved_pct": 8.0}, True),
        (0.0, {"steal_pct": {"0": 0.1, "1": 9.0}}, True),
        (0.0, {"steal_pct": {"0": 9.0}, "tick_pct": 4.7}, False),  # of 212 ms one tick is 4.7 %
        (0.0, {"steal_pct": {"0": 9.8}, "tick_pct": 4.7}, True),
        (0.0, {"foreign_pct": 50.0, "starved_pct": 0.5}, False),  # others used what the gateways did not want
    ],
)
def test_what_voids_a_trial_does_not_ask_whether_it_passed(
    share: float, host: dict[str, Any], void: bool
) -> None:
    """Stalls that cover more than 25 % of a trial, or others who took more than 5 % of the gateways' CPU, void it."""
    assert bool(disturbance(share, 0.0, host, final=True)) is void


@pytest.mark.parametrize(("by_host", "search", "final"), [(0.04, 0, 0), (0.06, 0, 1), (0.11, 1, 1)])
def test_the_hosts_stalls_have_limits_of_their_own(by_host: float, search: int, final: int) -> None:
    """A figure rests on final trials: there fewer losses of the DUT's own may be excused."""
    assert len(disturbance(0.2, by_host, {}, final=False)) == search
    assert len(disturbance(0.2, by_host, {}, final=True)) == final


@pytest.mark.parametrize(
    ("p50_us", "frames", "late"), [(29e3, 10**6, 0), (31e3, 10**6, 1), (125e3, 10, 0), (135e3, 10, 1)]
)
def test_a_trial_half_of_which_left_late_was_not_offered_as_it_says(
    p50_us: float, frames: int, late: int
) -> None:
    """Beyond 25 ms, the 0.5 % that a sender may fall behind, and one interval between frames."""
    trial = offered(frames, frames, frames)
    trial.streams[0] = trial.streams[0].model_copy(update={"lateness_us": {"p50": p50_us, "p99": 5000.0}})
    assert ["departures late" in fault.text for fault in tester_faults(trial, 0, {})] == [True] * late


def test_foreign_use_is_what_neither_gateway_used() -> None:
    """CPU 1 was busy for 900 ms, the gateways account for 700 ms of it: 20 % of a second is foreign."""
    before = HostSnapshot(0, 0, {0: CpuTimes(0, 0, 0), 1: CpuTimes(0, 0, 0)})
    after = HostSnapshot(
        10**9,
        5_000_000,
        {0: CpuTimes(5 * 10**8, 4 * 10**8, 0), 1: CpuTimes(7 * 10**7, 9 * 10**8, 3 * 10**7)},
    )
    use = compare(
        before, after, gateway_cpus={1}, gateway_ns=7 * 10**8, gateways_waited_ns=5 * 10**7, sender_cpus={0},
        sender_ns=3 * 10**8,
    )  # fmt: skip
    assert use["foreign_pct"] == 20.0
    assert use["sender_foreign_pct"] == 10.0  # 400 ms of tasks on CPU 0, 300 ms of them the tester's
    assert (use["gateways_waited_pct"], use["starved_pct"]) == (5.0, 5.0)
    assert use["steal_pct"] == {"0": 0.0, "1": 3.0}
    assert use["clock_step_ms"] == 5.0


def test_what_the_books_cannot_tell_is_nobodys() -> None:
    """/proc/stat counts in ticks of 10 ms: of a trial of 200 ms one of them is 5 %, and may be the gateways' own."""
    before = HostSnapshot(0, 0, {1: CpuTimes(0, 0, 0)})
    after = HostSnapshot(2 * 10**8, 0, {1: CpuTimes(10**8, 0, 0)})
    use = compare(
        before, after, gateway_cpus={1}, gateway_ns=88_000_000, gateways_waited_ns=10**8, sender_cpus=set(),
        sender_ns=0,
    )  # fmt: skip
    assert (use["foreign_pct"], use["tick_pct"]) == (6.0, 5.0)
    assert use["starved_pct"] == 1.0


@pytest.mark.parametrize(("together", "expected"), [(False, 17.0), (True, 7.0)])
def test_waiting_for_the_testers_own_receiver_is_nobodys_fault(together: bool, expected: float) -> None:
    """The sender waited 150 ms of 1 s, 100 for the receiver on its CPU; the host stood still for 20."""
    waited = offered(
        senders_wait_ms=150.0, receivers_run_ms=100.0, host_stall_ms_total={"0": 20.0, "1": 500.0}
    )
    assert taken_from_senders(waited, [0], together=together) == {"sender_foreign_pct": expected}
    both_ways = waited.model_copy(update={"streams": waited.streams * 2})  # by the same CPU
    assert taken_from_senders(both_ways, [0], together=together) == {"sender_foreign_pct": expected}
    assert taken_from_senders(offered(), [0], together=together) == {}
    unwatched = waited.model_copy(update={"stalls_watched": False})  # by a watcher that had to wait itself
    less = {"sender_foreign_pct": expected - 2.0}
    assert taken_from_senders(unwatched, [0], together=together) == less


def test_stat_is_read_field_by_field() -> None:
    """proc(5): user nice system idle iowait irq softirq steal, in clock ticks of 10 ms."""
    times = cpu_times("cpu  1 1 1 1 1 1 1 1 0 0\ncpu0 1 2 3 1000 500 4 5 6 0 0\nintr 5\n")
    assert times == {0: CpuTimes(idle_ns=15_000_000_000, task_ns=60_000_000, steal_ns=60_000_000)}


@pytest.mark.parametrize(("late_us", "faults"), [(0.001, 0), (1.5, 1)])
def test_in_virtual_time_nothing_is_late(late_us: float, faults: int) -> None:
    """But what is beyond the rate of the link, or waits for a longer frame of a mix."""
    made = offered()
    late = made.streams[0].model_copy(update={"lateness_us": {"p50": 0.001, "p99": 0.001, "max": late_us}})
    made = made.model_copy(update={"streams": [late]})
    assert len(virtual_faults(made, Traffic(((64, 1),), 4, "one-way"))) == faults
    assert virtual_faults(made, Traffic(((64, 7), (1518, 1)), 4, "one-way")) == []


@pytest.mark.parametrize(
    ("began_s", "ended_s", "lasts", "spoils"),
    [
        (2.9, 3.9, False, False),
        (3.9, 15.0, True, False),  # a gateway that is switched on takes its time
        (3.0, 15.0, False, True),  # SAs deleted by an agent that the host kept from running
        (14.0, 14.3, True, True),
        (1.5, 1.6, False, True),  # frames set out late: nothing flowed yet when it was done
    ],
)
def test_what_was_not_done_at_its_time_spoils_the_trial(
    began_s: float, ended_s: float, lasts: bool, spoils: bool
) -> None:
    """Asked for 3 s after the first frame: an outage that began elsewhere in the trial is another one."""
    first = 10**12
    done = Performed(
        Action("dying", 3.0, dict, lasts=lasts), first + int(began_s * 1e9), first + int(ended_s * 1e9), {}
    )
    assert bool(untimely([done], first)) is spoils


def test_steal_counts_on_the_cpus_of_this_trial_alone() -> None:
    """CPU 7 is nobody's here."""
    before = HostSnapshot(0, 0, {c: CpuTimes(0, 0, 0) for c in (0, 1, 7)})
    after = HostSnapshot(10**9, 0, {c: CpuTimes(0, 0, c * 10**8) for c in (0, 1, 7)})
    use = compare(
        before, after, gateway_cpus={1}, gateway_ns=0, gateways_waited_ns=None, sender_cpus={0}, sender_ns=0
    )
    assert use["steal_pct"] == {"0": 0.0, "1": 10.0}
