# SPDX-License-Identifier: Apache-2.0
"""An attacker's packets: whole, different, and what they say they are."""

from __future__ import annotations

import struct
from ipaddress import IPv4Address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espbench.stacks.daemons.attack_packets import forged_esp, ike_flood, initiator_spi_at, ip_packet
from support.generators.checksums import ones_sum


@given(st.binary(max_size=200), st.sampled_from([17, 50]))
def test_checksums_and_lengths_are_right(payload: bytes, protocol: int) -> None:
    """IPv4's of its header; IPv6's of UDP, which must have one."""
    payload = bytes(8) + payload
    four = ip_packet("198.18.0.9", "192.0.2.1", protocol, payload)
    assert ones_sum(four[:20]) == 0xFFFF
    assert struct.unpack("!H", four[2:4])[0] == len(four) == 20 + len(payload)
    six = ip_packet("2001:2::9", "2001:2::1", protocol, payload)
    assert struct.unpack("!H", six[4:6])[0] == len(six) - 40 == len(payload)
    if protocol == 17:
        assert ones_sum(six[8:40] + struct.pack("!II", len(payload), 17) + six[40:]) == 0xFFFF


def test_forged_esp_has_the_spi_and_rising_numbers() -> None:
    """No two alike, and the same again from the same seed."""
    made = forged_esp("192.0.2.2", "192.0.2.1", 0xC0FFEE01, 240, 100)
    assert {packet[20:24].hex() for packet in made} == {"c0ffee01"}
    numbers = [struct.unpack("!I", packet[24:28])[0] for packet in made]
    assert numbers == sorted(set(numbers))
    assert {len(packet) for packet in made} == {20 + 8 + 240}
    assert len({packet[28:] for packet in made}) == 100
    assert made == forged_esp("192.0.2.2", "192.0.2.1", 0xC0FFEE01, 240, 100)


@pytest.mark.parametrize("group", ["ecp256", "ecp384", "x25519", "modp2048"])
def test_the_seed_decides_every_byte_of_an_ike_flood(group: str) -> None:
    """Two runs in virtual time are the same to the byte, and so are their attacks."""
    first, again, other = (
        ike_flood("198.18.0.0/24", "192.0.2.1", f"aes128-sha256-{group}", 20, seed) for seed in (1, 1, 2)
    )
    assert first == again
    assert not set(first) & set(other)


@pytest.mark.parametrize(
    "proposal", ["aes128-sha256-ecp256", "aes256gcm16-sha384-x25519", "3des-sha1-modp2048"]
)
def test_an_ike_flood_comes_from_many_addresses(proposal: str) -> None:
    """Each an IKE_SA_INIT request whose parts add up (RFC 7296 3.1 to 3.9)."""
    made = ike_flood("198.18.0.0/16", "192.0.2.1", proposal, 500)
    sources = {IPv4Address(packet[12:16]) for packet in made}
    assert len(sources) == len(made) == 500
    assert all(source in ip_network("198.18.0.0/16") for source in sources)
    assert not {IPv4Address("198.18.0.1"), IPv4Address("198.18.0.2")} & sources
    for packet in made[:20]:
        udp, message = packet[20:28], packet[28:]
        assert struct.unpack("!HHH", udp[:6]) == (500, 500, 8 + len(message))
        kind, version, exchange, flags, number, length = struct.unpack("!BBBBII", message[16:28])
        assert (version, exchange, flags, number, length) == (0x20, 34, 0x08, 0, len(message))
        addresses, at = [], 28
        while kind:
            addresses.append(kind)
            kind, size = struct.unpack("!BxH", message[at : at + 4])
            at += size
        assert addresses == [33, 34, 40]
        assert at == len(message)


@pytest.mark.parametrize(
    ("near", "home", "at"), [("198.18.0.0/24", "192.0.2.1", 28), ("2001:2::/64", "2001:2::1", 48)]
)
def test_the_initiators_spi_is_where_each_packet_differs(near: str, home: str, at: int) -> None:
    """The generator changes it in each round, since a daemon answers an SPI that it knows without work."""
    made = ike_flood(near, home, "aes128-sha256-x25519", 20)
    assert {initiator_spi_at(packet) for packet in made} == {at}
    assert len({packet[at : at + 8] for packet in made}) == 20
    assert {packet[at + 8 : at + 16] for packet in made} == {bytes(8)}  # the responder's is not known yet
