# SPDX-License-Identifier: Apache-2.0
"""Several runs against published figures: which of their figures count, and which runs are refused together."""

from __future__ import annotations

import json
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espbench.claims.points import Point
from espbench.comparison.sorting.comparability import flat
from espbench.errors import UsageError
from espbench.paths import data_dir
from espbench.plan import load_plan, load_profile, profile_names
from espbench.plan.resolved.asked import asked
from espbench.quantities import Key, figure
from espbench.reporting.published.equal_conditions import refuse_unlike
from espbench.reporting.published.own_profiles import own_profiles
from espbench.reporting.published.published_documents import judged
from espbench.results import RunDirectory, accelerator, kernels
from espbench.results.accelerator import AcceleratorResult, PublicKeyResult
from espbench.terms import Finding, Manifest, Outcome
from support.command_line import in_process
from support.synthetic import powerquicc as made
from support.synthetic.kernels import everything, on_board

MHZ = 1333
SIZE = 64
TRUE_FPS = made.truth(made.DEVICES["mpc8548e"], "async", SIZE)[0]


def manifest(name: str, day: int, resolution: str = "2%", **conditions: Any) -> Manifest:
    """Return the manifest of a run of one case, started on this day of January."""
    of_case, _ = made.outcomes(made.Shape(behaviours=("async",), sizes=(SIZE,)))
    recorded = {
        "tests": [{"throughput": {"resolution": resolution}}],
        "traffic": "rfc2544",
        "profiles": {"mpc8548e": {"platform": "qemu_e500", "board": {"core_clock": f"{MHZ}MHz"}}},
    }
    return of_case.model_copy(
        update={"name": name, "started": f"2026-01-{day:02}T00:00:00Z", "conditions": recorded | conditions}
    )


def run(
    parent: Path, of: Manifest, factor: float = 1.0, findings: list[Finding] | None = None
) -> RunDirectory:
    """Write a run whose throughput is a multiple of the true one."""
    _, (outcome,) = made.outcomes(made.Shape(behaviours=("async",), sizes=(SIZE,)))
    faster = outcome.model_copy(update={"throughput_fps": factor * (outcome.throughput_fps or 0.0)})
    with RunDirectory.create(parent, of.name, of, "name: synthetic\n") as written:
        written.save_results([faster, *(findings or [])])
    return RunDirectory.open(written.path)


def point(runs: tuple[RunDirectory, ...] | list[RunDirectory]) -> Point:
    (one,) = judged(runs)[1].points
    return one


def test_only_the_finest_search_counts_and_repeats_of_it_have_their_median(tmp_path: Path) -> None:
    """A search of 4 % ends at other loads; a median of both would be a load that no search found."""
    runs = [
        run(tmp_path, manifest("fine", 1), 1.0),
        run(tmp_path, manifest("again", 2), 1.02),
        run(tmp_path, manifest("quick", 3, "4%"), 0.9),
        run(tmp_path, manifest("old", 4, tests=[]), 0.5),
    ]
    for order in permutations(runs):
        assert point(order).fps == pytest.approx(1.01 * TRUE_FPS)
    assert point(runs[2:]).fps == pytest.approx(0.9 * TRUE_FPS)


def test_each_test_of_a_run_has_its_own_resolution(tmp_path: Path) -> None:
    """`throughput-2` is the second throughput test of its plan."""
    tests = [{"throughput": {"resolution": "1%"}}, {"latency": {}}, {"throughput": {"resolution": "5%"}}]
    of = manifest("twice", 1, tests=tests)
    second = of.cases[0].model_copy(update={"test": "throughput-2"})
    runs = [run(tmp_path, of.model_copy(update={"cases": [second]}), 0.9), run(tmp_path, manifest("fine", 2))]
    coarse = [
        result.model_copy(update={"test": "throughput-2"})
        for result in runs[0].results()
        if isinstance(result, Outcome)
    ]
    with RunDirectory.open(runs[0].path) as opened:
        opened.save_results(coarse)
    assert point([RunDirectory.open(runs[0].path), runs[1]]).fps == pytest.approx(TRUE_FPS)


def with_guests(of: Manifest, emulation: dict[str, Any]) -> Manifest:
    (case,) = of.cases
    return of.model_copy(
        update={
            "contexts": {"one": {"emulation": emulation}},
            "context_of_case": {case.case: "one"},
        }
    )


SLOWER: dict[str, Any] = {
    "profiles": {"mpc8548e": {"platform": "qemu_e500", "board": {"core_clock": "666MHz"}}}
}
WITH_BUS: dict[str, Any] = {
    "profiles": {
        "mpc8548e": {"platform": "qemu_e500", "board": {"core_clock": f"{MHZ}MHz", "bus": {"width": 16}}}
    }
}


@pytest.mark.parametrize(
    ("conditions", "line"),
    [
        (SLOWER, "profile.board.core_clock: 1333MHz (one, two); 666MHz (three)"),
        (WITH_BUS, "profile.board.bus.width: not set (one, two); 16 (three)"),
        ({"traffic": "voip"}, "traffic.traffic: rfc2544 (one, two); voip (three)"),
    ],
)
def test_a_dut_under_unlike_conditions_is_refused(
    tmp_path: Path, conditions: dict[str, Any], line: str
) -> None:
    """Two runs of 50 and 90 % CPU have no common 70 %."""
    runs = [
        run(tmp_path, manifest(name, day, **(conditions if name == "three" else {})))
        for day, name in enumerate(("one", "two", "three"), 1)
    ]
    with pytest.raises(UsageError) as refused:
        judged(runs)
    message = str(refused.value)
    assert message.startswith("mpc8548e: measured under unlike conditions\n  expected: runs of one profile")
    assert f"  got:\n    {line}\n  what to do: name only the runs that are alike" in message
    assert judged(runs[:2])[1].points


def test_another_build_of_the_guests_is_refused_and_what_a_stack_needs_is_not() -> None:
    one, two = manifest("one", 1), manifest("two", 2)
    parts = {"e500-kernel": "vmlinux sha256 1111"}
    with pytest.raises(
        UsageError, match=r"guests\.e500-kernel: vmlinux sha256 1111 \(one\); .* 2222 \(two\)"
    ):
        refuse_unlike(
            {
                "one": with_guests(one, parts),
                "two": with_guests(two, {"e500-kernel": "vmlinux sha256 2222"}),
            }
        )
    more = parts | {"e500-strongswan": "strongswan.cpio sha256 3333"}
    refuse_unlike({"one": with_guests(one, parts), "two": with_guests(two, more)})
    refuse_unlike({"one": with_guests(one, parts), "an older run": with_guests(two, {})})


def test_what_plans_vary_on_purpose_is_not_refused() -> None:
    """Resolutions, topologies, and links with errors, which make another DUT."""
    links: dict[str, Any] = {"links": {"middle": "loss 1e-05", "seed": 1}}
    refuse_unlike(
        {
            "one": manifest("one", 1),
            "two": manifest("two", 2, "10%", topology="single-gateway"),
            "erring": manifest("erring", 3, **links, **SLOWER),
        }
    )


def test_another_processor_under_one_name_is_refused() -> None:
    asked = [{"profiles": {"ixp2800": {"processor": {"engines": n}}}} for n in (8, 16)]
    of = manifest("one", 1, profiles={"ixp2800": {"platform": "ixp"}})
    manifests = [of.model_copy(update={"asked": each}) for each in asked]
    with pytest.raises(
        UsageError, match=r"ixp2800: .*\n.*\n.*\n    processor\.engines: 8 \(one\); 16 \(two\)"
    ):
        refuse_unlike(dict(zip(("one", "two"), manifests, strict=True)))


MAKERS = {
    "compiler gcc": "gcc 12", "compiler powerpc-linux-gnu-gcc": "gcc 12", kernels.SOURCES: "sha256 1111", "qemu": "1"
}  # fmt: skip


@given(
    name=st.sampled_from(["espbench", *MAKERS]),
    other=st.sampled_from(["", "another"]),
    with_kernels=st.booleans(),
)
def test_kernels_of_other_makers_are_refused(name: str, other: str, with_kernels: bool) -> None:
    """Kernels of another processor count, as a ratio divides them; what a run does not record differs from nothing."""
    one = manifest("one", 1).model_copy(update={"tools": MAKERS | {"python": "3.11"}})
    changed = {"espbench": other or one.espbench} if name == "espbench" else {"tools": MAKERS | {name: other}}
    two = manifest("two", 2, profiles={"ixp2800": {}}).model_copy(update=changed)
    runs = {"one": one, "two": two}
    if not other or not with_kernels:
        refuse_unlike(runs, runs if with_kernels else ["one"])
        return
    with pytest.raises(UsageError, match=rf"^cipher kernels: [^#]*\n    {name}: .* \(one\); another \(two\)"):
        refuse_unlike(runs, runs)


def test_runs_with_kernels_are_those_that_have_figures_of_them(tmp_path: Path) -> None:
    made_runs = [
        run(tmp_path, manifest(str(day), day).model_copy(update={"tools": {"compiler gcc": f"gcc {day}"}}))
        for day in (1, 2)
    ]
    assert judged(made_runs)[1].points
    for one in made_runs:
        kernels.save(one.path, everything())
    with pytest.raises(UsageError, match=r"compiler gcc: gcc 1 \(1\); gcc 2 \(2\)"):
        judged(made_runs)


@cache
def shipped() -> dict[str, dict[str, Any]]:
    """Return all shipped profiles as a manifest records them."""
    profiles = [load_profile(name) for name in profile_names()]
    recorded = asked(load_plan(data_dir("plans") / "powerquicc.yaml"), profiles)["profiles"]
    return dict(json.loads(json.dumps(recorded)))


def with_profile(of: Manifest, dut: str, profile: dict[str, Any]) -> Manifest:
    return of.model_copy(update={"asked": {"profiles": {dut: profile}}})


KEYS = [(dut, path) for dut, profile in shipped().items() for path, _ in flat(profile)]


def changed(profile: dict[str, Any], path: str, value: str | None) -> dict[str, Any]:
    """Return a profile with another value at a path such as `board.sec.clock`; None: without this key."""
    first, _, rest = path.partition(".")
    if rest and isinstance(profile[first], dict):
        return profile | {first: changed(profile[first], rest, value)}
    return {key: of for key, of in profile.items() if key != first} | (
        {} if value is None else {first: value}
    )


@given(st.sampled_from(KEYS))
def test_a_profile_of_the_users_own_under_a_shipped_name_is_found(key: tuple[str, str]) -> None:
    dut, path = key
    whole = shipped()[dut]
    of = manifest("one", 1)
    assert own_profiles(of) == own_profiles(with_profile(of, dut, whole)) == {}
    assert own_profiles(with_profile(of, f"{dut}-mine", changed(whole, path, "another"))) == {}
    found = own_profiles(with_profile(of, dut, changed(whole, path, "another")))
    if path.startswith("queues."):
        assert found == {}
    else:
        ((was,),) = found.values()
        assert was.startswith(f"{path}: another, shipped: ")


def test_a_key_that_the_shipped_file_writes_must_be_there_and_another_may_be_missing() -> None:
    """An older espbench did not have every key that has a default today."""
    whole = shipped()["mpc8360ea-bus"]
    of = manifest("one", 1)
    removed = with_profile(of, "mpc8360ea-bus", whole | {"board": whole["board"] | {"bus": None}})
    assert "board.bus.width: not set, shipped: 64" in own_profiles(removed)["mpc8360ea-bus"]
    older = {key: value for key, value in whole.items() if key != "i_own_this_network"}
    assert own_profiles(with_profile(of, "mpc8360ea-bus", older)) == {}


def test_figures_of_a_profile_of_the_users_own_answer_no_claim(tmp_path: Path) -> None:
    """They stand in no table or chart of the device either; the page, its data and the terminal say so."""
    faster = changed(shipped()["mpc8548e"], "board.ns_per_instruction", "59/250")
    of = manifest("mine", 1)
    one = run(tmp_path, with_profile(of, "mpc8548e", faster), findings=findings_of(of, 1.0))
    kernels.save(one.path, [on_board()])
    accelerator.save(one.path, [accelerated(1000, 1.0)])
    accelerator.save_public_key(one.path, [public_key(1.0)])
    judgements, measured = judged([one])
    assert measured.duts == []
    assert (measured.bus, measured.flood, measured.lifetimes, measured.cores) == ({}, {}, {}, {})
    assert {
        j.word for j in judgements if j.claim.ours and j.claim.ours.quantity not in ("computed", "kernels")
    } == {"not measured"}
    (said,) = measured.left_out
    assert said.startswith("mine: mpc8548e has a profile of its own under the name of a shipped one")
    assert said.endswith("board.ns_per_instruction: 59/250, shipped: 59/125")

    done = in_process("compare", one.path, "--by", "published", "--out", tmp_path / "out")
    assert f"Left out. {said}" in " ".join(done.stdout.split())
    page = Path(done.stdout.strip().splitlines()[-1])
    assert said in page.read_text(encoding="utf-8")
    assert "**Left out.** mine: mpc8548e has a profile" in page.with_suffix(".md").read_text(encoding="utf-8")
    assert json.loads(page.with_suffix(".json").read_text(encoding="utf-8"))["left_out"] == [said]


def test_the_shipped_profile_is_judged(tmp_path: Path) -> None:
    one = run(tmp_path, with_profile(manifest("one", 1), "mpc8548e", shipped()["mpc8548e"]))
    _, measured = judged([one])
    assert (len(measured.points), [*measured.left_out]) == (1, [])


def test_a_run_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    """It would count twice in the medians."""
    one = run(tmp_path, manifest("one", 1))
    with pytest.raises(UsageError, match="named twice"):
        judged([one, one])


def finding(of: Manifest, test: str, values: dict[Key, float]) -> Finding:
    (case,) = of.cases
    identity = case.model_dump(exclude={"stack_kind", "options", "tunnels"}) | {"test": test}
    return Finding(
        **identity, status="OK", load_fps=1.0, trials=1, rfc2544=False, encryption="proven",
        quantities=[figure(key, value) for key, value in values.items()],
    )  # fmt: skip


def findings_of(of: Manifest, factor: float) -> list[Finding]:
    moved = {
        Key.BUS_COUNTED: 100.0 * factor, Key.BUS_FRAMES: 1.0, Key.BUS_ENGINE: 1.0, Key.BUS_DESCRIPTORS: 1.0,
    }  # fmt: skip
    return [
        finding(of, "bus", moved),
        finding(of, "flood", {Key.FLOOD_FORWARDING: 1.0, Key.OF_THROUGHPUT: factor}),
        finding(of, "rekey_loss", {Key.SA_LIFETIME: 4.0, Key.REKEYS: factor}),
    ]


def public_key(factor: float) -> PublicKeyResult:
    return PublicKeyResult(
        dut="mpc8548e", clock_mhz=83.0, by="unit", operation="rsa", bits=512, exponent_bits=512, operations=1,
        whole_ns=int(8_000_000 * factor), idle_ns=0, overhead_ns=0,
    )  # fmt: skip


def accelerated(operations: int, factor: float) -> AcceleratorResult:
    return AcceleratorResult(
        dut="mpc8548e", suite="aes128-sha1", size=64, operations=operations, driver="made-up",
        after_ns=int(4_000_000 * factor), at_once_ns=1_000_000, full=0,
    )  # fmt: skip


def test_of_several_figures_that_of_the_last_run_counts_in_any_order(tmp_path: Path) -> None:
    """The accelerator test is judged by the figure of most operations."""
    runs = []
    for day, factor in ((1, 1.0), (2, 2.0)):
        of = manifest(f"day {day}", day)
        made_run = run(tmp_path, of, findings=findings_of(of, factor))
        faster_by_hand = [
            r.model_copy(update={"cycles": int(r.cycles / factor)}) if r.level == 2 else r
            for r in everything()
        ]
        kernels.save(made_run.path, faster_by_hand)
        accelerator.save_public_key(made_run.path, [public_key(factor)])
        accelerator.save(made_run.path, [accelerated(9_000 // day, factor)])
        runs.append(made_run)
    (first, measured), (second, turned) = (judged(order) for order in (runs, runs[::-1]))
    assert [repr(j) for j in first] == [repr(j) for j in second]
    for points in (measured, turned):
        assert [*points.flood.values()] == [2.0]
        assert [each.counted for each in points.bus.values()] == [200.0]
        assert points.lifetimes["time"] == (True, "mpc8548e, after 4 s: 2 times")
    ours = {j.claim.id: j.ours.low for j in first}
    assert ours["rsa-512"] == 16.0
    assert ours["np-by-hand"] == pytest.approx(100.0)
    assert ours["accelerator-small"] == 4.0  # 9,000 operations, of the first day
