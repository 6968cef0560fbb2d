# SPDX-License-Identifier: GPL-2.0-only
"""Decrypts a capture of the middle link with the known keys, and counts the offered frames in it.

    python -m espbench_scapy.decrypt CAPTURE.pcap < question.json > answer.json

The question: {"sas": [{"spi", "suite", "source", "destination", "mode", "esn", "encryption_key",
"integrity_key"}], "frames": {"source", "destination", "ip_bytes", "dst_port", "tunnels",
"tunnel_bits"}}, with keys in hex. With several tunnels, both addresses of tunnel k's frames are k subnets of prefix
length tunnel_bits higher. The question is read from stdin, so that no key is in a list of processes.

The answer: {"packets", "esp", "in_udp", "ike", "spis", "decrypted", "offered", "cleartext", "problems"}, counts of
packets; `in_udp` are those of `esp` that came in UDP (RFC 3948), `spis` is the number of different SPIs.

This is an independent check: Scapy's ESP shares no code with the kernel's.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import sys
import warnings
from typing import Any

logging.getLogger("scapy.runtime").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")

from scapy.layers.inet import IP, UDP  # noqa: E402
from scapy.layers.inet6 import IPv6  # noqa: E402
from scapy.layers.ipsec import ESP, NAT_KEEPALIVE, NON_ESP, SecurityAssociation  # noqa: E402
from scapy.utils import PcapReader  # noqa: E402

IKE_PORT = 500

# suite → (Scapy's cipher, Scapy's integrity algorithm)
ALGORITHMS = {
    "null-null": ("NULL", "NULL"),
    "null-sha1": ("NULL", "HMAC-SHA1-96"),
    "3des-sha1": ("3DES", "HMAC-SHA1-96"),
    "aes128-sha1": ("AES-CBC", "HMAC-SHA1-96"),
    "aes256-sha256": ("AES-CBC", "SHA2-256-128"),
    "aes128gcm16": ("AES-GCM", "NULL"),
    "aes256gcm16": ("AES-GCM", "NULL"),
    "chacha20poly1305": ("CHACHA20-POLY1305", "NULL"),
}


def association(sa: dict[str, Any]) -> SecurityAssociation:
    """Return an SA of the question as Scapy's SecurityAssociation."""
    cipher, integrity = ALGORITHMS[sa["suite"]]
    header = IP if ipaddress.ip_address(sa["source"]).version == 4 else IPv6
    tunnel = header(src=sa["source"], dst=sa["destination"]) if sa["mode"] == "tunnel" else None
    return SecurityAssociation(  # type: ignore[no-untyped-call]
        ESP,
        spi=sa["spi"],
        crypt_algo=cipher,
        crypt_key=bytes.fromhex(sa["encryption_key"]) or None,
        auth_algo=integrity,
        auth_key=bytes.fromhex(sa["integrity_key"]) or None,
        tunnel_header=tunnel,
        # The high half of the sequence number (RFC 4303 2.2.1) is still 0 in a sample.
        esn_en=bool(sa.get("esn")),
        esn=0,
    )


def without_udp(packet: Any) -> Any:
    """Return a packet of ESP in UDP without the UDP header: with an IP header of the same addresses before ESP."""
    esp = packet[ESP]
    header = IP if IP in packet else IPv6
    return header(bytes(header(src=packet.src, dst=packet.dst) / esp))


def is_ike(packet: Any) -> bool:
    """Return whether a packet is of an IKE daemon, NAT keepalives included, and not ESP."""
    if UDP not in packet or ESP in packet:
        return False
    return NON_ESP in packet or NAT_KEEPALIVE in packet or IKE_PORT in (packet[UDP].sport, packet[UDP].dport)


def of_one_tunnel(source: str, destination: str, frames: dict[str, Any]) -> bool:
    """Return whether both addresses are those of the first tunnel's frames, moved by the same number of subnets."""
    ends = [ipaddress.ip_address(text) for text in (source, destination)]
    firsts = [ipaddress.ip_address(frames[name]) for name in ("source", "destination")]
    if {address.version for address in (*ends, *firsts)} != {ends[0].version}:
        return False
    tunnels = frames.get("tunnels", 1)
    step = 1 << (ends[0].max_prefixlen - frames["tunnel_bits"]) if tunnels > 1 else 1
    moved = {int(end) - int(first) for end, first in zip(ends, firsts, strict=True)}
    return len(moved) == 1 and moved <= {number * step for number in range(tunnels)}


def is_offered(packet: Any, frames: dict[str, Any]) -> bool:
    """Return whether a packet is one of the offered frames, by its addresses, its length and its port."""
    inner = packet.getlayer(IP) or packet.getlayer(IPv6)
    if inner is None or UDP not in inner:
        return False
    # The offered packet is the innermost one in transport mode over IP in IP.
    while inner.payload.getlayer(IP) or inner.payload.getlayer(IPv6):
        inner = inner.payload.getlayer(IP) or inner.payload.getlayer(IPv6)
    length = inner.len if IP in inner else inner.plen + 40
    return bool(
        of_one_tunnel(inner.src, inner.dst, frames)
        and length == frames["ip_bytes"]
        and inner[UDP].dport == frames["dst_port"]
    )


def examine(capture: str, question: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a question about a capture: the counts of its packets."""
    associations = {sa["spi"]: association(sa) for sa in question["sas"]}
    answer: dict[str, Any] = {
        "packets": 0, "esp": 0, "in_udp": 0, "ike": 0, "spis": 0, "decrypted": 0, "offered": 0, "cleartext": 0,
        "problems": [],
    }  # fmt: skip
    spis = set()
    with PcapReader(capture) as reader:
        for frame in reader:
            answer["packets"] += 1
            packet = frame.getlayer(IP) or frame.getlayer(IPv6)
            if packet is None:
                continue
            if is_ike(packet):
                answer["ike"] += 1
                continue
            if ESP not in packet:
                answer["cleartext"] += is_offered(packet, question["frames"]) if UDP in packet else 0
                continue
            answer["esp"] += 1
            spis.add(packet[ESP].spi)
            if UDP in packet:  # UDP outside ESP, since the packet inside is still encrypted
                answer["in_udp"] += 1
                packet = without_udp(packet)
            known = associations.get(packet[ESP].spi)
            if known is None:
                answer["problems"].append(f"unknown SPI {packet[ESP].spi:#x}")
                continue
            try:
                inner = known.decrypt(packet)  # type: ignore[no-untyped-call]
            except Exception as error:  # Scapy's own and cryptography's exceptions; all mean: not authentic
                answer["problems"].append(f"{type(error).__name__}: {error}")
                continue
            answer["decrypted"] += 1
            answer["offered"] += is_offered(inner, question["frames"])
    answer["spis"] = len(spis)
    return answer


if __name__ == "__main__":
    json.dump(examine(sys.argv[1], json.load(sys.stdin)), sys.stdout)
