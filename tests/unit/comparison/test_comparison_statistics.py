# SPDX-License-Identifier: Apache-2.0
"""The statistics of a comparison: against tables, by its symmetries, and by how often it is right."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from espbench.comparison.build import of
from espbench.comparison.deciding import statistics, student_t
from espbench.comparison.deciding.statistics import Prior, Reading, Term
from espbench.comparison.sorting.model import PointVerdict
from support.simulated import comparisons as sim

# Two-sided t of printed tables (5 %, 1 %, 0.1 %), and far out.
TABLE = [
    (0.05, 1, 12.706), (0.05, 2, 4.303), (0.05, 4, 2.776), (0.05, 10, 2.228), (0.05, 1e6, 1.960),
    (0.01, 4, 4.604), (0.01, 30, 2.750), (0.001, 4, 8.610), (0.001, 2, 31.599), (0.1, 120, 1.658),
]  # fmt: skip

Figures = list[list[tuple[float, float]]]  # size → repeat → (A, B), frames/s
noise = st.floats(-0.2, 0.2)
figures = st.integers(3, 5).flatmap(
    lambda repeats: st.lists(
        st.tuples(
            st.floats(-0.3, 0.3), st.lists(st.tuples(noise, noise), min_size=repeats, max_size=repeats)
        ).map(lambda drawn: [(4e4 * math.exp(a), 4e4 * math.exp(drawn[0] + b)) for a, b in drawn[1]]),
        min_size=1,
        max_size=5,
    )
)


def judged(sizes: Figures, *, paired: bool = True, swapped: bool = False) -> list[PointVerdict]:
    """B against A (or, swapped, A against B) over the sizes."""
    outcomes = [
        sim.made(stack, 64 + size, repeat, fps)
        for size, repeats in enumerate(sizes)
        for repeat, both in enumerate(repeats)
        for stack, fps in zip("AB", both, strict=True)
    ]
    run = sim.run_of(outcomes, {"by": "stack"} if paired else None)
    return sim.verdicts_of(of([run], by="stack", reference="B" if swapped else "A"))


@pytest.mark.parametrize(("alpha", "df", "t"), TABLE)
def test_quantile_of_t_is_the_tables(alpha: float, df: float, t: float) -> None:
    assert student_t.two_sided(alpha, df) == pytest.approx(t, abs=6e-4)


def test_quantile_of_t_far_out_with_two_degrees_is_exact() -> None:
    # The distribution has a closed form for df = 2.
    for alpha in (0.5, 1e-3, 1e-6):
        expected = (1 - alpha) * math.sqrt(2 / (alpha * (2 - alpha)))
        assert student_t.two_sided(alpha, 2) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(
    ("x", "value"), [(1.0, math.pi**2 / 6), (0.5, math.pi**2 / 2), (2.0, math.pi**2 / 6 - 1)]
)
def test_trigamma(x: float, value: float) -> None:
    assert statistics.trigamma(x) == pytest.approx(value, rel=1e-9)


def test_points_that_agree_lend_each_other_what_they_know_and_points_that_do_not_nothing() -> None:
    def term(scale: float) -> Term:
        return Term(
            tuple(Reading(x - 0.001, x, x + 0.001) for x in (-scale, 0.0, scale / 2, scale / 3, -scale / 4))
        )

    alike = statistics.prior([term(0.03 + 0.001 * i) for i in range(8)], 8)
    unlike = statistics.prior([term(0.03 * 4**i) for i in range(8)], 8)
    assert alike.weight == statistics.MOST_BORROWED
    assert unlike.weight < 0.3
    assert statistics.prior([term(0.03)] * 2, 1) == Prior(), "two goals of one case are one case"


def test_a_point_noisier_than_the_others_keeps_its_own_scatter() -> None:
    noisy = Term(tuple(Reading(x, x, x) for x in (-0.2, 0.2, 0.0)))
    quiet = Term(tuple(Reading(x, x, x) for x in (-0.01, 0.01, 0.0)))
    assert Prior(0.01, 1.0).moderated(noisy) == pytest.approx((0.04, 4.0))
    assert Prior(0.01, 1.0).moderated(quiet) == pytest.approx(((0.01 + 0.0001) / 2, 4.0))


@settings(deadline=None)
@given(figures, st.booleans())
def test_swapping_the_arms_mirrors_the_verdict_and_inverts_the_ratio(sizes: Figures, paired: bool) -> None:
    mirror = {"A faster": "B faster", "B faster": "A faster"}
    for one, other in zip(
        judged(sizes, paired=paired), judged(sizes, paired=paired, swapped=True), strict=True
    ):
        assert other.word == mirror.get(one.word, one.word)
        assert one.ratio
        assert other.ratio
        inverse = (1 / one.ratio.value, 1 / one.ratio.high, 1 / one.ratio.low)
        assert (other.ratio.value, other.ratio.low, other.ratio.high) == pytest.approx(inverse)


@settings(deadline=None)
@given(figures, st.booleans(), st.floats(0.01, 100))
def test_the_unit_of_the_rates_does_not_matter(sizes: Figures, paired: bool, factor: float) -> None:
    scaled = [[(a * factor, b * factor) for a, b in repeats] for repeats in sizes]
    for one, other in zip(judged(sizes, paired=paired), judged(scaled, paired=paired), strict=True):
        assert one.ratio
        assert other.ratio
        assert (one.ratio.low, one.ratio.high) == pytest.approx((other.ratio.low, other.ratio.high), rel=1e-6)


@settings(deadline=None)
@given(figures, st.booleans(), st.floats(1, 10))
def test_more_noise_never_narrows(sizes: Figures, paired: bool, factor: float) -> None:
    def spread(repeats: list[tuple[float, float]]) -> list[tuple[float, float]]:
        means = [math.exp(sum(math.log(both[i]) for both in repeats) / len(repeats)) for i in (0, 1)]
        return [
            (means[0] * (a / means[0]) ** factor, means[1] * (b / means[1]) ** factor) for a, b in repeats
        ]

    noisier = judged([spread(repeats) for repeats in sizes], paired=paired)
    for before, after in zip(judged(sizes, paired=paired), noisier, strict=True):
        assert before.ratio
        assert after.ratio
        assert after.ratio.high / after.ratio.low >= before.ratio.high / before.ratio.low * (1 - 1e-6)


@settings(deadline=None)
@given(figures, st.booleans())
def test_the_word_is_what_the_interval_says(sizes: Figures, paired: bool) -> None:
    for verdict in judged(sizes, paired=paired):
        assert verdict.ratio
        assert verdict.ratio.low <= verdict.ratio.value <= verdict.ratio.high
        expected = (
            "B faster" if verdict.ratio.low > 1.00001
            else "A faster" if verdict.ratio.high < 0.99999
            else "no difference shown"
        )  # fmt: skip
        if abs(verdict.ratio.low - 1) > 1e-5 and abs(verdict.ratio.high - 1) > 1e-5:
            assert verdict.word == expected


def test_repeats_on_one_grid_point_still_carry_the_resolution() -> None:
    (same,) = judged([[(40_000, 40_000)] * 5])
    assert same.ratio
    assert (same.ratio.low, same.ratio.high) == pytest.approx((1 / 1.01, 1.01))
    (within,) = judged([[(40_000, 40_390)] * 5])
    assert within.word == "no difference shown"
    (beyond,) = judged([[(40_000, 40_500)] * 5])
    assert beyond.word == "B faster"


@pytest.mark.parametrize(
    "setting",
    [
        pytest.param(sim.Setting(noise=0.0), id="no noise", marks=pytest.mark.slow),
        pytest.param(sim.Setting(noise=0.03), id="3 %", marks=pytest.mark.slow),
        pytest.param(sim.Setting(noise=0.03, repeats=3, resolution=0.05), id="3 repeats, 5 %"),
        pytest.param(sim.Setting(noise=0.03, uneven=5), id="one size noisier", marks=pytest.mark.slow),
        pytest.param(sim.Setting(noise=0.01, drift=0.1), id="drift", marks=pytest.mark.slow),
        pytest.param(
            sim.Setting(noise=0.03, repeats=3, edge="minimum"), id="at the minimum", marks=pytest.mark.slow
        ),
        pytest.param(
            sim.Setting(noise=0.03, repeats=3, edge="maximum"), id="at the limit", marks=pytest.mark.slow
        ),
    ],
)
def test_equal_configurations_show_no_difference_in_95_of_100_comparisons(setting: sim.Setting) -> None:
    chance, times = random.Random(26), 100
    right = sum(
        sim.is_none_shown(sim.compared(replace(setting, sizes=(64, 512, 1424)), chance)) for _ in range(times)
    )
    assert right >= 0.95 * times


def test_a_real_difference_is_shown() -> None:
    chance = random.Random(261)
    words = [
        v.word
        for _ in range(20)
        for v in sim.verdicts_of(
            sim.compared(sim.Setting(ratio=1.15, noise=0.03, sizes=(64, 512, 1424)), chance)
        )
    ]
    assert words.count("B faster") >= 0.9 * len(words)
    assert "A faster" not in words


def test_without_interleaving_drift_passes_for_a_difference() -> None:
    chance = random.Random(262)
    setting = sim.Setting(noise=0.01, drift=0.1, interleaved=False)
    assert not any(sim.is_none_shown(sim.compared(setting, chance)) for _ in range(5))
