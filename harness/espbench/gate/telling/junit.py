# SPDX-License-Identifier: Apache-2.0
"""`check --junit`: the verdict as JUnit XML, a test case for each case and loss goal, as CI systems show it."""

from __future__ import annotations

import re
from itertools import groupby
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from espbench.gate.telling import figures
from espbench.gate.verdict import Check, Row
from espbench.sentences import goal_name

# What XML 1.0 cannot hold; it may come in a gateway's last words.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def text_of(check: Check) -> str:
    """The file: a failure for a regression, an error for what could not be judged."""
    suite = Element("testsuite", name=_clean(f"espbench check {check.plan}"))
    properties = SubElement(suite, "properties")
    told = {"base": check.base, "run": check.run, "verdict": check.word, "espbench": check.espbench}
    provenance = [("provenance", text) for text in check.provenance]
    subjects = [(key, f"{was} → {now}") for key, (was, now) in check.subjects.items()]
    for name, value in [*told.items(), *provenance, *subjects]:
        SubElement(properties, "property", name=_clean(name), value=_clean(value))
    failures = 0
    for (of_case, goal), group in groupby(check.rows, key=lambda row: (row.case, row.goal)):
        rows = list(group)
        case = SubElement(
            suite, "testcase", classname=_clean(f"espbench.{check.plan}"),
            name=_clean(of_case if goal is None else f"{of_case}, {goal_name(goal)}"), time="0",
        )  # fmt: skip
        worse = [row for row in rows if row.word == "regressed"]
        if worse:
            failures += 1
            failure = SubElement(case, "failure", type="regressed", message=_clean(_lines(worse, "; ")))
            failure.text = _clean(_lines(worse, "\n"))
        for row in rows:
            if row.word == "no verdict":
                SubElement(case, "error", type="not judged", message=_clean(f"{row.name}: {row.why}"))
        SubElement(case, "system-out").text = _clean(_lines(rows, "\n"))
    for problem in check.problems:
        case = SubElement(
            suite, "testcase", classname=_clean(f"espbench.{check.plan}"), name=_clean(problem.case)
        )
        SubElement(case, "error", type="not judged", message=_clean(problem.why))
    if not check.rows and not check.problems:
        case = SubElement(suite, "testcase", classname=_clean(f"espbench.{check.plan}"), name="any case")
        SubElement(case, "error", type="not judged", message="no case was judged")
    suite.set("tests", str(len(suite.findall("testcase"))))
    suite.set("failures", str(failures))
    suite.set("errors", str(len(suite.findall("testcase/error"))))
    indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(suite, encoding="unicode") + "\n"


def _lines(rows: list[Row], between: str) -> str:
    return between.join(
        f"{row.name}: {figures.base(row)} → {figures.now(row)} {figures.change(row)} {row.word}, limit {row.limit}"
        for row in rows
    )


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
