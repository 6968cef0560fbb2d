# SPDX-License-Identifier: Apache-2.0
"""The profiles of two stacks are compared at the same point, gateway and repeat, and only there."""

from __future__ import annotations

from itertools import product

import pytest

from espbench.cli.profile import pairs
from espbench.errors import UsageError
from espbench.profile.attribution import Profile
from espbench.profile.symbols import Function
from espbench.terms import CaseEntry


def entry(stack: str, suite: str = "aes128gcm16", size: int = 512, repeat: int = 1) -> CaseEntry:
    return CaseEntry(
        case=f"{stack}-{suite}-{size}-{repeat}", test="throughput", dut="virt-x86", stack=stack, suite=suite,
        ip_version=4, frame_size=size, direction="one-way", repeat=repeat,
    )  # fmt: skip


def profile(of: CaseEntry, side: str) -> Profile:
    return Profile(of.case, side, 10, {(Function("f", "kernel"), "softirq"): 100}, {})


ENTRIES = [
    entry("plain", "none"),
    *(entry(stack, suite, size, repeat)
      for stack, suite, size, repeat in product(("xfrm", "ike"), ("aes128gcm16", "null-sha1"), (64, 512), (1, 2))),
    entry("ike", size=1424),
]  # fmt: skip
PROFILES = [profile(each, side) for each in ENTRIES for side in ("home", "office")]


def test_stacks_are_compared_at_the_same_point() -> None:
    """A size that the reference was not measured at is left out, and so is plain, which has no suite."""
    found = pairs.of_stacks(ENTRIES, PROFILES, "xfrm")
    assert len(found) == 2 * 8
    for was, now in found:
        assert now.case == was.case.replace("xfrm", "ike")
        assert was.side == now.side


def test_a_reference_without_esp_is_compared_with_every_suite() -> None:
    found = pairs.of_stacks(ENTRIES, PROFILES, "plain")
    assert {was.case for was, _ in found} == {"plain-none-512-1"}
    assert {now.case for _, now in found} == {
        f"{stack}-{suite}-512-1" for stack in ("xfrm", "ike") for suite in ("aes128gcm16", "null-sha1")
    }


def test_a_reference_that_is_not_there_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"--reference x: nothing to compare\n  expected: one of plain, xfrm, ike"
    ):
        pairs.demand_stacks(ENTRIES, [], "x")
    only = [each.case for each in ENTRIES if each.stack == "xfrm"]
    with pytest.raises(UsageError, match=r"expected: cases of at least two stacks\n  got: cases of xfrm"):
        pairs.demand_stacks(ENTRIES, only, "xfrm")
    pairs.demand_stacks(ENTRIES, [*only, ENTRIES[0].case], "xfrm")


def test_a_case_without_a_partner_is_named() -> None:
    """One gateway without a partner is enough."""
    found = pairs.of_stacks(ENTRIES, PROFILES, "xfrm")
    assert pairs.without_partner(PROFILES, found) == ["plain-none-512-1", "ike-aes128gcm16-1424-1"]
    (was, now), *others = found
    assert now.case in pairs.without_partner(PROFILES, others)
    assert was.case in pairs.without_partner(PROFILES, others)
