# SPDX-License-Identifier: Apache-2.0
"""XFRM messages: the kernel's layout, to the byte, and no key in anything printable."""

from __future__ import annotations

import ipaddress
import struct
import sys
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espbench.stacks import netlink_xfrm as xfrm
from espbench.stacks.netlink_xfrm import Algorithm, Policy, SecurityAssociation, Selector, Template
from espbench.stacks.policies import sa_counters

KEY = bytes(range(1, 25))


def sa(**changes: object) -> SecurityAssociation:
    values: dict[str, object] = {
        "source": "192.0.2.1", "destination": "192.0.2.2", "spi": 0x12345678, "mode": "tunnel", "reqid": 7,
        "selector": Selector("198.18.0.0/16", "198.19.0.0/16"),
        "encryption": Algorithm("cbc(des3_ede)", KEY),
        "integrity": Algorithm("hmac(sha1)", KEY[:20], 96),
    }  # fmt: skip
    return SecurityAssociation(**(values | changes))  # type: ignore[arg-type]


def test_structures_have_the_kernels_sizes() -> None:
    """linux/xfrm.h on 64-bit: usersa_info 224, userpolicy_info 168, user_tmpl 64, selector 56."""
    bare = xfrm.new_sa(sa(encryption=None, integrity=None))
    assert len(bare) == 16 + 224
    assert len(xfrm.new_policy(Policy(Selector("::/0", "::/0"), "in"))) == 16 + 168
    template = Template("192.0.2.1", "192.0.2.2", "tunnel", 7)
    with_template = xfrm.new_policy(Policy(Selector("10.0.0.0/8", "10.0.0.0/8"), "out", template))
    assert len(with_template) == 16 + 168 + 4 + 64


def test_the_message_says_its_own_length() -> None:
    """Nlmsghdr's length is that of the whole message, padded attributes included."""
    for message in (xfrm.new_sa(sa()), xfrm.dump_sas(), *xfrm.flush()):
        assert struct.unpack_from("=I", message)[0] == len(message)


@given(
    ends=st.tuples(st.ip_addresses(v=4), st.ip_addresses(v=4))
    | st.tuples(st.ip_addresses(v=6), st.ip_addresses(v=6)),
    spi=st.integers(0x100, 2**32 - 1),
    mode=st.sampled_from(xfrm.MODES),
    window=st.integers(0, 4096),
    esn=st.booleans(),
    in_udp=st.booleans(),
    copy_df=st.booleans(),
    interface_id=st.integers(0, 2**32 - 1),
)
def test_an_sa_is_read_back_as_it_was_written(
    ends: tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, ...],
    spi: int,
    mode: xfrm.Mode,
    window: int,
    esn: bool,
    in_udp: bool,
    copy_df: bool,
    interface_id: int,
) -> None:
    """The kernel dumps SAs in the layout in which it takes them."""
    source, destination = (str(end) for end in ends)
    written = sa(
        source=source, destination=destination, spi=spi, mode=mode, replay_window=window, esn=esn,
        udp_encapsulation=in_udp, copy_df=copy_df, interface_id=interface_id,
        selector=Selector("2001:2::/48", "2001:2:1::/48") if ":" in source else sa().selector,
    )  # fmt: skip
    read = xfrm.read_sa(xfrm.new_sa(written))
    assert (read.source, read.destination, read.spi, read.mode) == (source, destination, spi, mode)
    assert (read.replay_window, read.esn, read.packets) == (window, esn, 0)
    assert (read.udp_encapsulation, read.copy_df) == ("4500 → 4500" if in_udp else "", copy_df)
    assert (read.interface_id, read.reqid) == (interface_id, 7)
    assert read.lifetime == "unlimited"
    assert read.algorithms == {
        "encryption": "cbc(des3_ede), 192 bit key",
        "integrity": "hmac(sha1), 160 bit key, 96 bit ICV",
    }


def test_the_bytes_until_a_rekey_are_read() -> None:
    """A daemon sets them in the limits of the SA, of which none is set by us."""
    message = bytearray(xfrm.new_sa(sa()))
    assert xfrm.read_sa(bytes(message)).octets_soft == 0
    limits = message.index(struct.pack("=4Q", *(2**64 - 1,) * 4))
    struct.pack_into("=QQ", message, limits, 10_000_000, 11_000_000)
    read = xfrm.read_sa(bytes(message))
    assert (read.octets_soft, read.lifetime) == (10_000_000, "10000000 octets soft, 11000000 octets hard")


@pytest.mark.parametrize(
    ("flags", "copied", "extras"), [(0, True, ()), (1, False, ()), (2, True, ("extra flags",))]
)
def test_that_dscp_is_not_copied_is_read(flags: int, copied: bool, extras: tuple[str, ...]) -> None:
    """XFRMA_SA_EXTRA_FLAGS (24): XFRM_SA_XFLAG_DONT_ENCAP_DSCP is 1."""
    read = xfrm.read_sa(xfrm.new_sa(sa()) + struct.pack("=HHI", 8, 24, flags))
    assert (read.copy_dscp, read.extras) == (copied, extras)


def attributes(message: bytes, fixed: int) -> dict[int, bytes]:
    """The attributes after a fixed structure, by number."""
    values, offset = {}, 16 + fixed
    while offset < len(message):
        length, kind = struct.unpack_from("=HH", message, offset)
        values[kind] = message[offset + 4 : offset + length]
        offset += (length + 3) & ~3
    return values


def test_esp_in_udp_is_asked_for_in_the_kernels_words() -> None:
    """XFRMA_ENCAP (4): struct xfrm_encap_tmpl, 24 bytes: type 2, both ports 4500 in network order, no address."""
    (value,) = (attributes(xfrm.new_sa(sa(udp_encapsulation=True)), 224)[4],)
    assert value == struct.pack("=H", 2) + struct.pack("!HH", 4500, 4500) + bytes(18)
    assert 4 not in attributes(xfrm.new_sa(sa()), 224)


def test_the_df_bit_is_cleared_by_the_states_flag() -> None:
    """XFRM_STATE_NOPMTUDISC (4) beside XFRM_STATE_ESN (128), last byte of xfrm_usersa_info before its padding."""
    flags = 16 + 56 + 24 + 16 + 64 + 32 + 12 + 4 + 4 + 2 + 2
    assert xfrm.new_sa(sa())[flags] == 0
    assert xfrm.new_sa(sa(copy_df=False))[flags] == 4
    assert xfrm.new_sa(sa(copy_df=False, esn=True))[flags] == 132


def test_an_interface_is_named_on_sa_and_policy() -> None:
    """XFRMA_IF_ID (31) carries the number in host order; without an interface it is not there."""
    number = struct.pack("=I", 2544)
    assert attributes(xfrm.new_sa(sa(interface_id=2544)), 224)[31] == number
    policy = Policy(sa().selector, "out", Template("192.0.2.1", "192.0.2.2", "tunnel", 7), interface_id=2544)
    message = xfrm.new_policy(policy)
    assert attributes(message, 168)[31] == number
    assert str(xfrm.read_policy(message)).endswith("esp tunnel 192.0.2.1 → 192.0.2.2 on interface 2544")
    assert 31 not in attributes(xfrm.new_sa(sa()), 224)
    assert xfrm.read_policy(message).reqid == 7


def test_a_blocking_policy_is_one() -> None:
    """XFRM_POLICY_BLOCK is 1 in the action field; it reads back as `block`, not as a bypass."""
    policy = Policy(sa().selector, "fwd", priority=2**32 - 1, action="block")
    message = xfrm.new_policy(policy)
    assert message[16 + 56 + 64 + 32 + 9] == 1
    read = xfrm.read_policy(message)
    assert (read.demands, read.priority, read.direction) == ("block", 2**32 - 1, "fwd")
    assert xfrm.read_policy(xfrm.new_policy(Policy(sa().selector, "fwd"))).demands == "nothing"


def test_the_keys_come_back_from_a_dump() -> None:
    """A capture is decrypted with them: cipher and integrity, or the AEAD's with its salt."""
    assert xfrm.read_keys(xfrm.new_sa(sa())) == (KEY, KEY[:20])
    gcm = sa(encryption=None, integrity=None, aead=Algorithm("rfc4106(gcm(aes))", KEY[:20], 128))
    assert xfrm.read_keys(xfrm.new_sa(gcm)) == (KEY[:20], b"")
    null = sa(encryption=Algorithm("ecb(cipher_null)", b""))
    assert xfrm.read_keys(xfrm.new_sa(null)) == (b"", KEY[:20])


def test_two_sas_with_one_spi_are_two_sas_if_they_go_different_ways() -> None:
    """Each gateway chooses the SPIs of its inbound SAs; among 1,000 tunnels two of them may be equal."""
    there, back = sa(), sa(source="192.0.2.2", destination="192.0.2.1")
    gateway = SimpleNamespace(
        byte_order=sys.byteorder, read=dict.fromkeys,
        netlink=lambda protocol, messages: [[xfrm.new_sa(there), xfrm.new_sa(back)]],
    )  # fmt: skip
    assert len(sa_counters(cast(Any, gateway), "192.0.2.1").spis) == 2


def test_the_quick_reading_agrees_with_the_whole_one() -> None:
    """Counters of 2,000 SAs are read twice a trial: only what moves, and of ESP only."""
    message = bytearray(xfrm.new_sa(sa()))
    struct.pack_into("=4Q", message, 16 + 56 + 24 + 16 + 64, 6400, 100, 0, 0)
    count, whole = xfrm.read_count(bytes(message)), xfrm.read_sa(bytes(message))
    assert count == xfrm.SaCount(whole.source, whole.destination, whole.spi, whole.packets)
    assert whole.packets == 100
    message[16 + 56 + 20] = 51  # AH
    assert xfrm.read_count(bytes(message)) is None


def test_an_aead_is_read_back_with_its_icv() -> None:
    """aes128gcm16: 128 bit key and 32 bit salt."""
    gcm = sa(encryption=None, integrity=None, aead=Algorithm("rfc4106(gcm(aes))", KEY[:20], 128))
    assert xfrm.read_sa(xfrm.new_sa(gcm)).algorithms == {
        "aead": "rfc4106(gcm(aes)), 160 bit key, 128 bit ICV"
    }


def test_a_policy_is_read_back_as_it_was_written() -> None:
    """Direction, selector, and what it demands."""
    template = Template("2001:db8::1", "2001:db8::2", "transport", 7)
    policy = Policy(Selector("2001:db8::1/128", "2001:db8::2/128", 41), "out", template, priority=5)
    read = xfrm.read_policy(xfrm.new_policy(policy))
    assert read.direction == "out"
    assert read.priority == 5
    assert read.selector == "2001:db8::1/128 → 2001:db8::2/128 protocol 41"
    assert read.demands == "esp transport 2001:db8::1 → 2001:db8::2"


def test_keys_are_in_the_message_and_in_no_text() -> None:
    """The kernel gets the key; repr() of the records, which a traceback prints, does not."""
    written = sa()
    assert KEY in xfrm.new_sa(written)
    text = repr(written)
    assert repr(KEY)[2:-1] not in text
    assert KEY.hex() not in text
    assert "cbc(des3_ede)" in text


def test_a_kernel_of_the_other_byte_order_gets_its_own_integers() -> None:
    """Addresses, ports and SPIs are in the network's order for either."""
    template = Template("192.0.2.1", "192.0.2.2", "tunnel", 7)
    policy = Policy(Selector("10.0.0.0/8", "10.0.0.0/8"), "out", template, interface_id=9)
    many = sa(esn=True, udp_encapsulation=True, interface_id=2544, replay_window=128)
    little, big = (xfrm.new_sa(many, order) for order in ("little", "big"))
    assert (little[:6], big[:6]) == (
        struct.pack("<IH", len(little), 0x10),
        struct.pack(">IH", len(big), 0x10),
    )
    assert little != big
    spi = many.spi.to_bytes(4, "big")
    assert little.index(spi) == big.index(spi)
    assert (4500).to_bytes(2, "big") * 2 in big
    assert xfrm.read_sa(little, "little") == xfrm.read_sa(big, "big")
    assert xfrm.read_keys(big, "big") == xfrm.read_keys(little, "little") == (KEY, KEY[:20])
    assert xfrm.read_count(big, "big") == xfrm.read_count(little, "little")
    put = xfrm.new_policy(policy, "big")
    assert xfrm.is_policy_of_user(put, "big")
    assert xfrm.read_policy(put, "big") == xfrm.reading_of(policy)
    asking = (*xfrm.flush("big"), xfrm.dump_sas("big"), xfrm.dump_policies("big"))
    assert all(int.from_bytes(message[:4], "big") == len(message) for message in asking)


def as_event(kind: int, body: bytes) -> bytes:
    """A message of the kernel's to a multicast group."""
    return struct.pack("=IHHII", 16 + len(body), kind, 0, 0, 0) + body


# The kernel multicasts the structures that it is given at the beginning (linux/xfrm.h, xfrm_user.c).
SA_BODY = xfrm.new_sa(sa())[16:]
SA_INFO = SA_BODY[: xfrm._SA_BYTES]
POLICY_BODY = xfrm.new_policy(Policy(Selector("10.0.0.0/24", "10.1.0.0/24"), "out"))[16:]
SA_ID = (
    ipaddress.ip_address("192.0.2.2").packed
    + bytes(12)
    + struct.pack("!I", 0x12345678)
    + struct.pack("=HBx", 2, 50)
)
SA_SUBJECT, POLICY_SUBJECT = "SA 0x12345678 to 192.0.2.2", "policy 10.0.0.0/24 → 10.1.0.0/24"


@pytest.mark.parametrize(
    ("kind", "body", "change", "subject"),
    [
        (0x10, SA_BODY, "added", SA_SUBJECT),
        (0x1A, SA_BODY, "changed", SA_SUBJECT),
        (0x11, SA_ID + SA_BODY, "deleted", SA_SUBJECT),
        (0x18, SA_INFO + b"\0\0\0\0\0\0\0\0", "about to expire", SA_SUBJECT),
        (0x18, SA_INFO + b"\1\0\0\0\0\0\0\0", "expired", SA_SUBJECT),
        (0x1C, b"\x32\0\0\0", "deleted", "all SAs"),
        (0x13, POLICY_BODY, "added", POLICY_SUBJECT),
        (0x19, POLICY_BODY, "changed", POLICY_SUBJECT),
        (0x14, POLICY_BODY, "deleted", POLICY_SUBJECT),
        (0x1D, b"", "deleted", "all policies"),
    ],
)
def test_what_the_kernel_tells_by_itself_is_read(kind: int, body: bytes, change: str, subject: str) -> None:
    """Events say which SA came, went, expired or was changed."""
    (event,) = xfrm.read_events(as_event(kind, body))
    assert (str(event.change), event.subject) == (change, subject)


def test_several_events_in_a_datagram_are_all_read() -> None:
    """Kinds that nobody asked for are passed over, such as an acquire."""
    datagram = as_event(0x10, SA_BODY) + as_event(0x17, bytes(280)) + as_event(0x1C, b"\x32\0\0\0")
    assert [str(event.change) for event in xfrm.read_events(datagram)] == ["added", "deleted"]


@given(
    st.sampled_from([0x10, 0x11, 0x13, 0x14, 0x18, 0x1A, 0x1B, 0x1C]),
    st.binary(max_size=300),
    st.integers(0, 400),
)
def test_an_event_that_was_cut_is_passed_over(kind: int, body: bytes, length: int) -> None:
    """A trial does not end for any bytes that come."""
    list(xfrm.read_events(struct.pack("=IHHII", length, kind, 0, 0, 0) + body))
