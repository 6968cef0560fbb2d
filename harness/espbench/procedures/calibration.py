# SPDX-License-Identifier: Apache-2.0
"""The generator's own ceiling, per frame size, before the first case (docs/method.md, rule 5)."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from espbench.errors import EspbenchError
from espbench.generators.base import Generator
from espbench.measure.esp_peer import EspPeer
from espbench.measure.traffic import Traffic
from espbench.platforms.base import PortName, Testbed
from espbench.terms import Calibration

_FLOOD_S = 0.5
_PROBE_S = 0.25
# A run keeps to the first of the generator's ways unless another is clearly faster: runs by different ways are not
# comparable, and probes differ from run to run by tens of percent on a shared machine. Probed again only in doubt.
_FASTER, _IN_DOUBT = 1.5, 1.1
_PROBES = 3
_RESIDUE_S = 1.0
_QUIET_S = 0.2


def choose_way(
    generator: Generator,
    attach: Callable[[], tuple[Testbed, dict[PortName, str]]],
    traffic: Traffic,
    *,
    returns: bool,
    on_note: Callable[[str], None],
) -> str:
    """The first of the generator's ways, or one that is clearly faster; empty where there is no choice.

    attach opens the ports anew and gives the next hops. Each way floods the ports; where a later one was faster, all
    do so again in turns, and the medians decide. Where nothing returns, nothing is known of how well a way receives:
    then it is chosen for sending only.
    """
    ways = [way if returns or way == "auto" else f"tx {way}" for way in generator.ways()]
    rates: dict[str, list[float]] = {}
    for number in range(_PROBES):
        for way in ways if number == 0 else list(rates):
            generator.take(way)
            try:
                bed, next_hops = attach()
                offered = generator.offer(
                    traffic.streams(bed, next_hops, None), _PROBE_S, _RESIDUE_S, quiet_s=_QUIET_S
                )
            except EspbenchError as error:
                on_note(f"the generator cannot use {way} here: {str(error).splitlines()[0]}")
                rates.pop(way, None)
                continue
            frames = sum(s.rx_frames if returns else s.tx_frames for s in offered.streams)
            rates.setdefault(way, []).append(frames / offered.duration_s)
        median = {way: statistics.median(found) for way, found in rates.items()}
        if not median:
            return ""
        best = next(iter(median))
        if max(median.values()) <= _IN_DOUBT * median[best]:
            break
    for way, rate in median.items():
        if rate > _FASTER * median[best]:
            best = way
    told = ", ".join(f"{way} {rate / 1e3:,.0f} kfps" for way, rate in median.items())
    on_note(f"generator: {best}, of {told}; to pin it, write tx and rx under generator: native: in the plan")
    generator.take(best)
    return best


def calibrate(
    generator: Generator,
    bed: Testbed,
    next_hops: dict[PortName, str],
    traffics: dict[int | str, list[Traffic]],
    *,
    returns: bool,
    way: str = "",
    on_note: Callable[[str], None] = lambda text: None,
) -> list[Calibration]:
    """Flood the ports at each frame size; traffics: the plan's frame size → what is sent.

    `returns` is False where nothing leads the frames back (external boxes): then only the
    sender's ceiling is known. Rates are sums over both directions. Where the tester is to be an ESP peer it
    seals and opens each frame itself, which is more than it has to do in a run.
    """
    found = []
    for frame_size, variants in traffics.items():
        for traffic in variants:
            on_note(
                f"calibrating the generator: {frame_size} B, {traffic.direction}, IPv{traffic.ip_version}"
            )
            streams = traffic.streams(bed, next_hops, None)
            if peer := EspPeer.stand_in(bed, traffic.ip_version):
                streams = peer.both_ends(streams)
            offered = generator.offer(streams, _FLOOD_S, _RESIDUE_S, quiet_s=_QUIET_S)
            tx = sum(s.tx_frames for s in offered.streams) / offered.duration_s
            rx = sum(s.rx_frames for s in offered.streams) / offered.duration_s
            found.append(
                Calibration(
                    frame_size=frame_size,
                    ip_version=traffic.ip_version,
                    direction=traffic.direction,
                    offered_fps=round(tx, 1),
                    received_fps=round(rx if returns else tx, 1),
                    path=way,
                    note="" if returns else "sending only: nothing leads the frames back without the DUT",
                )
            )
    return found
