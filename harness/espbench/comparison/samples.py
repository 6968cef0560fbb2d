# SPDX-License-Identifier: Apache-2.0
"""Outcomes of runs with what the gateways said of themselves: what a comparison is made from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from espbench.errors import UsageError
from espbench.results import RunDirectory
from espbench.terms import CaseEntry, Manifest, Outcome

BASELINES = ("plain", "null")  # kinds of stacks that show what the rest costs without or with empty ESP


@dataclass(frozen=True)
class Run:
    """One run, under a name no other run of the comparison has."""

    name: str
    manifest: Manifest
    outcomes: list[Outcome]
    where: str = ""

    @property
    def compare(self) -> dict[str, Any]:
        """The plan's `compare`: by, reference, seed; empty where the plan has none."""
        return self.manifest.compare


@dataclass(frozen=True)
class Sample:
    """One outcome, its run, and what was read back from the gateways of its case (empty: not recorded)."""

    outcome: Outcome
    run: str
    kind: str  # the stack itself, whatever its label
    kernel: str
    version: str

    @property
    def is_baseline(self) -> bool:
        return self.kind in BASELINES

    @property
    def pair(self) -> tuple[str, int]:
        """Equal for the repeats of different arms that were measured one soon after the other."""
        return self.run, self.outcome.repeat


def read(directories: Sequence[RunDirectory]) -> list[Run]:
    """The runs with distinct names; UsageError for one that has nothing to compare."""
    runs = []
    names = _names(directories)
    for directory, name in zip(directories, names, strict=True):
        outcomes = directory.outcomes()
        if not outcomes:
            trials = sum(directory.trial_counts().values())
            raise UsageError(
                f"{directory.path}: nothing to compare\n"
                "  expected: a run with at least one finished case\n"
                f"  got: {trials} trials, no outcome yet\n"
                f"  what to do: let it finish: espbench run --resume {directory.path}"
            )
        runs.append(Run(name, directory.manifest, outcomes, str(directory.path)))
    return runs


def samples(runs: Sequence[Run]) -> list[Sample]:
    """Every outcome of every run, in the order of the runs and of their cases."""
    found = []
    for run in runs:
        entries = {entry.case: entry for entry in run.manifest.cases}
        for outcome in run.outcomes:
            context = run.manifest.contexts.get(run.manifest.context_of_case.get(outcome.case, ""), {})
            found.append(
                Sample(
                    outcome=outcome,
                    run=run.name,
                    kind=kind_of(entries.get(outcome.case), outcome.stack),
                    kernel=read_back(context.get("kernel")),
                    version=read_back(context.get("stack_version")),
                )
            )
    return found


def kind_of(entry: CaseEntry | None, label: str) -> str:
    """The stack behind a label; older runs record the label alone."""
    return (entry.stack_kind if entry else "") or label


def read_back(value: object) -> str:
    """`{home: 6.1, office: 6.1}` → `6.1`; both where they differ."""
    if not isinstance(value, dict):
        return str(value or "")
    told = {str(side): str(text) for side, text in value.items() if text}
    if len(set(told.values())) <= 1:
        return next(iter(told.values()), "")
    return ", ".join(f"{side} {text}" for side, text in told.items())


def _names(directories: Sequence[RunDirectory]) -> list[str]:
    """The runs' own names, or as much of their paths as tells them apart."""
    candidates = (
        [d.manifest.name for d in directories],
        [d.path.resolve().name for d in directories],
        [str(d.path.resolve()) for d in directories],
    )
    for names in candidates:
        if len(set(names)) == len(names):
            return names
    twice = next(name for name, n in Counter(candidates[-1]).items() if n > 1)
    raise UsageError(
        f"{twice}: named twice\n  expected: different runs\n  what to do: name each run directory once"
    )
