# SPDX-License-Identifier: Apache-2.0
"""Finds DUTs whose profile is not the one that comes with espbench under the same name.

Such a profile may be a copy with another clock and the old name. Its figures are not those of the device that the
documents describe, so they answer no claim.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeVar

from espbench.comparison.sorting.comparability import flat
from espbench.plan.duts.profiles import load_profile, profile_names
from espbench.terms import Manifest

_FOR_PEOPLE = {"description", "queues"}  # keys of a profile that change no figure
_UNSET = "not set"
_MOST = 8  # differences that a sentence lists


class _OfDut(Protocol):
    @property
    def dut(self) -> str: ...


_Result = TypeVar("_Result", bound=_OfDut)


def own_profiles(manifest: Manifest) -> dict[str, list[str]]:
    """Return each DUT that has a shipped profile's name and differs from that profile, with the differences.

    A difference is `board.core_clock: 666MHz, shipped: 1333MHz`. Runs before 22 November 2026 do not record profiles
    as a whole; they have no differences.
    """
    recorded: Mapping[str, Mapping[str, Any]] = manifest.asked.get("profiles", {})
    shipped = profile_names()
    return {
        dut: unlike
        for dut, profile in recorded.items()
        if dut in shipped and (unlike := [*_differences(dut, profile)])
    }


def _differences(dut: str, recorded: Mapping[str, Any]) -> Iterator[str]:
    """Yield each key of the recorded profile that differs, and each that only the shipped file writes.

    A key that the file leaves at its default may be missing: an older espbench did not have it.
    """
    profile = load_profile(dut)
    theirs = dict(flat({key: value for key, value in recorded.items() if key not in _FOR_PEOPLE}))
    ours = dict(flat(profile.model_dump(mode="json", exclude=_FOR_PEOPLE)))
    written = dict(flat(profile.model_dump(mode="json", exclude=_FOR_PEOPLE, exclude_unset=True)))
    for key in dict.fromkeys([*theirs, *written]):
        was, shipped = theirs.get(key, _UNSET), ours.get(key, _UNSET)
        if was != shipped:
            yield f"{key}: {was}, shipped: {shipped}"


def without(manifest: Manifest, duts: Collection[str]) -> Manifest:
    """Return the manifest without the cases and profiles of these DUTs."""

    def others(recorded: Mapping[str, Any]) -> dict[str, Any]:
        profiles = {dut: of for dut, of in recorded.get("profiles", {}).items() if dut not in duts}
        return {**recorded, "profiles": profiles}

    if not duts:
        return manifest
    return manifest.model_copy(
        update={
            "cases": of_others(manifest.cases, duts),
            "conditions": others(manifest.conditions),
            "asked": others(manifest.asked),
        }
    )


def of_others(results: Iterable[_Result], duts: Collection[str]) -> list[_Result]:
    """Return the results that are of none of these DUTs."""
    return [result for result in results if result.dut not in duts]


def in_words(run: str, unlike: Mapping[str, list[str]]) -> list[str]:
    """Return a sentence for each DUT of a run that is left out."""
    return [
        f"{run}: {dut} has a profile of its own under the name of a shipped one, so its figures answer no claim: "
        + "; ".join(lines[:_MOST] + ([f"and {len(lines) - _MOST} more"] if len(lines) > _MOST else []))
        for dut, lines in unlike.items()
    ]
