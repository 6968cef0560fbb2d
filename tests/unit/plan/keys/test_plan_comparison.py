# SPDX-License-Identifier: Apache-2.0
"""`compare:` of a plan: what its arms are, what it refuses, and the shuffled order of its cases."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import groupby, pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from espbench.errors import UsageError
from espbench.plan import (
    Case,
    ResolvedPlan,
    arms,
    cases,
    compare_settings,
    conditions,
    execution_order,
    load_plan,
    load_profile,
    profile_names,
    resolve,
)
from espbench.plan.reading.reader import read_text
from support.plans import external_text, plan_text

GOOD = plan_text(
    dut="netns",
    stacks="[plain, null, strongswan, libreswan]",
    suites="[3des-sha1, aes128gcm16]",
    frame_sizes="[64, 512, 1424]",
    compare="stack",
    tests="\n  - throughput: {trial: 2s, final_trial: 10s}",
)
_OLD = "{stack: strongswan, label: old, version: 5.9.8-5}"
_NEW = "{stack: strongswan, label: new, version: 6.0.1-1}"
VERSIONS = f"[{_OLD}, {_NEW}, xfrm]"

AT = {"loads": ["50%", "90%"], "pairs": 12, "rounds": 6, "trial": "0.5s"}


def _plan(text: str, path: Path | None = None) -> ResolvedPlan:
    return resolve(read_text(text, "plan.yaml", "plan"), path)


def _said(text: str, path: Path | None = None) -> str:
    with pytest.raises(UsageError) as error:
        _plan(text, path)
    return str(error.value).removeprefix("plan.yaml:")


def _with(stacks: str = "[strongswan, libreswan]", compare: str = "stack") -> str:
    text = GOOD.replace("[plain, null, strongswan, libreswan]", stacks)
    return text.replace("compare: stack", f"compare: {compare}")


def _profiles(folder: Path, **keys: str) -> Path:
    for name, more in keys.items():
        folder.joinpath(f"{name}.yaml").write_text(
            f"{{name: {name}, description: d, platform: uml, line_rate: 1Gbps{more}}}"
        )
    return folder / "plan.yaml"


@pytest.mark.parametrize(
    ("stacks", "compare", "expected"),
    [
        ("[plain, null, strongswan, libreswan]", "stack", ["strongswan", "libreswan"]),
        ("[plain, null, xfrm]", "stack", ["plain", "null", "xfrm"]),
        ("[xfrm, null]", "stack", ["xfrm", "null"]),
        ("[xfrm, {stack: xfrm, label: esn, esn: true}]", "stack", ["xfrm", "esn"]),
        ("[xfrm, {home: strongswan, office: libreswan}]", "stack", ["xfrm", "strongswan-to-libreswan"]),
        ("[xfrm]", "suite", ["3des-sha1", "aes128gcm16"]),
        ("[xfrm]", "frame_size", ["64", "512", "1424"]),
        (VERSIONS, "version", ["old", "new"]),
    ],
)
def test_arms_are_what_the_axis_puts_side_by_side(stacks: str, compare: str, expected: list[str]) -> None:
    """Baselines are arms only where fewer than two other stacks are left."""
    plan = _plan(_with(stacks, compare))
    assert arms(plan) == expected
    settings = compare_settings(plan)
    assert settings.pop("at", AT) == AT
    assert settings == {"by": compare, "reference": expected[0], "seed": 2544}


def test_the_reference_may_be_a_number_or_the_stack_null() -> None:
    """Both are given as YAML reads them."""
    assert compare_settings(_plan(_with("[xfrm]", "{by: frame_size, reference: 512}")))["reference"] == "512"
    assert compare_settings(_plan(_with("[xfrm, null]", "{by: stack, reference: null, seed: 7}"))) == {
        "by": "stack", "reference": "null", "seed": 7,
    }  # fmt: skip


def test_duts_are_compared_by_their_profiles_names(tmp_path: Path) -> None:
    """The loop over DUTs is the outermost; each case says whose it is."""
    path = _profiles(tmp_path, a=", kernel: ./one", b=", kernel: ./two")
    text = _with("[xfrm]", "kernel").replace("dut: netns", "dut: [./a.yaml, ./b.yaml]")
    plan = _plan(text, path)
    assert arms(plan) == ["a", "b"]
    listed = cases(plan)
    assert [dut for dut, _ in groupby(case.dut for case in listed)] == ["a", "b"]
    assert listed[0].id == "0001-a-plain-64-one-way-r1"
    assert {case.pair for case in listed if case.suite == "none"} == {
        ("a", "plain", "none", 4), ("b", "plain", "none", 4),
    }  # fmt: skip
    assert len({case.id for case in listed}) == len(listed) == 2 * 5 * 3 * 3


def test_a_comparison_repeats_five_times_unless_told() -> None:
    """Three at least by searches alone; one without compare."""
    assert _plan(_with()).plan.repeat == 5
    assert _plan(_with() + "repeat: 3\n").plan.repeat == 3
    assert _plan(_with().replace("compare: stack\n", "")).plan.repeat == 1
    assert _plan(_with() + "repeat: 1\n").plan.repeat == 1
    assert _said(_with(compare="{by: stack, at: false}") + "repeat: 2\n") == (
        "10:9: repeat: expected at least 3 with compare by searches alone, got 2; "
        "fewer repeats tell no difference from noise; left out it is 5"
    )


def test_a_stack_and_a_baseline_are_not_compared_at_fixed_loads() -> None:
    """A baseline has no suite, so no trial at a load would have two arms; searches are compared all the same."""
    stacks = "[plain, xfrm]"
    for reference in ("plain", "xfrm"):
        said = _said(_with(stacks, f"{{by: stack, reference: {reference}, at: {{loads: [50%]}}}}"))
        assert (
            "at: expected at: false, or none, with fewer than two stacks beside the baselines, got fixed loads"
            in said
        )
    assert "expected at least 3 with compare by searches alone, got 2" in _said(_with(stacks) + "repeat: 2\n")
    assert "at" not in compare_settings(_plan(_with(stacks)))
    two = "[plain, xfrm, strongswan]"
    assert _plan(_with(two, "{by: stack, at: {loads: [50%]}}") + "repeat: 1\n").plan.repeat == 1


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("", AT),
        (", at: true", AT),
        (", at: ", AT),
        (", at: {}", AT),
        (", at: {rounds: 4}", AT | {"rounds": 4, "pairs": 8}),
        (", at: off", None),
        (", at: false", None),
        (", at: {loads: [0.4, 120%], pairs: 6, rounds: 3, trial: 1s}",
         {"loads": ["40%", "120%"], "pairs": 6, "rounds": 3, "trial": "1s"}),
    ],
)  # fmt: skip
def test_arms_are_compared_at_fixed_loads_unless_told(at: str, expected: object) -> None:
    """`at` is on with defaults; the manifest keeps what it came to."""
    assert compare_settings(_plan(_with(compare=f"{{by: stack{at}}}"))).get("at") == expected


@pytest.mark.parametrize(
    ("at", "message"),
    [
        ("{loads: [0]}",
         "7:35: compare.at.loads[0]: expected a share from 1% to 200%, such as 50%, got 0; "
         "it is of the throughput of the slower of the two arms"),
        ("{pairs: 20}",
         "7:34: compare.at.pairs: expected a multiple of twice the rounds, of 12, got 20; write pairs: 24"),
        ("{rounds: 2}", "7:35: compare.at.rounds: expected at least 3, got 2; choose a larger value"),
        ("{load: [50%]}", "7:27: compare.at.load: expected a key of compare: at, got \"load\"; did you mean loads?"),
        ("often", "7:26: compare.at: expected a mapping, got \"often\"; write keys and values"),
    ],
)  # fmt: skip
def test_a_mistake_in_at_has_its_place_and_its_remedy(at: str, message: str) -> None:
    assert _said(_with(compare=f"{{by: stack, at: {at}}}")) == message


def test_a_name_of_the_plan_among_the_choices_is_printable() -> None:
    """A name that is none stands there, too: as it is it would hide characters, or move the cursor."""
    said = _said(_with('["\\ufeffxfrm", "\\e[31m"]', compare="{by: stack, reference: xfrm}"))
    assert r"expected one of \ufeffxfrm, \x1b[31m" in said
    assert all(c.isprintable() or c == "\n" for c in said)


def test_frame_sizes_are_compared_by_searches_alone() -> None:
    """Asking for fixed loads is a mistake there; not asking is none, and repeats are needed."""
    assert "at" not in compare_settings(_plan(_with(compare="frame_size")))
    assert "compare.at: expected at: false, or none, with compare: frame_size" in _said(
        _with(compare="{by: frame_size, at: {}}")
    )
    assert "at least 3" in _said(_with(compare="frame_size") + "repeat: 1\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (_with(compare="stak"),
         '7:10: compare: expected one of stack, suite, dut, kernel, version, frame_size, got "stak"; '
         "did you mean stack?"),
        (_with(compare="{by: stack, reference: strongswann}"),
         '7:33: compare.reference: expected one of strongswan, libreswan, got "strongswann"; '
         "did you mean strongswan?"),
        (_with(compare="{by: stack, sead: 1}"),
         '7:22: compare.sead: expected a key of compare, got "sead"; did you mean seed?'),
        (_with("[xfrm]"),
         "7:10: compare.by: expected at least two to compare by stack, got xfrm; "
         "list another stack, such as stacks: [xfrm, strongswan]"),
        (_with("[strongswan]", "version"),
         "7:10: compare.by: expected at least two to compare by version, got none; list one stack twice, such "
         "as {stack: strongswan, label: old, version: …} and {stack: strongswan, label: new}"),
        (_with(VERSIONS.replace("6.0.1-1", "6.0.1-1, esn: true"), "version"),
         "4:61: stacks[1]: expected the options of old, but for version or prefix (compare: version), "
         "got another esn; make them equal, or use compare: stack"),
        (_with(VERSIONS.replace("xfrm", VERSIONS[1:-7].replace("strongswan", "libreswan")
                                .replace("old", "o").replace("new", "n")), "version"),
         "7:10: compare.by: expected versions of one stack, got of strongswan, libreswan; "
         "write one plan for each stack"),
        (_with("[xfrm]", "dut"),
         "7:10: compare.by: expected at least two to compare by dut, got netns; "
         "write dut as a list of profiles, such as dut: [./old.yaml, ./new.yaml]"),
        (_with().replace("dut: netns", "dut: [netns, uml]"),
         "3:6: dut: expected one profile with compare: stack, got a list; "
         "keep one, or compare by dut or kernel"),
        (_with(compare="dut").replace("dut: netns", "dut: [netns, auto]"),
         f'3:14: dut[1]: expected one of {", ".join(profile_names())}, or a path, got "auto"; '
         "write the path of a profile of your own as ./my-profile.yaml"),
        (_with(compare="dut").replace("dut: netns", "dut: [netns, netns]"),
         '3:14: dut[1]: expected a profile of another name, got "netns" again; '
         "list each profile once; profiles of your own need names of their own"),
        (_with(compare="dut").replace("dut: netns", "dut: [netns, 7]"),
         "3:6: dut: expected profiles in the list, got a list; 7 is not a profile: espbench list duts shows "
         "the profiles"),
    ],
)  # fmt: skip
def test_a_comparison_that_cannot_be_is_named(text: str, message: str) -> None:
    """Too few arms, arms that differ in more than the axis, words that are none."""
    assert _said(text) == message


@pytest.mark.parametrize(
    ("by", "first", "second", "message"),
    [
        ("dut", "", ", mtu: 9000",
         "3:17: dut[1]: expected the mtu of a, 1500, got 9000; profiles compared by dut must share it"),
        ("dut", ", line_rate: 1Gbps", ", line_rate: 10Gbps",
         "3:17: dut[1]: expected the line_rate of a, 1Gbps, got 10Gbps; profiles compared by dut must share it"),
        ("kernel", ", kernel: ./one", ", kernel: ./two, memory: 512M",
         "3:17: dut[1]: expected the memory of a, 256, got 512; profiles compared by kernel must share it"),
        ("kernel", "", "",
         "3:17: dut[1]: expected a kernel that no profile before it has, got linux.uml; "
         "give each profile a kernel: of its own, or use compare: dut"),
    ],
)  # fmt: skip
def test_profiles_that_differ_in_more_than_the_axis_are_named(
    tmp_path: Path, by: str, first: str, second: str, message: str
) -> None:
    """One platform, one line rate, one MTU; by kernel nothing but the kernel."""
    path = _profiles(tmp_path)
    for name, more in (("a", first), ("b", second)):
        rate = "" if "line_rate" in more else ", line_rate: 1Gbps"
        (tmp_path / f"{name}.yaml").write_text(f"{{name: {name}, description: d, platform: uml{rate}{more}}}")
    text = _with("[xfrm]", by).replace("dut: netns", "dut: [./a.yaml, ./b.yaml]")
    assert _said(text, path) == message


def test_boxes_espbench_did_not_build_are_compared_afterwards() -> None:
    """Nothing could switch them from one arm to the other."""
    assert _said(external_text(frame_sizes=None, compare="stack")) == (
        "6:1: compare: expected no compare with topology: external, got one; espbench cannot reconfigure "
        "boxes it did not build; compare finished runs instead: espbench compare RUN RUN"
    )


def test_without_compare_the_order_is_the_plans() -> None:
    """A gateway pair is then built once."""
    plan = _plan(_with().replace("compare: stack\n", ""))
    listed = cases(plan)
    assert execution_order(listed, plan) == listed


def _point(case: Case) -> tuple[object, ...]:
    return case.suite, case.frame_size, case.direction, case.ip_version, case.test


_AXES = {
    "stack": "[plain, null, strongswan, libreswan]",
    "suite": "[plain, null, xfrm]",
    "frame_size": "[null, xfrm]",
    "version": VERSIONS,
}


@settings(deadline=None)
@given(
    st.sampled_from(sorted(_AXES)),
    st.integers(0, 2**32),
    st.integers(3, 5),
    st.lists(st.sampled_from([64, 128, 512, 1424]), min_size=2, unique=True),
    st.sampled_from(["[4]", "[4, 6]"]),
    st.sampled_from(["[one-way]", "[one-way, both-ways]"]),
)
def test_the_order_loses_and_doubles_no_case(
    by: str, seed: int, repeat: int, sizes: list[int], versions: str, directions: str
) -> None:
    """Every case once, repeats outermost, the same for the same seed."""
    sizes = [size for size in sizes if size != 64] + [1280] if "6" in versions else sizes
    text = _with(_AXES[by], f"{{by: {by}, seed: {seed}}}").replace("[64, 512, 1424]", str(sizes))
    plan = _plan(text + f"repeat: {repeat}\nip_versions: {versions}\ndirections: {directions}\n")
    listed = cases(plan)
    ordered = execution_order(listed, plan)
    assert Counter(case.id for case in ordered) == Counter(case.id for case in listed)
    assert [case.repeat for case in ordered] == sorted(case.repeat for case in listed)
    assert ordered == execution_order(listed, plan)


@pytest.mark.parametrize("seed", range(20))
def test_arms_and_baselines_are_neighbours_at_each_point(seed: int) -> None:
    """Drifts of the host meet them alike; a baseline stands at one point of its frame size."""
    plan = _plan(_with("[plain, null, strongswan, libreswan, xfrm]", f"{{by: stack, seed: {seed}}}"))
    ordered = execution_order(cases(plan), plan)
    for _, group in groupby(ordered, key=lambda case: case.repeat):
        repeat = list(group)
        blocks = [
            (key, [case.stack.shown for case in block])
            for key, block in groupby(
                (case for case in repeat if case.stack.kind not in ("plain", "null")), key=_point
            )
        ]
        assert len({key for key, _ in blocks}) == len(blocks) == 2 * 3
        assert all(sorted(names) == ["libreswan", "strongswan", "xfrm"] for _, names in blocks)
        for kind in ("plain", "null"):
            assert sorted(case.frame_size for case in repeat if case.stack.kind == kind) == [64, 512, 1424]
        for before, case, after in zip([None, *repeat], repeat, [*repeat[1:], None], strict=False):
            if case.stack.kind in ("plain", "null"):
                assert case.frame_size in {n.frame_size for n in (before, after) if n is not None}


def test_a_stack_compared_with_null_meets_it_at_null_s_own_suite() -> None:
    """Two identical configurations, one beside the other: what the rate of false verdicts is taken from."""
    plan = _plan(_with("[xfrm, null]").replace("[3des-sha1, aes128gcm16]", "[aes128gcm16, null-null]"))
    ordered = [case for case in execution_order(cases(plan), plan) if case.stack.kind != "plain"]
    where = {case.id: index for index, case in enumerate(ordered)}
    for case in ordered:
        if case.stack.kind == "null":
            twin = next(
                other
                for other in ordered
                if other.stack.kind == "xfrm"
                and (other.suite, other.frame_size, other.repeat)
                == ("null-null", case.frame_size, case.repeat)
            )
            assert abs(where[case.id] - where[twin.id]) == 1


def test_neither_arm_comes_first_more_often_than_chance_makes_it() -> None:
    """Over 300 seeds x 30 points: 4500 +- 4.2 sigma of a fair coin (sigma 47)."""
    text = _with("[xfrm, {stack: xfrm, label: twin}]")
    plan = _plan(text.replace("compare: stack", "compare: {by: stack, seed: 1}"))
    compare, listed = plan.plan.compare, cases(plan)
    assert compare is not None
    first, runs = 0, 0
    for seed in range(300):
        keys = plan.plan.model_copy(update={"compare": compare.model_copy(update={"seed": seed})})
        ordered = execution_order(listed, replace(plan, plan=keys))
        ordered = [case for case in ordered if case.stack.kind != "plain"]
        begins = [case.stack.shown == "xfrm" for case in ordered[::2]]
        first, runs = first + sum(begins), runs + len(begins)
    assert runs == 300 * 30
    assert abs(first - runs / 2) < 200


@pytest.mark.parametrize("seed", range(5))
def test_neighbouring_points_share_a_gateway_pair_where_they_can(seed: int) -> None:
    """Building a pair is dear: none is taken down while a point that begins with it is left."""
    text = _with("[xfrm, {stack: xfrm, label: twin}]", f"{{by: stack, seed: {seed}}}")
    text = text.replace("[3des-sha1, aes128gcm16]", "[aes128gcm16]")
    plan = _plan(text.replace("[64, 512, 1424]", "[64, 128, 256, 512, 1024, 1280, 1424]"))
    shared = 0
    for _, group in groupby(execution_order(cases(plan), plan), key=lambda case: case.repeat):
        points = [list(point) for _, point in groupby(group, key=lambda case: case.frame_size)]
        assert [len(point) for point in points] == [3] * 7
        for index, (one, following) in enumerate(pairwise(points), 1):
            if one[-1].pair == following[0].pair:
                shared += 1
            else:
                assert one[-1].pair not in [point[0].pair for point in points[index:]]
    assert shared > 0


def test_the_points_stand_in_another_order_in_each_repeat() -> None:
    """Drifts within a repeat would otherwise always meet the same frame size."""
    plan = _plan(_with())
    ordered = [case for case in execution_order(cases(plan), plan) if case.stack.kind != "plain"]
    orders = {
        tuple(dict.fromkeys(_point(case) for case in group))
        for _, group in groupby(ordered, key=lambda case: case.repeat)
    }
    assert len(orders) == 5  # 720 are possible


def test_conditions_are_everything_that_is_fixed_and_none_of_the_axes(tmp_path: Path) -> None:
    """They are plain text, ready for JSON; both kernels of a comparison are named."""
    plan = _plan(_with("[xfrm]").replace("compare: stack\n", "compare: suite\n"))
    stated = conditions(plan, [load_profile("netns")])
    assert stated["tests"] == [
        {
            "throughput": {
                "loss_goals": ["0", "0.001%"], "trial": "2s", "final_trial": "10s", "resolution": "1%",
                "minimum": "1% of maximum", "maximum": "line rate or the generator's ceiling",
                "settle": "5s", "residue": "2s", "warm_up": "2s", "learning": "2s", "retries": 3,
                "search": "bisection", "preset": "none", "loss_verification": 0,
            }
        }
    ]  # fmt: skip
    assert stated["line_rate"] == "10000000000bps"
    assert (stated["mtu"], stated["flows"]) == (1500, {"networks": 1, "ports": 1})
    assert stated["profiles"]["netns"]["kernel"] == "the host's"
    assert not {"stacks", "suites", "frame_sizes", "directions", "ip_versions", "repeat"} & stated.keys()
    path = _profiles(tmp_path, a=", kernel: ./one", b=", kernel: ./two")
    path.write_text(_with("[xfrm]", "kernel").replace("dut: netns", "dut: [./a.yaml, ./b.yaml]"))
    two = load_plan(path)
    kernels = {
        name: of["kernel"]["home"]
        for name, of in conditions(two, two.known_profiles or [])["profiles"].items()
    }
    assert kernels == {"a": str(tmp_path / "one"), "b": str(tmp_path / "two")}
    assert conditions(_plan(_with()), [])["profiles"] == {}
