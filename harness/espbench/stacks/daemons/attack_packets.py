# SPDX-License-Identifier: Apache-2.0
"""Makes an attacker's packets (ipsec-meth 15): IKE_SA_INIT from many addresses, forged ESP, and replayed ESP.

All are whole IP packets, addressed to the gateway.
"""

from __future__ import annotations

import base64
import random
import struct
from ipaddress import ip_address, ip_network

from cryptography.hazmat.primitives.asymmetric import ec, x25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from espbench.errors import EspbenchError
from espbench.platforms.base import Gateway, Listener

_ESP, _UDP = 50, 17
_TTL = 64
# The generator accepts at most this many packets for one noise, which is an attack beside the streams.
MOST = 4096
# The length of the UDP header, behind which IKE's first field is: the initiator's SPI (RFC 7296 3.1).
_UDP_HEADER = 8
# The number of different Diffie-Hellman values. For a value that it has seen before, the gateway computes as much.
_KEYS = 16
# These are the transform IDs of IKEv2 (RFC 7296 3.3.2 and IANA's registry), of ciphers with the key length in bits.
_ENCRYPTION = {
    "3des": (3, 0),
    "aes128": (12, 128),
    "aes256": (12, 256),
    "aes128gcm16": (20, 128),
    "aes256gcm16": (20, 256),
}
_INTEGRITY = {"sha1": 2, "sha256": 12, "sha384": 13, "sha512": 14}
_PRF = {"sha1": 2, "sha256": 5, "sha384": 6, "sha512": 7}
_GROUP = {"modp2048": 14, "modp3072": 15, "ecp256": 19, "ecp384": 20, "x25519": 31}
# The curve, and the number of random bytes of a private key: one less than the group's order has, so each is below it.
_CURVE = {"ecp256": (ec.SECP256R1(), 31), "ecp384": (ec.SECP384R1(), 47)}
# This program runs in the gateway. It receives ESP on one interface, and prints whole IP packets in base64.
_EAR = """\
import base64, socket, sys, time
s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.ntohs(3))
s.bind((sys.argv[1], 0))
wanted, until = int(sys.argv[2]), time.monotonic() + float(sys.argv[3])
while wanted and time.monotonic() < until:
    s.settimeout(max(0.01, until - time.monotonic()))
    try:
        packet, (_, _, kind, *_) = s.recvfrom(4096)
    except OSError:
        break
    esp = packet[9:10] == b"\\x32" if packet[0] >> 4 == 4 else packet[6:7] == b"\\x32"
    if kind == 0 and esp:
        print(base64.b64encode(packet).decode())
        wanted -= 1
"""


def forged_esp(
    source: str, destination: str, spi: int, payload: int, count: int, seed: int = 0
) -> list[bytes]:
    """Return at most MOST packets with a valid SPI, a sequence number that the replay window accepts, and random bytes.

    The random bytes stand for payload and ICV, so that the gateway must compute the ICV to recognise the forgery.
    payload: bytes after the ESP header, as many as in the legitimate traffic. The same seed gives the same packets.
    """
    noise = random.Random(seed)
    return [
        ip_packet(
            source, destination, _ESP, struct.pack("!II", spi, 0x4000_0000 + n) + noise.randbytes(payload)
        )
        for n in range(min(count, MOST))
    ]


def ike_flood(near: str, destination: str, proposal: str, count: int, seed: int = 0) -> list[bytes]:
    """Return IKE_SA_INIT requests with a proposal that the gateway accepts, each from another address of `near`.

    near is a prefix. There are at most MOST requests, and fewer if the prefix has fewer addresses. The same seed gives
    the same requests.
    """
    noise = random.Random(seed)
    hosts = ip_network(near)
    shares = [_key_exchange(proposal, noise) for _ in range(_KEYS)]
    # The first addresses of the prefix belong to the tester and the gateway.
    room = min(hosts.num_addresses, 1 << 16) - 16
    sources = noise.sample(range(8, 8 + room), min(count, MOST, room))
    return [
        ip_packet(str(hosts[number]), destination, _UDP, _udp(_sa_init(proposal, shares[at % _KEYS], noise)))
        for at, number in enumerate(sources)
    ]


def initiator_spi_at(packet: bytes) -> int:
    """Return the offset of the initiator's SPI in a packet of ike_flood, bytes.

    A daemon answers an SPI that it knows as a retransmission, without any computation, so each packet needs a new one.
    """
    return (40 if packet[0] >> 4 == 6 else 20) + _UDP_HEADER


def heard_esp(gateway: Gateway, count: int, within_s: float) -> list[bytes]:
    """Return at most `count` ESP packets that the gateway receives on its WAN port in the next within_s seconds.

    Raise EspbenchError if none arrives.
    """
    if isinstance(gateway, Listener):
        packets, said = gateway.heard_esp(min(count, MOST), within_s), "nothing came"
    else:
        packets, said = _heard_by_agent(gateway, count, within_s)
    if not packets:
        raise EspbenchError(f"{gateway.side}: no ESP could be heard on {gateway.wan}: {said}")
    return packets


def _heard_by_agent(gateway: Gateway, count: int, within_s: float) -> tuple[list[bytes], str]:
    """Return the ESP packets that a program of the gateway's agent received (none if it failed), and its last
    output.
    """
    # This is the agent's own Python, wherever it is installed on that gateway.
    python = 'exec "$(readlink /proc/$PPID/exe)" -I -S -c "$@"'
    argv = ["sh", "-c", python, "sh", _EAR, gateway.wan, str(min(count, MOST)), str(within_s)]
    done = gateway.run(argv, timeout_s=within_s + 20)
    packets = [base64.b64decode(line) for line in done.out.split()]
    return [] if done.rc else packets, (done.err.strip().splitlines() or ["nothing came"])[-1]


def spi_of(packet: bytes) -> int:
    """Return the SPI of an IPv4 or IPv6 packet whose payload is ESP."""
    start = 40 if packet[0] >> 4 == 6 else 4 * (packet[0] & 15)
    return int.from_bytes(packet[start : start + 4])


def ip_packet(source: str, destination: str, protocol: int, payload: bytes) -> bytes:
    """Return an IPv4 packet without DF and options, or an IPv6 packet, with the UDP checksum that IPv6 requires."""
    a, b = ip_address(source), ip_address(destination)
    if a.version == 6:
        if protocol == _UDP:
            pseudo = a.packed + b.packed + struct.pack("!IxxxB", len(payload), protocol)
            payload = payload[:6] + struct.pack("!H", _checksum(pseudo + payload) or 0xFFFF) + payload[8:]
        return struct.pack("!IHBB", 6 << 28, len(payload), protocol, _TTL) + a.packed + b.packed + payload
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), 0, 0, _TTL, protocol, 0) + a.packed + b.packed
    return head[:10] + struct.pack("!H", _checksum(head)) + head[12:] + payload


def _udp(message: bytes) -> bytes:
    return struct.pack("!HHHH", 500, 500, 8 + len(message), 0) + message


def _sa_init(proposal: str, share: bytes, noise: random.Random) -> bytes:
    """Return an IKE_SA_INIT request (RFC 7296 1.2): SA, KE, nonce."""
    encryption, integrity, group = proposal.split("-")
    cipher, bits = _ENCRYPTION[encryption]
    transforms = [(1, cipher, struct.pack("!HH", 0x800E, bits) if bits else b""), (2, _PRF[integrity], b"")]
    if "gcm" not in encryption:
        transforms.append((3, _INTEGRITY[integrity], b""))
    transforms.append((4, _GROUP[group], b""))
    body = b""
    for at, (kind, number, attribute) in enumerate(transforms):
        more = 3 if at + 1 < len(transforms) else 0
        body += struct.pack("!BxHBxH", more, 8 + len(attribute), kind, number) + attribute
    suite = struct.pack("!BxHBBBB", 0, 8 + len(body), 1, 1, 0, len(transforms)) + body
    payloads = (
        struct.pack("!BxH", 34, 4 + len(suite)) + suite
        + struct.pack("!BxHHxx", 40, 8 + len(share), _GROUP[group]) + share
        + struct.pack("!BxH", 0, 4 + 32) + noise.randbytes(32)
    )  # fmt: skip
    head = noise.randbytes(8) + bytes(8) + struct.pack("!BBBBII", 33, 0x20, 34, 0x08, 0, 28 + len(payloads))
    return head + payloads


def _key_exchange(proposal: str, noise: random.Random) -> bytes:
    """Return a public value of the proposal's group; the responder must do the computation of a real exchange.

    The private key comes from `noise` too: nobody needs it, and the same seed must give the same packets.
    """
    group = proposal.rpartition("-")[2]
    if group in _CURVE:
        curve, key_bytes = _CURVE[group]
        point = ec.derive_private_key(1 + int.from_bytes(noise.randbytes(key_bytes)), curve).public_key()
        return point.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)[1:]
    if group == "x25519":
        private = x25519.X25519PrivateKey.from_private_bytes(noise.randbytes(32))
        return private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    size = {"modp2048": 256, "modp3072": 384}[group]
    return b"\x01" + noise.randbytes(size - 1)  # below the prime, whose first bytes are all ones


def _checksum(data: bytes) -> int:
    """Return the Internet checksum (RFC 1071)."""
    if len(data) % 2:
        data += b"\0"
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
