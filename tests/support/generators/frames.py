# SPDX-License-Identifier: Apache-2.0
"""Sends numbered UDP frames into one interface, and counts those that come out of another; prints the counts as JSON.

Run it inside the tester's namespace:

    frames.py FROM TO SOURCE_MAC NEXT_HOP_MAC IP_VERSION COUNT SIZE WAIT_S PAUSE_S

It pauses for PAUSE_S after every 64 frames; 0 floods. It ends after WAIT_S without a frame if frames are missing, and
after a moment without a frame if all have arrived.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import time

ETH_P_ALL = 3
SOL_PACKET = 263
PACKET_QDISC_BYPASS = 20
SO_RCVBUFFORCE = 33
PORT = 9  # discard
MOMENT_S = 0.3


def checksum(data: bytes) -> int:
    """Return the Internet checksum of data of even length (RFC 1071)."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF


def frame(source_mac: str, next_hop_mac: str, version: int, number: int, size: int) -> bytes:
    """Return a frame from west's network 1 to east's network 1, `size` bytes without FCS."""
    macs = bytes.fromhex(next_hop_mac.replace(":", "") + source_mac.replace(":", ""))
    payload_size = size - 14 - (20 if version == 4 else 40) - 8
    payload = struct.pack("!Q", number).ljust(payload_size, b"\0")
    length = 8 + len(payload)
    if version == 4:
        addresses = socket.inet_aton("198.18.1.2") + socket.inet_aton("198.19.1.2")
        header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + length, 0, 0x4000, 64, 17, 0) + addresses
        header = header[:10] + struct.pack("!H", checksum(header)) + header[12:]
        udp = struct.pack("!HHHH", PORT, PORT, length, 0)
        return macs + b"\x08\x00" + header + udp + payload
    addresses = socket.inet_pton(socket.AF_INET6, "2001:2:0:1001::2")
    addresses += socket.inet_pton(socket.AF_INET6, "2001:2:0:2001::2")
    header = struct.pack("!IHBB", 6 << 28, length, 17, 64) + addresses
    pseudo = addresses + struct.pack("!II", length, 17)
    body = payload.ljust(len(payload) + len(payload) % 2, b"\0")
    udp_sum = checksum(pseudo + struct.pack("!HHHH", PORT, PORT, length, 0) + body)
    return macs + b"\x86\xdd" + header + struct.pack("!HHHH", PORT, PORT, length, udp_sum or 0xFFFF) + payload


def main() -> None:
    """Send all frames, then receive until no frame arrives any more."""
    outgoing, incoming, source_mac, next_hop_mac = sys.argv[1:5]
    version, count, size = (int(text) for text in sys.argv[5:8])
    wait_s, pause_s = (float(text) for text in sys.argv[8:10])
    receiver = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
    receiver.bind((incoming, ETH_P_ALL))
    sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    sender.setsockopt(SOL_PACKET, PACKET_QDISC_BYPASS, 1)
    sender.bind((outgoing, 0))
    refused = 0
    frames = [frame(source_mac, next_hop_mac, version, number, size) for number in range(count)]
    for number, data in enumerate(frames):
        try:
            sender.send(data)
        except OSError:  # ENOBUFS: the port dropped it
            refused += 1
        if pause_s and number % 64 == 63:
            time.sleep(pause_s)
    at = 14 + (20 if version == 4 else 40) + 8
    numbers: set[int] = set()
    hop_limits = set()
    foreign = 0
    while True:
        receiver.settimeout(wait_s if len(numbers) < count else min(wait_s, MOMENT_S))
        try:
            data = receiver.recv(2048)
        except TimeoutError:
            break
        if len(data) != size:
            foreign += 1
            continue
        numbers.add(struct.unpack_from("!Q", data, at)[0])
        hop_limits.add(data[22] if version == 4 else data[21])
    result = {"refused": refused, "received": len(numbers), "foreign": foreign}
    print(json.dumps({**result, "hop_limits": sorted(hop_limits)}))


main()
