# SPDX-License-Identifier: Apache-2.0
"""Reads the figures of tests other than throughput from runs: bytes over the bus, floods, lifetimes of SAs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from espbench.claims.points import BusBytes, CaseKey, behaviours_of, said_of_links
from espbench.quantities import Key
from espbench.terms import Finding, Manifest

Runs = Iterable[tuple[Manifest, Sequence[Finding]]]


def bus_counts(runs: Runs) -> dict[CaseKey, BusBytes]:
    """Return the bytes over the bus per frame, of each case with a bus test."""
    moved: dict[CaseKey, BusBytes] = {}
    for key, values in _figures(runs):
        counted, frames, engine, descriptors = (
            values.get(each)
            for each in (Key.BUS_COUNTED, Key.BUS_FRAMES, Key.BUS_ENGINE, Key.BUS_DESCRIPTORS)
        )
        if counted is None or frames is None or engine is None or descriptors is None:
            continue
        moved[key] = BusBytes(counted, frames, engine, descriptors, values.get(Key.BUS_OF_ACCOUNT))
    return moved


def floods(runs: Runs) -> dict[CaseKey, float]:
    """Return the ratio of the forwarding rate under flood to the throughput, of each case that has both."""
    return {
        key: ratio
        for key, values in _figures(runs)
        if values.get(Key.FLOOD_FORWARDING) is not None
        and (ratio := values.get(Key.OF_THROUGHPUT)) is not None
    }


def lifetimes(runs: Runs) -> dict[str, tuple[float, str]]:
    """Return what ended SAs (time, bytes, idle) → how often they were replaced in the last such case, and a text.

    For idle the number is the time to the first packet, which shows that the SAs were replaced.
    """
    ended: dict[str, tuple[float, str]] = {}
    for _, findings in runs:
        for f in findings:
            values = {q.key: q.value for q in f.quantities}
            for ends, lifetime, replaced in (
                ("time", Key.SA_LIFETIME, Key.REKEYS),
                ("bytes", Key.SA_LIFETIME_BYTES, Key.REKEYS),
                ("idle", Key.IDLE_TIMEOUT, Key.FIRST_PACKET_TIME),
            ):
                after, times = values.get(lifetime), values.get(replaced)
                if f.status == "OK" and after and times is not None:
                    unit = "bytes" if ends == "bytes" else "s"
                    often = "again at the next frame" if ends == "idle" else f"{times:g} times"
                    ended[ends] = times, f"{f.dut}, after {after:g} {unit}: {often}"
    return ended


def _figures(runs: Runs) -> Iterator[tuple[CaseKey, dict[str, float | None]]]:
    """Yield the quantities of each usable finding: known behaviour, IPv4, one frame size, encryption proven or none."""
    for manifest, findings in runs:
        behaviours, erring = behaviours_of(manifest), said_of_links(manifest)
        for f in findings:
            behaviour = behaviours.get(f.case)
            if behaviour is None or not isinstance(f.frame_size, int) or f.ip_version != 4:
                continue
            if f.status != "OK" or f.encryption == "not proven":
                continue
            yield (
                (f.dut + erring, behaviour, f.suite, f.direction, f.frame_size),
                {q.key: q.value for q in f.quantities if not q.way},
            )
