# SPDX-License-Identifier: Apache-2.0
"""Sorts the profiles to compare into pairs: of the same point in two runs, or of two stacks in one run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from espbench.errors import UsageError
from espbench.gate.base import Point
from espbench.profile.attribution import Profile
from espbench.profile.sampled import SampledProfile
from espbench.results import RunDirectory
from espbench.terms import CaseEntry

_NO_SUITE = "none"  # the suite of a stack without ESP
Kind = TypeVar("Kind", Profile, SampledProfile)
Pair = tuple[Profile, Profile] | tuple[SampledProfile, SampledProfile]


class Place(NamedTuple):
    """Identifies the cases that can be compared with each other."""

    point: Point
    repeat: int


def of_two_runs(
    other: RunDirectory, was: Sequence[Kind], run: RunDirectory, now: Sequence[Kind]
) -> list[tuple[Kind, Kind]]:
    """Return the profiles of the same point and gateway in both."""

    def at(of: RunDirectory) -> dict[str, Place]:
        return {entry.case: Place(Point.of(entry), entry.repeat) for entry in of.manifest.cases}

    before, after = at(other), at(run)
    known = {(before[p.case], p.side): p for p in was}
    return [(known[key], p) for p in now if (key := (after[p.case], p.side)) in known]


def demand_stacks(entries: Sequence[CaseEntry], chosen: Sequence[str], reference: str) -> None:
    """Raise UsageError unless the chosen cases (none: all) are of this stack and at least one other."""
    stacks = list(dict.fromkeys(entry.stack for entry in entries if not chosen or entry.case in chosen))
    if reference in stacks and len(stacks) > 1:
        return
    expected = f"one of {', '.join(stacks)}" if len(stacks) > 1 else "cases of at least two stacks"
    got = reference if len(stacks) > 1 else f"cases of {', '.join(stacks) or 'none'}"
    raise UsageError(f"--reference {reference}: nothing to compare\n  expected: {expected}\n  got: {got}")


def of_stacks(
    entries: Sequence[CaseEntry], profiles: Sequence[Kind], reference: str
) -> list[tuple[Kind, Kind]]:
    """Return pairs of the reference stack and another one at the same point, in the order of the profiles.

    A reference without ESP has no suite, so it is compared with every suite.
    """
    known = {entry.case: entry for entry in entries}
    of_reference = [p for p in profiles if known[p.case].stack == reference]
    has_suite = any(known[p.case].suite != _NO_SUITE for p in of_reference)

    def place(profile: Kind) -> Place:
        entry = known[profile.case]
        point = replace(Point.of(entry), stack="")
        return Place(point if has_suite else replace(point, suite=_NO_SUITE), entry.repeat)

    at = {(place(p), p.side): p for p in of_reference}
    others = [p for p in profiles if known[p.case].stack != reference]
    return [(at[key], p) for p in others if (key := (place(p), p.side)) in at]


def without_partner(profiles: Iterable[Profile | SampledProfile], compared: Iterable[Pair]) -> list[str]:
    """Return the cases of the profiles of which some gateway is in no pair, each once."""
    paired = {id(profile) for pair in compared for profile in pair}
    return list(dict.fromkeys(profile.case for profile in profiles if id(profile) not in paired))
