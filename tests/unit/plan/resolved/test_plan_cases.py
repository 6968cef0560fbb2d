# SPDX-License-Identifier: Apache-2.0
"""The list of cases a plan stands for: which, in which order, under which names."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from espbench.plan import ResolvedPlan, cases, load_plan, notes, resolve
from espbench.plan.keys.model import Throughput
from espbench.plan.reading.reader import read_text
from support.plans import external_text, plan_text

REPOSITORY = Path(__file__).parents[4]
PLANS = sorted((REPOSITORY / "plans").glob("*.yaml"))

FULL = plan_text(
    name="golden",
    dut=None,
    stacks="[xfrm, plain, {stack: xfrm, label: xfrm-esn, esn: true}]",
    suites="[3des-sha1, aes128gcm16]",
    frame_sizes="[512, 1500]",
    directions="[one-way, both-ways]",
    ip_versions="[4, 6]",
    repeat="2",
    tests="\n  - throughput: {final_trial: 10s}",
)

EXTERNAL = external_text(tests="\n  - throughput:")


def _plan(text: str) -> ResolvedPlan:
    return resolve(read_text(text, "plan.yaml", "plan"))


def test_the_example_plan_gives_the_golden_list() -> None:
    """The order and the names of a small plan, in full."""
    plan = _plan(
        plan_text(
            suites="[null-null, aes128-sha1]",
            frame_sizes="[64, simple-imix]",
            directions="[one-way, both-ways]",
        )
    )
    assert [case.id for case in cases(plan, "uml")] == [
        "0001-plain-64-one-way",
        "0002-plain-simple-imix-one-way",
        "0003-plain-64-both-ways",
        "0004-plain-simple-imix-both-ways",
        "0005-xfrm-null-null-64-one-way",
        "0006-xfrm-null-null-simple-imix-one-way",
        "0007-xfrm-null-null-64-both-ways",
        "0008-xfrm-null-null-simple-imix-both-ways",
        "0009-xfrm-aes128-sha1-64-one-way",
        "0010-xfrm-aes128-sha1-simple-imix-one-way",
        "0011-xfrm-aes128-sha1-64-both-ways",
        "0012-xfrm-aes128-sha1-simple-imix-both-ways",
    ]


def test_ip_version_repeat_and_test_are_named_only_where_they_tell_cases_apart() -> None:
    """ip6, r2 and throughput-2 appear exactly when needed."""
    ids = [case.id for case in cases(_plan(FULL), "uml")]
    assert ids[0] == "0001-plain-512-one-way-r1"
    assert ids[-1] == "0080-xfrm-esn-aes128gcm16-ip6-1500-both-ways-r2"
    twice = _plan(FULL.replace("repeat: 2", "repeat: 1") + "  - throughput: {final_trial: 60s}\n")
    planned = cases(twice, "uml")
    assert planned[0].id == "0001-plain-512-one-way-throughput"
    assert planned[4].id == "0005-plain-512-one-way-throughput-2"
    assert [planned[n].settings.longest_s for n in (0, 4)] == [12.0, 62.0]


def test_every_case_has_a_name_of_its_own_and_the_same_each_time() -> None:
    """Names identify a case within a run and survive a resume."""
    first, again = cases(_plan(FULL), "uml"), cases(_plan(FULL), "uml")
    assert first == again
    assert len({case.id for case in first}) == len(first) == (1 + 2 * 2) * 2 * 2 * 2 * 2


def test_a_gateway_pair_is_built_once_for_each_stack_suite_and_ip_version() -> None:
    """While only frame size, direction, repeat or test changes, the pair stays."""
    pairs = [case.pair for case in cases(_plan(FULL), "uml")]
    changes = sum(one != other for one, other in pairwise(pairs))
    assert changes == len(set(pairs)) - 1


def test_the_baseline_comes_first_even_when_the_plan_forgot_it() -> None:
    """ipsec-meth 9.1; and what was added or moved is said."""
    without = _plan(FULL.replace("xfrm, plain, {", "xfrm, {"))
    assert cases(without, "uml")[0].stack.stack == "plain"
    assert notes(without) == ["plain added in front: the baseline is always measured (ipsec-meth 9.1)"]
    assert cases(_plan(FULL), "uml")[0].stack.stack == "plain"
    assert notes(_plan(FULL)) == ["plain moved to the front: the baseline is measured first (ipsec-meth 9.1)"]
    assert notes(_plan(FULL.replace("[xfrm, plain, {", "[plain, xfrm, {"))) == []


def test_the_baseline_has_no_suite() -> None:
    """Plain is measured once, not once per suite."""
    plain = [case for case in cases(_plan(FULL), "uml") if case.stack.stack == "plain"]
    assert {case.suite for case in plain} == {"none"}
    assert len(plain) == 2 * 2 * 2 * 2


def test_a_mix_keeps_its_proportions_and_its_mean() -> None:
    """7 x 64, 4 x 594, 1 x 1518: 361.8 B on average."""
    case = cases(_plan(EXTERNAL.replace("[64]", "[simple-imix]")), "box")[0]
    assert case.sizes == ((64, 7), (594, 4), (1518, 1))
    assert case.mean_frame_size == pytest.approx(361.8333)


def test_frames_that_fragment_after_esp_carry_a_note() -> None:
    """1456 B is the largest that AES-CBC-SHA1 leaves whole; the baseline never fragments."""
    text = FULL.replace("[3des-sha1, aes128gcm16]", "[aes128-sha1]").replace("[512, 1500]", "[1456, 1457]")
    in_udp = "{stack: xfrm, label: in-udp, udp_encapsulation: true}"
    text = text.replace("{stack: xfrm, label: xfrm-esn, esn: true}", in_udp)
    planned = [case for case in cases(_plan(text), "uml") if case.ip_version == 4]
    with_note = {(case.stack.shown, case.frame_size): case.notes for case in planned if case.fragments}
    udp = "frames above 1440 B are fragmented after ESP (MTU 1500, aes128-sha1 in UDP, IPv4)"
    assert with_note == {
        ("xfrm", 1457): ("frames above 1456 B are fragmented after ESP (MTU 1500, aes128-sha1, IPv4)",),
        ("in-udp", 1456): (udp,),
        ("in-udp", 1457): (udp,),
    }
    assert not any(case.notes for case in cases(_plan(text), "uml", mtu=9000))


def test_an_external_box_is_one_configuration_under_its_label() -> None:
    """Left out, the labels are external and none; given, they are the plan's words."""
    (case,) = cases(_plan(EXTERNAL))
    assert (case.stack.shown, case.suite, case.dut, case.notes) == ("external", "none", "external", ())
    (case,) = cases(_plan(EXTERNAL + "dut: asa-5505\nstacks: [cisco]\nsuites: [aes256]\n"))
    assert case.id == "0001-cisco-aes256-64-one-way"
    assert (case.stack.shown, case.suite, case.dut) == ("cisco", "aes256", "asa-5505")


def test_a_case_is_listed_in_the_manifest_as_it_is() -> None:
    """entry() carries every axis, and the label where a stack has one."""
    case = cases(_plan(FULL), "uml")[-1]
    assert case.entry().model_dump() == {
        "case": case.id, "test": "throughput", "dut": "uml", "stack": "xfrm-esn", "suite": "aes128gcm16",
        "ip_version": 6, "frame_size": 1500, "direction": "both-ways", "repeat": 2,
        "stack_kind": "xfrm", "options": {"esn": True}, "tunnels": 1,
    }  # fmt: skip
    assert case.entry("netns").dut == "netns"


def test_what_a_plan_leaves_out_is_what_rfc_2544_asks_for() -> None:
    """Defaults: the sizes of 9.1, final trials of 60 s (24), the waits of 23, both goals."""
    plan = _plan(plan_text(dut=None, stacks="[plain]", suites=None, frame_sizes=None, tests="[throughput: ]"))
    assert plan.plan.frame_sizes == [64, 128, 256, 512, 1024, 1280, 1518]
    settings = cases(plan)[0].settings
    assert isinstance(settings, Throughput)
    assert settings.loss_goals == [0.0, 1e-5]
    assert (settings.final_trial, settings.settle, settings.residue, settings.learning) == (
        60.0,
        5.0,
        2.0,
        2.0,
    )
    assert (plan.plan.directions, plan.plan.ip_versions, plan.plan.repeat, plan.plan.dont_fragment) == (
        ["one-way"],
        [4],
        1,
        False,
    )


@pytest.mark.parametrize("path", PLANS, ids=[path.name for path in PLANS])
def test_every_example_plan_is_valid_and_keeps_its_text(path: Path) -> None:
    """plans/*.yaml run as they are, and the resolved plan keeps the file, comments and all."""
    plan = load_plan(path)
    assert (
        cases(plan, "any") or plan.plan.cipher_kernels or plan.plan.accelerator or plan.plan.public_key_unit
    )
    assert plan.text == path.read_text(encoding="utf-8")
    assert plan.path == path
    assert plan.plan.name == path.stem


def test_there_are_example_plans() -> None:
    """An empty folder would make the test above pass for nothing."""
    assert {"quick.yaml", "first-plan.yaml", "external-example.yaml", "seed-articles.yaml"} <= {
        p.name for p in PLANS
    }


def test_the_whole_standard_for_external_boxes_lacks_only_resets() -> None:
    """Its tests and sizes are those of rfc2544-full.yaml, and 256 networks fit its addresses."""
    plans = {path.stem: path for path in PLANS}
    whole, external = (load_plan(plans[name]).plan for name in ("rfc2544-full", "external-rfc2544"))
    for key in ("frame_sizes", "directions", "suites"):
        assert getattr(external, key) == getattr(whole, key)
    assert external.traffic_tests == [test for test in whole.traffic_tests if test[0] != "reset"]
    text = plans["external-rfc2544"].read_text(encoding="utf-8")
    assert _plan(f"{text}flows: {{networks: 256}}\n").plan.flows.networks == 256
