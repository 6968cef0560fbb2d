# SPDX-License-Identifier: Apache-2.0
"""The sentences of a comparison: what is shown, what is not, what nobody can say, and what it costs."""

from __future__ import annotations

import re
from typing import Any

import pytest

from espbench.comparison.build import of
from espbench.comparison.sorting.model import (
    Comparison,
    Estimate,
    Name,
    Overhead,
    Panel,
    PointVerdict,
    Word,
)
from espbench.comparison.telling.costs import cost_words
from espbench.comparison.telling.words import pair_words
from support.simulated import comparisons as sim
from support.simulated.comparisons import CAPPED, by_stack, only, repeats


def estimate(value: float, n: int = 5) -> Estimate:
    """Return an estimate with 10 % to either side, or without an interval where there is one repeat."""
    low, high = sorted((value * 0.9, value * 1.1)) if n > 1 else (value, value)
    return Estimate(value, low, high, n)


def verdict(x: int | str, value: float | None, word: Word, why: str = "", **more: Any) -> PointVerdict:
    return PointVerdict(x, estimate(value) if value else None, word, why, **more)


def test_no_verdict_is_never_told_as_no_difference_nor_the_reverse() -> None:
    """The words, the table and the JSON show one and the same verdict."""
    thin = by_stack(repeats("a", 64, 3e4, n=2), repeats("b", 64, 4e4, n=2))
    assert only(thin).word == "no verdict"
    assert thin.words[0].startswith("There is no verdict on b and a at 64 B: usable repeats: a 2, b 2;")
    assert "difference" not in thin.words[0]
    capped = by_stack(repeats("a", 64, 4e4), repeats("b", 64, 3e4, **CAPPED))
    assert only(capped).word == "no difference shown"
    assert capped.words[0].startswith("No difference between b and a is shown at 64 B; b is at least 0.7")
    assert "no verdict" not in capped.words[0]


def test_points_without_a_verdict_are_named_with_why() -> None:
    points = [
        verdict(64, 1.0, "no difference shown"),
        verdict(128, None, "no verdict", "usable repeats: a 0, b 5; a verdict takes 3"),
        verdict(512, 1.0, "no difference shown"),
    ]
    assert pair_words("a", "b", points, True) == (
        "No difference between b and a is shown at 64 and 512 B; a difference of up to a factor of 1.11 would "
        "not have been seen. There is no verdict on b and a at 128 B: usable repeats: a 0, b 5; a verdict takes 3."
    )
    several = [verdict(x, None, "no verdict", f"reason {x}") for x in (64, 128, 512)]
    assert pair_words("a", "b", several, True) == (
        "There is no verdict on b and a at any size: no figures to judge by."
    )


def test_a_bound_beside_a_ratio_is_told_too() -> None:
    points = [
        verdict(64, None, "B faster", at_least=20.0, bound_by="minimum"),
        verdict(128, 1.5, "B faster"),
        verdict(512, None, "B faster", at_least=1.2, bound_by="limit"),
    ]
    words = pair_words("a", "b", points, True)
    assert words == (
        "b is faster than a at every size: b is 1.50× [1.35, 1.65] as fast at 128 B; b is at least 20.0× as fast "
        "at 64 B; b is at least 1.20× as fast at 512 B; a misses the goal even at its minimum at 64 B."
    )


def test_the_arms_cpu_is_told() -> None:
    points = [
        verdict(64, 1.5, "B faster", cpu_ratio=estimate(0.5)),
        verdict(512, 1.5, "B faster", cpu_ratio=estimate(2)),
    ]
    words = pair_words("a", "b", points, True)
    assert words.endswith(
        "CPU per frame of b: 0.50× [0.45, 0.55] at 64 B to 2.00× [1.80, 2.20] at 512 B that of a."
    )


def test_by_frame_size_faster_is_in_frames() -> None:
    """64 B is faster than 1424 B in frames/s, and slower in Mbps."""
    outcomes = [o for size, fps in ((64, 3e4), (1424, 2e4)) for o in repeats("xfrm", size, fps)]
    comparison = of([sim.run_of(outcomes, {"by": "frame_size"})])
    assert comparison.words[0].startswith("64 B is faster than 1424 B in frames/s with aes128gcm16: ")


def test_every_sentence_begins_with_its_conditions_as_a_sentence_does() -> None:
    arms = [
        repeats(stack, size, fps, suite=suite, loss_goal=goal)
        for suite in ("aes128gcm16", "3des-sha1")
        for goal in (0.0, 1e-5)
        for stack, fps in (("a", 30e3), ("b", 40e3))
        for size in (64, 512)
    ]
    comparison = by_stack(*arms)
    assert [text.split(":")[0] for text in comparison.words[:4]] == [
        "At a loss goal of 0 % (aes128gcm16)",
        "At a loss goal of 0.001 % (aes128gcm16) every verdict is the same.",
        "At a loss goal of 0 % (3des-sha1)",
        "At a loss goal of 0.001 % (3des-sha1) every verdict is the same.",
    ]


@pytest.mark.parametrize(
    ("lengths", "note"),
    [
        ((1.5, 1.5), "All final trials (1.5 s) are shorter than the 60 s of RFC 2544."),
        ((1.5, 10), "All final trials (1.5 to 10 s) are shorter than the 60 s of RFC 2544."),
        ((1.5, 60), "Some final trials (1.5 s) are shorter than the 60 s of RFC 2544."),
        ((60, 59.9999), None),
    ],
)
def test_short_final_trials_are_told_once_with_their_length(
    lengths: tuple[float, float], note: str | None
) -> None:
    a, b = (repeats(name, 64, 3e4, final_trial_s=length) for name, length in zip("ab", lengths, strict=True))
    comparison = by_stack(a, b)
    assert [text for text in comparison.words if "final trials" in text] == ([note] if note else [])
    assert comparison.is_short == bool(note)


def test_cpu_is_told_with_what_it_depends_on_once_and_only_where_there_is_any() -> None:
    def load(**cpu: Any) -> list[str]:
        arms = [repeats(name, size, 3e4, **cpu) for name in ("a", "b", "plain") for size in (64, 512)]
        return [text for text in by_stack(*arms).words if "depends on the load" in text]

    assert len(load(cpu_home_us_per_frame=5.0, cpu_office_us_per_frame=5.0)) == 1
    assert load() == []


# --- what it costs beside a baseline


def panel(goal: str = "", **conditions: str) -> Panel:
    return Panel(
        conditions | ({Name.LOSS_GOAL: goal} if goal else {}), 0.0, Name.FRAME_SIZE, [64, 512], {}, []
    )


def cost(x: int, slowdown: float | None, extra: float | None, n: int = 5, **more: Any) -> Overhead:
    factor, us = (None if value is None else estimate(value, n) for value in (slowdown, extra))
    return Overhead(more.pop("panel", 0), more.pop("arm", "a"), "plain", x, factor, us, **more)


@pytest.mark.parametrize(
    ("costs", "words"),
    [
        ([cost(64, 3.2, 14.3)], "plain is 3.20× [2.88, 3.52] as fast as a at 64 B; a takes 14.3 µs [12.9, 15.7] "
            "more CPU per frame than plain at 64 B."),
        ([cost(64, 0.8, -2.0)], "plain is 0.80× [0.72, 0.88] as fast as a at 64 B; a takes 2 µs [1.8, 2.2] "
            "less CPU per frame than plain at 64 B."),
        ([cost(64, 2.0, None), cost(512, 3.0, None)],
            "plain is 2.00× [1.80, 2.20] (64 B) to 3.00× [2.70, 3.30] (512 B) as fast as a."),
        ([cost(64, None, None, at_least=3.0), cost(512, 2.0, None)],
            "plain is 2.00× [1.80, 2.20] (512 B) to at least 3.00× (64 B) as fast as a."),
        ([cost(64, 3.2, None, n=1)], "plain is 3.20× as fast as a at 64 B (too few repeats for an interval)."),
        ([cost(64, 1.01, None)], "plain is 1.01× [0.91, 1.11] as fast as a at 64 B."),
    ],
)  # fmt: skip
def test_costs_are_told_with_their_intervals(costs: list[Overhead], words: str) -> None:
    assert cost_words([panel()], costs) == [words]


def test_costs_that_agree_between_goals_are_told_once() -> None:
    panels = [panel("0 %", suite="x"), panel("0.001 %", suite="x"), panel("1 %", suite="x")]
    costs = [
        cost(64, slowdown, None, panel=n, arm=arm)
        for n, slowdown in enumerate((3.2, 3.25, 2.0))
        for arm in "ab"
    ]
    notes = ["At loss goals of 0 % and 0.001 % (x)"] * 2 + ["At a loss goal of 1 % (x)"] * 2
    assert [re.sub(r": .*", "", text) for text in cost_words(panels, costs)] == notes


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((3.2, None), (None, {"at_least": 3.18})),
        ((None, {"at_least": 3.2}), (None, {"at_most": 3.2})),
        ((3.2, None), (3.2, {"n": 1})),
    ],
)
def test_a_figure_a_bound_and_a_figure_without_an_interval_are_not_told_as_one(
    first: tuple[float | None, Any], second: tuple[float | None, Any]
) -> None:
    """They are not alike, however close the numbers are."""
    panels = [panel("0 %", suite="x"), panel("0.001 %", suite="x")]
    costs = [
        cost(64, value, None, panel=n, **(more or {})) for n, (value, more) in enumerate((first, second))
    ]
    assert [text.split(" (")[0] for text in cost_words(panels, costs)] == [
        "At a loss goal of 0 %",
        "At a loss goal of 0.001 %",
    ]


def overhead_of(comparison: Comparison) -> Overhead:
    return next(o for o in comparison.overheads if o.arm == "a")


def test_overheads_of_two_repeats_have_no_interval_and_of_noisy_ones_a_wide_one() -> None:
    def overhead(n: int, us: tuple[float, ...] = (8.0, 8.0, 8.0, 8.0, 8.0)) -> Overhead:
        arms = [
            [
                o.model_copy(update={"cpu_home_us_per_frame": used, "cpu_office_us_per_frame": used})
                for o, used in zip(repeats(name, 64, fps, n=n), of_arm, strict=False)
            ]
            for name, fps, of_arm in (("plain", 9e4, (5.0,) * 5), ("a", 3e4, us), ("b", 3e4, us))
        ]
        return overhead_of(by_stack(*arms))

    few = overhead(2)
    assert few.slowdown
    assert few.extra_us
    assert (few.slowdown.n, few.extra_us) == (1, Estimate(6.0, 6.0, 6.0, 1))
    noisy = overhead(5, (4.0, 12.0, 8.0, 6.0, 10.0)).extra_us
    assert noisy
    assert noisy.low < 0 < noisy.value < noisy.high
    quiet = overhead(5, (7.9, 8.1, 8.0, 8.0, 8.0)).extra_us
    assert quiet
    assert 5.5 < quiet.low < 6.0 < quiet.high < 6.5
