# SPDX-License-Identifier: Apache-2.0
"""Tests of a plan that none, or only some, of its stacks can serve."""

from __future__ import annotations

import pytest

from espbench.errors import UsageError
from espbench.plan import cases, resolve
from espbench.plan.reading.reader import read_text
from espbench.plan.resolved.cases import notes
from espbench.plan.resolved.resolved_plan import ResolvedPlan
from support.plans import plan_text

IKE = "strongswan or libreswan"
KERNEL_ESP = "null or xfrm or strongswan or libreswan"


def resolved(stacks: str, tests: str) -> ResolvedPlan:
    return resolve(read_text(plan_text(stacks=stacks, tests=tests), "plan.yaml", "plan"))


@pytest.mark.parametrize(
    ("stacks", "test", "served"),
    [
        ("[xfrm, strongswan-libipsec]", "failover: {}", IKE),
        ("[plain, xfrm]", "rekey_loss: {load: 1000fps}", IKE),
        ("[xfrm]", "reset: {}", IKE),
        ("[xfrm]", "set_up_rate: {}", IKE),
        ("[xfrm]", "time_to_first_packet: {load: 1000fps}", IKE),
        ("[xfrm]", "attack: {kind: ike-flood, load: 1000fps}", IKE),
        ("[strongswan-libipsec]", "attack: {kind: replay, load: 1000fps}", KERNEL_ESP),
        (
            "[{stack: null, label: none}]",
            "attack: {kind: bad-icv, load: 1000fps}",
            "xfrm or strongswan or libreswan",
        ),
    ],
)
def test_a_test_without_any_case_is_refused(stacks: str, test: str, served: str) -> None:
    """A run would end well after hours, and say nothing of the test."""
    name = test.partition(":")[0]
    stacks = stacks.replace("{stack: null,", "{stack: 'null',")
    with pytest.raises(UsageError) as error:
        resolved(stacks, f"[throughput: {{}}, {test}]")
    (line,) = [line for line in str(error.value).splitlines() if f"tests[1].{name}: " in line]
    assert f"expected a stack that {name} can measure: {served}, got " in line
    assert line.endswith("; add one to stacks, or remove the test")


def test_a_stack_that_a_test_leaves_out_is_told() -> None:
    plan = resolved("[xfrm, strongswan]", "[throughput: {}, set_up_rate: {}]")
    assert {case.stack.shown for case in cases(plan) if case.test == "set_up_rate"} == {"strongswan"}
    assert "set_up_rate is not measured with xfrm" in notes(plan)
    assert not [note for note in notes(plan) if note.startswith("throughput is not")]


def test_the_speed_of_public_keys_needs_no_stack() -> None:
    """It is measured once for each pair, with the baseline."""
    assert resolved("[xfrm]", "[public_key: {trial: 1s}]")


@pytest.mark.parametrize(
    ("test", "key", "expected"),
    [
        ("failover: {dpd: 500ms}", "failover.dpd", 'whole seconds, or 0 for never, got "0.5s"'),
        ("reset: {dpd: 2500ms}", "reset.dpd", "whole seconds, or 0 for never"),
        ("public_key: {trial: 2500ms}", "public_key.trial", "whole seconds"),
    ],
)
def test_times_that_programs_count_in_seconds_are_whole(test: str, key: str, expected: str) -> None:
    """500 ms would be rounded to 0, which means never."""
    with pytest.raises(UsageError, match=key.replace(".", r"\.")) as error:
        resolved("[strongswan]", f"[{test}]")
    assert f"tests[0].{key}: expected {expected}" in str(error.value)


@pytest.mark.parametrize("dpd", ["0", "2s"])
def test_whole_times_are_accepted(dpd: str) -> None:
    assert resolved("[strongswan]", f"[failover: {{dpd: {dpd}}}, reset: {{dpd: {dpd}}}]")
