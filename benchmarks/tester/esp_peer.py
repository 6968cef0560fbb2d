#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how fast the tester is as an ESP peer, on one core: frames/s and µs of CPU per frame, in clear and sealed.

    tester namespace: west ═══ east        (veth; the sender on the first CPU)

Needs root: `python benchmarks/tester/esp_peer.py [seconds of each]`. Each row floods for that time, in turns with a
flood in clear, so that the ratio is right on a busy machine too; figures are medians of three. "sealed before" sends
frames that were sealed before the trial, as the tester does with slow ciphers. The cost of opening is the CPU time of
the receiving thread. A missing row is one that failed.
"""

from __future__ import annotations

import secrets
import statistics
import tempfile
from pathlib import Path

from asked_number import asked_number

from espbench.generators.base import Association, Offered, Stream
from espbench.generators.native import NativeGenerator
from espbench.measure.inputs.traffic import Traffic
from espbench.plan import load_topology
from espbench.platforms import netns, placement
from espbench.runs.platform_kinds.shared.addressing import addressing_of
from espbench.this_machine import machine_lock
from espbench.this_machine.registry import Registry

SIZES = (64, 512, 1424)
KEYS = {
    "aes128gcm16": (20, 0), "chacha20poly1305": (36, 0), "aes128-sha1": (16, 20), "3des-sha1": (24, 20),
}  # fmt: skip
BURST = 20_000
ROUNDS = 3


def main() -> None:
    """Print the table."""
    seconds = asked_number(__doc__, "seconds", 1.0, "seconds of each flood")
    addressing = addressing_of(load_topology("single-gateway"), mtu=1500)
    with (
        machine_lock.held(),
        tempfile.TemporaryDirectory() as folder,
        Registry(secrets.token_hex(3)) as registry,
    ):
        placed = placement.choose(gateways=1)
        bed = netns.NetnsPlatform(addressing).calibration_bed(registry, placed, single=True)
        generator = NativeGenerator(registry, Path(folder) / "generator.log", esp=True)
        generator.open(list(bed.ports.values()), [])
        print(
            "frame  suite              way            frames/s  of clear  sending  receiving   (µs of CPU per frame)"
        )
        for size in SIZES:
            (clear,) = Traffic(((size, 1),), 4, "encryption").streams(
                bed, {"west": bed.ports["east"].mac}, None
            )
            for suite in KEYS:
                sa = association(suite)
                sealed = clear.model_copy(update={"seal": [sa]})
                opened = clear.model_copy(update={"seal": [sa], "open": [sa]})
                before = sealed.model_copy(update={"burst_frames": BURST})
                ways = {"sealed": sealed, "sealed, opened": opened}
                if suite == "3des-sha1":
                    ways = {"sealed before": before}
                for way, stream in ways.items():
                    row(generator, size, suite, way, clear, stream, seconds)


def association(suite: str) -> Association:
    """Return an SA with random keys."""
    encryption, integrity = KEYS[suite]
    return Association(
        spi=0x100 + secrets.randbelow(2**31), source="192.0.2.1", destination="192.0.2.2", suite=suite,
        encryption_key=secrets.token_hex(encryption), integrity_key=secrets.token_hex(integrity),
    )  # fmt: skip


def row(
    generator: NativeGenerator, size: int, suite: str, way: str, clear: Stream, stream: Stream, seconds: float
) -> None:
    """Measure and print one row: medians of the rounds, and the ratio to the rate in clear."""
    plain, rates, sending, receiving = [], [], [], []
    for _ in range(ROUNDS):
        plain.append(rate(flood(generator, clear, seconds)))
        offered = flood(generator, stream, seconds)
        rates.append(rate(offered))
        frames = max(1, offered.streams[0].tx_frames)
        sending.append(1e3 * offered.senders_run_ms / frames)
        receiving.append(1e3 * offered.receivers_run_ms / max(1, sum(p.rx_total for p in offered.ports)))
    of_clear = statistics.median(a / b for a, b in zip(rates, plain, strict=True))
    print(
        f"{size:5}  {suite:17}  {way:14} {statistics.median(rates):9,.0f}  {of_clear:8.2f}  "
        f"{statistics.median(sending):7.2f}  {statistics.median(receiving):9.2f}",
        flush=True,
    )


def flood(generator: NativeGenerator, stream: Stream, seconds: float) -> Offered:
    """Offer as many frames as the generator can send."""
    return generator.offer([stream], seconds, 2.0, quiet_s=0.3)


def rate(offered: Offered) -> float:
    """Return the rate at which frames left, frames/s."""
    return offered.streams[0].tx_frames / offered.duration_s


if __name__ == "__main__":
    main()
