# SPDX-License-Identifier: Apache-2.0
"""Calculates the results of a run again, from its plan, its manifest and its recorded trials alone.

The procedures get the trials from the record instead of making them. So this needs no gateways, no root, and not the
machine that measured. Trials that the procedures would not have asked for, or would still ask for, show that the record
was changed, or that this espbench is another one. Loads are compared in the tests of _ONE_LOAD alone.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from espbench.errors import EspbenchError
from espbench.measure.inputs.setup import Request
from espbench.plan import Case, cases
from espbench.plan.resolved.frame_sizes import USUAL_MTU
from espbench.plan.resolved.resolved_plan import ResolvedPlan
from espbench.procedures.procedure import CaseFacts
from espbench.results import RunDirectory, outcome_files
from espbench.runs.book import Book, Results
from espbench.runs.one_case import encryption_of
from espbench.runs.paired_run import PairedRun, RunParts, rivals
from espbench.runs.procedure_kinds import procedure_for
from espbench.terms import PAIRED, Encryption, Finding, Manifest, Outcome, Trial, kind_of_test

# Remarks on a figure also come from the machine that measured (its notes), so they are not calculated again.
_NOT_CALCULATED = {"warnings"}
# The tests whose trials have the load that was asked for. (Others may change it, such as bursts that are too fast.)
_ONE_LOAD = ("throughput", "latency", "frame_loss")


class NotFollowing(EspbenchError):
    """The recorded trials are not those that lead to a result."""


@dataclass(frozen=True)
class Difference:
    """A result that does not follow from the recorded trials: its case, which result of it, and what is different."""

    case: str
    result: str
    what: str


class _Kept:
    """The records of a finished run, from which is only read."""

    def __init__(self, directory: RunDirectory) -> None:
        self._directory = directory

    @property
    def manifest(self) -> Manifest:
        return self._directory.manifest

    @property
    def logs(self) -> NoReturn:
        raise NotFollowing("trials are missing")

    def update_manifest(self, **changes: Any) -> None:
        raise NotFollowing(f"the manifest lacks {', '.join(changes)}")

    def trials_of(self, case: str) -> list[Trial]:
        return self._directory.trials_of(case)

    def append(self, trial: Trial) -> None:
        raise NotFollowing("trials are missing")

    def save_results(self, results: Sequence[Outcome | Finding]) -> None:
        """Keep the file as it is."""

    def arrange(self, cases: Sequence[str]) -> None:
        """Keep the file as it is."""


class _Nobody:
    """Receives no news, and has no room for gateways: nothing is measured. virtual_time: of the run."""

    def __init__(self, *, virtual_time: bool) -> None:
        self.virtual_time = virtual_time

    def apart(self, cases: Sequence[Case]) -> str:
        return ""

    def note(self, text: str) -> None: ...
    def trial_started(self, *_: object) -> None: ...
    def trial_progress(self, event: dict[str, Any]) -> None: ...
    def trial_done(self, record: Trial) -> None: ...
    def case_done(self, results: list[Outcome | Finding]) -> None: ...
    def time_left(self, seconds: float) -> None: ...


def cases_of_run(resolved: ResolvedPlan, manifest: Manifest) -> list[Case]:
    """Return the cases of a run by its plan and the devices that it recorded; NotFollowing if it recorded others."""
    duts = list(dict.fromkeys(entry.dut for entry in manifest.cases))
    profiles = manifest.conditions.get("profiles", {})
    mtu = min((profiles[dut].get("mtu", USUAL_MTU) for dut in duts if dut in profiles), default=USUAL_MTU)
    listed = cases(resolved, duts, mtu=mtu) if duts else []
    if [case.id for case in listed] != [entry.case for entry in manifest.cases]:
        raise NotFollowing("manifest.json: its cases are not those of plan.yaml")
    return listed


def differences(resolved: ResolvedPlan, directory: RunDirectory) -> Iterator[Difference]:
    """Yield each result that does not follow from the trials, in the plan's order.

    A case whose trials lead to no result is one difference. Cases of an unfinished run that have no result yet are left
    out, and so are the results that `left_out` names.
    """
    kept, recorded = _Kept(directory), directory.results()
    of_case: defaultdict[str, Results] = defaultdict(list)
    for result in recorded:
        of_case[result.case].append(result)
    paired = {result.case for result in recorded if result.test == PAIRED}
    judged: set[str] = set()
    book = Book(resolved, cases_of_run(resolved, directory.manifest), kept)
    for case in book.cases:
        begun = bool(of_case[case.id]) or bool(directory.manifest.finished)
        if not begun or not all(book.has(other) for other in book.needs(case)):
            continue
        judged.add(case.id)
        try:
            results = _of_case(case, book, directory, external=resolved.plan.is_external)
        except EspbenchError as error:
            yield Difference(case.id, case.test, str(error))
            continue
        book.finish(case, results)
        yield from _apart(case.id, of_case[case.id], results)
    if left_out(directory):
        judged |= paired
    elif directory.manifest.finished or paired:
        try:
            compared = _compared(resolved, book, kept)
        except EspbenchError as error:
            compared = []
            judged |= paired
            yield Difference("at the same loads", "comparison", str(error))
        for finding in compared:
            judged.add(finding.case)
            yield from _apart(finding.case, of_case[finding.case], [finding])
    for result in recorded:
        if result.case not in judged:
            yield Difference(result.case, _name(result), "follows from no trial")


def left_out(directory: RunDirectory) -> str:
    """Say which results are not calculated again; empty if all are."""
    if directory.manifest.machines and any(result.test == PAIRED for result in directory.results()):
        return "comparisons at the same loads are left out, since several machines measured"
    return ""


def _of_case(case: Case, book: Book, directory: RunDirectory, *, external: bool) -> Results:
    running = procedure_for(case, book.known(case), [])
    for trial in directory.trials_of(case.id):
        asked = running.next()
        if asked is None or (kind_of_test(case.test) in _ONE_LOAD and not _is_asked(trial, asked)):
            raise NotFollowing(
                f"trial {trial.sequence}, {trial.intended_fps:,.0f} frames/s, was not asked for"
            )
        try:
            running.add(trial)
        except ValueError as error:
            raise NotFollowing(f"trial {trial.sequence}: {error}") from None
    if running.next() is not None:
        raise NotFollowing(f"it needs more than the {len(running.trials)} trials that are recorded")
    return running.results(CaseFacts(case.dut, encryption_of(case, running.trials, external=external), []))


def _is_asked(trial: Trial, asked: Request) -> bool:
    """Return whether a trial is the one that was asked for; loads are recorded with three decimals."""
    return trial.phase == asked.phase and math.isclose(
        trial.intended_fps, asked.load_fps, rel_tol=1e-6, abs_tol=1e-3
    )


def _compared(resolved: ResolvedPlan, book: Book, kept: _Kept) -> list[Finding]:
    points = rivals(resolved, book.cases)
    if not points or not all(book.has(case) for point in points for case in (point.a, point.b)):
        return []

    def encryption(case: Case, trials: Iterable[Trial]) -> Encryption:
        return encryption_of(case, trials, external=resolved.plan.is_external)

    def nothing() -> NoReturn:
        raise NotFollowing("it needs more trials than are recorded")

    nobody = _Nobody(virtual_time=kept.manifest.is_virtual)
    parts = RunParts(
        resolved.plan,
        kept,
        nobody,
        new_setups=nothing,
        observer=nobody,
        maximum_fps=lambda case: book.limits(case).maximum_fps,
        encryption=encryption,
        warnings=lambda case: [],
    )
    return PairedRun(parts, points, book.outcomes()).run()


def _apart(case: str, recorded: Results, calculated: Results) -> Iterator[Difference]:
    """Yield the results of a case in which the record and the calculation differ."""
    as_recorded = outcome_files.from_json_text(outcome_files.json_text(calculated))  # with its rounding
    for name, count in Counter(map(_name, recorded)).items():
        if count > 1:
            yield Difference(case, name, f"recorded {count} times")
    was, now = (
        {_name(result): _figures(result) for result in results} for results in (recorded, as_recorded)
    )
    for name in dict.fromkeys([*now, *was]):
        if name not in was or name not in now:
            yield Difference(case, name, "not recorded" if name in now else "does not come out")
        elif apart := [
            f"{key}: recorded {was[name].get(key)}, calculated {now[name].get(key)}"
            for key in dict.fromkeys([*now[name], *was[name]])
            if was[name].get(key) != now[name].get(key)
        ]:
            yield Difference(case, name, "; ".join(apart))


def _name(result: Outcome | Finding) -> str:
    """Return the name of a result within its case."""
    return f"loss goal {100 * result.loss_goal:g} %" if isinstance(result, Outcome) else result.test


def _figures(result: Outcome | Finding) -> dict[str, Any]:
    return result.model_dump(mode="json", exclude=_NOT_CALCULATED)
