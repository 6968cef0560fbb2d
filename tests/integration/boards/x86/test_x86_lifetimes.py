# SPDX-License-Identifier: Apache-2.0
"""SAs that end after bytes or without traffic, on x86-64 gateways in virtual time: replaced at the bytes asked for.

Pluto, which replaces them earlier, is in test_x86_ike.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from espbench.platforms.virtual.parts.kits import X86_KIT
from support.plans import pair_plan, write_plan
from support.virtual.virtual_runs import Measured, build, measured

pytestmark = [pytest.mark.virtual_time, pytest.mark.boards, pytest.mark.slow]

# 3900 frames of 494 B carry 9.63 lifetimes. Each SA goes on for some milliseconds while its successor is negotiated.
LIFETIME = "200kB"
REKEY_LOSS = {
    "rekey_loss": {
        "load": "2000fps",
        "trial": "1950ms",
        "lifetime_bytes": LIFETIME,
        "warm_up": 0,
        "settle": 0,
    }
}
IDLE_S = 3
FIRST_PACKET = {"load": "1000fps", "trial": "300ms", "repeats": 1}


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    """Build the guests in the user's cache; the first test that needs them does it."""
    build("x86")
    assert X86_KIT.find() is not None


def run(folder: Path, stack: Any, tests: list[dict[str, Any]]) -> Measured:
    few: dict[str, Any] = {
        "name": "lifetimes",
        "stacks": [stack],
        "suites": ["aes128gcm16"],
        "frame_sizes": [512],
    }
    plan: dict[str, Any] = {**pair_plan("virt-x86", **few), "directions": ["one-way"], "tests": tests}
    return measured(write_plan(folder, plan), folder / "runs")


@pytest.fixture(scope="module")
def charon(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    tests = [
        REKEY_LOSS,
        {"time_to_first_packet": FIRST_PACKET},
        {"time_to_first_packet": FIRST_PACKET | {"idle": f"{IDLE_S}s"}},
    ]
    stack = {"stack": "strongswan", "lifetime_bytes": "100MB", "idle_timeout": "60s"}
    return run(tmp_path_factory.mktemp("charon"), stack, tests)


def test_charon_replaces_an_sa_at_the_bytes_asked_for(charon: Measured) -> None:
    """Nine times in 9.6 lifetimes: at 95 % of these bytes it would be ten times, at 107 % eight times."""
    (trial,) = charon.of_test("rekey_loss")
    assert trial["measured"]["rekeys"] == 9
    assert trial["tx_frames"] == 3900
    assert trial["lost"] == 0


def test_idle_sas_are_deleted_and_traffic_brings_them_up_again(charon: Measured) -> None:
    """The IKE SA is still there, so that one exchange does it, without another DH."""
    cold, idle = (charon.of_test(test)[0] for test in ("time_to_first_packet", "time_to_first_packet-2"))
    assert IDLE_S <= idle["measured"]["idle_s"] < IDLE_S + 2
    (anew,), (again,) = cold["measured"]["tunnel_ms"], idle["measured"]["tunnel_ms"]
    assert 0 < again < anew


def test_the_context_says_both_and_the_kernel_has_the_bytes(charon: Measured) -> None:
    contexts = json.loads((charon.directory / "manifest.json").read_text())["contexts"]
    context = contexts["strongswan-aes128gcm16-ipv4"]
    assert context["lifetime"] == (
        "100000000 bytes of IP packets; deleted after 60 s without traffic, which brings it up again"
    )
    for side, limits in (
        ("home", "100000000 octets soft, 110000000 octets hard"),
        ("office", "110000000 octets hard"),
    ):
        assert {sa["lifetime"] for sa in context[side]["security_associations"]} == {limits}
