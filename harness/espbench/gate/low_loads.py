# SPDX-License-Identifier: Apache-2.0
"""Adds a second load to the base of a run: a tenth of each throughput, where each frame finds an idle gateway.

A run's own trials are at loads near its throughput. There, a gateway's cost per frame depends on its queues and on how
many frames each interrupt brings: a single instruction moves frames from one batch to the next. So the plan is measured
once more, at the throughputs and at a tenth of them, on the same gateways. At the throughputs, the instructions must be
exactly those of the run; otherwise the gateways are not the same any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from espbench.errors import UsageError
from espbench.gate import from_check
from espbench.gate.base import LOW, Base, BaseCase, Sample
from espbench.results import RunDirectory

_MOST_SHOWN = 5


def to_measure(base: Base) -> Base:
    """Return the base with one more sample at a tenth of each load.

    Until these are measured, they have the instructions at the whole load.
    """

    def low(sample: Sample) -> Sample:
        return replace(sample, load_fps=round(LOW * sample.load_fps, 3), share=LOW)

    cases = {
        point: replace(case, samples=[*case.samples, *map(low, case.samples)])
        for point, case in base.cases.items()
    }
    return replace(base, cases=cases)


def measured(wanted: Base, run: RunDirectory) -> Base:
    """Return the base with the run's measurements at the low loads.

    UsageError if one is missing, or if the instructions at a whole load differ from the base's.
    """
    measurements, problems = from_check.measurements(run, wanted)
    if problems:
        lines = [f"{problem.case}: {problem.why}" for problem in problems]
        raise _refused(wanted, "each case measured at a tenth of its throughput", lines)
    moved: list[str] = []

    def taken(case: BaseCase, sample: Sample) -> Sample:
        now = measurements[case.point, sample.repeat, sample.goal, sample.load_fps]
        if sample.share == LOW:
            return replace(sample, instructions=now.instructions, met=now.met)
        if dict(now.instructions) != dict(sample.instructions):
            moved.append(f"{case.point}: {dict(sample.instructions)}, now {dict(now.instructions)}")
        return sample

    cases = {
        point: replace(case, samples=[taken(case, sample) for sample in case.samples])
        for point, case in wanted.cases.items()
    }
    if moved:
        raise _refused(wanted, "the same instructions per frame as in the run's own trials", moved)
    return replace(wanted, cases=cases)


def lossy(base: Base) -> list[str]:
    """Return the points of which some repeat missed a loss goal at a low load: a check cannot judge its loss there."""
    return [
        str(point)
        for point, case in base.cases.items()
        if any(s.share == LOW and not s.met for s in case.samples)
    ]


def _refused(base: Base, expected: str, got: Sequence[str]) -> UsageError:
    more = f"; and {len(got) - _MOST_SHOWN} more" if len(got) > _MOST_SHOWN else ""
    return UsageError(
        f"{base.where}: no base can be made of it here\n  expected: {expected}\n"
        f"  got: {'; '.join(got[:_MOST_SHOWN])}{more}\n"
        "  what to do: put in place what the run was made with, or measure the plan anew"
    )
