# SPDX-License-Identifier: Apache-2.0
"""The controller's changes of this machine's network are what ip(8) and ethtool(8) then find."""

from __future__ import annotations

import json
import re
import secrets
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from espbench.errors import EspbenchError
from espbench.this_machine import interfaces, network
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


def send(name: str, frames: int) -> None:
    """Send so many frames for everybody, of an experimental protocol."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as opened:
        opened.bind((name, 0))
        for _ in range(frames):
            opened.send(b"\xff" * 6 + b"\x02" * 6 + b"\x88\xb5" + bytes(46))


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


def test_taps_and_bridges_are_as_asked_for(pair: tuple[str, str]) -> None:
    """The frames of a tap carry a virtio header, the bridge forwards at once and learns no multicast groups."""
    here, _ = pair
    for tap in ("t0", "t1"):
        network.make_tap(here, tap)
        network.set_link(here, tap, mtu=1400, queue=777)
    network.make_bridge(here, "b0", ["t0", "t1"], 1400)
    assert {
        (link(here, tap)["mtu"], link(here, tap)["txqlen"], link(here, tap)["master"]) for tap in ("t0", "t1")
    } == {(1400, 777, "b0")}
    for tap in ("t0", "t1"):
        assert f"{tap}: tap vnet_hdr persist" in sh(f"ip -n {here} tuntap show")
    (bridge,) = json.loads(sh(f"ip -n {here} -j -d link show dev b0"))
    settings = bridge["linkinfo"]["info_data"]
    assert [settings[key] for key in ("stp_state", "forward_delay", "mcast_snooping")] == [0, 0, 0]
    assert (bridge["mtu"], "UP" in bridge["flags"]) == (1400, False)


def test_the_napi_of_a_port_gets_a_thread(pair: tuple[str, str]) -> None:
    """Only the port named gets one, and the mounts of this process stay as they are."""
    here, there = pair
    mounted = Path("/proc/self/mounts").read_text().count(" sysfs ")
    for netns, name in ((here, "a0"), (there, "a1")):
        network.set_features(netns, name, gro=True)
        network.set_link(netns, name, up=True)
    network.thread_napi(there, "a1")
    threaded = [
        sh(f"ip netns exec {netns} cat /sys/class/net/{name}/threaded").strip()
        for netns, name in ((here, "a0"), (there, "a1"))
    ]
    assert threaded == ["0", "1"]
    assert Path("/proc/self/mounts").read_text().count(" sysfs ") == mounted


def test_an_interface_is_read_as_ip_shows_it(pair: tuple[str, str]) -> None:
    """Address, carrier and counters; by the name of the namespace's file."""
    here, there = pair
    file = str(network.NETNS_DIR / here)
    for netns in pair:  # else the kernel itself sends
        network.write_sysctls(netns, {"net/ipv6/conf/all/disable_ipv6": "1"})
    assert not interfaces.read_interface(file, "a0", "cannot read a0").link_up
    for netns, name in ((here, "a0"), (there, "a1")):
        network.set_link(netns, name, up=True)
    (shown,) = json.loads(sh(f"ip -n {here} -s -s -j link show dev a0"))
    read = interfaces.read_interface(file, "a0", "cannot read a0")
    assert (read.mac, read.link_up) == (shown["address"], True)
    assert read.carrier_changes == shown["stats64"]["tx"]["carrier_changes"] > 0
    for netns, name, frames in ((here, "a0", 5), (there, "a1", 7)):
        network.in_netns(network.NETNS_DIR / netns, partial(send, name, frames))
    after = interfaces.read_interface(file, "a0", "cannot read a0")
    assert (after.sent - read.sent, after.received - read.received) == (5, 7)
    network.set_link(there, "a1", up=False)
    assert not interfaces.read_interface(file, "a0", "cannot read a0").link_up


def test_the_speed_of_a_port_is_what_ethtool_says(pair: tuple[str, str]) -> None:
    """A port that tells none, or that is not there, has none."""
    here, _ = pair
    file = str(network.NETNS_DIR / here)
    speed = re.search(r"Speed: (\d+)Mb/s", sh(f"ip netns exec {here} ethtool a0"))
    assert speed is not None
    assert interfaces.speed_bps(file, "a0") == int(speed[1]) * 1e6
    assert [interfaces.speed_bps(file, name) for name in ("lo", "zz")] == [0, 0]
    assert interfaces.speed_bps("/run/netns/none", "a0") == 0


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
        (lambda a, b: network.make_tap(a, "a0"), "cannot make the tap a0 in .*: Invalid argument"),
        (
            lambda a, b: network.make_bridge(a, "b0", ["zz"], 1500),
            "cannot make the bridge b0 of zz in .*: No such device",
        ),
        (
            lambda a, b: network.thread_napi(a, "zz"),
            "cannot give the NAPI of zz in .* a thread: No such file",
        ),
        (
            lambda a, b: interfaces.read_interface(a, "zz", "cannot read zz"),
            "^cannot read zz: No such device$",
        ),
        (lambda a, b: network.write_sysctls(a, {"net/zz": "1"}), "cannot set net/zz in .*: No such file"),
    ],
)
def test_a_refusal_is_one_message(pair: tuple[str, str], attempt: Any, words: str) -> None:
    """It says what was tried, where, and why not."""
    with pytest.raises(EspbenchError, match=words):
        attempt(*pair)
