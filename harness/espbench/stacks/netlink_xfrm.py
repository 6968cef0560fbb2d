# SPDX-License-Identifier: Apache-2.0
"""Builds and parses NETLINK_XFRM messages as bytes: Security Associations and policies (linux/xfrm.h).

The gateway's agent sends the messages, so that the same bytes reach a namespace, a User-Mode Linux guest or a distant
box. Integers are in the byte order of the gateway's kernel, by default that of this machine; addresses, ports and SPIs
are in network order. `Algorithm` hides its key from repr().
"""

from __future__ import annotations

import ipaddress
import socket
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache, lru_cache
from typing import Literal

NETLINK_XFRM = 6

NEWSA, GETSA, NEWPOLICY, GETPOLICY, FLUSHSA, FLUSHPOLICY = 0x10, 0x12, 0x13, 0x15, 0x1C, 0x1D
DELSA, DELPOLICY, EXPIRE, UPDPOLICY, UPDSA, POLEXPIRE = 0x11, 0x14, 0x18, 0x19, 0x1A, 0x1B
NLM_REQUEST, NLM_ACK, NLM_DUMP, NLM_CREATE, NLM_EXCL = 0x1, 0x4, 0x300, 0x400, 0x200
A_CRYPT, A_ENCAP, A_TMPL, A_AEAD, A_AUTH_TRUNC, A_REPLAY_ESN, A_EXTRA_FLAGS, A_IF_ID = (
    2,
    4,
    5,
    18,
    20,
    23,
    24,
    31,
)
STATE_NOECN, STATE_DECAP_DSCP, STATE_NOPMTUDISC, STATE_ESN = 1, 2, 4, 128
IPPROTO_ESP = 50
# Attributes that change how an SA works; none of espbench's stacks sets one.
_EXTRA_ATTRIBUTES = {
    21: "mark", 22: "traffic flow padding", 28: "offload to a device", 29: "output mark",
}  # fmt: skip
_EXTRA_FLAGS = {STATE_NOECN: "no ECN", STATE_DECAP_DSCP: "DSCP copied inwards"}
DONT_ENCAP_DSCP = 1  # of A_EXTRA_FLAGS
_PROTOCOLS = {IPPROTO_ESP: "esp", 51: "ah", 108: "ipcomp"}
UDP_ENCAP_ESPINUDP = 2
UDP_ENCAP_PORT = 4500  # RFC 3948 2.1

PolicyDirection = Literal["in", "out", "fwd"]
PolicyAction = Literal["allow", "block"]
Mode = Literal["transport", "tunnel"]
ACTIONS: tuple[PolicyAction, ...] = ("allow", "block")
DIRECTIONS: tuple[PolicyDirection, ...] = ("in", "out", "fwd")
MODES: tuple[Mode, ...] = ("transport", "tunnel")

ByteOrder = Literal["little", "big"]


class _Layout:
    """The structures of linux/xfrm.h in one byte order."""

    def __init__(self, order: ByteOrder) -> None:
        mark = "<" if order == "little" else ">"

        def structure(fields: str) -> struct.Struct:
            return struct.Struct(mark + fields)

        self.header = structure("IHHII")  # nlmsghdr
        self.selector = structure("16s16s8sHBBB3xiI")
        self.unlimited = struct.pack(mark + "8Q", *(2**64 - 1,) * 4, 0, 0, 0, 0)  # xfrm_lifetime_cfg
        self.lifetime = structure("8Q")
        self.current = structure("4Q")  # bytes, packets, add_time, use_time
        self.sa_tail = structure("IIIIIHBBB7x")  # stats (3), seq, reqid, family, mode, window, flags
        self.policy_tail = structure("IIBBBB4x")  # priority, index, dir, action, flags, share
        self.template_tail = structure("IBBBxIII")  # reqid, mode, share, optional, aalgos, ealgos, calgos
        self.attribute = structure("HH")  # length, kind
        self.family = structure("H")
        self.family_and_gap = structure("HH")
        self.number = structure("I")
        self.algorithm = structure("64sI")  # name, key bits
        self.sizes = structure("II")  # key bits, ICV bits
        self.replay = structure("6I")  # words, oseq, seq, oseq_hi, seq_hi, window


_layout = cache(_Layout)
_HOST = _layout(sys.byteorder)
_ID = struct.Struct("16s4sB3x")
_USERSA_ID = struct.Struct("16s4s2sBx")  # the address family is in the kernel's order
_PORTS = struct.Struct("!HH2x16s")  # xfrm_encap_tmpl after its type: ports, original address
_TEMPLATE_BYTES = _ID.size + 4 + 16 + _HOST.template_tail.size
_SA_BYTES = (
    _HOST.selector.size + _ID.size + 16 + len(_HOST.unlimited) + _HOST.current.size + _HOST.sa_tail.size
)
_POLICY_BYTES = _HOST.selector.size + len(_HOST.unlimited) + _HOST.current.size + _HOST.policy_tail.size
_LIFETIME_OFFSET = _HOST.selector.size + _ID.size + 16
_CURRENT_OFFSET = _LIFETIME_OFFSET + len(_HOST.unlimited)


@dataclass(frozen=True)
class Algorithm:
    """A kernel algorithm with its key; icv_bits is the length of the ICV in bits (0 if the algorithm has none)."""

    name: str
    key: bytes = field(repr=False)
    icv_bits: int = 0


@dataclass(frozen=True)
class Selector:
    """The traffic of a policy or SA: two prefixes, and optionally one upper-layer protocol (0: any)."""

    source: str
    destination: str
    protocol: int = 0


@dataclass(frozen=True)
class SecurityAssociation:
    """One ESP SA with static keys: from `source` to `destination` (tunnel endpoints or hosts)."""

    source: str
    destination: str
    spi: int
    selector: Selector
    mode: Mode
    reqid: int
    encryption: Algorithm | None = None
    integrity: Algorithm | None = None
    aead: Algorithm | None = None
    replay_window: int = 32
    esn: bool = False
    udp_encapsulation: bool = False
    copy_df: bool = True  # False: the outer IPv4 header never has DF (XFRM_STATE_NOPMTUDISC)
    interface_id: int = 0  # of the XFRM interface it belongs to; 0: none


@dataclass(frozen=True)
class Template:
    """The ESP that a policy demands: the ends, the mode and the request id of the SA."""

    source: str
    destination: str
    mode: Mode
    reqid: int


@dataclass(frozen=True)
class Policy:
    """A security policy; without a template it lets matching traffic pass in clear, or blocks it.

    If several policies match, the kernel applies the policy with the lowest priority value.
    """

    selector: Selector
    direction: PolicyDirection
    template: Template | None = None
    priority: int = 1000
    action: PolicyAction = "allow"
    interface_id: int = 0


@dataclass(frozen=True)
class SaReading:
    """An SA as the kernel reports it, without its keys."""

    source: str
    destination: str
    spi: int
    mode: Mode
    reqid: int
    replay_window: int
    esn: bool
    udp_encapsulation: str  # `4500 → 4500`; empty: none
    copy_df: bool
    interface_id: int
    packets: int
    octets: int
    algorithms: dict[str, str]  # `encryption`, `integrity`, `aead` → kernel name and sizes
    selector: str
    lifetime: str
    octets_soft: int = 0  # the bytes after which the kernel asks the daemon to replace the SA; 0: no limit
    copy_dscp: bool = True  # whether DSCP is copied to the outer header
    extras: tuple[str, ...] = ()  # marks, padding, offload, treatment of ECN and DSCP: none is usual


@dataclass(frozen=True)
class PolicyReading:
    """A policy as the kernel reports it."""

    selector: str
    direction: PolicyDirection
    priority: int
    demands: str  # `esp tunnel a → b`, `nothing`, or `block`
    interface_id: int = 0
    reqid: int = 0

    def __str__(self) -> str:
        on = f" on interface {self.interface_id}" if self.interface_id else ""
        return f"{self.direction} {self.selector}: {self.demands}{on}"


@dataclass(frozen=True)
class SaCount:
    """The number of packets that one ESP SA has carried."""

    source: str
    destination: str
    spi: int
    packets: int


class XfrmChange(StrEnum):
    """A change of an SA or a policy that the kernel may report; the value is its name in a trial's record."""

    ADDED = "added"
    CHANGED = "changed"
    DELETED = "deleted"
    EXPIRING = "about to expire"
    EXPIRED = "expired"


@dataclass(frozen=True)
class XfrmEvent:
    """A change that the kernel announced unasked; subject is the SA (`SA 0xc0000001 to 192.0.2.2`) or the policy."""

    change: XfrmChange
    subject: str


_CHANGES = {
    NEWSA: XfrmChange.ADDED, UPDSA: XfrmChange.CHANGED, DELSA: XfrmChange.DELETED, FLUSHSA: XfrmChange.DELETED,
    NEWPOLICY: XfrmChange.ADDED, UPDPOLICY: XfrmChange.CHANGED, DELPOLICY: XfrmChange.DELETED,
    FLUSHPOLICY: XfrmChange.DELETED,
}  # fmt: skip


def new_sa(sa: SecurityAssociation, order: ByteOrder = sys.byteorder) -> bytes:
    """Return XFRM_MSG_NEWSA, which adds this SA and fails if the kernel has it already."""
    layout = _layout(order)
    body = (
        _selector(layout, sa.selector)
        + _ID.pack(_address(sa.destination), struct.pack("!I", sa.spi), IPPROTO_ESP)
        + _address(sa.source)
        + layout.unlimited
        + bytes(layout.current.size)
        + layout.sa_tail.pack(
            0, 0, 0, 0, sa.reqid, _family(sa.source), MODES.index(sa.mode),
            sa.replay_window if sa.replay_window <= 32 and not sa.esn else 0,
            (STATE_ESN if sa.esn else 0) | (0 if sa.copy_df else STATE_NOPMTUDISC),
        )
    )  # fmt: skip
    if sa.aead:
        body += _algorithm(layout, A_AEAD, sa.aead, truncated=True)
    if sa.integrity:
        body += _algorithm(layout, A_AUTH_TRUNC, sa.integrity, truncated=True)
    if sa.encryption:
        body += _algorithm(layout, A_CRYPT, sa.encryption, truncated=False)
    if sa.udp_encapsulation:
        ports = _PORTS.pack(UDP_ENCAP_PORT, UDP_ENCAP_PORT, b"")
        body += _attribute(layout, A_ENCAP, layout.family.pack(UDP_ENCAP_ESPINUDP) + ports)
    if sa.interface_id:
        body += _attribute(layout, A_IF_ID, layout.number.pack(sa.interface_id))
    if sa.esn or sa.replay_window > 32:
        # The old fields hold 32 bits; a wider window or extended numbers need the bitmap form.
        words = (sa.replay_window + 31) // 32
        body += _attribute(
            layout, A_REPLAY_ESN, layout.replay.pack(words, 0, 0, 0, 0, sa.replay_window) + bytes(4 * words)
        )
    return _message(layout, NEWSA, body, NLM_CREATE | NLM_EXCL)


def new_policy(policy: Policy, order: ByteOrder = sys.byteorder) -> bytes:
    """Return XFRM_MSG_NEWPOLICY, which adds this policy and fails if the kernel has one for its selector already."""
    layout = _layout(order)
    body = (
        _selector(layout, policy.selector)
        + layout.unlimited
        + bytes(layout.current.size)
        + layout.policy_tail.pack(
            policy.priority, 0, DIRECTIONS.index(policy.direction), ACTIONS.index(policy.action), 0, 0
        )
    )
    if policy.interface_id:
        body += _attribute(layout, A_IF_ID, layout.number.pack(policy.interface_id))
    if t := policy.template:
        anything = 2**32 - 1
        body += _attribute(
            layout,
            A_TMPL,
            _ID.pack(_address(t.destination), bytes(4), IPPROTO_ESP)
            + layout.family_and_gap.pack(_family(t.source), 0)
            + _address(t.source)
            + layout.template_tail.pack(t.reqid, MODES.index(t.mode), 0, 0, anything, anything, anything),
        )
    return _message(layout, NEWPOLICY, body, NLM_CREATE | NLM_EXCL)


def flush(order: ByteOrder = sys.byteorder) -> list[bytes]:
    """Return the messages that delete every ESP SA and every policy of a namespace."""
    layout = _layout(order)
    return [
        _message(layout, FLUSHSA, struct.pack("B3x", IPPROTO_ESP), 0),
        _message(layout, FLUSHPOLICY, b"", 0),
    ]


def dump_sas(order: ByteOrder = sys.byteorder) -> bytes:
    """Return XFRM_MSG_GETSA as the request for a dump of all SAs."""
    return _message(_layout(order), GETSA, bytes(_SA_BYTES), NLM_DUMP)


def dump_policies(order: ByteOrder = sys.byteorder) -> bytes:
    """Return XFRM_MSG_GETPOLICY as the request for a dump of all policies."""
    layout = _layout(order)
    return _message(layout, GETPOLICY, bytes(layout.selector.size + 8), NLM_DUMP)


def read_sa(message: bytes, order: ByteOrder = sys.byteorder) -> SaReading:
    """Parse one message of a GETSA dump; keys are skipped, not kept."""
    layout = _layout(order)
    body = message[layout.header.size :]
    destination, spi, _ = _ID.unpack_from(body, layout.selector.size)
    source = body[layout.selector.size + _ID.size : _LIFETIME_OFFSET]
    lifetime = layout.lifetime.unpack_from(body, _LIFETIME_OFFSET)
    octets, packets, _, _ = layout.current.unpack_from(body, _CURRENT_OFFSET)
    tail = layout.sa_tail.unpack_from(body, _CURRENT_OFFSET + layout.current.size)
    _, _, _, _, reqid, family, mode, window, flags = tail
    algorithms = {}
    encapsulation, interface_id, copy_dscp = "", 0, True
    extras = [word for bit, word in _EXTRA_FLAGS.items() if flags & bit]
    for kind, value in _attributes(layout, body[_SA_BYTES:]):
        if kind in (A_CRYPT, A_AEAD, A_AUTH_TRUNC):
            name = value[:64].split(b"\0")[0].decode()
            bits, icv = layout.sizes.unpack_from(value + bytes(4), 64)
            text = f"{name}, {bits} bit key" + (f", {icv} bit ICV" if kind != A_CRYPT else "")
            algorithms[{A_CRYPT: "encryption", A_AEAD: "aead", A_AUTH_TRUNC: "integrity"}[kind]] = text
        elif kind == A_REPLAY_ESN:
            window = layout.replay.unpack_from(value)[5]
        elif kind == A_ENCAP:
            sport, dport, _ = _PORTS.unpack_from(value, layout.family.size)
            encapsulation = f"{sport} → {dport}"
        elif kind == A_IF_ID:
            (interface_id,) = layout.number.unpack_from(value)
        elif kind == A_EXTRA_FLAGS:
            (more,) = layout.number.unpack_from(value)
            copy_dscp = not more & DONT_ENCAP_DSCP
            extras += ["extra flags"] if more & ~DONT_ENCAP_DSCP else []
        elif kind in _EXTRA_ATTRIBUTES and any(value):
            extras.append(_EXTRA_ATTRIBUTES[kind])
    return SaReading(
        source=_text(source, family),
        destination=_text(destination, family),
        spi=int.from_bytes(spi, "big"),
        mode=MODES[mode],
        reqid=reqid,
        replay_window=window,
        esn=bool(flags & STATE_ESN),
        udp_encapsulation=encapsulation,
        copy_df=not flags & STATE_NOPMTUDISC,
        interface_id=interface_id,
        packets=packets,
        octets=octets,
        algorithms=algorithms,
        selector=_selector_text(layout, body),
        lifetime=_lifetime_text(lifetime),
        octets_soft=lifetime[0] if _is_limit(lifetime[0]) else 0,
        copy_dscp=copy_dscp,
        extras=tuple(extras),
    )


def read_count(message: bytes, order: ByteOrder = sys.byteorder) -> SaCount | None:
    """Return the SA's packet count from one message of a GETSA dump; None if the SA is not ESP."""
    layout = _layout(order)
    start = layout.header.size
    destination, spi, protocol = _ID.unpack_from(message, start + layout.selector.size)
    if protocol != IPPROTO_ESP:
        return None
    source = message[start + layout.selector.size + _ID.size : start + _LIFETIME_OFFSET]
    _, packets, _, _ = layout.current.unpack_from(message, start + _CURRENT_OFFSET)
    family: int = layout.sa_tail.unpack_from(message, start + _CURRENT_OFFSET + layout.current.size)[5]
    return SaCount(_text(source, family), _text(destination, family), int.from_bytes(spi, "big"), packets)


def read_events(datagram: bytes, order: ByteOrder = sys.byteorder) -> Iterator[XfrmEvent]:
    """Yield the changes in a datagram from the multicast groups of SAs, policies and expiries; skip other messages."""
    layout = _layout(order)
    offset = 0
    while offset + layout.header.size <= len(datagram):
        length, kind, *_ = layout.header.unpack_from(datagram, offset)
        if length < layout.header.size:
            return
        body = datagram[offset + layout.header.size : offset + length]
        offset += (length + 3) & ~3
        try:
            if kind == EXPIRE:
                yield XfrmEvent(_expiry(body, _SA_BYTES), _sa_text(layout, body))
            elif kind == POLEXPIRE:
                yield XfrmEvent(_expiry(body, _POLICY_BYTES), f"policy {_selector_text(layout, body)}")
            elif kind in _CHANGES:
                yield XfrmEvent(_CHANGES[kind], _subject(layout, kind, body))
        except (struct.error, IndexError):  # shorter than a message of this kind: not from this kernel
            continue


def _subject(layout: _Layout, kind: int, body: bytes) -> str:
    if kind == FLUSHSA:
        return "all SAs"
    if kind == FLUSHPOLICY:
        return "all policies"
    if kind == DELSA:  # it begins with an xfrm_usersa_id
        destination, spi, family = _USERSA_ID.unpack_from(body)[:3]
        return _sa_words(spi, _text(destination, layout.family.unpack(family)[0]))
    if kind in (NEWSA, UPDSA):
        return _sa_text(layout, body)
    return f"policy {_selector_text(layout, body)}"


def _sa_text(layout: _Layout, body: bytes) -> str:
    destination, spi, _ = _ID.unpack_from(body, layout.selector.size)
    family: int = layout.sa_tail.unpack_from(body, _CURRENT_OFFSET + layout.current.size)[5]
    return _sa_words(spi, _text(destination, family))


def _sa_words(spi: bytes, destination: str) -> str:
    return f"SA 0x{int.from_bytes(spi, 'big'):08x} to {destination}"


def _expiry(body: bytes, offset: int) -> XfrmChange:
    return XfrmChange.EXPIRED if body[offset] else XfrmChange.EXPIRING


def read_keys(message: bytes, order: ByteOrder = sys.byteorder) -> tuple[bytes, bytes]:
    """Return the keys in one message of a GETSA dump: (encryption or AEAD, integrity); an absent key is empty."""
    layout = _layout(order)
    keys = {A_CRYPT: b"", A_AEAD: b"", A_AUTH_TRUNC: b""}
    for kind, value in _attributes(layout, message[layout.header.size + _SA_BYTES :]):
        if kind in keys:
            (bits,) = layout.number.unpack_from(value, 64)
            start = 68 if kind == A_CRYPT else 72
            keys[kind] = value[start : start + bits // 8]
    return keys[A_AEAD] or keys[A_CRYPT], keys[A_AUTH_TRUNC]


def read_policy(message: bytes, order: ByteOrder = sys.byteorder) -> PolicyReading:
    """Parse one message of a GETPOLICY dump."""
    layout = _layout(order)
    body = message[layout.header.size :]
    offset = layout.selector.size + len(layout.unlimited) + layout.current.size
    priority, _, direction, action, _, _ = layout.policy_tail.unpack_from(body, offset)
    demands = "block" if ACTIONS[action] == "block" else "nothing"
    interface_id = reqid = 0
    for kind, value in _attributes(layout, body[offset + layout.policy_tail.size :]):
        if kind == A_TMPL:
            destination, _, protocol = _ID.unpack_from(value)
            (family,) = layout.family.unpack_from(value, _ID.size)
            source = value[_ID.size + 4 : _ID.size + 20]
            reqid, mode, _, optional, *_ = layout.template_tail.unpack_from(value, _ID.size + 20)
            ends = f"{_text(source, family)} → {_text(destination, family)}"
            demands = f"{_PROTOCOLS.get(protocol, protocol)} {MODES[mode]} {ends}"
            if optional:
                demands += ", optional"
            if len(value) > _TEMPLATE_BYTES:
                demands += f", and {len(value) // _TEMPLATE_BYTES - 1} more"
        elif kind == A_IF_ID:
            (interface_id,) = layout.number.unpack_from(value)
    text = _selector_text(layout, body)
    return PolicyReading(text, DIRECTIONS[direction], priority, demands, interface_id, reqid)


def reading_of(policy: Policy) -> PolicyReading:
    """Return the reading that read_policy gives for this policy if the kernel accepted it unchanged."""
    demands, reqid = ("block" if policy.action == "block" else "nothing"), 0
    if t := policy.template:
        demands, reqid = f"esp {t.mode} {t.source} → {t.destination}", t.reqid
    selector = _selector_text(_HOST, _selector(_HOST, policy.selector))
    return PolicyReading(selector, policy.direction, policy.priority, demands, policy.interface_id, reqid)


def is_policy_of_user(message: bytes, order: ByteOrder = sys.byteorder) -> bool:
    """Return False for the per-socket policies (directions beyond fwd) that a dump also lists."""
    layout = _layout(order)
    body = message[layout.header.size :]
    offset = layout.selector.size + len(layout.unlimited) + layout.current.size
    direction: int = layout.policy_tail.unpack_from(body, offset)[2]
    return direction < len(DIRECTIONS)


def _message(layout: _Layout, kind: int, body: bytes, flags: int) -> bytes:
    # The answer to a dump ends with its own message. All other requests ask for an acknowledgement.
    flags |= NLM_REQUEST | (0 if flags & NLM_DUMP == NLM_DUMP else NLM_ACK)
    return layout.header.pack(layout.header.size + len(body), kind, flags, 0, 0) + body


def _attribute(layout: _Layout, kind: int, value: bytes) -> bytes:
    return layout.attribute.pack(4 + len(value), kind) + value + bytes(-len(value) % 4)


def _attributes(layout: _Layout, data: bytes) -> list[tuple[int, bytes]]:
    attributes = []
    while len(data) >= 4:
        length, kind = layout.attribute.unpack_from(data)
        if length < 4:
            break
        attributes.append((kind & 0x3FFF, data[4:length]))
        data = data[(length + 3) & ~3 :]
    return attributes


def _algorithm(layout: _Layout, kind: int, algorithm: Algorithm, *, truncated: bool) -> bytes:
    value = layout.algorithm.pack(algorithm.name.encode(), 8 * len(algorithm.key))
    if truncated:
        value += layout.number.pack(algorithm.icv_bits)
    return _attribute(layout, kind, value + algorithm.key)


def _selector(layout: _Layout, selector: Selector) -> bytes:
    source, destination = (ipaddress.ip_network(p) for p in (selector.source, selector.destination))
    return layout.selector.pack(
        _address(str(destination.network_address)),
        _address(str(source.network_address)),
        bytes(8),  # any port
        socket.AF_INET if source.version == 4 else socket.AF_INET6,
        destination.prefixlen,
        source.prefixlen,
        selector.protocol,
        0,
        0,
    )


def _selector_text(layout: _Layout, body: bytes) -> str:
    destination, source, _, family, bits_d, bits_s, protocol, _, _ = layout.selector.unpack_from(body)
    if family not in (socket.AF_INET, socket.AF_INET6):
        return "any"
    text = f"{_text(source, family)}/{bits_s} → {_text(destination, family)}/{bits_d}"
    return text + (f" protocol {protocol}" if protocol else "")


def _lifetime_text(limits: tuple[int, ...]) -> str:
    names = (
        "octets soft",
        "octets hard",
        "packets soft",
        "packets hard",
        "s soft",
        "s hard",
        "s use soft",
        "s use hard",
    )
    set_limits = [f"{n} {name}" for n, name in zip(limits, names, strict=True) if _is_limit(n)]
    return ", ".join(set_limits) or "unlimited"


def _is_limit(number: int) -> bool:
    # Pluto sets 2^63 for an unlimited lifetime.
    return 0 < number < 2**63


def _address(text: str) -> bytes:
    return ipaddress.ip_address(text).packed.ljust(16, b"\0")


def _family(text: str) -> int:
    return socket.AF_INET if ipaddress.ip_address(text).version == 4 else socket.AF_INET6


@lru_cache(4096)  # a dump of 2,000 SAs has few different addresses
def _text(raw: bytes, family: int) -> str:
    return str(ipaddress.ip_address(raw[:4] if family == socket.AF_INET else raw))
