# SPDX-License-Identifier: Apache-2.0
"""Profiles of x86-64 machines in virtual time, and what a plan may ask of them."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest

from espbench.errors import UsageError
from espbench.paths import data_dir
from espbench.plan import ResolvedPlan, cases, conditions, load_profile, resolve
from espbench.plan.duts.machines import ADAPTING
from espbench.plan.reading.reader import read_text
from espbench.runs.platform_kinds.x86_machines import x86_images
from support.plans import plan_text

FIRST = data_dir("dut-profiles") / "virt-x86.yaml"
PLAN = plan_text(
    dut="virt-x86",
    suites="[aes128gcm16]",
    frame_sizes="[512]",
    tests="\n  - throughput: {trial: 2s, final_trial: 10s}",
)


def plan(before: str = "", after: str = "") -> ResolvedPlan:
    assert before in PLAN
    return resolve(read_text(PLAN.replace(before, after, 1), "plan.yaml", "plan"))


def test_the_first_profile_is_read() -> None:
    profile = load_profile("virt-x86")
    assert profile.machine is not None
    assert profile.machine.ns_per_instruction == Fraction(1)
    assert (profile.machine.rings.receive, profile.machine.interrupts) == (256, ADAPTING)
    assert profile.emulated
    assert profile.core_note == ""


def test_conditions_name_everything_that_makes_the_machine() -> None:
    """Runs are compared by them."""
    profile_conditions = conditions(plan(), [load_profile("virt-x86")])["profiles"]["virt-x86"]
    assert profile_conditions["machine"] == {
        "cpu": "Haswell-noTSX",
        "ns_per_instruction": "1",
        "rings": {"receive": 256, "transmit": 256},
        "interrupts": "adaptive",
    }


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (r"cpu: \S+", "cpu: max", "machine.cpu: expected one of QEMU's named models of a CPU"),
        (r"cpu: \S+", "cpu: host", "machine.cpu: expected one of QEMU's named models of a CPU"),
        (r"ns_per_instruction: 1", "ns_per_instruction: 0", "expected nanoseconds per instruction"),
        (r"receive: 256,", "receive: 100,", "machine.rings.receive: "),
        (r"interrupts: adaptive", "interrupts: 5", "expected adaptive, or how many interrupts a second"),
        (r"line_rate: 1Gbps", "line_rate: 2Gbps", "1Gbps with platform: qemu_x86"),
        (r"mtu: 1500", "mtu: 9000", "mtu: expected at most 1500"),
        (
            r"platform: qemu_x86",
            "platform: qemu_e500",
            "machine: expected no such key with platform: qemu_e500",
        ),
        (r"^machine:[\s\S]*", "", "expected machine: with platform: qemu_x86, got none"),
    ],
)
def test_a_mistake_in_a_machine_is_told_where_it_is(
    tmp_path: Path, before: str, after: str, words: str
) -> None:
    text, count = re.subn(before, after, FIRST.read_text(), flags=re.MULTILINE)
    assert count == 1
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(UsageError) as error:
        load_profile(str(path))
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (
            "xfrm]",
            "{stack: strongswan, version: '5.9.8-5'}]",
            "stacks[1].version: expected no version with virt-x86",
        ),
        (
            "xfrm]",
            "{stack: libreswan, auth: certificates}]",
            "stacks[1].auth: expected psk for libreswan with virt-x86",
        ),
        ("xfrm]", "{stack: xfrm, crypto: async}]", "expected no crypto but with platform: qemu_e500"),
    ],
)
def test_what_its_gateways_cannot_do_is_told(before: str, after: str, words: str) -> None:
    with pytest.raises(UsageError) as error:
        plan(before, after)
    assert words in str(error.value)


OF_IKE = """\
- public_key: {}
  - set_up_rate: {tunnels: 2}
  - reset: {what: power, gateway: office, load: 100fps}
  - attack: {kind: replay, load: 100fps, rates: [100fps]}
  - throughput"""


@pytest.mark.parametrize("order", [1, -1])
def test_each_test_of_ike_is_there(order: int) -> None:
    """OpenSSL's program is in the memory of all guests of a stack with such a test, whichever test comes first."""
    asked = resolve(read_text(PLAN.replace("- throughput", OF_IKE).replace("xfrm]", "strongswan]"), "p", "p"))
    assert {case.test for case in cases(asked) if case.stack.kind == "strongswan"} >= {"reset", "throughput"}
    assert x86_images(cases(asked)[::order]) == {
        "plain": ("base", "openssl"),
        "strongswan": ("base", "strongswan", "openssl"),
    }


@pytest.mark.parametrize("order", [1, -1])
def test_all_cases_of_a_stack_have_the_same_programs(order: int) -> None:
    """Cases of a stack are one configuration, so espbench ends a run whose guests differ; public_key is of plain."""
    planned = cases(plan("- throughput", "- public_key: {}\n  - throughput"))[::order]
    assert {(case.stack.shown, case.test) for case in planned} == {
        ("plain", "public_key"),
        ("plain", "throughput"),
        ("xfrm", "throughput"),
    }
    assert x86_images(planned) == {"plain": ("base", "openssl"), "xfrm": ()}


def test_without_a_test_that_runs_it_there_is_no_openssl() -> None:
    assert x86_images(cases(plan())) == {"plain": (), "xfrm": ()}


def test_devices_that_need_a_program_are_there() -> None:
    text = "{stack: xfrm, interface: true, label: a}, {stack: xfrm, mode: transport, label: b}]"
    assert [case.stack.shown for case in cases(plan("xfrm]", text))] == ["plain", "a", "b"]


def test_daemons_negotiate_between_its_gateways() -> None:
    planned = plan(
        "xfrm]", "strongswan, libreswan, {home: strongswan, office: libreswan}, strongswan-libipsec]"
    )
    names = [case.stack.shown for case in cases(planned)]
    assert names == ["plain", "strongswan", "libreswan", "strongswan-to-libreswan", "strongswan-libipsec"]


def test_extended_sequence_numbers_are_no_matter_without_a_security_engine() -> None:
    assert plan("xfrm]", "{stack: xfrm, esn: true}]").plan.stacks[1].esn
