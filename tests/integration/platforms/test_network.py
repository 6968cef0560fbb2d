# SPDX-License-Identifier: Apache-2.0
"""The controller's changes of this machine's network are what ip(8) and ethtool(8) then find."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from espbench.errors import EspbenchError
from espbench.this_machine import network
from espbench.this_machine.registry import Registry
from support.gateways.boxes import sh

pytestmark = [pytest.mark.root, pytest.mark.untimed]


@pytest.fixture
def pair() -> Iterator[tuple[str, str]]:
    """Two namespaces joined by a0 and a1, both down."""
    with Registry("t" + secrets.token_hex(3)) as registry:
        here, there = registry.netns("here"), registry.netns("there")
        network.make_veth(here, "a0", there, "a1", 1600)
        yield here, there


def link(netns: str, name: str) -> dict[str, Any]:
    (shown,) = json.loads(sh(f"ip -n {netns} -j link show dev {name}"))
    return dict(shown)


def features(netns: str, name: str) -> dict[str, str]:
    """Feature → `on` or `off`, by ethtool's names and the kernel's."""
    lines = sh(f"ip netns exec {netns} ethtool -k {name}")
    return dict(re.findall(r"^\s*([\w-]+): (on|off)\b", lines, re.MULTILINE))


def number() -> int:
    """Return the number of the network namespace that the calling thread is in."""
    return Path("/proc/thread-self/ns/net").stat().st_ino


def test_links_are_as_asked_for(pair: tuple[str, str]) -> None:
    """Both ends have the MTU, and only what was named is changed."""
    here, there = pair
    assert {link(netns, name)["mtu"] for netns, name in zip(pair, ("a0", "a1"), strict=True)} == {1600}
    network.set_link(here, "a0", arp=False, multicast=False, up=True)
    assert {"UP", "NOARP"} <= set(link(here, "a0")["flags"])
    assert "MULTICAST" not in link(here, "a0")["flags"]
    network.set_link(here, "a0", arp=True, mtu=1400)
    assert link(here, "a0")["mtu"] == 1400
    assert "UP" in link(here, "a0")["flags"]
    assert not {"NOARP", "MULTICAST"} & set(link(here, "a0")["flags"])
    assert "UP" not in link(there, "a1")["flags"]
    network.remove_link(there, "a1")
    assert json.loads(sh(f"ip -n {here} -j link"))[1:] == []
    network.remove_link(there, "a1")


def test_features_are_switched_with_all_that_ethtool_means_by_them(pair: tuple[str, str]) -> None:
    """One kind of TCP segmentation that is left on, and a veth bypasses the ring of the other end."""
    here, _ = pair
    before = features(here, "a0")
    network.set_features(here, "a0", tso=False, gso=False, gro=True)
    after = features(here, "a0")
    changed = {name for name in after if after[name] != before[name]}
    segmentation = {name for name in after if re.fullmatch(r"tx-tcp.*-segmentation", name)}
    assert {after[name] for name in segmentation} == {"off"}
    assert (after["generic-segmentation-offload"], after["generic-receive-offload"]) == ("off", "on")
    assert changed <= segmentation | {
        "tcp-segmentation-offload", "generic-segmentation-offload", "generic-receive-offload",
    }  # fmt: skip


def test_sysctls_are_those_of_the_namespace(pair: tuple[str, str]) -> None:
    """The settings of the initial namespace stay."""
    here, there = pair
    own = Path("/proc/sys/net/ipv4/ip_forward").read_text()
    network.write_sysctls(here, {"net/ipv4/ip_forward": "1"})
    assert [int(sh(f"ip netns exec {netns} sysctl -n net.ipv4.ip_forward")) for netns in (here, there)] == [
        1,
        0,
    ]
    assert Path("/proc/sys/net/ipv4/ip_forward").read_text() == own


def test_nothing_is_left_of_a_namespace() -> None:
    """Removed twice, or made by half (a controller killed between the file and the mount), it is gone all the same."""
    name = f"espbench-t{secrets.token_hex(3)}-x"
    inside = number()
    network.make_netns(name)
    assert name in sh("ip netns list")
    assert network.in_netns(network.NETNS_DIR / name, number) != inside
    assert number() == inside
    network.remove_netns(name)
    network.remove_netns(name)
    (network.NETNS_DIR / name).touch()
    network.remove_netns(name)
    assert not (network.NETNS_DIR / name).exists()


@pytest.mark.parametrize(
    ("attempt", "words"),
    [
        (lambda a, b: network.make_netns(a), "cannot make the network namespace espbench-.*: File exists"),
        (
            lambda a, b: network.make_veth(a, "a0", b, "a2", 1500),
            "cannot join a0 in .* to a2 in .*: File exists",
        ),
        (
            lambda a, b: network.make_veth("none", "a0", b, "a2", 1500),
            "cannot join a0 in none .*: No such file",
        ),
        (lambda a, b: network.set_link(a, "zz", up=True), "cannot set zz in .*: No such device"),
        (lambda a, b: network.set_features(a, "zz", gro=True), "cannot switch features of zz in .*gro"),
        (lambda a, b: network.write_sysctls(a, {"net/zz": "1"}), "cannot set net/zz in .*: No such file"),
    ],
)
def test_a_refusal_is_one_message(pair: tuple[str, str], attempt: Any, words: str) -> None:
    """It says what was tried, where, and why not."""
    with pytest.raises(EspbenchError, match=words):
        attempt(*pair)
