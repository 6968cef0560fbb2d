# SPDX-License-Identifier: Apache-2.0
"""The independent proof of encryption: Scapy decrypts a captured sample of the middle link with the known keys."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from espbench.errors import EspbenchError
from espbench.generators.base import Stream
from espbench.measure.inputs.setup import Setup
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.proof.readiness import InClear, NotReady
from espbench.terms import FCS_BYTES

SAMPLE_FRAMES = 40
# These frames are sent beyond the sample: tcpdump may end before it has captured the very last ones.
_SPARE_FRAMES = 10
_SAMPLE_FPS = 400.0
# If tcpdump gets no CPU it misses frames. What it did capture must be right each time.
_ATTEMPTS = 3
_ETHERNET_HEADER = 14

Capturing = Callable[[Path], contextlib.AbstractContextManager[None]]


def sample(setup: Setup, traffic: Traffic, file: Path, capturing: Capturing) -> dict[str, Any]:
    """Send a few of the case's frames west to east, capture and decrypt them on the middle link; return the proof in
    words.

    Raise NotReady unless there are at least SAMPLE_FRAMES packets and each, IKE apart, is ESP and decrypts to a frame
    that was offered. With several tunnels, the sample must contain as many SAs as tunnels, or SAMPLE_FRAMES of them.
    Raise InClear if an offered frame crossed in clear.
    """
    assert setup.stack is not None
    single = Traffic(
        # The frames have the form of RFC 2544, which the program below knows, whatever headers the case has.
        (min(traffic.frames)[:2],), traffic.ip_version, "one-way",
        tunnels=traffic.tunnels, tunnel_bits=traffic.tunnel_bits, dont_fragment=traffic.dont_fragment,
    )  # fmt: skip
    (stream,) = setup.streams(single, _SAMPLE_FPS)
    for _ in range(_ATTEMPTS):
        with capturing(file):
            offered = setup.generator.offer(
                [stream], (SAMPLE_FRAMES + _SPARE_FRAMES) / _SAMPLE_FPS, 1.0, quiet_s=0.2
            )
        sent = offered.streams[0].tx_frames
        answer = decrypt(file, setup.stack.secrets(), stream)
        whole = answer["packets"] - answer["ike"] == answer["esp"] == answer["decrypted"] == answer["offered"]
        if answer["esp"] >= SAMPLE_FRAMES or answer["problems"] or answer["cleartext"] or not whole:
            break
    if answer["cleartext"]:
        raise InClear(
            f"capture of the middle link: {answer['cleartext']} of {sent} frames crossed in clear ({file.name})"
        )
    spread = answer["spis"] >= min(traffic.tunnels, SAMPLE_FRAMES)
    if answer["problems"] or not whole or not spread or not SAMPLE_FRAMES <= answer["esp"] <= sent:
        raise NotReady(f"capture of the middle link: {sent} frames were sent, found {answer}")
    kind = "ESP in UDP" if answer["in_udp"] == answer["esp"] else "ESP"
    sas = f" of {answer['spis']} SAs" if answer["spis"] > 1 else ""
    return {
        "captured sample": f"{answer['esp']} {kind} packets{sas} of the middle link decrypt with the known keys "
        f"to frames that were offered ({sent} were); none in clear ({file.name})"
    }


def decrypt(file: Path, secrets: list[dict[str, Any]], stream: Stream) -> dict[str, Any]:
    """Return the answer of the Scapy program, which is a process of its own because of its licence. It gets the keys
    on stdin.

    Raise EspbenchError if it cannot read the capture.
    """
    question = {
        "sas": secrets,
        "frames": {
            "source": stream.src,
            "destination": stream.dst,
            "ip_bytes": stream.frames[0].size - _ETHERNET_HEADER - FCS_BYTES,
            "dst_port": stream.dst_port,
            "tunnels": stream.tunnels,
            "tunnel_bits": stream.tunnel_bits,
        },
    }
    done = subprocess.run(
        [sys.executable, "-m", "espbench_scapy.decrypt", str(file)],
        input=json.dumps(question),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        # The traceback may show keys, so only its last line, the error itself, is passed on.
        said = done.stderr.strip().splitlines() or [f"it ended with {done.returncode}, and said nothing"]
        raise EspbenchError(f"Scapy could not read the capture: {said[-1]}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
