# SPDX-License-Identifier: Apache-2.0
"""Reads the outcomes of runs that are compared, with the kernels and versions that the gateways reported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from espbench.errors import UsageError
from espbench.results import RunDirectory
from espbench.terms import PAIRED, CaseEntry, Finding, Manifest, Outcome, kind_of_test

VERSION_OPTIONS = ("version", "prefix")  # a stack's options that choose its version
THROUGHPUT = "throughput"
BASELINES = ("plain", "null")  # kinds of stacks that do not encrypt: without ESP, and with null ESP


@dataclass(frozen=True)
class Run:
    """One run, under a name that no other run of the comparison has."""

    name: str
    manifest: Manifest
    outcomes: list[Outcome]
    where: str = ""
    paired: Sequence[Finding] = ()  # of its comparison at fixed loads

    @property
    def compared_cases(self) -> list[CaseEntry]:
        """Its cases that have, or will have, a throughput."""
        with_outcomes = {outcome.test for outcome in self.outcomes}
        return [case for case in self.manifest.cases if _is_compared(case, with_outcomes)]

    @property
    def other_cases(self) -> list[CaseEntry]:
        """Its cases of tests that are not compared."""
        with_outcomes = {outcome.test for outcome in self.outcomes}
        return [case for case in self.manifest.cases if not _is_compared(case, with_outcomes)]

    @property
    def compare(self) -> dict[str, Any]:
        """The plan's `compare`: by, reference, seed; empty where the plan has none."""
        return self.manifest.compare


def _is_compared(case: CaseEntry, with_outcomes: Collection[str]) -> bool:
    return case.test in with_outcomes or kind_of_test(case.test) == THROUGHPUT


@dataclass(frozen=True)
class Sample:
    """One outcome, its run, and what was read back from the gateways of its case (empty: not recorded)."""

    outcome: Outcome
    run: str
    kind: str  # the stack itself, whatever its label
    kernel: str
    version: str
    options: str = "defaults"  # of the stack, except those that choose its version
    machine: str = ""  # which measured it, in real time; empty if that is not recorded

    @property
    def is_baseline(self) -> bool:
        return self.kind in BASELINES

    @property
    def pair(self) -> tuple[str, int]:
        """A key that is equal for repeats of different arms that were measured soon after each other."""
        return self.run, self.outcome.repeat


def read(directories: Sequence[RunDirectory]) -> list[Run]:
    """Return the runs with distinct names; raise UsageError if one of them has nothing to compare."""
    runs = []
    names = names_of(directories)
    for directory, name in zip(directories, names, strict=True):
        outcomes = directory.outcomes()
        if not outcomes:
            raise _nothing_to_compare(directory)
        paired = [finding for finding in directory.findings() if finding.test == PAIRED]
        runs.append(Run(name, directory.manifest, outcomes, str(directory.path), paired))
    return runs


def _nothing_to_compare(directory: RunDirectory) -> UsageError:
    tests = list(dict.fromkeys(case.test for case in directory.manifest.cases))
    if tests and not any(kind_of_test(test) == THROUGHPUT for test in tests):
        return UsageError(
            f"{directory.path}: nothing to compare\n"
            "  expected: a run with a throughput test: only throughputs are compared\n"
            f"  got: {', '.join(tests)}\n"
            "  what to do: put - throughput: {} among the plan's tests and run it; the other tests' figures stand "
            "side by side in the runs' reports and findings.csv"
        )
    trials = sum(directory.trial_counts().values())
    return UsageError(
        f"{directory.path}: nothing to compare\n"
        "  expected: a run with at least one finished throughput case\n"
        f"  got: {trials} trials, no outcome yet\n"
        f"  what to do: let it finish: espbench run --resume {directory.path}"
    )


def samples(runs: Sequence[Run]) -> list[Sample]:
    """Return every outcome of every run, in the order of the runs and of their cases.

    If the gateways of a case did not report a kernel or a version (for example because no negotiation succeeded), the
    sample has that of the run's other cases with the same DUT and stack, if those agree.
    """
    measured = []
    for run in runs:
        entries = {entry.case: entry for entry in run.manifest.cases}
        versions: dict[tuple[str, str, str], set[str]] = {}
        for entry in run.manifest.cases:
            for what, value in said(run.manifest, entry.case).items():
                versions.setdefault((entry.dut, entry.stack, what), set()).add(value)
        for outcome in run.outcomes:
            own = {
                what: value or _only(versions.get((outcome.dut, outcome.stack, what), set()) - {""})
                for what, value in said(run.manifest, outcome.case).items()
            }
            entry_of = entries.get(outcome.case)
            measured.append(
                Sample(
                    outcome=outcome,
                    run=run.name,
                    kind=kind_of(entry_of, outcome.stack),
                    kernel=own["kernel"],
                    version=own["stack_version"],
                    options=options_of(entry_of.options if entry_of else {}, VERSION_OPTIONS),
                    machine=run.manifest.machine_of(outcome.case),
                )
            )
    return measured


def said(manifest: Manifest, case: str) -> dict[str, str]:
    """Return kernel and stack_version as the gateways of a case reported them; empty where nothing was read back."""
    context = manifest.contexts.get(manifest.context_of_case.get(case, ""), {})
    return {what: read_back(context.get(what)) for what in ("kernel", "stack_version")}


def _only(values: set[str]) -> str:
    return values.pop() if len(values) == 1 else ""


def options_of(options: Mapping[str, Any], without: Collection[str] = ()) -> str:
    """Return a stack's options that are not defaults: `replay_window=64, tunnels=100`, or `defaults`."""
    settings = ", ".join(f"{key}={value}" for key, value in sorted(options.items()) if key not in without)
    return settings or "defaults"


def kind_of(entry: CaseEntry | None, label: str) -> str:
    """Return the kind of stack behind a label; older runs record the label alone."""
    return (entry.stack_kind if entry else "") or label


def read_back(value: object) -> str:
    """Return as text what was read back from the gateways: `6.1` of `{home: 6.1, office: 6.1}`; both if they differ."""
    if not isinstance(value, dict):
        return str(value or "")
    texts = {str(side): str(text) for side, text in value.items() if text}
    if len(set(texts.values())) <= 1:
        return next(iter(texts.values()), "")
    return ", ".join(f"{side} {text}" for side, text in texts.items())


def names_of(directories: Sequence[RunDirectory]) -> list[str]:
    """Return the runs' names, or as much of their paths as makes them distinct.

    Raise UsageError if a run is named twice.
    """
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
