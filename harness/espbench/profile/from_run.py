# SPDX-License-Identifier: Apache-2.0
"""Profiles of a run that `espbench run --profiled` made: what its gateways left in logs/, held against its records."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from espbench.errors import EspbenchError
from espbench.profile import symbols
from espbench.profile.attribution import Profile, attribute
from espbench.profile.sections import Section, sections
from espbench.results import RunDirectory
from espbench.terms import Trial

# Of a guest's sections the last is that of the trial; the one before it is of the time before that, and the one before
# that is the last of those in which reading the CPU's time was weighed: from one reading to the next, and no more.
_TRIAL, _WEIGHED = -1, -3
_NS = "ns_per_instruction"


def profiles(run: RunDirectory) -> list[Profile]:
    """The profile of each gateway of each case; what was read is removed.

    EspbenchError where some is missing, or the sum is not what the trial's record holds.
    """
    found = []
    duts = {entry.case: entry.dut for entry in run.manifest.cases}
    for case in run.manifest.base_loads:
        trials = run.trials_of(case)
        if len(trials) != 1 or not trials[0].gateways:
            reasons = dict.fromkeys(
                str(reason).partition("\n")[0] for trial in trials for reason in trial.reasons
            )
            told = "; ".join(reasons)
            raise EspbenchError(
                f"{case}: expected one trial with its gateways, got {len(trials)} ({told or 'nothing was measured'})"
            )
        ns = _ns_per_instruction(run.manifest.conditions.get("profiles", {}).get(duts[case], {}))
        for side in trials[0].gateways:
            found.append(_profile(run.logs / f"profile-{case}-{side}.txt", case, side, trials[0], ns))
    return found


def _profile(file: Path, case: str, side: Any, trial: Trial, ns: Fraction) -> Profile:
    names = file.with_name(file.name + ".symbols")
    if not file.is_file() or not names.is_file():
        raise EspbenchError(f"{file}: the guest left no profile with the names of its functions")
    reading = trial.gateways[side]
    if reading.cpu_ns is None or not reading.frames:
        raise EspbenchError(f"{case}, {side}: no frames, or no CPU time of it, were counted")
    read = sections(file.read_text())
    told = symbols.read(names.read_text())
    asking = read[_WEIGHED].clock
    demand_the_records(case, side, read[_TRIAL], asking, reading.cpu_ns, ns)
    profile = attribute(case, side, reading.frames, read[_TRIAL], told, asking)
    file.unlink()
    names.unlink()
    return profile


def demand_the_records(case: str, side: str, trial: Section, asking: int, cpu_ns: int, ns: Fraction) -> None:
    """EspbenchError unless the record's time is that of the section's instructions, to one where ns is a fraction."""
    counted = trial.clock - asking
    recorded = cpu_ns / ns
    if abs(counted - recorded) > (0 if ns.denominator == 1 else 1):
        raise EspbenchError(
            f"{case}, {side}: the profile has {counted} instructions, the trial's record {float(recorded):.1f}; "
            "a fault of espbench's own"
        )


def _ns_per_instruction(profile: Mapping[str, Any]) -> Fraction:
    if _NS in profile:
        return Fraction(str(profile[_NS]))
    for inner in profile.values():
        if isinstance(inner, Mapping):
            try:
                return _ns_per_instruction(inner)
            except KeyError:
                continue
    raise KeyError(_NS)
