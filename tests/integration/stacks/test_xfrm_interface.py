# SPDX-License-Identifier: Apache-2.0
"""`interface: true` on kernels that have XFRM interfaces; ESPBENCH_XFRMI_PROFILE names a DUT profile of such."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import Any

import pytest

from espbench.measure.inputs.setup import Setup, TrialBroken
from espbench.measure.inputs.traffic import Traffic
from espbench.stacks import policies
from espbench.stacks.base import both
from espbench.stacks.xfrm_devices import XFRM_DEVICE, XFRM_IF_ID
from espbench.terms import Trial
from support.gateways.workshop import TRAFFIC, Workshop, established, trial_of

PROFILE = os.environ.get("ESPBENCH_XFRMI_PROFILE", "")
pytestmark = [pytest.mark.root, pytest.mark.needs("ESPBENCH_XFRMI_PROFILE")]

STACKS: list[Any] = [
    "xfrm",
    "strongswan",
    "libreswan",
    {"home": "strongswan", "office": "libreswan"},
    {"home": "libreswan", "office": "strongswan"},
]


def on_interface(stack: Any, **options: Any) -> dict[str, Any]:
    """A plan's entry: this stack, route-based."""
    named = stack if isinstance(stack, dict) else {"stack": stack}
    return {**named, "interface": True, **options}


def routed(setup: Setup, traffic: Traffic = TRAFFIC) -> dict[str, Any]:
    """Establish it as any stack; the Security Context, whose SAs are bound to the interface."""
    context = established(setup, traffic)
    assert context["based on"] == f"routes to an XFRM interface (if_id {XFRM_IF_ID})"
    for side in ("home", "office"):
        assert {sa["interface_id"] for sa in context[side]["security_associations"]} == {XFRM_IF_ID}
    return context


def assert_all_encrypted(trial: Trial) -> None:
    """Nothing lost, and as many frames through each gateway's SAs as were sent."""
    assert trial.proof == {"kind": trial.proof["kind"], "proven": True, "problems": []}
    assert trial.rx_frames == trial.tx_frames == 200
    for side in ("home", "office"):
        assert trial.gateways[side].encrypted_frames == trial.gateways[side].decrypted_frames == 100


def carried_by_interface(setup: Setup) -> list[tuple[int, int]]:
    """(sent, received) frames of each gateway's XFRM interface."""
    counters = (gateway.link_counters()[XFRM_DEVICE] for gateway, _ in both(setup.bed))
    return [(link.tx_packets, link.rx_packets) for link in counters]


@pytest.mark.parametrize("tunnels", [1, 12])
@pytest.mark.parametrize("stack", STACKS, ids=lambda s: s if isinstance(s, str) else "-".join(s.values()))
def test_what_is_routed_to_the_interface_is_encrypted(shop: Workshop, stack: Any, tunnels: int) -> None:
    """Every frame of a trial passes the interface and an SA, both ways, in every tunnel."""
    traffic = TRAFFIC if tunnels == 1 else replace(TRAFFIC, tunnels=tunnels, tunnel_bits=20)
    with shop.pair(on_interface(stack, tunnels=tunnels), "aes128gcm16", dut=PROFILE) as (setup, _):
        routed(setup, traffic)
        before = carried_by_interface(setup)
        trial = trial_of(setup, traffic)
        after = carried_by_interface(setup)
        sas = policies.dump_sas(setup.bed.gateways["home"])
    assert_all_encrypted(trial)
    moved = [(sent - s, received - r) for (s, r), (sent, received) in zip(before, after, strict=True)]
    assert all(sent >= 100 and received >= 100 for sent, received in moved)
    assert len(sas) == 2 * tunnels
    assert all(sa.packets for sa in sas)


@pytest.mark.parametrize("stack", ["xfrm", "strongswan", "libreswan"])
def test_ipv6(shop: Workshop, stack: str) -> None:
    """The prefixes, the route to the interface and the tunnel are IPv6."""
    with shop.pair(on_interface(stack), "aes128-sha1", dut=PROFILE, ip_versions=[6]) as (setup, _):
        traffic = replace(TRAFFIC, ip_version=6)
        routed(setup, traffic)
        assert_all_encrypted(trial_of(setup, traffic))


def test_null(shop: Workshop) -> None:
    """The best case can be route-based as well."""
    with shop.pair(on_interface("null"), "null-null", dut=PROFILE, suites=[]) as (setup, _):
        routed(setup)
        assert_all_encrypted(trial_of(setup))


def test_a_tunnel_that_goes_down_lets_nothing_pass_in_clear(shop: Workshop) -> None:
    """The daemon takes SAs and policies along; the interface then finds the one that blocks."""
    with shop.pair(on_interface("strongswan"), "aes128gcm16", dut=PROFILE) as (setup, _):
        routed(setup)
        terminate = "SWANCTL_DIR={0}/swanctl swanctl --terminate --ike gateways --uri unix://{0}/vici"
        home = setup.bed.gateways["home"]
        done = home.run(["sh", "-c", terminate.format("/run/espbench/strongswan")])
        assert done.rc == 0, done.err
        assert policies.dump_sas(home) == []
        with pytest.raises(TrialBroken, match=r"home holds 0 of 2 SAs; office holds 0 of 2 SAs"):
            trial_of(setup)
        streams = TRAFFIC.streams(setup.bed, setup.next_hops, 400.0)
        assert [s.rx_frames for s in setup.generator.offer(streams, 0.5, 0.3).streams] == [0, 0]


@pytest.mark.parametrize("stack", ["xfrm", "strongswan"])
def test_a_route_that_bypasses_the_interface_is_found(shop: Workshop, stack: str) -> None:
    """The Security Context says that it takes the middle link. Office with a daemon blocks cleartext."""
    with shop.pair(on_interface(stack), "aes128gcm16", dut=PROFILE) as (setup, _):
        routed(setup)
        home = setup.bed.gateways["home"]
        home.ip([f"route replace 198.19.0.0/16 via 192.0.2.2 dev {home.wan}"])
        assert setup.stack is not None
        (mismatch,) = setup.stack.security_context()["mismatches"]
        trial = trial_of(setup)
    assert re.match(rf"home: route to 198\.19\.0\.0/16: expected by {XFRM_DEVICE}, the gateway has", mismatch)
    assert trial.proof["proven"] is False
    if stack == "strongswan":
        assert trial.gateways["office"].decrypted_frames == 0
        assert trial.rx_frames <= 100
