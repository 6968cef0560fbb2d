# SPDX-License-Identifier: Apache-2.0
"""Makes a base from a run in virtual time: the final trial of each throughput, and its instructions per frame."""

from __future__ import annotations

from collections.abc import Iterable

from espbench.errors import UsageError
from espbench.gate import conditions, instructions
from espbench.gate.base import Base, BaseCase, Point, Sample
from espbench.results import RunDirectory
from espbench.terms import WITH_FIGURE, CaseEntry, Outcome, kind_of_test

BASELINE = "plain"  # encrypts nothing, so there is nothing to prove
GATED = "throughput"
_MOST_SHOWN = 5


def base_of(run: RunDirectory) -> Base:
    """Return the base of a run; UsageError if the run is damaged, unfinished, in real time, or lacks a figure."""
    if not run.manifest.is_virtual:
        raise refused(
            run, "a run in virtual time, whose instructions can be counted", f"one on {run.manifest.platform}"
        )
    if damage := run.damage():
        raise refused(run, "trials as they were written", "; ".join(map(str, damage[:_MOST_SHOWN])))
    entries = {entry.case: entry for entry in run.manifest.cases if kind_of_test(entry.test) == GATED}
    outcomes = [outcome for outcome in run.outcomes() if outcome.case in entries]
    if not entries:
        tests = dict.fromkeys(entry.test for entry in run.manifest.cases)
        raise refused(run, "a throughput test, whose loads are measured again", ", ".join(tests) or "no case")
    if missing := sorted(entries.keys() - {outcome.case for outcome in outcomes}):
        raise refused(run, "a result of every case", f"none of {_some(missing)}")
    if unfit := [f"{o.case}: {why}" for o in outcomes if (why := _unfit(o, entries[o.case]))]:
        raise refused(run, "a valid figure of every case", _some(unfit))
    recorded = conditions.of_run(run.manifest)
    cases: dict[Point, BaseCase] = {}
    for point, of_point in _by_point(outcomes).items():
        samples = [_sample(run, outcome) for outcome in of_point]
        subject = conditions.relevant(recorded.subject, point.dut, point.stack)
        cases[point] = BaseCase(point, samples, run.path.resolve().name, run.manifest.started, subject)
    return Base(str(run.path), recorded.instrument, cases)


def refused(run: RunDirectory, expected: str, got: str) -> UsageError:
    """Return the error for a run that cannot be a base."""
    return UsageError(
        f"{run.path}: not a base\n  expected: {expected}\n  got: {got}\n"
        "  what to do: mend the cause and measure the base again, or name another one"
    )


def _unfit(outcome: Outcome, entry: CaseEntry) -> str:
    if outcome.status not in WITH_FIGURE or outcome.final_trial is None:
        return outcome.status
    if entry.stack_kind != BASELINE and outcome.encryption != "proven":
        return "encryption not proven"
    return ""


def _sample(run: RunDirectory, outcome: Outcome) -> Sample:
    trial = next(t for t in run.trials_of(outcome.case) if t.sequence == outcome.final_trial)
    counted = instructions.per_frame(trial)
    if not trial.gateways or len(counted) < len(trial.gateways):
        raise refused(
            run,
            f"the instructions of each gateway in trial {trial.sequence} of {outcome.case}",
            "a gateway without",
        )
    return Sample(
        outcome.repeat,
        outcome.loss_goal,
        trial.intended_fps,
        trial.intended_duration_s,
        counted,
        trial.meets(outcome.loss_goal),
    )


def _by_point(outcomes: Iterable[Outcome]) -> dict[Point, list[Outcome]]:
    by_point: dict[Point, list[Outcome]] = {}
    for outcome in outcomes:
        by_point.setdefault(Point.of(outcome), []).append(outcome)
    return by_point


def _some(texts: list[str]) -> str:
    more = f" and {len(texts) - _MOST_SHOWN} more" if len(texts) > _MOST_SHOWN else ""
    return "; ".join(texts[:_MOST_SHOWN]) + more
