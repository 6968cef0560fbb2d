# SPDX-License-Identifier: Apache-2.0
"""Reads a run's measurements at the loads of a base; a missing measurement is a problem and never counts as good."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from espbench.gate import instructions
from espbench.gate.base import AT_THROUGHPUT, Base, Point
from espbench.gate.from_run import BASELINE
from espbench.gate.judging import Measured, Measurements
from espbench.gate.limits import Limit, Quantity
from espbench.gate.verdict import Problem
from espbench.results import RunDirectory
from espbench.sentences import goal_name
from espbench.terms import AT_BASE_LOADS, BaseLoad, CaseEntry, Finding, Trial

_LEAST = 0.05  # a floor is no lower than this share of a load


def base_loads(
    base: Base, entries: Sequence[CaseEntry], limits: Mapping[Quantity, Limit]
) -> dict[str, list[BaseLoad]]:
    """Return the base's loads for each of these cases; by the case's name in the new run. Other cases are left out.

    Only a throughput has a floor below its load.
    """
    loads: dict[str, list[BaseLoad]] = {}
    for entry in entries:
        case = base.cases.get(Point.of(entry))
        for s in case.samples if case else ():
            if s.repeat == entry.repeat:
                allowance = limits["throughput"].allowance(s.load_fps) if s.share == AT_THROUGHPUT else 0.0
                floor = max(s.load_fps - allowance, _LEAST * s.load_fps)
                load = BaseLoad(
                    goal=s.goal, load_fps=s.load_fps, duration_s=s.duration_s, floor_fps=round(floor, 3)
                )
                loads.setdefault(entry.case, []).append(load)
    return loads


def measurements(run: RunDirectory, base: Base) -> tuple[Measurements, list[Problem]]:
    """Return the measurement of each of the base's samples, and the problems: the reasons why a sample has none."""
    problems = [Problem(damage.case, f"trials.jsonl: {damage}") for damage in run.damage()]
    findings = {finding.case: finding for finding in run.findings() if finding.test == AT_BASE_LOADS}
    entries = {entry.case: entry for entry in run.manifest.cases}
    measured: dict[tuple[Point, int, float, float], Measured] = {}
    for name, loads in run.manifest.base_loads.items():
        entry = entries.get(name)
        if entry is None:
            problems.append(Problem(name, "the run has no such case"))
            continue
        if why := _unfit(entry, findings.get(name)):
            problems.append(Problem(name, why))
            continue
        problems += _take(measured, entry, loads, _valid(run.trials_of(name)))
    reported = {problem.case for problem in problems}
    for point, case in base.cases.items():
        names = {e.repeat: e.case for e in entries.values() if Point.of(e) == point}
        for s in case.samples:
            name = names.get(s.repeat, str(point))
            measurement = measured.get((point, s.repeat, s.goal, s.load_fps))
            if measurement is None:
                if name not in reported:
                    problems.append(
                        Problem(name, f"{goal_name(s.goal)}: no trial at {s.load_fps:,.0f} frames/s")
                    )
            elif lacking := s.instructions.keys() - measurement.instructions.keys():
                problems.append(Problem(name, f"the run has no gateway {' and '.join(sorted(lacking))}"))
    return measured, problems


def _unfit(entry: CaseEntry, finding: Finding | None) -> str:
    """Say why the case may not be judged; empty if it may."""
    if finding is None:
        return "no result"
    if finding.status != "OK":
        return f"{finding.status}: {'; '.join(map(str, finding.reasons)) or finding.words}"
    if entry.stack_kind != BASELINE and finding.encryption != "proven":
        return "encryption not proven"
    return ""


def _take(
    measured: dict[tuple[Point, int, float, float], Measured],
    entry: CaseEntry,
    loads: Sequence[BaseLoad],
    trials: Mapping[tuple[float, float], Trial],
) -> list[Problem]:
    """Add the measurements of the case's trials to `measured`; return the problems of loads without a measurement."""
    problems = []
    for load in loads:
        trial, floor = (trials.get((fps, load.duration_s)) for fps in (load.load_fps, load.floor_fps))
        if trial is None or (floor is None and not trial.meets(load.goal)):
            at_fps = load.load_fps if trial is None else load.floor_fps
            problems.append(Problem(entry.case, f"no valid trial at {at_fps:,.0f} frames/s"))
            continue
        counted = instructions.per_frame(trial)
        lacking = [side for side in trial.gateways if side not in counted]
        if lacking or not trial.gateways:
            which = " and ".join(lacking) or "the gateways"
            problems.append(Problem(entry.case, f"the instructions of {which} are not known"))
            continue
        met = trial.meets(load.goal)
        floor_met = None if met or floor is None else floor.meets(load.goal)
        measured[Point.of(entry), entry.repeat, load.goal, load.load_fps] = Measured(
            counted, met, floor_met, trial.frame_loss_ratio
        )
    return problems


def _valid(trials: Sequence[Trial]) -> dict[tuple[float, float], Trial]:
    return {(t.intended_fps, t.intended_duration_s): t for t in trials if t.validity == "VALID"}
