# SPDX-License-Identifier: Apache-2.0
"""Instructions per frame: in virtual time a gateway's CPU time is the instructions it executed, in another unit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from espbench.terms import Manifest, Trial

DIGITS = 3  # digits that are recorded and compared
_KEY = "ns_per_instruction"  # a profile with this key: each instruction takes so long, whichever it is


def are_counted(manifest: Manifest) -> bool:
    """Return whether all devices of a run keep virtual time; in real time, instructions are not counted."""
    profiles = manifest.conditions.get("profiles", {})
    duts = {entry.dut for entry in manifest.cases}
    return bool(duts) and all(_is_virtual(profiles.get(dut, {})) for dut in duts)


def per_frame(trial: Trial) -> dict[str, float]:
    """Return the instructions per frame of each gateway of which they are known."""
    counted = {side: reading.instructions_per_frame for side, reading in trial.gateways.items()}
    return {side: round(value, DIGITS) for side, value in counted.items() if value}


def _is_virtual(profile: Mapping[str, Any]) -> bool:
    """Return whether a profile has the time of an instruction."""
    return _KEY in profile or any(
        _is_virtual(inner) for inner in profile.values() if isinstance(inner, Mapping)
    )
