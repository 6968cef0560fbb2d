# SPDX-License-Identifier: Apache-2.0
"""Measures each generator on a pair of ports without a DUT: its ceiling, and how exact it is below the ceiling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from espbench.errors import EspbenchError, GeneratorFailed
from espbench.generators.base import Generator, Stream
from espbench.measure.inputs.traffic import Traffic
from espbench.platforms.base import PortName, Testbed
from espbench.runs.generator_ceiling import flooded

_FLOOD_S = 1.0
_RESIDUE_S, _QUIET_S = 1.0, 0.2
# If the user gives no rate, the paced rate is this share of the rate that the generator can send and receive.
_PACED_SHARE = 0.5


@dataclass(frozen=True)
class Candidate:
    """A generator, or one of its paths to the wire; `make` starts it."""

    name: str
    make: Callable[[], Generator]


@dataclass(frozen=True)
class Examined:
    """The measurements of one generator at one frame size. None: it cannot measure this, or no frame came back.

    offered_fps, received_fps: of a flood. paced_fps: the intended rate of the trial after it; accuracy_pct: the
    deviation of the rate sent from that rate, %; lost: frames sent and not received; lateness_us: by how much frames
    left after their time (percentiles); pdv_us: the 99.9th percentile of the delay minus its minimum (RFC 5481, 4.2);
    delay_us: the median of the delay, from just before a frame leaves until it is received; stalled_ms: how long the
    host stalled. failure: why there are no measurements; empty if there are.
    """

    name: str
    frame_size: int
    failure: str = ""
    sends_by: str = ""
    receives_by: str = ""
    offered_fps: float = 0.0
    received_fps: float | None = None
    paced_fps: float = 0.0
    accuracy_pct: float = 0.0
    lost: int | None = None
    lateness_us: dict[str, float] | None = None
    pdv_us: float | None = None
    delay_us: float | None = None
    stalled_ms: float = 0.0


def examine(
    candidate: Candidate,
    attach: Callable[[Generator], tuple[Testbed, dict[PortName, str], tuple[str, str]]],
    traffics: dict[int, Traffic],
    *,
    seconds: float,
    rate_fps: float | None,
    on_note: Callable[[str], None],
) -> list[Examined]:
    """Measure a generator at each frame size.

    attach: opens the ports; returns the test bed, the next hops, and how it sends and receives. traffics: frame size →
    the traffic, in one direction. seconds: the length of the paced trial. rate_fps: its rate.
    """
    try:
        generator = candidate.make()
    except EspbenchError as error:
        return [Examined(candidate.name, size, _first_line(error)) for size in traffics]
    examined = []
    try:
        for size, traffic in traffics.items():
            on_note(f"{candidate.name}: {size} B")
            try:
                bed, hops, how = attach(generator)
                examined.append(
                    _examine(
                        candidate.name,
                        generator,
                        partial(traffic.streams, bed, hops),
                        how,
                        size,
                        seconds,
                        rate_fps,
                    )
                )
            except EspbenchError as error:
                examined.append(Examined(candidate.name, size, _first_line(error)))
    finally:
        generator.close()
    return examined


def _examine(
    name: str,
    generator: Generator,
    streams: Callable[[float | None], list[Stream]],
    how: tuple[str, str],
    size: int,
    seconds: float,
    rate_fps: float | None,
) -> Examined:
    flood = flooded(generator, streams(None), _FLOOD_S)
    (sent,) = flood.streams
    offered_fps, received_fps = sent.tx_frames / flood.duration_s, sent.rx_frames / flood.duration_s
    rate = rate_fps or _PACED_SHARE * (min(offered_fps, received_fps) or offered_fps)
    paced = generator.offer(streams(rate), seconds, _RESIDUE_S, quiet_s=_QUIET_S)
    if paced.duration_s <= 0:
        raise GeneratorFailed(
            f"calibrating: expected frames for {seconds:g} s at {rate:g} frames/s, none left"
        )
    (stream,) = paced.streams
    returns = stream.rx_frames > 0
    latency = stream.latency_us if returns else None
    return Examined(
        name,
        size,
        sends_by=how[0],
        receives_by=how[1],
        offered_fps=offered_fps,
        received_fps=received_fps if sent.rx_frames else None,
        paced_fps=rate,
        accuracy_pct=100 * (stream.tx_frames / paced.duration_s / rate - 1),
        lost=stream.lost if returns else None,
        lateness_us=stream.lateness_us,
        pdv_us=latency.p999 - latency.min
        if latency and latency.p999 is not None and latency.min is not None
        else None,
        delay_us=latency.p50 if latency else None,
        stalled_ms=max(paced.host_stall_ms_total.values(), default=0.0),
    )


def _first_line(error: EspbenchError) -> str:
    return (error.what if isinstance(error, GeneratorFailed) else str(error)).splitlines()[0]
