# SPDX-License-Identifier: Apache-2.0
"""A small null experiment, and what the whole one (benchmarks/judgement/null_experiment.py) simulates and calls red."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from typing import cast

import null_experiment as null
import pytest
from hypothesis import given
from hypothesis import strategies as st
from null_experiment import Cell, Figures

from espbench.measure.inputs.setup import Request
from espbench.measure.validity.faults import STARVATION_LIMIT_PCT
from espbench.measure.validity.host import Kept
from espbench.terms import Outcome
from support.simulated import noisy_host
from support.simulated.noisy_host import Disturbance, Span, offer, sending

MAKEFILE = Path(__file__).parents[4] / "Makefile"
CASES = 90
FINAL = Request(40_000.0, 10.0, "final", 0)


def figures_of(dut: str, noise: str = "none", rate: float = 0.0, *, old: bool = False) -> Figures:
    """Return the figures of so many cases at zero loss."""
    cell = Cell(null.plan_case(goals="0"), dut, noise, rate, old)
    results: list[Outcome] = [o for seed in range(CASES) for o in null.of_seed(cell, seed)]
    return Figures.of(results)


def test_starvation_moves_no_figure_and_would_with_the_old_rule() -> None:
    """Three of ten trials are starved, whatever they lose: to excuse those alone that failed is luck."""
    quiet = figures_of("hiccups")
    assert null.problems(figures_of("hiccups", "starvation", 0.3), quiet, sharp=False) == []
    old = null.problems(figures_of("hiccups", "starvation", 0.3, old=True), quiet, sharp=False)
    assert "the mean moved" in old


@pytest.mark.parametrize(
    ("options", "code"), [([], 0), (["--must-be-red"], 1), (["--red"], 1), (["--red", "--must-be-red"], 0)]
)
def test_the_exit_code_tells_red_from_a_crash(
    monkeypatch: pytest.MonkeyPatch, options: list[str], code: int
) -> None:
    """A crash and a wrong option are errors, also where a cell must be red."""
    red = ["the mean moved"] if "--red" in options else []
    monkeypatch.setattr(null, "problems", lambda *_, **__: red)
    few = ["--cases", "1", "--dut", "hard limit", "--noise", "steal", *(o for o in options if o != "--red")]
    assert null.main(few) == code
    with pytest.raises(SystemExit, match="2"):
        null.main([*few, "--wrong"])
    monkeypatch.setattr(null, "Figures", None)
    with pytest.raises(AttributeError):
        null.main(few)


def test_the_rule_of_before_must_be_red() -> None:
    """`make bench` would take a crash for red if it only inverted the exit code."""
    called = [line for line in MAKEFILE.read_text().splitlines() if "--excuse-failures" in line]
    assert ["--must-be-red" in line and "! $(PY)" not in line for line in called] == [True]


def _figures(ok: list[float], bounds: list[float], none: int = 0) -> Figures:
    return Figures(tuple(ok), (*ok, *bounds), len(ok) + len(bounds) + none)


@pytest.mark.parametrize(
    ("figures", "sharp", "reason"),
    [
        (_figures([40_000.0] * 100, []), True, None),
        (_figures([39_650.0] * 100, []), True, None),
        (_figures([39_550.0] * 100, []), True, "the mean moved"),
        (_figures([40_450.0] * 100, []), True, "the mean moved"),
        (_figures([40_000.0] * 24, [45_600.0] * 76), False, "the mean with bounds is above"),
        (_figures([], [40_450.0] * 100), False, "the mean with bounds is above"),
        (_figures([40_000.0] * 99, [40_800.0]), True, None),
        (_figures([40_000.0] * 99, [41_000.0]), True, "1 above every figure without noise"),
        (_figures([40_000.0] * 999, [41_000.0]), False, None),
        (_figures([40_000.0] * 99, [30_000.0]), True, None),
        (_figures([40_000.0] * 99 + [39_000.0], []), True, "1 that are OK below every figure without noise"),
        (_figures([40_000.0] * 99 + [39_000.0], []), False, None),
        (_figures([40_000.0] * 90, [41_000.0] * 10), False, "the 95th percentile is above"),
        (_figures([39_700.0] * 49, [40_900.0] * 51), False, "the median is above"),
        (_figures([40_000.0] * 95, [], none=5), True, None),
        (_figures([40_000.0] * 94, [], none=6), True, "6 cases have no figure"),
        (_figures([], [], none=100), True, "100 cases have no figure"),
    ],
)
def test_a_cell_is_red_where_a_figure_moved(figures: Figures, sharp: bool, reason: str | None) -> None:
    """It is red however few are OK; one step of the search (2.04 %) is not more than the resolution."""
    reasons = null.problems(figures, _figures([40_000.0] * 100, []), sharp=sharp)
    assert reasons == [] if reason is None else reason in reasons


@pytest.mark.parametrize(("lucky", "is_red"), [(10, False), (15, False), (40, True)])
def test_luck_may_not_become_more_frequent(lucky: int, is_red: bool) -> None:
    """Ten of a hundred have a figure without noise, though the DUT meets the goal at no load."""
    quiet = _figures([20_000.0] * 10, [], none=90)
    noisy = _figures([20_000.0] * lucky, [], none=100 - lucky)
    assert bool(null.problems(noisy, quiet, sharp=True)) == is_red


@given(
    spans=st.lists(st.tuples(st.floats(0, 10), st.floats(0.0006, 0.2)), max_size=8), pace=st.floats(0.7, 1.0)
)
def test_a_disturbed_sender_sends_everything(spans: list[tuple[float, float]], pace: float) -> None:
    """It is never faster than 1.1 times its rate, and its parts follow each other."""
    sent = sending(10.0, [Span(*span) for span in sorted(spans)], pace)
    assert sum(part.share * (part.to_s - part.from_s) for part in sent.parts) == pytest.approx(10.0)
    assert all(pace <= part.share <= noisy_host.CATCH_UP for part in sent.parts)
    assert all(a.to_s <= b.from_s for a, b in zip(sent.parts, sent.parts[1:], strict=False))


def test_a_pause_is_made_good_as_far_as_the_trial_lasts() -> None:
    """To make good 100 ms takes a second; near its end, a pause makes the trial longer and the load lower."""
    early, late = sending(10.0, [Span(5.0, 0.1)]), sending(10.0, [Span(9.95, 0.1)])
    assert early.end_s == pytest.approx(10.0)
    assert [stall.until_ns for stall in early.stalls] == [pytest.approx(6.1e9, rel=1e-6)]
    assert late.end_s == pytest.approx(10.05 + 0.05 / 1.1)
    assert [round(stall.ms) for stall in late.stalls] == [100]


def test_a_pause_within_the_leeway_puts_off_what_follows() -> None:
    """It is as long as it is; what it cost beyond the leeway takes ten times as long."""
    sent = sending(10.0, [Span(1.0, 0.04), Span(2.0, 0.04)], leeway_s=0.05)
    assert [(stall.at_ns, stall.until_ns) for stall in sent.stalls] == [
        (1_000_000_000, 1_040_000_000),
        (2_000_000_000, pytest.approx(2.34e9, rel=1e-6)),
    ]
    assert sent.end_s == pytest.approx(10.05)


def test_pauses_that_are_not_made_good_belong_together() -> None:
    """The simulation lists them as traffic/src/count/tx_stalls.rs does."""
    (stall,) = sending(10.0, [Span(1.0, 0.1), Span(1.5, 0.1)]).stalls
    assert (stall.at_ns, round(stall.ms)) == (1_000_000_000, 200)


@pytest.mark.parametrize("noise", [noisy_host.pauses, noisy_host.shortfall])
def test_noise_of_the_sender_changes_the_offered_load(noise: noisy_host.Kind) -> None:
    """Some trials take longer than was intended, and their load is less."""
    chance = random.Random(2544)
    trials = [offer(FINAL, null.DUTS["fades"], noise(chance, 10.0), chance) for _ in range(50)]
    assert sum(o.duration_s > 10.005 for o in trials) >= 5
    assert all(o.streams[0].tx_frames == 400_000 for o in trials)


def test_lists_of_many_pauses_can_be_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most trials of 60 s have more than a list of 200 holds."""
    monkeypatch.setattr(noisy_host, "LISTED", 200)
    chance = random.Random(2544)
    made = partial(noisy_host.many_pauses, chance)
    long = Request(40_000.0, 60.0, "final", 0)
    streams = [offer(long, null.DUTS["fades"], made(60.0), chance).streams[0] for _ in range(20)]
    assert all(len(s.tx_stalls) <= 200 for s in streams)
    assert sum(s.tx_stalls_more > 0 for s in streams) >= 10


def test_one_slow_sender_of_two_leaves_the_dut_with_less() -> None:
    """20,000 frames/s one way, 10,000 the other: what the DUT can take of 40,000 crosses, until the faster is done."""
    slow = Disturbance(pace=0.5, sender=1)
    dut = noisy_host.Dut(lambda load: max(0.0, 1 - 25_000 / load) if load else 0.0)
    west, east = offer(Request(40_000.0, 1.0, "search", 0), dut, slow, random.Random(1), directions=2).streams
    assert (west.tx_frames, east.tx_frames) == (20_000, 20_000)
    assert west.never_came == pytest.approx(20_000 / 6, rel=0.1)
    assert east.never_came == pytest.approx(10_000 / 6, rel=0.1)


def test_a_stalled_cpu_loses_what_its_ring_cannot_hold() -> None:
    """40,000 frames/s for 50 ms: 2,000 frames, of which 512 find room."""
    noise = Disturbance(stalls=(Span(1.0, 0.05),))
    (stream,) = offer(
        Request(40_000.0, 2.0, "search", 0), null.DUTS["fades"], noise, random.Random(1)
    ).streams
    assert stream.never_came == pytest.approx(2_000 - noisy_host.RING, abs=5)


@pytest.mark.parametrize("rate", [39_000.0, 42_000.0])
def test_what_is_stored_grows_a_queue(rate: float) -> None:
    """The queue grows only above the DUT's rate, and nothing is lost."""
    asked = Request(rate, 10.0, "final", 0)
    (stream,) = offer(asked, null.DUTS["stores"], noisy_host.QUIET, random.Random(1)).streams
    assert stream.never_came == 0
    first, last = stream.slices[0].min_us, stream.slices[-1].min_us
    assert first is not None
    assert last is not None
    assert (last > first + 100_000) == (rate > 40_000)


def test_the_lower_the_load_the_more_switches_are_subtracted() -> None:
    """30,000 switches a second to threads that woke on a CPU that is idle half of the time take 2.25 % of the time."""
    noise = Disturbance(kept=Kept(70_000_000, turns=30_000))
    starved = [noise.host_record(10.0, load)["starved_pct"] for load in (80_000.0, 40_000.0)]
    assert starved == [pytest.approx(7.0), pytest.approx(4.75)]
    drawn = [noisy_host.switches(random.Random(n), 10.0).host_record(10.0, 46_000.0) for n in range(40)]
    void = sum(cast(float, record["starved_pct"]) > STARVATION_LIMIT_PCT for record in drawn)
    assert 10 <= void <= 30
