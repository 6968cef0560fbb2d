# SPDX-License-Identifier: Apache-2.0
"""Measures the generator's own ceiling, per frame size, before the first case (docs/method.md, rule 5)."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from espbench.errors import EspbenchError, GeneratorFailed
from espbench.generators.base import Generator, Offered, Stream, WirePath
from espbench.measure.inputs.esp_peer import EspPeer
from espbench.measure.inputs.traffic import Traffic
from espbench.platforms.base import PortName, Testbed
from espbench.terms import Calibration

_FLOOD_S, _FLOODS = 0.5, 3
_PROBE_S, _TRY_S = 0.25, 0.05
# A run uses the first of the generator's paths unless another is faster by the factor _FASTER: runs with different
# paths are not comparable, and probes differ from run to run by tens of percent on a shared machine. The paths are
# probed again only if another path was faster than the first one by more than the factor _IN_DOUBT.
_FASTER, _IN_DOUBT = 1.5, 1.1
_PROBES = 3
_RESIDUE_S = 1.0
_QUIET_S = 0.2


def choose_path(
    generator: Generator,
    attach: Callable[[], tuple[Testbed, dict[PortName, str]]],
    traffics: Sequence[Traffic],
    *,
    returns: bool,
    on_note: Callable[[str], None],
) -> WirePath | None:
    """Return the first of the generator's paths, or one that is clearly faster; None if it has none that works.

    attach opens the ports again and returns the test bed and the next hops. traffics: all that the run sends, at
    least one. A path that refuses any of it does not work. The ports are flooded by each path with the first of it. If
    a later path was faster, all paths are probed again in turns, and the medians decide. returns: whether the frames
    come back. If not, the rate at which a path receives is unknown, and the path is chosen for sending only.
    """
    first, demanding = traffics[0], _demanding(traffics)
    paths = [WirePath(name, receives=returns or name == "auto") for name in generator.paths()]
    rates: dict[WirePath, list[float]] = {}
    for number in range(_PROBES):
        for path in paths if number == 0 else list(rates):
            generator.take(path)
            try:
                bed, next_hops = attach()
                for traffic in demanding if number == 0 else []:
                    generator.offer(
                        traffic.streams(bed, next_hops, None), _TRY_S, _RESIDUE_S, quiet_s=_QUIET_S
                    )
                offered = generator.offer(
                    first.streams(bed, next_hops, None), _PROBE_S, _RESIDUE_S, quiet_s=_QUIET_S
                )
            except EspbenchError as error:
                on_note(f"the generator cannot use {path} here: {str(error).splitlines()[0]}")
                rates.pop(path, None)
                continue
            frames = sum(s.rx_frames if returns else s.tx_frames for s in offered.streams)
            # If the tester did not get its CPU during the whole flood, it sent at most one frame, and has no rate.
            rates.setdefault(path, []).append(frames / offered.duration_s if offered.duration_s else 0.0)
        median = {path: statistics.median(of_path) for path, of_path in rates.items()}
        if not median:
            return None
        best = next(iter(median))
        if max(median.values()) <= _IN_DOUBT * median[best]:
            break
    for path, rate in median.items():
        if rate > _FASTER * median[best]:
            best = path
    text = ", ".join(f"{path} {rate / 1e3:,.0f} kfps" for path, rate in median.items())
    on_note(f"generator: {best}, of {text}; to keep it, write tx and rx under generator: native: in the plan")
    generator.take(best)
    return best


def _demanding(traffics: Sequence[Traffic]) -> list[Traffic]:
    """Return the traffics that a path may refuse, besides the first: the longest frame, the most kinds of frames, the
    longest mix.
    """

    def longest(traffic: Traffic) -> int:
        return max(size for size, *_ in traffic.frames)

    def kinds(traffic: Traffic) -> int:
        return len({(size, tuple(header)) for size, _, *header in traffic.frames})

    def mix(traffic: Traffic) -> int:
        return sum(weight for _, weight, *_ in traffic.frames)

    found = [max(traffics, key=measure) for measure in (longest, kinds, mix)]
    return [traffic for n, traffic in enumerate(found) if traffic not in [traffics[0], *found[:n]]]


def calibrate(
    generator: Generator,
    bed: Testbed,
    next_hops: dict[PortName, str],
    traffics: dict[int | str, list[Traffic]],
    *,
    returns: bool,
    path: WirePath | None = None,
    on_note: Callable[[str], None] = lambda text: None,
) -> list[Calibration]:
    """Flood the ports at each frame size and return the ceilings; traffics: the plan's frame size → the traffic.

    `returns` is False if the frames do not come back (external boxes): then only the sender's ceiling is known. Rates
    are frames/s, summed over both directions. If the tester will be an ESP peer, it seals and opens each frame
    itself here, which is more work than in a run.
    """
    calibrations = []
    for frame_size, variants in traffics.items():
        for traffic in variants:
            on_note(
                f"calibrating the generator: {frame_size} B, {traffic.direction}, IPv{traffic.ip_version}"
            )
            streams = traffic.streams(bed, next_hops, None)
            if peer := EspPeer.stand_in(bed, traffic.ip_version):
                streams = peer.both_ends(streams)
            offered = flooded(generator, streams, _FLOOD_S)
            tx = sum(s.tx_frames for s in offered.streams) / offered.duration_s
            rx = sum(s.rx_frames for s in offered.streams) / offered.duration_s
            calibrations.append(
                Calibration(
                    frame_size=frame_size,
                    ip_version=traffic.ip_version,
                    direction=traffic.direction,
                    offered_fps=round(tx, 1),
                    received_fps=round(rx if returns else tx, 1),
                    path=str(path or ""),
                    note="" if returns else "sending only: nothing leads the frames back without the DUT",
                )
            )
    return calibrations


def flooded(generator: Generator, streams: list[Stream], duration_s: float) -> Offered:
    """Flood the ports for duration_s, and try again if the tester did not get its CPU and so sent at most one frame, or
    if one of several streams got none: the sum of the others would be a wrong ceiling.

    GeneratorFailed if that happens each time.
    """
    silent: list[str] = []
    for _ in range(_FLOODS):
        offered = generator.offer(streams, duration_s, _RESIDUE_S, quiet_s=_QUIET_S)
        silent = [f"{s.from_} to {s.to}" for s in offered.streams if not s.tx_frames]
        if offered.duration_s > 0 and not silent:
            return offered
    if 0 < len(silent) < len(streams):
        raise GeneratorFailed(
            f"calibrating: expected frames of {len(streams)} streams at once, none left from {', '.join(silent)} in "
            f"{_FLOODS} floods of {duration_s:g} s: another stream took all the time of the CPU that sends both; "
            "give each port a sending CPU of its own, or take another path (generator: native: {tx: af_packet})"
        )
    raise GeneratorFailed(
        f"calibrating: expected frames for {duration_s:g} s, got one at most in each of {_FLOODS} tries: "
        "other programs keep it from its CPU; try again when they are done"
    )
