# SPDX-License-Identifier: Apache-2.0
"""Lists the cases whose trials a report shows: those of the plan, then the arms of comparisons at fixed loads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from espbench.reporting.findings.finding_words import Names
from espbench.reporting.one_run.subject import case_title
from espbench.reporting.parts.trial_digest import TrialDigest
from espbench.reporting.parts.wording import NONE
from espbench.terms import ARM_AT_FIXED_LOADS, PAIRED, CaseEntry, Finding, Manifest, at_fixed_loads

# The trials of a comparison at fixed loads are filed under the case of the arm that is not the reference.
_FIELDS = {
    "suite": "suite",
    "dut": "dut",
    "kernel": "dut",
}  # the compared property → its field; others: stack
_REFERENCE = "the reference"


@dataclass(frozen=True)
class TrialCase:
    """A case with trials; title is its name in a list, test that of its test."""

    case: str
    title: str
    test: str
    dut: str
    stack: str
    direction: str
    ip_version: int


def trial_cases(
    manifest: Manifest, trials: TrialDigest, compared: Sequence[Finding], names: Names
) -> list[TrialCase]:
    """Return every case of the plan, and after these every other case that has trials.

    compared: the findings of comparisons at fixed loads, which name the arms. A run that is not finished may have
    trials without a finding.
    """
    several, with_dut = len({c.test for c in manifest.cases}) > 1, len({c.dut for c in manifest.cases}) > 1
    of_plan = [
        _case(c, case_title(c, names if several else None, with_dut=with_dut), names) for c in manifest.cases
    ]
    entries = {entry.case: entry for entry in manifest.cases}
    references = {f.case: str(f.paired["a"]) for f in compared if f.paired.get("a")}
    others = []
    for case in trials.total_of_case:
        arm = ARM_AT_FIXED_LOADS.fullmatch(case)
        if case in entries:
            continue
        if arm is None or (entry := entries.get(arm[1])) is None:
            others.append(TrialCase(case, case, names.title(PAIRED), NONE, NONE, NONE, 0))
            continue
        field = _field(manifest)
        reference = references.get(at_fixed_loads(arm[1])) or str(
            manifest.compare.get("reference") or _REFERENCE
        )
        here, beside = (
            (reference, getattr(entry, field)) if arm[2] == "a" else (getattr(entry, field), reference)
        )
        shown = entry.model_copy(update={"case": case, "test": PAIRED, field: here})
        title = f"{case_title(shown, names, with_dut=with_dut)} · beside {beside}"
        others.append(_case(shown, title, names))
    return [*of_plan, *others]


def arms_at_loads(manifest: Manifest, compared: Sequence[Finding]) -> list[Finding]:
    """Return two findings for each comparison at fixed loads that has pairs, one for the trials of each arm.

    Each has the name of its trials' case, and its own stack, suite or device.
    """
    return [
        f.model_copy(update={"case": f"{f.case}-{arm}", _field(manifest): f.paired[arm]})
        for f in compared
        if f.paired
        for arm in ("a", "b")
    ]


def _field(manifest: Manifest) -> str:
    """Return the field in which the arms of this run's comparison differ."""
    return _FIELDS.get(str(manifest.compare.get("by")), "stack")


def _case(entry: CaseEntry, title: str, names: Names) -> TrialCase:
    test = names.title(entry.test)
    return TrialCase(entry.case, title, test, entry.dut, entry.stack, entry.direction, entry.ip_version)
