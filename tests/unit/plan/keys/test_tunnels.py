# SPDX-License-Identifier: Apache-2.0
"""Many tunnels: how the prefixes are cut, what each gateway is told, what cannot be had, what is written down."""

from __future__ import annotations

import ipaddress
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espbench.catalogue.suites import suites
from espbench.errors import UsageError
from espbench.measure.inputs.traffic import Traffic
from espbench.platforms.base import Port, Testbed
from espbench.platforms.chance import Chance
from espbench.stacks import netlink_xfrm as xfrm
from espbench.stacks.base import StackOptions, Tunnel, split
from espbench.stacks.policies import SideView, few, floor, sa_entries
from espbench.stacks.xfrm import Xfrm

IPV4 = ("198.18.0.0/16", "198.19.0.0/16")
IPV6 = ("2001:2:0:1000::/52", "2001:2:0:2000::/52")
WAN = {4: ("192.0.2.1", "192.0.2.2"), 6: ("2001:2:0:f::1", "2001:2:0:f::2")}
BED = cast(Testbed, SimpleNamespace(virtual_time=False))  # the tests ask it nothing else


def tunnel_of(version: int = 4, n: int = 1) -> Tunnel:
    prefixes = IPV4 if version == 4 else IPV6
    return Tunnel(version, *WAN[version], *prefixes, split(*prefixes, n))


@given(n=st.integers(1, 1000), prefixes=st.sampled_from([IPV4, IPV6]))
def test_every_tunnel_has_its_own_subnet_on_both_sides(n: int, prefixes: tuple[str, str]) -> None:
    """Subnets do not overlap, lie in their side's prefix, are equal in size; at least half of them are used."""
    pairs = split(*prefixes, n)
    assert len(pairs) == n
    for side, whole in enumerate(prefixes):
        subnets = [ipaddress.ip_network(pair[side]) for pair in pairs]
        inside = ipaddress.ip_network(whole)
        size = inside.num_addresses >> (n - 1).bit_length()
        assert all(subnet.num_addresses == size for subnet in subnets)
        assert [int(subnet.network_address) for subnet in subnets] == [
            int(inside.network_address) + i * size for i in range(n)
        ]


def test_one_tunnel_has_the_whole_prefixes() -> None:
    """The same holds where no pairs are given; the prefix length is that of the traffic's rotation."""
    assert split(*IPV4, 1) == (IPV4,)
    assert Tunnel(4, *WAN[4], *IPV4).pairs == (IPV4,)
    assert [tunnel_of(4, n).bits for n in (1, 10, 100, 1000)] == [16, 20, 23, 26]
    assert tunnel_of(6, 1000).bits == 62


@pytest.mark.parametrize(
    ("prefixes", "n", "most"),
    [(IPV4, 1025, 1024), (IPV4, 0, 1024), (IPV6, 4097, 4096), (("10.0.0.0/28", "10.1.0.0/28"), 2, 1)],
)
def test_too_many_tunnels_are_refused(prefixes: tuple[str, str], n: int, most: int) -> None:
    """The message has the limit and what was asked."""
    with pytest.raises(UsageError, match=rf"expected 1 to {most} between .* got {n};"):
        split(*prefixes, n)


def test_both_gateways_see_the_same_tunnels_from_their_own_side() -> None:
    """Home's outbound is Office's inbound, tunnel for tunnel."""
    tunnel = tunnel_of(4, 10)
    home, office = SideView.each("home", tunnel), SideView.each("office", tunnel)
    assert [view.outbound for view in home] == [view.inbound for view in office]
    assert home[3].outbound == xfrm.Selector("198.18.48.0/20", "198.19.48.0/20")
    assert (home[3].own, home[3].peer) == (office[3].peer, office[3].own)


def test_streams_carry_the_tunnels() -> None:
    """Both directions, so that the generator moves both addresses."""

    def port(name: Any, number: int) -> Port:
        return Port(
            name, "i", None, (0,), 0, "02:00:00:00:00:02", None, {4: f"198.1{number}.0.2"}, {4: ""}, 1e9, 1500
        )

    bed = SimpleNamespace(ports={"west": port("west", 8), "east": port("east", 9)})
    traffic = Traffic(((64, 1),), 4, "both-ways", tunnels=10, tunnel_bits=20)
    streams = traffic.streams(cast(Testbed, bed), {"west": "", "east": ""}, 1000)
    sent = [stream.model_dump(by_alias=True) for stream in streams]
    assert [(s["src"], s["tunnels"], s["tunnel_bits"]) for s in sent] == [
        ("198.18.0.2", 10, 20),
        ("198.19.0.2", 10, 20),
    ]


def test_every_sa_of_every_tunnel_is_its_own() -> None:
    """1,000 tunnels: 2,000 SAs, as many SPIs and keys; a request id has one SA each way."""
    stack = Xfrm(BED, tunnel_of(4, 1000), suites()["aes128gcm16"], StackOptions(tunnels=1000))
    known = stack.secrets()
    assert (
        len(known) == len({sa["spi"] for sa in known}) == len({sa["encryption_key"] for sa in known}) == 2000
    )
    assert min(sa["spi"] for sa in known) >= 0x100
    reqids = [sa.reqid for sa in stack._sas.values()]
    assert sorted(reqids) == sorted([2544 + i for i in range(1000)] * 2)


def test_in_virtual_time_a_run_has_the_keys_of_the_one_before() -> None:
    """Runs of the same seed and repeat have the same keys; in real time no two have a key in common."""
    emulated = cast(Testbed, SimpleNamespace(virtual_time=True, chance=Chance()))
    repeated = cast(Testbed, SimpleNamespace(virtual_time=True, chance=Chance(repeat=2)))

    def known(bed: Testbed) -> list[dict[str, Any]]:
        return Xfrm(bed, tunnel_of(4, 1), suites()["3des-sha1"], StackOptions()).secrets()

    assert known(emulated) == known(emulated)
    assert known(repeated) == known(repeated)
    assert not {sa["spi"] for sa in known(emulated)} & {sa["spi"] for sa in known(repeated)}
    assert not {sa["spi"] for sa in known(BED)} & {sa["spi"] for sa in known(BED)}


@pytest.mark.parametrize(
    ("options", "version", "n", "words"),
    [
        (StackOptions(df="set"), 4, 1, "df: expected copy or clear .* mode: tunnel, got set"),
        (StackOptions(mode="transport", df="clear"), 4, 1, "df: expected copy or set .* mode: transport, got clear"),
        (StackOptions(mode="transport", tunnels=10), 4, 10, "tunnels: expected 1 with mode: transport, got 10"),
        (StackOptions(esn=True, replay_window=0), 6, 1, "replay_window: expected 1 or more with esn: true, got 0"),
        (StackOptions(mode="transport", interface=True), 4, 1, "interface: expected false with mode: transport"),
    ],
)  # fmt: skip
def test_what_the_kernel_cannot_do_is_refused(
    options: StackOptions, version: int, n: int, words: str
) -> None:
    """The message has the plan's words, and what to write instead."""
    with pytest.raises(UsageError, match=words):
        Xfrm(BED, tunnel_of(version, n), suites()["aes128-sha1"], options)


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("n", [1, 10])
def test_what_blocks_covers_all_and_is_no_tunnels_own_selector(version: int, n: int) -> None:
    """The kernel keeps one policy a selector: a daemon's must not replace a blocking one."""
    tunnel = tunnel_of(version, n)
    policies = floor("home", tunnel)
    assert {(p.priority, p.action, p.template) for p in policies} == {(2**32 - 1, "block", None)}
    own = {s for v in SideView.each("home", tunnel) for s in (v.outbound, v.inbound)}
    assert not own & {p.selector for p in policies}
    (out,) = (p.selector for p in policies if p.direction == "out")
    assert out.destination == tunnel.east
    assert {p.selector.source for p in policies if p.direction != "out"} == {tunnel.east}
    assert {p.direction for p in policies} == {"in", "out", "fwd"}


def test_the_kernel_need_not_search_tunnels_one_by_one() -> None:
    """An open end, shorter than a /16 or /48, keeps a policy out of the tree the tunnels' policies are in."""
    for version, shortest in ((4, 16), (6, 48)):
        for policy in floor("office", tunnel_of(version, 10)):
            ends = (policy.selector.source, policy.selector.destination)
            assert min(ipaddress.ip_network(end).prefixlen for end in ends) < shortest


def test_many_sas_are_counted_and_their_kinds_named() -> None:
    """Four tunnels are listed, five are summed up; one SA that differs shows as a kind of its own."""

    def reading(number: int, **changes: Any) -> xfrm.SaReading:
        values: dict[str, Any] = {
            "source": "192.0.2.1", "destination": "192.0.2.2", "spi": 256 + number, "mode": "tunnel",
            "reqid": number, "selector": xfrm.Selector(*IPV4),
        }  # fmt: skip
        return xfrm.read_sa(xfrm.new_sa(xfrm.SecurityAssociation(**values | changes)))

    assert len(sa_entries([reading(i) for i in range(8)])["security_associations"]) == 8
    entries = sa_entries([reading(i) for i in range(9)] + [reading(9, esn=True)])
    assert [entry["spi"] for entry in entries["security_associations"]] == ["0x00000100", "0x00000101"]
    assert entries["number of SAs"] == 10
    assert len(entries["kinds of SAs"]) == 2


def test_few_of_many() -> None:
    """Equal texts are one; of many the first ones and how many more."""
    assert few(["a", "a", "b"]) == ["a", "b"]
    assert few((str(i) for i in range(10)), at_most=2) == ["0", "1", "… and 8 more like these"]
