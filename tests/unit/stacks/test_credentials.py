# SPDX-License-Identifier: Apache-2.0
"""Secrets of a pair: new each time, but of a seed where two runs are to be the same."""

from __future__ import annotations

from espbench.platforms.chance import Chance
from espbench.stacks.daemons import credentials


def test_a_pair_shares_a_psk_of_its_own() -> None:
    first, second = credentials.make("psk"), credentials.make("psk")
    assert first["home"].psk == first["office"].psk
    assert first["home"].psk != second["home"].psk


def test_in_virtual_time_every_pair_has_the_same_one() -> None:
    first, second = credentials.make("psk", Chance()), credentials.make("psk", Chance())
    assert first["home"].psk == first["office"].psk == second["home"].psk
    assert len(first["home"].psk) == 64


def test_another_seed_or_repeat_has_another_one() -> None:
    drawn = {
        credentials.make("psk", Chance(seed, repeat))["home"].psk for seed in (1, 2) for repeat in (1, 2)
    }
    assert len(drawn) == 4


def test_no_secret_is_shown() -> None:
    made = credentials.make("psk", Chance())["home"]
    assert made.psk not in repr(made)
