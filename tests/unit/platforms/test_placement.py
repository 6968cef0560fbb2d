# SPDX-License-Identifier: Apache-2.0
"""Tester and gateways get CPUs of their own where there are enough; elsewhere espbench says who shares."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espbench.errors import UsageError
from espbench.platforms import placement

# No file of sysfs is there: each CPU is a core, and its clock is constant. No test depends on the machine that runs it.
choose = partial(placement.choose, folder=Path("/nonexistent"))


def machine(folder: Path, cores: list[list[int]], governor: str = "") -> Path:
    """Make the files of sysfs for CPUs with these cores; governor: of all CPUs."""
    for core in cores:
        for cpu in core:
            topology = folder / f"cpu{cpu}" / "topology"
            topology.mkdir(parents=True)
            (topology / "thread_siblings_list").write_text(",".join(map(str, core)) + "\n")
            if governor:
                policy = folder / f"cpu{cpu}" / "cpufreq"
                policy.mkdir()
                (policy / "scaling_governor").write_text(f"{governor}\n")
                (policy / "scaling_min_freq").write_text("1\n")
    return folder


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


ONE_CORE = "the tester and the gateways share a core: figures are lower bounds at best"


@pytest.mark.parametrize(
    ("cores", "tx", "rx", "home", "office"),
    [
        ([[0, 2], [1, 3]], 0, 2, 1, 1),  # a laptop: the other threads of the cores have the higher numbers
        ([[0, 1], [2, 3]], 0, 1, 2, 2),
        ([[0, 1], [2, 3], [4, 5]], 0, 1, 2, 4),
        ([[0, 4], [1, 5], [2, 6], [3, 7]], 0, 1, 2, 3),
        ([[0, 1], [2, 3], [4, 5], [6, 7]], 0, 2, 4, 6),
    ],
)
def test_no_gateway_shares_a_core(
    tmp_path: Path, cores: list[list[int]], tx: int, rx: int, home: int, office: int
) -> None:
    """Two hardware threads of one core slow each other; only gateways may share one, and then the same thread."""
    allowed = {cpu for core in cores for cpu in core}
    placed = placement.choose(allowed=allowed, folder=machine(tmp_path, cores))
    assert placed.cpus == {
        "tester tx": [tx], "tester rx": [rx], "controller": [rx], "home": [home], "office": [office],
    }  # fmt: skip
    assert any("share CPU" in said for said in placed.shared) == (home == office)
    assert ONE_CORE not in placed.shared


def test_a_single_core_is_shared_by_all_and_that_is_said(tmp_path: Path) -> None:
    placed = placement.choose(allowed={0, 1}, folder=machine(tmp_path, [[0, 1]]))
    assert (placed.cpus["tester tx"], placed.cpus["home"]) == ([0], [1])
    assert ONE_CORE in placed.shared


@given(st.integers(1, 6), st.integers(1, 2), st.integers(1, 2), st.integers(1, 4))
def test_a_core_has_gateways_or_the_tester(threads: int, cores: int, gateways: int, senders: int) -> None:
    """No core has both if there are two or more, and those without gateways have threads enough for the senders."""
    layout = [[core * threads + thread for thread in range(threads)] for core in range(cores + 1)]
    with TemporaryDirectory() as folder:
        machine(Path(folder), layout)
        senders = min(senders, threads * cores)
        placed = placement.choose(
            gateways=gateways,
            senders=senders,
            allowed={cpu for core in layout for cpu in core},
            folder=Path(folder),
        )
    of_tester = {*placed.cpus["tester tx"], *placed.cpus["tester rx"]}
    of_gateways = {*placed.cpus["home"], *placed.cpus.get("office", [])}
    assert not any(of_tester & {*core} and of_gateways & {*core} for core in layout)
    assert len({*placed.cpus["tester tx"]}) == senders


def test_a_clock_that_follows_the_load_is_said(tmp_path: Path) -> None:
    """The warning has the command that makes it constant."""
    folder = machine(tmp_path, [[0], [1], [2], [3]], "powersave")
    (said,) = placement.choose(allowed={0, 1, 2, 3}, folder=folder).shared
    assert "governor powersave" in said
    assert "scaling_governor" in said
