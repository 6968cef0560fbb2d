# SPDX-License-Identifier: Apache-2.0
"""A gateway that does not run what was asked for is found out, option by option."""

from dataclasses import replace
from typing import Any

import pytest

from espbench.catalogue.suites import suites
from espbench.stacks.base import StackOptions, Tunnel
from espbench.stacks.netlink_xfrm import SaReading, new_policy, read_policy, reading_of
from espbench.stacks.policies import floor, protecting
from espbench.stacks.read_back import (
    expected_algorithms,
    lifetime_mismatches,
    policy_mismatches,
    sa_mismatches,
)

SUITE = suites()["aes128-sha1"]
HONEST = SaReading(
    source="192.0.2.1", destination="192.0.2.2", spi=1, mode="tunnel", reqid=1, replay_window=32, esn=False,
    udp_encapsulation="", copy_df=True, interface_id=0, packets=0, octets=0,
    algorithms=expected_algorithms(SUITE), selector="", lifetime="",
)  # fmt: skip


def test_what_was_asked_for_is_no_mismatch() -> None:
    assert expected_algorithms(SUITE) == {
        "encryption": "cbc(aes), 128 bit key",
        "integrity": "hmac(sha1), 160 bit key, 96 bit ICV",
    }
    for inbound in (True, False):
        assert sa_mismatches(HONEST, SUITE, StackOptions(), inbound=inbound) == []


@pytest.mark.parametrize(
    ("differs", "inbound", "word"),
    [
        ({"algorithms": expected_algorithms(suites()["3des-sha1"])}, True, "suite"),
        ({"algorithms": {"encryption": "cbc(aes), 256 bit key"}}, True, "suite"),
        ({"mode": "transport"}, True, "mode"),
        ({"esn": True}, True, "ESN"),
        ({"udp_encapsulation": "4500 → 4500"}, True, "UDP"),
        ({"interface_id": 7}, True, "interface"),
        ({"extras": ("offload to a device",)}, True, "extras"),
        ({"replay_window": 64}, True, "replay window"),
        ({"copy_df": False}, False, "DF"),
        ({"copy_dscp": False}, False, "DSCP"),
    ],
)
def test_each_difference_is_named(differs: dict[str, Any], inbound: bool, word: str) -> None:
    (problem,) = sa_mismatches(replace(HONEST, **differs), SUITE, StackOptions(), inbound=inbound)
    assert problem.startswith(word)
    assert "expected" in problem


def test_the_window_of_an_outbound_sa_checks_nothing() -> None:
    """Strongswan leaves it at 0: nobody replays to the sender."""
    assert sa_mismatches(replace(HONEST, replay_window=0), SUITE, StackOptions(), inbound=False) == []


def test_a_daemon_decides_about_dscp() -> None:
    """Pluto 5 never has it copied, whatever encap-dscp says."""
    sa = replace(HONEST, copy_dscp=False)
    assert sa_mismatches(sa, SUITE, StackOptions(), inbound=False, by_daemon=True) == []


@pytest.mark.parametrize(
    ("octets", "differs"),
    [(10_000_000, False), (8_000_000, False), (7_999_999, True), (10_000_001, True), (0, True)],
)
def test_the_bytes_until_a_rekey_are_those_asked_for(octets: int, differs: bool) -> None:
    """Pluto takes up to a fifth less at random; no daemon may take more, or none at all."""
    assert bool(lifetime_mismatches(replace(HONEST, octets_soft=octets), 10_000_000)) is differs


TUNNEL = Tunnel(4, "192.0.2.1", "192.0.2.2", "198.18.0.0/16", "198.19.0.0/16")
POLICIES = [*protecting("home", TUNNEL), *floor("home", TUNNEL)]
HELD = [read_policy(new_policy(policy)) for policy in POLICIES]


def test_policies_as_the_kernel_tells_them_are_those_put_in() -> None:
    assert [reading_of(policy) for policy in POLICIES] == HELD
    assert policy_mismatches(POLICIES, HELD) == []


def test_a_daemon_chooses_priorities_and_request_ids_and_nothing_else() -> None:
    """Neither may what blocks have another priority, nor ESP be optional."""
    out, *rest = HELD
    chosen = replace(out, priority=7, reqid=1)
    assert policy_mismatches(POLICIES, [chosen, *rest], by_daemon=True) == []
    assert len(policy_mismatches(POLICIES, [chosen, *rest])) == 2
    assert len(policy_mismatches(POLICIES, [replace(p, priority=7) for p in HELD], by_daemon=True)) == 6
    lax = replace(out, demands=f"{out.demands}, optional")
    (missing, unknown) = policy_mismatches(POLICIES, [lax, *rest], by_daemon=True)
    assert missing.endswith("is not there")
    assert unknown.startswith("unknown policy out")
    assert unknown.endswith(", optional")


def test_a_policy_nobody_asked_for_is_named() -> None:
    """But for neighbour discovery, which a daemon lets pass."""
    nd = replace(HELD[0], selector="::/0 → ::/0 protocol 58", demands="nothing")
    assert policy_mismatches(POLICIES, [*HELD, nd], by_daemon=True) == []
    assert len(policy_mismatches(POLICIES, [*HELD, nd])) == 1
    hole = replace(nd, selector="0.0.0.0/0 → 0.0.0.0/0")
    assert len(policy_mismatches(POLICIES, [*HELD, hole], by_daemon=True)) == 1
