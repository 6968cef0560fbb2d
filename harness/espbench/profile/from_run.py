# SPDX-License-Identifier: Apache-2.0
"""Makes the profiles of a run in virtual time (`espbench run --profiled`) from the counts in logs/ and its records."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from espbench.errors import EspbenchError
from espbench.profile import symbols
from espbench.profile.attribution import Profile, attribute
from espbench.profile.from_samples import valid_trial
from espbench.profile.programs import read as read_programs
from espbench.profile.sections import Section, sections
from espbench.results import RunDirectory
from espbench.terms import Trial

# Sections of a guest, from the last: the trial; the time before the trial; and the time between two readings of the CPU
# time without work in between, which shows the cost of one reading.
_TRIAL, _WEIGHED = -1, -3
_NS = "ns_per_instruction"
# The record's CPU time is computed from four readings (two for the trial, two for the cost of a reading), each off by
# less than 1 ns.
ROUNDING_NS = 4


def profiles(run: RunDirectory) -> tuple[list[Profile], list[str]]:
    """Return the profile of each gateway in the last trial of each case, and for cases without one the reason.

    The files that were read are removed. A profile whose sum is not the CPU time of the trial's record is none.
    """
    made: list[Profile] = []
    problems: list[str] = []
    duts = {entry.case: entry.dut for entry in run.manifest.cases}
    for case in run.manifest.base_loads:
        ns = _ns_per_instruction(run.manifest.conditions.get("profiles", {}).get(duts[case], {}))
        try:
            trial = valid_trial(case, run.trials_of(case))
            made += [
                _profile(run.logs / f"profile-{case}-{side}.txt", case, side, trial, ns)
                for side in trial.gateways
            ]
        except EspbenchError as error:
            problems.append(str(error))
    return made, problems


def _profile(file: Path, case: str, side: Any, trial: Trial, ns: Fraction) -> Profile:
    beside = names, maps, programs = [
        file.with_name(file.name + end) for end in (".symbols", ".maps", ".zip")
    ]
    if not all(each.is_file() for each in (file, *beside)):
        raise EspbenchError(f"{file}: the guest left no profile with the names of its functions")
    reading = trial.gateways[side]
    if reading.cpu_ns is None or not reading.frames:
        raise EspbenchError(f"{case}, {side}: no frames, or no CPU time of it, were counted")
    read = sections(file.read_text())
    table = symbols.read(names.read_text())
    asking = read[_WEIGHED].clock
    demand_the_records(case, side, read[_TRIAL], asking, reading.cpu_ns, ns)
    with ZipFile(programs) as files:
        running = read_programs(maps.read_text(), files)
        profile = attribute(case, side, reading.frames, read[_TRIAL], table, asking, running)
    for each in (file, *beside):
        each.unlink()
    return profile


def demand_the_records(case: str, side: str, trial: Section, asking: int, cpu_ns: int, ns: Fraction) -> None:
    """Raise EspbenchError unless the CPU time of the record, cpu_ns, equals that of the section's instructions.

    ns: the time of one instruction, ns. If it is not a whole number, the record's time may differ by its rounding to
    whole ns.
    """
    counted = trial.clock - asking
    recorded = cpu_ns / ns
    if abs(counted - recorded) * ns > (0 if ns.denominator == 1 else ROUNDING_NS):
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
