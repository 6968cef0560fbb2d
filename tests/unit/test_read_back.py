# SPDX-License-Identifier: Apache-2.0
"""A gateway that does not run what was asked for is found out, option by option."""

from dataclasses import replace
from typing import Any

import pytest

from espbench.stacks.base import StackOptions
from espbench.stacks.netlink_xfrm import SaReading
from espbench.stacks.read_back import expected_algorithms, sa_mismatches
from espbench.stacks.suites import suites

SUITE = suites()["aes128-sha1"]
HONEST = SaReading(
    source="192.0.2.1", destination="192.0.2.2", spi=1, mode="tunnel", reqid=1, replay_window=32, esn=False,
    udp_encapsulation="", copy_df=True, interface_id=0, packets=0, octets=0, replay_dropped=0,
    integrity_failed=0, algorithms=expected_algorithms(SUITE), selector="", lifetime="",
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
        ({"interface_id": 7}, True, "route-based"),
        ({"replay_window": 64}, True, "replay window"),
        ({"copy_df": False}, False, "DF"),
    ],
)
def test_each_difference_is_named(differs: dict[str, Any], inbound: bool, word: str) -> None:
    (problem,) = sa_mismatches(replace(HONEST, **differs), SUITE, StackOptions(), inbound=inbound)
    assert problem.startswith(word)
    assert "expected" in problem


def test_the_window_of_an_outbound_sa_checks_nothing() -> None:
    """Strongswan leaves it at 0: nobody replays to the sender."""
    assert sa_mismatches(replace(HONEST, replay_window=0), SUITE, StackOptions(), inbound=False) == []
