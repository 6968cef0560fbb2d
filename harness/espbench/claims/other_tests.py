# SPDX-License-Identifier: Apache-2.0
"""Reads the figures of tests other than throughput from runs: bytes over the bus, floods, lifetimes of SAs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from espbench.claims.points import BusBytes, CaseKey, behaviours_of, said_of_links, settings_of_tests
from espbench.quantities import Key
from espbench.sentences import Code
from espbench.terms import Finding, Manifest

Runs = Iterable[tuple[Manifest, Sequence[Finding]]]
"""Runs with their findings, in the order of their starts: of several figures of one case, the last counts."""


def bus_counts(runs: Runs) -> dict[CaseKey, BusBytes]:
    """Return the bytes over the bus per frame, of each case with a bus test."""
    moved: dict[CaseKey, BusBytes] = {}
    for key, finding in _usable(runs):
        values = _values(finding)
        counted, frames, engine, descriptors = (
            values.get(each)
            for each in (Key.BUS_COUNTED, Key.BUS_FRAMES, Key.BUS_ENGINE, Key.BUS_DESCRIPTORS)
        )
        if counted is None or frames is None or engine is None or descriptors is None:
            continue
        moved[key] = BusBytes(counted, frames, engine, descriptors, values.get(Key.BUS_OF_ACCOUNT))
    return moved


def floods(runs: Runs) -> dict[CaseKey, float | str]:
    """Return the ratio of the forwarding rate under flood to the throughput, of each case with a flood.

    If no run has a ratio that tells anything, a text says why: the throughput is a bound, or the load was no flood.
    """
    ratios: dict[CaseKey, float | str] = {}
    for key, finding in _usable(runs):
        values = _values(finding)
        if values.get(Key.FLOOD_FORWARDING) is None:
            continue
        why, ratio = _no_flood(finding), values.get(Key.OF_THROUGHPUT)
        if why:
            ratios.setdefault(key, why)
        elif ratio is not None:
            ratios[key] = ratio
    return ratios


def in_clear(runs: Runs) -> set[CaseKey]:
    """Return the cases in which frames passed in clear, whatever the test."""
    return {key for key, finding in _of_claims(runs) if finding.status == "VIOLATED"}


def _no_flood(finding: Finding) -> str:
    """Say why the ratio of a flood to the throughput tells nothing; return "" if it does."""
    if any(remark.code == Code.AT_BOUND for remark in finding.warnings):
        return "the throughput is only a lower bound"
    if any(deviation.code == Code.MAXIMUM_NOT_LINE_RATE for deviation in finding.rfc2544_deviations):
        return "the flood was below the line rate"
    return ""


def lifetimes(runs: Runs) -> dict[str, tuple[bool, str]]:
    """Return what ended SAs (time, bytes, idle) → whether they were replaced in all such cases of a run, and a text.

    Of several runs with such cases, the last counts.
    """
    ended: dict[str, tuple[bool, str]] = {}
    for manifest, findings in runs:
        settings = settings_of_tests(manifest)
        of_run: dict[str, list[tuple[bool, str]]] = {}
        for f in findings:
            for ends, replaced, text in _ends(f, settings.get(f.test, {})):
                of_run.setdefault(ends, []).append((replaced, f"{f.dut}, {text}"))
        for ends, cases in of_run.items():
            texts = dict.fromkeys(text for _, text in cases)
            ended[ends] = all(replaced for replaced, _ in cases), "; ".join(texts)
    return ended


def _ends(f: Finding, settings: Mapping[str, Any]) -> Iterator[tuple[str, bool, str]]:
    """Yield what ended the SAs of a case, whether they were replaced, and a text; nothing if the case does not tell.

    A case is INVALID if its SAs were not replaced, or not deleted. That is an answer, unless the host disturbed it.
    """
    if f.status == "INVALID" and not any(reason.of_host for reason in f.reasons):
        yield from _kept(f, settings)
    if f.status != "OK":
        return
    values = _values(f)
    for ends, lifetime, replaced in (
        ("time", Key.SA_LIFETIME, Key.REKEYS),
        ("bytes", Key.SA_LIFETIME_BYTES, Key.REKEYS),
        ("idle", Key.IDLE_TIMEOUT, Key.FIRST_PACKET_TIME),
    ):
        after, times = values.get(lifetime), values.get(replaced)
        if after and times is not None:
            unit = "bytes" if ends == "bytes" else "s"
            often = "again at the next frame" if ends == "idle" else f"{times:g} times"
            yield ends, times > 0, f"after {after:g} {unit}: {often}"


def _kept(f: Finding, settings: Mapping[str, Any]) -> Iterator[tuple[str, bool, str]]:
    """Yield what should have ended the SAs of a case that kept them all; settings: those of its test."""
    for reason in f.reasons:
        if reason.code == Code.SAS_KEPT:
            yield "idle", False, f"after {reason.values['idle_s']:g} s: not deleted"
        elif reason.code == Code.FEW_REKEYS and reason.values["seen"] == 0 and settings:
            in_bytes = settings.get("lifetime_bytes")
            yield "bytes" if in_bytes else "time", False, f"after {in_bytes or settings['lifetime']}: never"


def _values(finding: Finding) -> dict[str, float | None]:
    """Return the quantities of all directions together, by their keys."""
    return {q.key: q.value for q in finding.quantities if not q.way}


def _usable(runs: Runs) -> Iterator[tuple[CaseKey, Finding]]:
    """Yield each usable finding that claims can be about: with a figure, and encryption proven or none."""
    for key, finding in _of_claims(runs):
        if finding.status == "OK" and finding.encryption != "not proven":
            yield key, finding


def _of_claims(runs: Runs) -> Iterator[tuple[CaseKey, Finding]]:
    """Yield the findings that claims can be about: known behaviour, IPv4, frames of one size."""
    for manifest, findings in runs:
        behaviours, erring = behaviours_of(manifest), said_of_links(manifest)
        for f in findings:
            behaviour = behaviours.get(f.case)
            if behaviour is not None and isinstance(f.frame_size, int) and f.ip_version == 4:
                yield (f.dut + erring, behaviour, f.suite, f.direction, f.frame_size), f
