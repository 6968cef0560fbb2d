# SPDX-License-Identifier: Apache-2.0
"""A trial on CPUs that a neighbour makes slow is void, whether it passed or not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espbench.generators.base import CpuSpeed, Generator, LossEpisode, Offered, SlowTime
from espbench.measure.inputs.setup import Setup
from espbench.measure.inputs.usual_speed import UsualSpeed, speeds_pct
from espbench.measure.validity.faults import disturbance
from espbench.measure.validity.slow_cpu import recorded
from espbench.platforms import placement
from espbench.platforms.base import Gateway, Side, Testbed
from espbench.sentences import Code
from espbench.terms import FULL_GATEWAY_SPEED, GATEWAY_SPEED, LEAST_GATEWAY_SPEED, LOST_WHILE_SLOW, SLOW_TIME
from espbench.this_machine import cpu_clock


class Bed(Testbed):
    """A test bed without ports."""

    def close(self) -> None: ...


def setup_with(usual: UsualSpeed) -> Setup:
    """Return a set-up on two CPUs: the tester has CPU 0, and the gateways have CPU 1."""
    gateways = dict.fromkeys(("home", "office"), cast(Gateway, None))
    bed = Bed("netns", "", {}, cast(dict[Side, Gateway], gateways), placement.choose(allowed={0, 1}), {})
    return Setup(bed, cast(Generator, None), None, {}, usual_speed=usual)


def host_record(speeds: dict[int, tuple[float, float]], usual: UsualSpeed) -> dict[str, Any]:
    """Return the host record of a trial with these speeds (CPU → mean, fastest)."""
    told = {
        str(cpu): CpuSpeed(mean_per_ms=mean, fastest_per_ms=fastest)
        for cpu, (mean, fastest) in speeds.items()
    }
    return recorded(setup_with(usual), trial_with(told))


def trial_with(speeds: dict[str, CpuSpeed], *losses: LossEpisode) -> Offered:
    """Return the generator's counts of a trial of 1 s that began at 1 s, with these losses."""
    stream = SimpleNamespace(loss_episodes=list(losses))
    return cast(Offered, SimpleNamespace(cpu_speed=speeds, start_ns=10**9, duration_s=1.0, streams=[stream]))


def at_speed(pct: float, full_per_ms: float = 100.0) -> dict[str, float]:
    """Return the speed of the gateways' CPUs in a record of the host."""
    return {GATEWAY_SPEED: pct, FULL_GATEWAY_SPEED: full_per_ms}


def usual_at(pct: float, trials: int = 10) -> UsualSpeed:
    usual = UsualSpeed()
    for _ in range(trials):
        usual.add(at_speed(pct))
    return usual


@pytest.mark.parametrize(
    ("speeds", "pct"),
    [
        ({}, None),  # a generator that measures no speed
        ({0: (100.0, 100.0)}, None),  # of the tester's CPU alone
        ({0: (10.0, 100.0), 1: (60.0, 120.0)}, 50.0),
    ],
)
def test_the_speed_of_the_gateways_cpus_is_a_share_of_their_full_speed(
    speeds: dict[int, tuple[float, float]], pct: float | None
) -> None:
    assert host_record(speeds, UsualSpeed())[GATEWAY_SPEED] == pct


@pytest.mark.parametrize(
    ("usual", "pct", "void"),
    [
        (usual_at(96.0), 89.0, True),
        (usual_at(96.0), 90.0, False),
        (usual_at(65.0), 64.0, False),  # tester and gateways share a core
        (usual_at(65.0), 59.0, True),
        (usual_at(96.0, trials=4), 50.0, False),  # too few trials to know what is usual
    ],
)
def test_a_trial_that_is_slower_than_usual_is_void(usual: UsualSpeed, pct: float, void: bool) -> None:
    reasons = disturbance(0.0, 0.0, host_record({1: (pct, 100.0)}, usual), final=True)
    assert [reason.code for reason in reasons] == [Code.HOST_SLOW] * void


def test_a_paired_trial_may_be_slower_than_usual() -> None:
    """The speed in its partner decides (procedures/paired_trials.py); the record tells both."""
    told = {"1": CpuSpeed(mean_per_ms=50.0, fastest_per_ms=100.0)}
    record = recorded(setup_with(usual_at(96.0)), trial_with(told), paired=True)
    assert (record[GATEWAY_SPEED], record[LEAST_GATEWAY_SPEED]) == (50.0, None)
    assert disturbance(0.0, 0.0, record, final=False) == []


def test_a_resumed_run_knows_the_full_and_the_usual_speed_of_its_cpus() -> None:
    """A neighbour that came meanwhile slows the new generator from its first sample on: the earlier trials tell."""
    speed = {"1": {"mean_per_ms": 97.0, "fastest_per_ms": 100.0}}
    usual = UsualSpeed()
    usual.continue_after([{"cpu_speed": speed, **at_speed(97.0)}] * 10 + [{}])
    record = host_record({1: (67.0, 70.0)}, usual)
    assert record[GATEWAY_SPEED] == 67.0
    assert [reason.code for reason in disturbance(0.0, 0.0, record, final=True)] == [Code.HOST_SLOW]


def test_unknown_speeds_make_no_trial_void() -> None:
    usual = usual_at(96.0)
    usual.add({GATEWAY_SPEED: None, FULL_GATEWAY_SPEED: None})
    assert disturbance(0.0, 0.0, host_record({}, usual), final=True) == []


def test_a_clock_that_follows_the_load_says_nothing_of_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    """At a low load its CPUs are slow by themselves: each trial there would be void."""
    monkeypatch.setattr(cpu_clock, "follows_load", lambda *cpus: "schedutil")
    record = host_record({1: (40.0, 100.0)}, usual_at(96.0))
    assert record[GATEWAY_SPEED] is None
    assert disturbance(0.0, 0.0, record, final=True) == []


def test_losses_in_the_slow_times_of_the_gateways_cpus_are_counted() -> None:
    """A time begins and ends between two samples, and a queue that filled in it loses frames a little later."""

    def speed(*slow_ms: tuple[int, int]) -> CpuSpeed:
        times = [SlowTime(from_ns=start * 10**6, to_ns=end * 10**6) for start, end in slow_ms]
        return CpuSpeed(mean_per_ms=93.0, fastest_per_ms=100.0, slow_times=times)

    def lost(frames: int, at_ms: int) -> LossEpisode:
        return LossEpisode(from_ns=at_ms * 10**6, to_ns=at_ms * 10**6, frames=frames)

    trial = trial_with(
        {"0": speed((1_000, 2_000)), "1": speed((1_200, 1_280), (1_290, 1_330), (1_960, 2_100))},
        lost(101, 1_100), lost(20, 1_195), lost(300, 1_338), lost(4_000, 1_345), lost(50_000, 1_999),
    )  # fmt: skip
    record = recorded(setup_with(usual_at(96.0)), trial)
    assert (record[SLOW_TIME], record[LOST_WHILE_SLOW]) == (
        20.0,
        92.5,
    )  # 150 and 50 ms of 1 s, 50,320 of 54,421 frames
    assert record["cpu_speed"]["1"] == {"mean_per_ms": 93.0, "fastest_per_ms": 100.0}
    lossless = trial_with({"1": speed((1_200, 1_280))})
    assert recorded(setup_with(usual_at(96.0)), lossless)[LOST_WHILE_SLOW] is None
    untold = recorded(setup_with(usual_at(96.0)), trial_with({"0": speed((1_000, 2_000))}, lost(1, 1_100)))
    assert (untold[SLOW_TIME], untold[LOST_WHILE_SLOW]) == (None, None)  # of the tester's CPU alone


def test_a_machine_that_stays_slow_becomes_usual() -> None:
    """Otherwise a neighbour that comes to stay would leave nothing but lower bounds."""
    usual, made = usual_at(96.0, trials=40), 0
    while (least := usual.least_pct(100.0)) is not None and least > 60.0:
        usual.add(at_speed(60.0))
        made += 1
    assert made == 31


def test_no_trial_is_void_because_the_full_speed_was_higher_than_known() -> None:
    """A neighbour is there from the beginning, and goes for a moment in one trial: the others are as fast as before."""
    usual = UsualSpeed()
    for n in range(120):
        record = host_record({1: (74.0, 100.0 if n == 20 else 76.0)}, usual)
        assert record[GATEWAY_SPEED] == (97.4 if n < 20 else 74.0)
        assert disturbance(0.0, 0.0, record, final=True) == []
        usual.add(record)


def test_speeds_are_compared_as_shares_of_one_full_speed() -> None:
    """Trials at 74 and at 97 have 97 % each, of what was known then."""
    assert speeds_pct([at_speed(97.4, 76.0), at_speed(97.0, 100.0), {}]) == [74.0, 97.0, None]
    of_earlier_versions = [{GATEWAY_SPEED: 97.0}, {GATEWAY_SPEED: 60.0}]
    assert speeds_pct(of_earlier_versions) == [97.0, 60.0]


@given(st.lists(st.floats(1.0, 100.0), max_size=60))
def test_no_trial_at_the_usual_speed_or_above_is_void(speeds: list[float]) -> None:
    usual = UsualSpeed()
    for pct in speeds:
        usual.add(at_speed(pct))
    least_pct = usual.least_pct(100.0)
    assert least_pct is None or least_pct <= max(speeds[-40:])


def test_a_trial_that_is_too_short_to_show_the_full_speed_has_no_share_of_it() -> None:
    """Its few samples would otherwise be the full speed of the whole run."""
    usual = UsualSpeed()
    assert host_record({1: (125.0, 0.0)}, usual)[GATEWAY_SPEED] is None
    assert host_record({1: (90.0, 100.0)}, usual)[GATEWAY_SPEED] == 90.0
    assert host_record({1: (105.0, 0.0)}, usual)[GATEWAY_SPEED] == 100.0
