# SPDX-License-Identifier: Apache-2.0
"""Tester and gateways get CPUs of their own where there are enough; elsewhere espbench says who shares."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espbench.errors import UsageError
from espbench.platforms.placement import choose
from espbench.this_machine import cpu_clock


@pytest.fixture(autouse=True)
def constant_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test depend on the governor of the machine that runs it."""
    monkeypatch.setattr(cpu_clock, "follows_load", lambda cpus: "")


@given(st.sets(st.integers(0, 63), min_size=2, max_size=16), st.integers(0, 2), st.data())
def test_no_gateway_is_on_a_cpu_that_sends(allowed: set[int], gateways: int, data: st.DataObject) -> None:
    """Each sender has its own CPU and gateways have others, whatever CPUs and senders there are."""
    senders = data.draw(st.integers(1, len(allowed) - min(1, gateways)))
    placed = choose(gateways=gateways, senders=senders, allowed=allowed)
    tx = placed.cpus["tester tx"]
    assert len(set(tx)) == senders
    assert {cpu for used in placed.cpus.values() for cpu in used} <= allowed
    sides = ["home", "office"][:gateways]
    assert [side for side in ("home", "office") if side in placed.cpus] == sides
    for side in sides:
        assert not {*tx, *placed.cpus["tester rx"]} & {*placed.cpus[side]}
    together = placed.cpus["tester rx"][0] in tx
    assert any("sends and receives" in said for said in placed.shared) == together


@pytest.mark.parametrize(
    ("cpus", "rx", "home", "office"), [(2, 0, 1, 1), (3, 0, 1, 2), (4, 1, 2, 3), (8, 1, 2, 3)]
)
def test_each_gets_its_own_cpu_where_it_can(cpus: int, rx: int, home: int, office: int) -> None:
    """Nobody shares one from four CPUs on."""
    placed = choose(allowed=set(range(cpus)))
    assert placed.cpus == {
        "tester tx": [0], "tester rx": [rx], "controller": [rx], "home": [home], "office": [office],
    }  # fmt: skip
    assert (placed.shared == []) == (cpus >= 4)


def test_a_single_gateway_shares_no_core_on_two_cpus() -> None:
    """The core that Office had is free: nothing is said of sharing but that the tester sends and receives on one."""
    placed = choose(gateways=1, allowed={0, 1})
    assert (placed.cpus["tester tx"], placed.cpus["home"]) == ([0], [1])
    assert placed.shared == ["the tester sends and receives on one CPU (0)"]
    assert choose(gateways=1, allowed={0, 1, 2}).shared == []


def test_one_cpu_is_shared_by_all_and_that_is_said() -> None:
    placed = choose(allowed={3})
    assert {cpu for used in placed.cpus.values() for cpu in used} == {3}
    assert any("lower bounds at best" in said for said in placed.shared)


def test_more_senders_than_cpus_are_refused() -> None:
    """Two CPUs, and a gateway needs one of them."""
    with pytest.raises(UsageError, match="senders: expected at most 1, got 2: there are 2 CPUs"):
        choose(senders=2, allowed={0, 1})
    assert choose(gateways=0, senders=2, allowed={0, 1}).cpus["tester tx"] == [0, 1]


def test_a_clock_that_follows_the_load_is_said_of_the_gateways_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """The warning has the command that makes it constant. The tester's CPUs are left out: they are always busy."""
    asked: list[set[int]] = []

    def follows_load(cpus: set[int]) -> str:
        asked.append(cpus)
        return "powersave"

    monkeypatch.setattr(cpu_clock, "follows_load", follows_load)
    (said,) = choose(allowed={0, 1, 2, 3}).shared
    assert "governor powersave" in said
    assert "scaling_governor" in said
    assert asked == [{2, 3}]
