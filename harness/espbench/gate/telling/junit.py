# SPDX-License-Identifier: Apache-2.0
"""`check --junit`: the verdict as JUnit XML, a test case for each case and loss goal, as CI systems show it."""

from __future__ import annotations

from itertools import groupby
from xml.etree.ElementTree import SubElement

from espbench.gate.telling import figures
from espbench.gate.verdict import UNJUDGED, Check, Row
from espbench.results.exports import junit_file
from espbench.results.exports.junit_file import clean
from espbench.sentences import goal_name


def text_of(check: Check) -> str:
    """Return the file: a failure for a regression, an error for what could not be judged."""
    properties = {"base": check.base, "run": check.run, "verdict": check.word, "espbench": check.espbench}
    provenance = [("provenance", text) for text in check.provenance]
    subjects = [(key, f"{was} → {now}") for key, (was, now) in check.subjects.items()]
    suite = junit_file.suite(f"espbench check {check.plan}", [*properties.items(), *provenance, *subjects])
    group_name = f"espbench.{check.plan}"
    for (of_case, goal), group in groupby(check.rows, key=lambda row: (row.case, row.goal)):
        rows = list(group)
        name = of_case if goal is None else f"{of_case}, {goal_name(goal)}"
        case = junit_file.case(suite, group_name, name)
        worse = [row for row in rows if row.word == "regressed"]
        if worse:
            failure = SubElement(case, "failure", type="regressed", message=clean(_lines(worse, "; ")))
            failure.text = clean(_lines(worse, "\n"))
        for row in rows:
            if row.word in UNJUDGED:
                SubElement(case, "error", type="not judged", message=clean(f"{row.name}: {row.why}"))
        SubElement(case, "system-out").text = clean(_lines(rows, "\n"))
    for problem in check.problems:
        case = junit_file.case(suite, group_name, problem.case)
        SubElement(case, "error", type="not judged", message=clean(problem.why))
    if not check.rows and not check.problems:
        case = junit_file.case(suite, group_name, "any case")
        SubElement(case, "error", type="not judged", message="no case was judged")
    return junit_file.document(suite)


def _lines(rows: list[Row], between: str) -> str:
    return between.join(
        f"{row.name}: {figures.base(row)} → {figures.now(row)} {figures.change(row)} {row.word}, limit {row.limit}"
        for row in rows
    )
