# SPDX-License-Identifier: Apache-2.0
"""The lean ESP of emulated boards: what a guest is told of an SA, and what it says of itself."""

from __future__ import annotations

import pytest

from espbench.catalogue.suites import suites
from espbench.errors import EspbenchError
from espbench.stacks.base import Tunnel
from espbench.stacks.lean_esp import algorithm, read_state, sa_line
from espbench.stacks.netlink_xfrm import Algorithm, SecurityAssociation, Selector
from espbench.stacks.policies import SideView

SAID = """\
ports eth0 eth1
flows hits=41 misses=2
error LeanQueueFull 0
error LeanReplay 3
sa out 0000c0de 10.9.0.1 10.9.0.2 window=32 icv=12 packets=40 bytes=5920 driver=echainiv(authenc-x-talitos)
sa in 80000001 10.9.0.2 10.9.0.1 window=32 icv=12 packets=39 bytes=5772 driver=echainiv(authenc-x-talitos)
"""
TUNNEL = Tunnel(4, "10.9.0.1", "10.9.0.2", "198.18.0.0/16", "198.19.0.0/16")


def sa(source: str, destination: str) -> SecurityAssociation:
    return SecurityAssociation(
        source=source, destination=destination, spi=0xC0DE, selector=Selector("", ""), mode="tunnel", reqid=1,
        encryption=Algorithm("cbc(des3_ede)", bytes(range(24))), integrity=Algorithm("hmac(sha1)", b"\xab" * 20, 96),
    )  # fmt: skip


def test_what_a_guest_says_is_read() -> None:
    state = read_state(SAID)
    assert (state.ports, state.errors) == (("eth0", "eth1"), {"LeanReplay": 3})
    out, back = state.sas
    assert (out.inbound, out.spi, out.packets, out.icv) == (False, 0xC0DE, 40, 12)
    assert (back.inbound, back.spi, back.packets, back.driver) == (
        True, 0x80000001, 39, "echainiv(authenc-x-talitos)",
    )  # fmt: skip


def test_a_guest_without_it_is_an_error() -> None:
    with pytest.raises(EspbenchError, match="expected a line of ports"):
        read_state("nothing")


def test_an_sa_is_said_from_each_gateways_side() -> None:
    """Networks are local and remote; the direction follows from who it ends at."""
    suite, line = suites()["3des-sha1"], sa("10.9.0.1", "10.9.0.2")
    home, office = (sa_line(line, SideView.of(side, TUNNEL), suite) for side in ("home", "office"))
    keys = f"echainiv(authenc(hmac(sha1),cbc(des3_ede))) {bytes(range(24)).hex()} {'ab' * 20}"
    addresses = "c0de a090001 a090002"
    assert home == f"sa out {addresses} c6120000 ffff0000 c6130000 ffff0000 32 12 {keys}"
    assert office == f"sa in {addresses} c6130000 ffff0000 c6120000 ffff0000 32 12 {keys}"


def test_an_sa_without_keys_says_so() -> None:
    """NULL/NULL: both keys are empty, and there is no ICV."""
    null = SecurityAssociation(
        source="10.9.0.1", destination="10.9.0.2", spi=0xC0DE, selector=Selector("", ""), mode="tunnel", reqid=1,
        encryption=Algorithm("ecb(cipher_null)", b""), integrity=Algorithm("digest_null", b"", 0),
    )  # fmt: skip
    line = sa_line(null, SideView.of("home", TUNNEL), suites()["null-null"])
    assert line.endswith(" 32 0 authenc(digest_null,ecb(cipher_null)) - -")


@pytest.mark.parametrize(
    ("suite", "name"),
    [
        ("aes128-sha1", "echainiv(authenc(hmac(sha1),cbc(aes)))"),
        ("aes128gcm16", "seqiv(rfc4106(gcm(aes)))"),
        ("null-null", "authenc(digest_null,ecb(cipher_null))"),
    ],
)
def test_algorithms_are_those_that_xfrm_asks_for(suite: str, name: str) -> None:
    assert algorithm(suites()[suite]) == name
