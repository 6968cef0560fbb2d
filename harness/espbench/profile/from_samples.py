# SPDX-License-Identifier: Apache-2.0
"""Makes the profiles of a run in real time (`espbench run --profiled`) from perf's samples in logs/ and its records."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from espbench.errors import EspbenchError
from espbench.profile import samples
from espbench.profile.sampled import SampledProfile, attribute
from espbench.results import RunDirectory
from espbench.terms import Trial

_END = ".samples"  # of the files that platforms.sampling writes


def profiles(run: RunDirectory) -> tuple[list[SampledProfile], list[str]]:
    """Return the profile of each gateway in the last trial of each case, and for cases without one the reason.

    The files with the samples are removed.
    """
    made: list[SampledProfile] = []
    problems: list[str] = []
    for case in run.manifest.base_loads:
        try:
            trial = valid_trial(case, run.trials_of(case))
            made += [_profile(run.logs, case, side, trial) for side in trial.gateways]
        except EspbenchError as error:
            problems.append(str(error))
        for left in run.logs.glob(f"profile-{case}-*{_END}"):
            left.unlink()
    return made, problems


def valid_trial(case: str, trials: Sequence[Trial]) -> Trial:
    """Return the trial of a case that was profiled, its last; raise EspbenchError if that is not valid."""
    if trials and trials[-1].validity == "VALID" and trials[-1].gateways:
        return trials[-1]
    reasons = dict.fromkeys(
        str(reason).partition("\n")[0] for reason in (trials[-1].reasons if trials else ())
    )
    raise EspbenchError(
        f"{case}: expected a valid trial with its gateways, got none of {len(trials)} "
        f"({'; '.join(reasons) or 'nothing was measured'})"
    )


def _profile(logs: Path, case: str, side: str, trial: Trial) -> SampledProfile:
    file = logs / f"profile-{case}-{side}{_END}"
    if not file.is_file():
        raise EspbenchError(f"{file}: perf left no samples of this gateway")
    reading = {str(name): of for name, of in trial.gateways.items()}[side]
    if reading.cpu_ns is None or not reading.frames:
        raise EspbenchError(f"{case}, {side}: no frames, or no CPU time of it, were counted")
    first, _, text = file.read_text(encoding="utf-8").partition("\n")
    threads = json.loads(first)["threads"]
    read = samples.read(text, str(file), None if threads is None else frozenset(threads))
    return attribute(case, side, reading.frames, reading.cpu_ns, read)
