# SPDX-License-Identifier: Apache-2.0
"""Instructions per frame: in virtual time a gateway's CPU time is the instructions it executed, in another unit."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from espbench.terms import GatewayReading, Manifest, Trial

KEY = "ns_per_instruction"  # of a profile: each instruction takes so long, whichever it is
DIGITS = 3  # of what is recorded and compared


def ns_per_instruction(manifest: Manifest, dut: str) -> Fraction | None:
    """What an instruction of this device takes, ns; None in real time, where nobody counts them."""
    found = _under(manifest.conditions.get("profiles", {}).get(dut, {}))
    return None if found is None else Fraction(str(found))


def per_frame(trial: Trial, ns: Fraction) -> dict[str, float]:
    """Instructions per frame of each gateway, rounded to DIGITS; those whose CPU or frames are not known left out."""
    counted = {side: _instructions(reading, ns) for side, reading in trial.gateways.items()}
    return {side: value for side, value in counted.items() if value is not None}


def _instructions(reading: GatewayReading, ns: Fraction) -> float | None:
    if reading.cpu_ns is None or not reading.frames:
        return None
    return round(float(Fraction(reading.cpu_ns) / ns / reading.frames), DIGITS)


def _under(profile: Mapping[str, Any]) -> Any:
    """The key's value, wherever in the profile it stands."""
    if KEY in profile:
        return profile[KEY]
    inner = (value for value in profile.values() if isinstance(value, Mapping))
    return next((found for found in map(_under, inner) if found is not None), None)
