# SPDX-License-Identifier: Apache-2.0
"""The suites as data, and the size of their packets against published truths."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from espbench.catalogue.suites import Mode, Suite, suites

_SUITES = st.sampled_from(list(suites().values()))


def test_the_eight_suites_are_there() -> None:
    """NULL as the cost of encapsulation, what the articles used, and what people deploy."""
    assert list(suites()) == [
        "null-null", "null-sha1", "3des-sha1", "aes128-sha1", "aes256-sha256", "aes128gcm16", "aes256gcm16",
        "chacha20poly1305",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("suite", "bytes_on_the_wire"), [("3des-sha1", 96), ("aes128-sha1", 104), ("aes128gcm16", 100)]
)
def test_a_64_byte_frame_becomes_the_packet_the_method_names(suite: str, bytes_on_the_wire: int) -> None:
    """46 B of IPv4 in a tunnel: the sizes on the ciphertext side (docs/method.md)."""
    assert suites()[suite].esp_packet_size(46, "tunnel", 4) == bytes_on_the_wire


@pytest.mark.parametrize(("suite", "largest"), [("3des-sha1", 1446), ("aes128-sha1", 1438)])
def test_the_largest_inner_packet_is_the_one_the_method_names(suite: str, largest: int) -> None:
    """1500 B MTU, IPv4 in IPv4: the largest packets that are not fragmented (docs/method.md)."""
    assert suites()[suite].largest_inner(1500) == largest


def test_transport_mode_leaves_the_header_outside() -> None:
    """46 B of IPv4 in transport mode: 20 + 8 + 8 + 32 (28 padded with its trailer) + 12."""
    assert suites()["3des-sha1"].esp_packet_size(46, "transport", 4) == 80


def test_null_without_integrity_adds_only_the_encapsulation() -> None:
    """20 outer header + 8 ESP header + 46 + 2 trailer, and nothing else."""
    assert suites()["null-null"].esp_packet_size(46, "tunnel", 4) == 76


def test_inside_udp_every_packet_is_8_bytes_longer() -> None:
    """RFC 3948 2.1: a UDP header before the ESP header, nothing else."""
    for suite in suites().values():
        plain, in_udp = (suite.esp_packet_size(46, "tunnel", 4, udp) for udp in (False, True))
        assert in_udp == plain + 8
    assert suites()["aes128-sha1"].largest_inner(1500, udp=True) == 1422


@given(
    _SUITES,
    st.sampled_from(["tunnel", "transport"]),
    st.sampled_from([4, 6]),
    st.integers(576, 9000),
    st.booleans(),
)
def test_the_largest_inner_packet_fits_and_the_next_does_not(
    suite: Suite, mode: Mode, version: int, mtu: int, udp: bool
) -> None:
    """largest_inner is exactly the edge of esp_packet_size."""
    largest = suite.largest_inner(mtu, mode, version, udp)
    assert (
        suite.esp_packet_size(largest, mode, version, udp)
        <= mtu
        < suite.esp_packet_size(largest + 1, mode, version, udp)
    )


def test_keys_have_the_length_the_kernel_wants() -> None:
    """AEAD keys include the salt: 4 bytes for GCM and for ChaCha20-Poly1305."""
    aead = {name: suite.aead.key_bits for name, suite in suites().items() if suite.aead}
    assert aead == {"aes128gcm16": 128 + 32, "aes256gcm16": 256 + 32, "chacha20poly1305": 256 + 32}
    des = suites()["3des-sha1"].encryption
    assert des is not None
    assert des.key_bits == 192


def test_a_suite_is_either_separate_algorithms_or_an_aead() -> None:
    """Half a suite cannot be loaded."""
    half = suites()["3des-sha1"].model_dump() | {"integrity": None}
    with pytest.raises(ValidationError, match="encryption and integrity, or an aead"):
        Suite.model_validate(half)
