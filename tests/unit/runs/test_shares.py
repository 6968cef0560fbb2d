# SPDX-License-Identifier: Apache-2.0
"""Cases that are compared, or stand in one table, are measured on one machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from espbench.plan import cases, load_plan
from espbench.runs.book import Book
from espbench.runs.workers.machines import as_seen_on, begun_on, merged, without
from espbench.runs.workers.shares import Share, shares
from espbench.terms import Calibration, Manifest
from support.plans import pair_plan, write_plan
from support.simulated.benches import begun, bench

BASE = pair_plan(
    "netns", stacks=["plain", "xfrm"], suites=["aes128gcm16", "3des-sha1"], frame_sizes=[64, 512]
)
BOTH = {"frame_sizes": [128, 512], "directions": ["one-way", "both-ways"], "ip_versions": [4, 6], "repeat": 3}


def split(folder: Path, plan: dict[str, Any]) -> list[Share]:
    resolved = load_plan(write_plan(folder, plan))
    return shares(resolved.plan, cases(resolved, resolved.dut_names))


TWO = ["xfrm", {"stack": "xfrm", "label": "esn", "esn": True}]


@pytest.mark.parametrize(
    ("changes", "number", "name"),
    [
        (BOTH, 4, "netns, one-way, IPv4"),  # the repeats of a figure are together, for their mean
        # Two stacks are compared at the same loads in all repeats; one beside a baseline is not.
        ({**BOTH, "stacks": TWO, "compare": {"by": "stack"}}, 4, "netns, one-way, IPv4"),
        ({**BOTH, "compare": {"by": "stack"}}, 12, "netns, one-way, IPv4, repeat 1"),
        ({**BOTH, "compare": {"by": "stack", "at": False}}, 12, "netns, one-way, IPv4, repeat 1"),
        ({"dut": ["mpc8548e", "mpc8544e"]}, 2, "mpc8548e, one-way, IPv4"),
        ({"dut": ["mpc8548e", "mpc8544e"], "compare": {"by": "dut"}}, 1, "one-way, IPv4"),
    ],
)
def test_a_plan_is_split_between_what_is_not_compared(
    tmp_path: Path, changes: dict[str, Any], number: int, name: str
) -> None:
    """Every case is in one share; no share has a part of the stacks, suites or sizes of another."""
    found = split(tmp_path, BASE | changes)
    assert len(found) == number
    assert found[0].name == name
    resolved = load_plan(write_plan(tmp_path, BASE | changes))
    listed = cases(resolved, resolved.dut_names)
    assert sorted(id_ for share in found for id_ in share.cases) == sorted(case.id for case in listed)
    of_case = {id_: share.name for share in found for id_ in share.cases}
    for case in listed:
        for other in listed:
            alike = (case.dut, case.direction, case.ip_version, case.repeat) == (
                other.dut, other.direction, other.ip_version, other.repeat,
            )  # fmt: skip
            assert not alike or of_case[case.id] == of_case[other.id]


def test_what_a_case_begins_with_is_of_its_share(tmp_path: Path) -> None:
    """A latency test needs the throughput at its point, and a search begins where other sizes suggest."""
    plan = BASE | BOTH | {"frame_sizes": [128, 256, 512, 1024]}
    plan["tests"] = [*plan["tests"], {"latency": {}}]
    resolved = load_plan(write_plan(tmp_path, plan))
    listed = cases(resolved, resolved.dut_names)
    directory = begun(resolved, tmp_path)
    book = Book(resolved, listed, directory)
    directory.close()
    assert any(book.needs(case) for case in listed)
    of_case = {id_: share.name for share in shares(resolved.plan, listed) for id_ in share.cases}
    for case in listed:
        assert {of_case[needed.id] for needed in book.needs(case)} <= {of_case[case.id]}


def manifest(folder: Path) -> Manifest:
    resolved = load_plan(write_plan(folder, BASE | {"directions": ["one-way", "both-ways"]}))
    directory = begun(resolved, folder)
    directory.close()
    return directory.manifest


def ceiling(frame_size: int, fps: float) -> Calibration:
    return Calibration(frame_size=frame_size, ip_version=4, offered_fps=fps, received_fps=fps)


def test_a_machine_sees_what_is_its_own(tmp_path: Path) -> None:
    """Contexts of one name are of two machines, and so are ceilings of one size."""
    resolved = load_plan(write_plan(tmp_path, BASE))
    listed = cases(resolved, ["netns"])
    m = manifest(tmp_path)
    first, second = m.cases[0].case, m.cases[1].case
    for name, case, fps in (("a", first, 1e6), ("b", second, 2e6)):
        m = m.model_copy(update=begun_on(m, bench(name, kernel=f"Linux {name}").facts, [case]))
        told = {
            "contexts": {"plain": {"kernel": name}},
            "context_of_case": {case: "plain"},
            "calibration": [ceiling(64, fps), ceiling(512, fps)],
            "placement": {"cpus": {"home": [1]}, "shared": [f"of {name}", "of both"]},
            "warnings": [f"warned by {name}"],
        }
        m = m.model_copy(update=merged(m, name, told))
    assert m.contexts == {"plain on a": {"kernel": "a"}, "plain on b": {"kernel": "b"}}
    assert [(c.machine, c.offered_fps) for c in m.calibration] == [("a", 1e6)] * 2 + [("b", 2e6)] * 2
    assert m.host["cpu"] == "Q"
    assert m.host["kernel"] == "Linux a; or Linux b"
    assert "machine" not in m.host
    assert m.placement == {"cpus": {"home": [1]}, "shared": ["of a", "of both", "of b"]}
    assert (m.machine_of(first), m.machine_of(second)) == ("a", "b")
    assert m.warnings[-2:] == ["warned by a", "warned by b"]
    seen = as_seen_on(m, "a", listed[:1])
    assert seen.contexts == {"plain": {"kernel": "a"}}
    assert seen.context_of_case == {first: "plain"}
    assert [c.offered_fps for c in seen.calibration] == [1e6]
    assert seen.placement["shared"] == ["of a", "of both"]
    assert seen.host["kernel"] == "Linux a"


def test_a_ceiling_that_is_missing_is_measured_with_all_of_its_share(tmp_path: Path) -> None:
    resolved = load_plan(write_plan(tmp_path, BASE))
    listed = cases(resolved, ["netns"])
    m = manifest(tmp_path)
    m = m.model_copy(update=begun_on(m, bench("a").facts, [listed[0].id]))
    m = m.model_copy(update=merged(m, "a", {"calibration": [ceiling(64, 1e6)]}))
    assert as_seen_on(m, "a", listed).calibration == []
    m = m.model_copy(update=merged(m, "a", {"calibration": [ceiling(64, 3e6), ceiling(512, 2e6)]}))
    assert [c.offered_fps for c in as_seen_on(m, "a", listed).calibration] == [3e6, 2e6]
    assert as_seen_on(m, "b", listed).calibration == []


def test_clocks_that_differ_are_nobodys(tmp_path: Path) -> None:
    """Costs in cycles would be of the wrong machine."""
    m = manifest(tmp_path)
    cases_of = [entry.case for entry in m.cases]
    m = m.model_copy(update=begun_on(m, bench("a").facts, cases_of[:1]))
    assert m.host["cpu_mhz"] == 2000
    m = m.model_copy(update=begun_on(m, bench("b", cpu_mhz=3000.0).facts, cases_of[1:2]))
    assert "cpu_mhz" not in m.host


def test_cases_to_be_begun_anew_are_of_no_machine(tmp_path: Path) -> None:
    m = manifest(tmp_path)
    first, second = m.cases[0].case, m.cases[1].case
    m = m.model_copy(update=begun_on(m, bench("a").facts, [first]))
    m = m.model_copy(update=begun_on(m, bench("b").facts, [second]))
    for name, case in (("a", first), ("b", second)):
        told = {"contexts": {"plain": {}}, "context_of_case": {case: "plain"}, "search_hints": {case: [1.0]}}
        m = m.model_copy(update=merged(m, name, told))
    m = m.model_copy(update=without(m, [first]))
    assert m.machine_of_case == {second: "b"}
    assert m.contexts == {"plain on b": {}}
    assert m.search_hints == {second: [1.0]}
