# SPDX-License-Identifier: Apache-2.0
"""Two arms at the same loads: the order of trials, what a void one costs, what the ratios bear."""

from __future__ import annotations

import dataclasses
import json
import math
import random
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from espbench.comparison.deciding.paired_ratios import (
    FEWEST_ROUNDS,
    common_scatter,
    cpu_of_load,
    hodges_lehmann,
    judge,
    not_made,
    throughput_of_round,
    variance_of_a_pair,
    verdict_words,
)
from espbench.comparison.deciding.statistics import Reading, Term
from espbench.comparison.sorting.model import Estimate, FixedLoadVerdict
from espbench.errors import UsageError
from espbench.plan.keys.fixed_loads import FixedLoads
from espbench.procedures.paired_trials import ARMS, RUNGS, STEP, Ask, PairedLoads, bounds
from espbench.runs.beds import no_room
from espbench.sentences import Code
from espbench.terms import (
    FULL_GATEWAY_SPEED,
    GATEWAY_SPEED,
    LEAST_GATEWAY_SPEED,
    PAIRED,
    DirectionReading,
    Finding,
    Remark,
)
from support.session.examples import examples
from support.simulated import pairs as sim

BOUNDS = {"a": 20_000.0, "b": 21_000.0}
SMALL = FixedLoads(pairs=6, rounds=3)


def start(asked: FixedLoads = SMALL, **changes: object) -> PairedLoads:
    given_: dict[str, object] = {"maximum_fps": 1e6, "goal": 0.0, "retries": 2, "seed": "7"} | changes
    return PairedLoads(asked, BOUNDS, **given_)  # type: ignore[arg-type]


def made(running: PairedLoads, valid: object = None) -> list[Ask]:
    """Run it to its end on gateways of 20,000 frames/s; valid: says of the n-th trial whether it is."""
    asked: list[Ask] = []
    while (ask := running.next()) is not None:
        fine = valid(len(asked)) if callable(valid) else True
        asked.append(ask)
        running.add(sim.made(ask, 50.0, lost=ask.request.load_fps > 20_000, valid=fine))
    return asked


def test_the_arms_take_turns_a_b_b_a_at_shares_of_the_slower_ones_throughput() -> None:
    """Four trials of a block, at one load; whoever begins is drawn."""
    asked = [ask for ask in made(start()) if ask.slot.rung is None]
    blocks = [asked[n : n + 4] for n in range(0, len(asked), 4)]
    assert len(blocks) == 3 * 2
    for block in blocks:
        order = "".join(ask.arm for ask in block)
        assert order in ("abba", "baab")
        assert len({ask.request.load_fps for ask in block}) == 1
    assert {round(ask.request.load_fps) for ask in asked} == {10_000, 18_000}


def test_each_arm_tries_each_rung_once_a_round_one_right_after_the_other() -> None:
    """Arms as close as these have one ladder, so the same loads."""
    asked = [ask for ask in made(start()) if ask.slot.rung is not None]
    assert Counter((ask.round, ask.slot.rung, ask.arm) for ask in asked) == {
        (r, rung, arm): 1 for r in (1, 2, 3) for rung in range(RUNGS) for arm in ARMS
    }
    for first, second in zip(asked[::2], asked[1::2], strict=True):
        assert first.slot == second.slot
        assert first.request.load_fps == second.request.load_fps
        assert first.arm != second.arm


def test_who_begins_and_where_the_rungs_stand_is_chance_by_the_seed() -> None:
    """The same seed asks for the same trials, another for others."""

    def order(seed: str) -> list[tuple[str, float]]:
        return [(ask.arm, ask.request.load_fps) for ask in made(start(seed=seed))]

    assert order("7") == order("7")
    assert len({"".join(arm for arm, _ in order(seed)) for seed in "123456"}) > 1


def test_arms_far_apart_have_ladders_of_their_own() -> None:
    """A ladder about 20,000 frames/s says nothing of a gateway of 40,000."""
    running = PairedLoads(SMALL, {"a": 2e4, "b": 4e4}, maximum_fps=1e6, goal=0.0, retries=2, seed="7")
    rung = next(ask for ask in iter(lambda: _step(running), None) if ask.slot.rung is not None)
    assert rung.slot.loads_fps["b"] / rung.slot.loads_fps["a"] == pytest.approx(2.0)


def _step(running: PairedLoads) -> Ask | None:
    ask = running.next()
    if ask is not None:
        running.add(sim.made(ask, 50.0, lost=False))
    return ask


def ladders(running: PairedLoads, capacity: Callable[[int], float]) -> list[list[float]]:
    """Return the loads of each round's ladder; capacity: the throughput of both arms in the round of this number."""
    rungs: dict[int, set[float]] = {}
    while (ask := running.next()) is not None:
        if ask.slot.rung is not None:
            rungs.setdefault(ask.round, set()).add(ask.request.load_fps)
        running.add(sim.made(ask, 50.0, lost=ask.request.load_fps > capacity(ask.round)))
    return [sorted(rungs[number]) for number in sorted(rungs)]


def test_a_ladder_between_two_boots_that_differ_does_not_swing_ever_further() -> None:
    """A real comparison of equal arms had ladders around 39.8, 34.4, 45.1 and 26.0 thousand, and found nothing."""
    made_ladders = ladders(
        start(FixedLoads(pairs=16, rounds=8)), lambda number: 15_000 if number % 2 else 24_000
    )
    middles = [ladder[len(ladder) // 2] for ladder in made_ladders]
    assert all(12_000 < middle < 30_000 for middle in middles), middles


def test_a_ladder_far_from_the_throughput_comes_to_it_faster_and_faster() -> None:
    made_ladders = ladders(start(FixedLoads(pairs=12, rounds=6)), lambda _: 60_000)
    assert sum(ladder[0] < 60_000 < ladder[-1] for ladder in made_ladders) >= 3


def test_one_arms_gateways_after_the_others_serve_half_a_round_each() -> None:
    """A, then B, B again, then A: three changes a round, and each pair is still whole."""
    running = start(together=False)
    asked = made(running)
    for number in (1, 2, 3):
        arms = [ask.arm for ask in asked if ask.round == number]
        assert sum(x != y for x, y in pairwise(arms)) == 2
    assert len(running.rows) == 3 * (2 * 2 + RUNGS)


@pytest.mark.parametrize("together", [True, False])
def test_a_void_trial_is_made_again(together: bool) -> None:
    """All pairs are there in the end."""
    running = start(together=together)
    whole = len(made(start(together=together)))
    asked = made(running, valid=lambda n: n != 3)
    assert len(running.rows) == whole // 2
    assert len(asked) == whole + 1
    assert sum(running.void.values()) == 1


def test_a_host_that_spoils_everything_ends_the_comparison() -> None:
    """Pairs are made again a bounded number of times; nothing valid is INVALID, and says why."""
    running = start()
    asked = made(running, valid=lambda n: False)
    assert len(asked) <= 2 * 2 * 3 * (2 * 2 + RUNGS)
    finding = running.finding(sim.IDENTITY, {"a": "a", "b": "b"}, "proven", [])
    assert finding.status == "INVALID"
    assert "host starvation" in finding.reasons[0].text
    assert judge([finding], "stack")[0].word == "no verdict"


def finding_of(running: PairedLoads) -> Finding:
    return running.finding(sim.IDENTITY, {"a": "a", "b": "b"}, "proven", [])


def test_what_the_trials_of_the_pairs_remark_is_a_remark_of_the_comparison_once() -> None:
    """The generator said in each trial that it was not pinned; a void trial has no figure that this could touch."""
    of_case, of_trials, of_void = map(Remark.of_text, ("of the case", "not pinned", "of a void trial"))
    running = start()
    while (ask := running.next()) is not None:
        void = not any(running.trials.values())
        trial = sim.made(ask, 50.0, lost=ask.request.load_fps > 20_000, valid=not void)
        running.add(trial.model_copy(update={"warnings": [of_case, of_void if void else of_trials]}))
    finding = running.finding(sim.IDENTITY, {"a": "a", "b": "b"}, "proven", [of_case])
    assert finding.warnings == [of_case, of_trials]


def test_all_speeds_of_a_verdict_are_shares_of_one_full_speed() -> None:
    """The CPUs are as fast in all trials; a neighbour that was there from the beginning pauses before the last one."""
    running = start()
    while (ask := running.next()) is not None:
        full = 100.0 if running.left == 1 else 76.0
        host = {GATEWAY_SPEED: round(7400 / full, 1), FULL_GATEWAY_SPEED: full, LEAST_GATEWAY_SPEED: None}
        running.add(sim.made(ask, 50.0, lost=ask.request.load_fps > 20_000, host=host))
    for load in judge([finding_of(running)], "stack")[0].loads:
        assert load.speeds_pct == pytest.approx((74, 74), abs=0.1)


def at_speeds(running: PairedLoads, *speeds: float, least: float | None = None) -> str:
    """Make a trial for each speed of the gateways' CPUs, %, which a frame takes as many µs of; return the arms.

    least: the least speed in the records.
    """
    arms = ""
    for speed in speeds:
        ask = running.next()
        assert ask
        arms += ask.arm
        host = {GATEWAY_SPEED: speed, LEAST_GATEWAY_SPEED: least}
        running.add(sim.made(ask, speed, lost=False, host=host))
    return arms


def test_a_pair_needs_cpus_of_one_speed_whatever_it_is() -> None:
    """At 60 %, two trials of 60 and 57 % are a pair, and no trial has to be made again."""
    running = start()
    whole = made(start())
    assert at_speeds(running, 60, 57, 100, 97) == "".join(ask.arm for ask in whole[:4])
    assert not running.void
    assert running.next() == whole[4]


@pytest.mark.parametrize(
    ("speeds", "pair"),
    [((100, 60, 58), (60, 58)), ((100, 60, 80, 98), (100, 98)), ((100, 60, 98, 62, 99, 97), (99, 97))],
)
def test_a_pair_is_made_of_the_latest_trials_of_both_arms_at_one_speed(
    speeds: tuple[int, ...], pair: tuple[int, int]
) -> None:
    """A neighbour comes after the first trial and stays, or goes again; the arms take turns until two trials agree."""
    running = start()
    assert at_speeds(running, *speeds) in ("ababab"[: len(speeds)], "bababa"[: len(speeds)])
    assert [reason.code for reason in running.void.elements()] == [Code.HOST_UNEVEN] * (len(speeds) - 2)
    assert running.next() == made(start())[2]
    made(running)
    row = running.rows[0]
    assert {row["a"]["cpu_us"], row["b"]["cpu_us"]} == set(pair)
    (row, *_) = finding_of(running).paired["rows"]
    assert {row["a"]["speed_pct"], row["b"]["speed_pct"]} == set(pair)


def test_a_verdict_names_the_speeds_of_the_trials_at_each_load() -> None:
    """The first pair had slow CPUs; of the others, no speed is known."""
    running = start()
    at_speeds(running, 60, 57)
    made(running)
    loads = judge([finding_of(running)], "stack")[0].loads
    assert loads[0].speeds_pct == (57, 60)
    assert all(load.speeds_pct is None for load in loads[1:])


def test_a_pair_whose_speeds_never_agree_is_given_up() -> None:
    """It has its two trials and twice as many repeats as a trial may have; the next trial is of another pair."""
    running = start()
    speeds = [100.0 - 30 * (n % 2) for n in range(2 + 2 * 2)]
    assert at_speeds(running, *speeds) in ("ababab", "bababa")
    assert sum(running.void.values()) == len(speeds)
    assert running.next() == made(start())[2]
    rest = made(running)
    assert len(rest) == len(made(start())) - 2
    assert len(running.rows) == len(rest) // 2


def test_trials_that_were_judged_by_themselves_are_a_pair_at_any_speed() -> None:
    """A run of an earlier version has such trials; it is resumed."""
    running = start()
    at_speeds(running, 100, 91, least=90.5)
    assert not running.void


def test_one_arm_after_the_other_needs_cpus_of_the_usual_speed() -> None:
    """Then half a round is between the trials of a pair."""
    for together in (True, False):
        assert {ask.request.paired for ask in made(start(together=together))} == {together}
    running = start(together=False)
    speeds = [100.0 if ask.arm == "a" else 60.0 for ask in made(start(together=False))]
    at_speeds(running, *speeds)
    assert not running.void


def reading(fps: float, frames: int, *, highest_fps: float) -> DirectionReading:
    """Return the reading of a direction that lost none of its frames."""
    return DirectionReading(
        intended_fps=fps, offered_fps=fps, highest_fps=highest_fps, tx_frames=frames, rx_frames=frames,
        lost=0, duplicated=0, reordered=0, corrupted=0,
    )  # fmt: skip


def test_a_trial_at_another_load_does_not_count() -> None:
    """One that took a little longer does; records keep what was offered."""
    running = start()
    for share, void in ((0.99, 0), (0.97, 1)):
        ask = running.next()
        assert ask
        assert ask.request.as_offered
        record = sim.made(ask, 50.0, lost=False)
        running.add(record.model_copy(update={"offered_fps": share * record.intended_fps}))
        assert sum(running.void.values()) == void


def test_a_trial_that_was_faster_at_any_time_was_at_another_load() -> None:
    """Its mean is as asked for: one direction offered less, the other more."""
    running = start()
    for share, void in ((1.01, 0), (1.03, 1)):
        ask = running.next()
        assert ask
        record = sim.made(ask, 50.0, lost=False)
        fps = record.intended_fps
        one_way = reading(fps, record.tx_frames, highest_fps=share * fps)
        running.add(record.model_copy(update={"per_direction": {"west-east": one_way}}))
        assert sum(running.void.values()) == void


def test_a_trial_in_which_one_direction_sent_less_was_at_another_load() -> None:
    """Both together sent 1.5 % less than intended, one of them 3 %: each direction must carry its half."""
    running = start()
    for less, void in ((0.01, 0), (0.03, 1)):
        ask = running.next()
        assert ask
        record = sim.made(ask, 50.0, lost=False)
        half, fps = record.tx_frames // 2, record.intended_fps / 2
        ways = {
            way: reading(fps, sent, highest_fps=fps)
            for way, sent in (("west-east", half), ("east-west", round((1 - less) * half)))
        }
        sent = sum(way.tx_frames for way in ways.values())
        offered_fps = record.intended_fps * sent / (2 * half)
        running.add(
            record.model_copy(update={"per_direction": ways, "tx_frames": sent, "offered_fps": offered_fps})
        )
        assert sum(running.void.values()) == void


def test_a_leak_ends_the_comparison_for_ever() -> None:
    """It ends whatever was measured before and would come after."""
    running = start()
    for _ in range(9):
        ask = running.next()
        assert ask
        running.add(sim.made(ask, 50.0, lost=False))
    ask = running.next()
    assert ask
    leak = {"violated": True, "problems": ["3 frames crossed in clear"]}
    running.add(sim.made(ask, 50.0, lost=False, valid=False).model_copy(update={"proof": leak}))
    assert running.next() is None
    finding = running.finding(sim.IDENTITY, {"a": "a", "b": "b"}, "proven", [])
    assert (finding.status, finding.encryption, [*map(str, finding.reasons)]) == (
        "VIOLATED", "not proven", ["3 frames crossed in clear"],
    )  # fmt: skip
    assert judge([finding], "stack") == []
    assert "without encryption" in not_made([finding])[0]


@settings(max_examples=examples(15), deadline=None)
@given(st.integers(0, 10_000), st.floats(0, 0.4), st.booleans(), st.integers(0, 200))
def test_a_resumed_comparison_is_the_uninterrupted_one(
    seed: int, void: float, together: bool, cut: int
) -> None:
    """The next trial follows from the records alone."""

    def run(running: PairedLoads, trials: int | None = None) -> PairedLoads:
        while (ask := running.next()) is not None and trials != 0:
            own = random.Random(f"{seed} {ask.arm} {len(running.trials[ask.arm])}")
            us, lost = own.uniform(40, 60), own.random() < 0.5
            host = {GATEWAY_SPEED: own.choice((60.0, 98.0, 100.0)), LEAST_GATEWAY_SPEED: None}
            running.add(sim.made(ask, us, lost=lost, valid=own.random() >= void, host=host))
            trials = None if trials is None else trials - 1
        return running

    whole = run(start(together=together))
    cut_off = run(start(together=together), cut)
    resumed = run(start(together=together, trials=cut_off.trials))
    assert resumed.rows == whole.rows
    assert resumed.trials == whole.trials


def test_records_that_another_version_asked_for_are_refused() -> None:
    """Otherwise a result would be counted at a load at which it was not made."""
    running = start()
    made(running)
    trials = {arm: list(of_arm) for arm, of_arm in running.trials.items()}
    del trials["a"][3]
    with pytest.raises(UsageError, match="start a new run"):
        start(trials=trials)
    few = {"a": running.trials["a"], "b": running.trials["b"][:-2]}
    with pytest.raises(UsageError, match="no more trials of this arm"):
        start(trials=few)


@settings(max_examples=examples(15), deadline=None)
@given(st.floats(-0.3, 0.3), st.floats(-0.2, 0.2))
def test_a_steady_drift_of_the_host_cancels(truth: float, drift: float) -> None:
    """A B B A: the mean of both pairs' log ratios is free of what grows linearly."""
    running = start()
    for n in range(1_000_000):
        ask = running.next()
        if ask is None:
            break
        us = 50 * math.exp((truth if ask.arm == "b" else 0) + drift * n / 100)
        running.add(sim.made(ask, us, lost=ask.request.load_fps > 20_000))
    for number in (1, 2, 3):
        of_round = [row for row in running.rows if row["round"] == number]
        for load in (0.5, 0.9):
            ratio = cpu_of_load(of_round, load)
            assert ratio
            assert ratio[0] == pytest.approx(truth, abs=2e-4)  # records have three decimals


@settings(max_examples=examples(15), deadline=None)
@given(st.integers(0, 1000), st.floats(-0.08, 0.08))
def test_the_rungs_tell_the_ratio_of_throughputs_on_average(seed: int, truth: float) -> None:
    """Each round is within a step of the truth for gateways with exact limits: chance places the rungs."""
    running = start(FixedLoads(pairs=6, rounds=3), seed=str(seed))
    while (ask := running.next()) is not None:
        limit = 20_500 * math.exp(truth if ask.arm == "b" else 0)
        running.add(sim.made(ask, 50.0, lost=ask.request.load_fps > limit))
    for number in (1, 2, 3):
        ratio = throughput_of_round([r for r in running.rows if r["round"] == number], STEP, RUNGS)
        assert ratio is not None
        assert abs(ratio - truth) <= STEP + 1e-6


@pytest.mark.parametrize("missing", range(RUNGS))
def test_a_rung_that_was_not_measured_does_not_make_the_arms_alike(missing: int) -> None:
    """A passes three rungs and B five; it is left open only where one of them changes from passed to missed."""
    rows = [
        {"rung": rung, **{arm: {"met": rung < n, "intended_fps": 1e4} for arm, n in (("a", 3), ("b", 5))}}
        for rung in range(RUNGS)
        if rung != missing
    ]
    ratio = throughput_of_round(rows, STEP, RUNGS)
    assert ratio is not None
    assert abs(ratio - 2 * STEP) <= (STEP / 2 if missing in (2, 3, 4, 5) else 0) + 1e-12


def test_a_valid_trial_is_void_for_the_reason_of_its_partner() -> None:
    """B's trials of the first pair are all void: A's, which is valid, is void for that reason, not for its speed."""
    running = start(retries=1)
    first = running.next()
    assert first is not None
    running.add(sim.made(first, 50.0, lost=False))
    while (ask := running.next()) is not None and ask.slot is first.slot:
        running.add(sim.made(ask, 50.0, lost=False, valid=False))
    assert len(running.void) == 1
    assert sum(running.void.values()) == 1 + 3


def limited_by_the_tester(seed: int, limits_fps: dict[str, float]) -> FixedLoadVerdict:
    (verdict,) = judge([finding_of(compared_by_a_tester(seed, limits_fps))], "stack")
    return verdict


def compared_by_a_tester(seed: int, limits_fps: dict[str, float]) -> PairedLoads:
    """Compare arms of these limits with a tester of 100,000 frames/s; one trial in ten loses a frame by chance."""
    chance = random.Random(seed)
    known = {arm: min(limit, 1e5) for arm, limit in limits_fps.items()}
    running = PairedLoads(FixedLoads(), known, maximum_fps=1e5, goal=0.0, retries=2, seed=str(seed))  # type: ignore[arg-type]
    while (ask := running.next()) is not None:
        over = ask.request.load_fps > limits_fps[ask.arm]
        running.add(sim.made(ask, 50.0, lost=over or chance.random() < 0.1))
    return running


@pytest.mark.parametrize("fast", ["a", "b"])
def test_an_arm_that_only_the_tester_limits_gives_a_bound(fast: str) -> None:
    """The other one forwards 60,000 frames/s, at most 0.6 times of what the tester sends: there is no other end."""
    limits = {"a": 6e4, "b": 6e4} | {fast: 1e9}
    for seed in range(6):
        verdict = limited_by_the_tester(seed, limits)
        assert (verdict.throughput, verdict.word) == (None, "A faster" if fast == "a" else "B faster")
        bound, none = (
            (verdict.at_most, verdict.at_least) if fast == "a" else (verdict.at_least, verdict.at_most)
        )
        assert bound is not None
        assert none is None
        assert bound == pytest.approx(0.6 if fast == "a" else 1 / 0.6, rel=0.12)
        assert f"{fast} met loads of up to 100,000 frames/s, the most that the tester sends" in verdict.why
        assert "the throughput of b is at " in verdict_words([verdict])[0]


def test_an_arm_that_the_tester_hardly_limits_keeps_its_interval() -> None:
    """Both forward 97 % of the maximum, with a scatter of 1.2 %: now and then one meets the highest rung."""
    known = []
    for seed in range(8):
        chance = random.Random(seed)
        running = PairedLoads(
            FixedLoads(), {"a": 9.7e4, "b": 9.7e4}, maximum_fps=1e5, goal=0.0, retries=2, seed=str(seed)
        )
        while (ask := running.next()) is not None:
            limit = 9.7e4 * math.exp(chance.gauss(0, 0.012))
            running.add(sim.made(ask, 50.0, lost=ask.request.load_fps > limit))
        (verdict,) = judge([finding_of(running)], "stack")
        known.append(verdict.throughput is not None)
    assert sum(known) >= 6


def test_points_that_the_tester_limits_do_not_widen_the_others() -> None:
    limits = [{"a": 6e4, "b": 5.55e4}] * 3 + [{"a": 1e9, "b": 1e9}] * 3
    findings = [finding_of(compared_by_a_tester(seed, limit)) for seed, limit in enumerate(limits)]
    alone, together = judge(findings[:3], "stack"), judge(findings, "stack")
    for one, other in zip(alone, together[:3], strict=True):
        assert one.throughput
        assert other.throughput
        # Twice as many verdicts make each interval a little wider.
        assert other.throughput.high - other.throughput.low < 1.15 * (
            one.throughput.high - one.throughput.low
        )


def test_two_arms_that_only_the_tester_limits_have_no_verdict_on_throughput() -> None:
    for seed in range(6):
        verdict = limited_by_the_tester(seed, {"a": 1e9, "b": 1e9})
        assert (verdict.throughput, verdict.word, verdict.at_least, verdict.at_most) == (
            None,
            "no verdict",
            None,
            None,
        )
        assert verdict.why.count("it may be faster") == 2


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=12), st.floats(-1, 1))
def test_hodges_lehmann_moves_with_its_values_and_stays_among_them(values: list[float], shift: float) -> None:
    estimate = hodges_lehmann(values)
    assert min(values) <= estimate <= max(values)
    assert hodges_lehmann([v + shift for v in values]) == pytest.approx(estimate + shift, abs=1e-9)


def test_one_disturbed_pair_decides_nothing() -> None:
    """One of six blocks that is off by a half moves the centre by less than the others differ."""
    assert hodges_lehmann([0.0, 0.001, -0.001, 0.002, -0.002, 0.5]) < 0.003


def _pair(number: int, load: float | None, block: int, cpu: float) -> dict[str, Any]:
    """Return a pair of trials in which B's CPU per frame is e^cpu times A's."""
    arm = {"intended_fps": 1000.0, "loss": 0.0, "met": True}
    arms = {"a": {**arm, "cpu_us": 10.0}, "b": {**arm, "cpu_us": 10.0 * math.exp(cpu)}}
    return {"round": number, "load": load, "block": block, "rung": None, "first": "a", **arms}


def test_a_single_pair_counts_where_its_other_half_stayed_void() -> None:
    rows = [_pair(1, 0.5, 0, 0.01), _pair(1, 0.5, 1, 0.03), _pair(1, 0.5, 1, 0.05)]
    assert cpu_of_load(rows, 0.5) == pytest.approx((0.04, 1 / 2))  # only the whole block
    assert cpu_of_load(rows[:2], 0.5) == pytest.approx((0.02, 1 / 2))  # no whole block: the mean of the pairs
    assert cpu_of_load(rows[:1], 0.5) == pytest.approx((0.01, 1))
    assert cpu_of_load(rows[:1], 0.5, singles=False) is None  # where the scatter of a pair is not known
    assert cpu_of_load(rows, 0.9) is None


def test_the_pairs_of_the_rounds_show_their_scatter() -> None:
    """Two pairs at each of two loads lie 2 % apart: each is 1 % from their mean, which is itself uncertain."""
    rounds = [[_pair(n, load, 0, x) for load in (0.5, 0.9) for x in (0.0, 0.02)] for n in (1, 2, 3)]
    assert variance_of_a_pair(rounds) == pytest.approx((1.4826 * 0.01 * math.sqrt(2)) ** 2)
    disturbed = [*rounds[:2], [*rounds[2][:3], _pair(3, 0.9, 0, 0.5)]]
    assert variance_of_a_pair(disturbed) == pytest.approx(variance_of_a_pair(rounds))
    assert variance_of_a_pair(rounds[:1]) is None  # four deviations are too few
    assert variance_of_a_pair([[_pair(n, 0.5, 0, 0.1 * n)] for n in range(9)]) is None


def test_three_rounds_that_agree_by_chance_prove_no_difference() -> None:
    """Rounds show 0.6 % less, alike to 0.1 %, but their pairs differ by 4 %."""
    rows = [
        {**_pair(n, load, 0, mean + x), "round": n}
        for n, mean in enumerate((-0.005, -0.006, -0.007), 1)
        for load in (0.5, 0.9)
        for x in (-0.02, 0.02)
    ]
    paired = {
        "a": "first", "b": "second", "rows": rows, "loads": [0.5, 0.9], "step": 0.04, "rungs": 7, "void": 0,
        "rounds": 3, "trial_s": 0.5, "together": True, "bounds_fps": {"a": 2000.0, "b": 2000.0}, "loss_goal": 0.0,
    }  # fmt: skip
    finding = Finding(
        **{**sim.IDENTITY, "test": PAIRED}, status="OK", load_fps=1000.0, quantities=[], trials=24, rfc2544=False,
        encryption="proven", words="", paired=paired,
    )  # fmt: skip
    (verdict,) = judge([finding], "stack")
    assert verdict.cpu_word == "no difference shown"


def test_equal_arms_are_not_told_apart_and_five_per_cent_are() -> None:
    """A host drifts, stalls and disturbs; benchmarks/judgement/comparison.py makes many such comparisons."""
    chance = random.Random(2544)
    equal = [v for _ in range(6) for v in sim.compared(sim.SHARED, 1.0, chance)]
    dearer = [v for _ in range(3) for v in sim.compared(sim.QUIET, 1.05, chance)]
    assert all(v.cpu_word == "no difference shown" for v in equal)
    assert all(v.word in ("no difference shown", "no verdict") for v in equal)
    assert all(v.cpu_word == "B costs more" for v in dearer)
    assert all(v.cpu and 1.03 < v.cpu.value < 1.07 for v in dearer)
    assert "b takes" in verdict_words(dearer)[0]
    assert "more CPU per frame than a" in verdict_words(dearer)[0]


def test_a_point_without_rounds_lends_no_scatter_to_others() -> None:
    """Two points that agree borrow less from each other than six do."""
    term = Term(tuple(Reading(v, v, v) for v in (0.00, 0.01, 0.02, 0.03, 0.04, 0.05)))
    short = Term(term.readings[: FEWEST_ROUNDS - 1])
    two = common_scatter([term, term])
    assert common_scatter([term, term, short, Term(()), Term(()), short]) == two
    assert common_scatter([term] * 6).weight > two.weight > 0


def invented(**changes: Any) -> FixedLoadVerdict:
    """A verdict at 64 B at a loss goal of 0 %, with these changes."""
    conditions = {"DUT": "uml", "suite": "aes128gcm16", "direction": "one-way", "IP version": "IPv4"}
    verdict = FixedLoadVerdict(
        conditions, 64, "a", "b", None, "no verdict", Estimate(1.11, 0.95, 1.2903, 6), "no difference shown", [],
        66, 0, 132, 6, True, "66 pairs", 0.0,
    )  # fmt: skip
    return dataclasses.replace(verdict, **changes)


def test_no_difference_names_every_difference_that_was_not_excluded() -> None:
    """An interval from 0.95 to 1.29 does not exclude 29 %: its half width is not what a comparison would have shown."""
    (words,) = verdict_words([invented()])
    assert words.endswith(
        "no difference in throughput is shown; one of up to 29.1 % would not have been seen."
    )
    (words,) = verdict_words([invented(throughput=Estimate(0.9, 0.8, 1.05, 6))])
    assert "one of up to 25.0 % would" in words, "b at 0.8 of a is a at 1.25 of b"
    (words,) = verdict_words([invented(cpu=Estimate(1.0, 0.98, 1.03, 6), cpu_word="no difference shown")])
    assert "between b and a is shown; one of up to 3.0 % would not have been seen; no difference" in words


def test_a_sentence_at_fixed_loads_says_where_it_holds_and_of_whom() -> None:
    """The conditions in which the verdicts differ are named, and the loss goal; a throughput has an owner."""
    slower = {"throughput": Estimate(0.8, 0.75, 0.85, 6), "word": "A faster"}
    first = invented(**slower)
    second = invented(
        conditions={**first.conditions, "suite": "3des-sha1", "IP version": "IPv6"}, loss_goal=1e-5
    )
    assert verdict_words([first]) == [
        "At the same loads, 64 B (loss goal 0 %): no verdict on the CPU per frame of b and a; the throughput of b is "
        "20.0 % [15.0, 25.0] lower than that of a."
    ]
    assert [text.split(":")[0] for text in verdict_words([first, second])] == [
        "At the same loads, 64 B (aes128gcm16, IPv4, loss goal 0 %)",
        "At the same loads, 64 B (3des-sha1, IPv6, loss goal 0.001 %)",
    ]
    finding = sim.measured(sim.QUIET, 1.0, random.Random(1), SMALL).finding(
        sim.IDENTITY, {"a": "a", "b": "b"}, "proven", []
    )
    assert judge([finding], "stack")[0].loss_goal == 0.0
    (words,) = not_made([finding.model_copy(update={"paired": {}, "words": "Made up."})])
    assert words == "simulated, b, aes128gcm16, 64 B, one-way, IPv4: Made up."


def test_the_finding_survives_its_file() -> None:
    """The comparison reads results.json, not the trials."""
    running = sim.measured(sim.SHARED, 1.0, random.Random(1), SMALL)
    finding = running.finding(sim.IDENTITY, {"a": "a", "b": "b"}, "proven", [])
    again = Finding.model_validate(json.loads(finding.model_dump_json()))
    assert judge([again], "stack") == judge([finding], "stack")


def test_bounds_are_of_the_first_repeat_that_has_both() -> None:
    """A lower bound is one, too; without any there is nothing to compare at."""
    from support.simulated.comparisons import made as outcome  # noqa: PLC0415

    a = [outcome("a", 64, 1, None), outcome("a", 64, 2, 900.0)]
    b = [outcome("b", 64, 1, 800.0), outcome("b", 64, 2, 700.0)]
    assert bounds({"a": a, "b": b}) == {"a": 900.0, "b": 700.0}
    assert bounds({"a": a[:1], "b": b}) is None


def test_pairs_stand_together_where_memory_allows() -> None:
    assert no_room([1024, 1024], free_mb=4000) == ""
    assert no_room([1024, 1024], free_mb=2500) == "together they need 2,560 MiB of memory, 2,500 MiB are free"
    assert "one pair" in no_room([math.inf, math.inf])
