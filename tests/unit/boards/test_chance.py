# SPDX-License-Identifier: Apache-2.0
"""Random numbers in virtual time follow from seed and repeat alone; those of 1 and 1 never change."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from espbench.platforms.chance import Chance
from espbench.platforms.virtual.virtual_guest import clock, seed_of

seeds = st.integers(0, 2**32 - 1)
repeats = st.integers(1, 1000)


@given(seed=seeds, repeat=repeats)
def test_both_gateways_draw_other_numbers_the_same_each_time(seed: int, repeat: int) -> None:
    """Ends of a tunnel that drew equal numbers would have the same keys and cookies."""
    drawn = [seed_of(Chance(seed, repeat), side) for side in ("home", "office")]
    assert drawn == [seed_of(Chance(seed, repeat), side) for side in ("home", "office")]
    assert all(0 <= number < 2**64 for number in drawn)
    assert drawn[0] != drawn[1] or (seed, repeat) == (1, 1)


@given(one=st.tuples(seeds, repeats), other=st.tuples(seeds, repeats))
def test_another_seed_or_repeat_draws_others(one: tuple[int, int], other: tuple[int, int]) -> None:
    drawn = [seed_of(Chance(*chance), "home") for chance in (one, other)]
    assert (drawn[0] == drawn[1]) == (one == other)


def test_the_first_repeat_of_the_first_seed_draws_what_it_did_without_seeds() -> None:
    """Figures that were published then stay the same to the last instruction."""
    assert [seed_of(Chance(), side) for side in ("home", "office")] == [1, 1]
    assert Chance().number("keys and SPIs", 2544) == 2544
    assert "-seed 1 " in " ".join(clock(Fraction(1), seed_of(Chance(), "home")))
