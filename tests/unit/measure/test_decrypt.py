# SPDX-License-Identifier: Apache-2.0
"""The Scapy program on captures written by hand: what is an offered frame, what is IKE, what is unknown.

That it opens real ESP is shown on real gateways (integration/truth/test_truth.py, test_xfrm_options.py).
"""

from __future__ import annotations

import contextlib
import socket
import struct
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from espbench.errors import EspbenchError
from espbench.generators.base import FrameShare, Stream
from espbench.measure.inputs.setup import Setup
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.proof import decryption
from espbench.measure.proof.decryption import decrypt
from espbench.measure.proof.readiness import InClear, NotReady

PCAP = struct.pack("=IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
STREAM = Stream(
    id=0, from_="west", to="east", rate_fps=1, frames=[FrameShare(size=64)], src_mac="", dst_mac="", ip_version=4,
    src="198.18.0.2", dst="198.19.0.2", ttl=64, src_port=49184, dst_port=7,
)  # fmt: skip


def packet(source: str, destination: str, protocol: int, payload: bytes) -> bytes:
    """An Ethernet frame with this IPv4 packet, as a record of a capture."""
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), 0, 0, 64, protocol, 0)
    frame = (
        bytes(12) + b"\x08\0" + header + socket.inet_aton(source) + socket.inet_aton(destination) + payload
    )
    return struct.pack("=IIII", 0, 0, len(frame), len(frame)) + frame


def udp(source_port: int, port: int, data: bytes) -> bytes:
    return struct.pack("!HHHH", source_port, port, 8 + len(data), 0) + data


def decrypted(folder: Path, stream: Stream, *packets: bytes) -> dict[str, object]:
    """Return what the program says of these packets, without the counts that are 0."""
    file = folder / "made.pcap"
    file.write_bytes(PCAP + b"".join(packets))
    return {name: count for name, count in decrypt(file, [], stream).items() if count}


def test_frames_of_every_tunnel_are_recognised_and_mixed_ones_are_not(tmp_path: Path) -> None:
    """Source and destination of the same subnet; not of two, not beyond the last, not of another host."""
    test_frame = udp(49184, 7, bytes(18))
    ends = [("198.18.0.2", "198.19.0.2"), ("198.18.144.2", "198.19.144.2")]
    others = [("198.18.16.2", "198.19.0.2"), ("198.18.160.2", "198.19.160.2"), ("198.18.16.3", "198.19.16.3")]
    packets = [packet(*pair, 17, test_frame) for pair in ends + others]
    tunnels = STREAM.model_copy(update={"tunnels": 10, "tunnel_bits": 20})
    assert decrypted(tmp_path, tunnels, *packets) == {"packets": 5, "cleartext": 2}
    assert decrypted(tmp_path, STREAM, *packets) == {"packets": 5, "cleartext": 1}


def test_ike_is_told_from_esp_in_udp(tmp_path: Path) -> None:
    """Port 500, the non-ESP marker and a keepalive on 4500 are IKE; another SPI there is ESP (RFC 3948 2)."""
    wan = ("192.0.2.1", "192.0.2.2", 17)
    answer = decrypted(
        tmp_path,
        STREAM,
        packet(*wan, udp(500, 500, bytes(28))),
        packet(*wan, udp(4500, 4500, bytes(4) + b"\x01" * 28)),
        packet(*wan, udp(4500, 4500, b"\xff")),
        packet(*wan, udp(4500, 4500, struct.pack("!II", 0x1234, 1) + bytes(40))),
    )
    problems = ["unknown SPI 0x1234"]
    assert answer == {"packets": 4, "ike": 3, "esp": 1, "in_udp": 1, "spis": 1, "problems": problems}


@pytest.mark.parametrize(
    ("changes", "accepted"),
    [({}, True), ({"spis": 1}, False), ({"ike": 2, "packets": 52}, True), ({"packets": 51}, False)],
)
def test_a_sample_of_many_tunnels_must_have_come_through_many_sas(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, changes: dict[str, int], accepted: bool
) -> None:
    """All decrypts, but through one SA only: not what was offered. IKE beside it does no harm."""
    answer = {
        "packets": 50, "esp": 50, "in_udp": 0, "ike": 0, "spis": 10, "decrypted": 50, "offered": 50,
        "cleartext": 0, "problems": [],
    } | changes  # fmt: skip
    monkeypatch.setattr(decryption, "decrypt", lambda *_: answer)
    sent = SimpleNamespace(streams=[SimpleNamespace(tx_frames=50)])
    port = SimpleNamespace(name="west", mac="", address={4: "198.18.0.2"})
    setup = SimpleNamespace(
        stack=SimpleNamespace(secrets=list),
        bed=SimpleNamespace(ports={"west": port, "east": SimpleNamespace(**vars(port) | {"name": "east"})}),
        next_hops={"west": "", "east": ""},
        generator=SimpleNamespace(offer=lambda *_, **__: sent),
        streams=lambda traffic, load: [Stream.model_construct(tunnels=10)],
    )
    traffic = Traffic(((64, 1),), 4, "one-way", tunnels=10, tunnel_bits=20)

    def take() -> dict[str, Any]:
        return decryption.sample(
            cast(Any, setup), traffic, tmp_path / "x.pcap", lambda _: contextlib.nullcontext()
        )

    if accepted:
        assert take()["captured sample"].startswith("50 ESP packets of 10 SAs")
    else:
        with pytest.raises(NotReady, match="50 frames were sent"):
            take()


def sampled(monkeypatch: pytest.MonkeyPatch, *answers: dict[str, Any]) -> int:
    """Return how many captures a sample with these answers takes; raise NotReady where it is not good."""
    given = iter(answers)
    captures: list[Path] = []

    def capturing(file: Path) -> contextlib.AbstractContextManager[None]:
        captures.append(file)
        return contextlib.nullcontext()

    monkeypatch.setattr(decryption, "decrypt", lambda *_: next(given))
    setup = SimpleNamespace(
        stack=SimpleNamespace(secrets=dict),
        streams=lambda *_: [None],
        generator=SimpleNamespace(
            offer=lambda *_, **__: SimpleNamespace(streams=[SimpleNamespace(tx_frames=50)])
        ),
    )
    decryption.sample(cast(Setup, setup), Traffic(((256, 1),), 4, "one-way"), Path("s.pcap"), capturing)
    return len(captures)


def captured(esp: int, **more: Any) -> dict[str, Any]:
    return {"packets": esp, "esp": esp, "decrypted": esp, "offered": esp, "in_udp": 0, "ike": 0, "spis": 1,
            "cleartext": 0, "problems": []} | more  # fmt: skip


def test_a_capture_that_missed_frames_is_taken_again_and_one_with_a_problem_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A tcpdump without a CPU misses frames; cleartext is no matter of luck."""
    assert sampled(monkeypatch, captured(32), captured(50)) == 2
    with pytest.raises(NotReady):
        sampled(monkeypatch, captured(32), captured(31), captured(30), captured(50))
    with pytest.raises(InClear, match="1 of 50 frames crossed in clear"):
        sampled(monkeypatch, captured(32, cleartext=1, packets=33), captured(50))


def test_a_reader_that_was_killed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Out of memory it says nothing, and the set-up is not ready: no traceback."""
    killed = SimpleNamespace(returncode=-9, stdout="", stderr="")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: killed)
    with pytest.raises(EspbenchError, match="could not read the capture: it ended with -9"):
        decrypt(tmp_path / "some.pcap", [], STREAM)
