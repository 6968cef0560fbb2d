# SPDX-License-Identifier: Apache-2.0
"""Makes the tables of the other tests' results at a glance: stacks and suites in rows, frame sizes in columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from espbench.reporting.findings.finding_groups import (
    FindingGroup,
    groups_of,
    headline,
    is_lower_bound,
    median_of,
)
from espbench.reporting.findings.finding_tables import figure_text, unit_of
from espbench.reporting.findings.finding_view import labels
from espbench.reporting.findings.finding_words import Names
from espbench.reporting.parts.final_trials import encryption_of
from espbench.reporting.parts.notes import Flag, Notes
from espbench.reporting.parts.statements import flag as short
from espbench.reporting.parts.wording import NONE, at_least, worst
from espbench.terms import Finding, Manifest, Status


@dataclass(frozen=True)
class FindingCell:
    """The figure of one test at one frame size: the median of the repeats that have one."""

    text: str  # empty if there is no figure
    status: Status | None  # the worst of the repeats; None = all OK, or not measured (yet)
    instead: str  # shown instead of a figure if there was nothing to measure
    valid_of: str  # `2 of 3` if some repeats have no figure
    flags: list[Flag]
    words: str


@dataclass(frozen=True)
class FindingAnswerRow:
    """One test of one stack and suite."""

    what: str
    anchor: str  # of the test's section
    name: str
    encryption: str
    cells: list[FindingCell]
    starts_test: bool


@dataclass(frozen=True)
class FindingAnswer:
    """The results for one DUT, direction and IP version; sizes are empty for tests with one case for each pair."""

    title: str
    sizes: list[str]
    rows: list[FindingAnswerRow]
    labels: list[str]


def finding_answers(
    findings: Sequence[Finding], manifest: Manifest, notes: Notes, anchors: dict[str, str]
) -> list[FindingAnswer]:
    """Return one table for each DUT, direction and IP version, with all tests that are made at each frame size.

    Tests that are made once for a pair of gateways have tables of their own. anchors: test → its section's.
    """
    groups = groups_of(findings)
    names = Names.of(manifest)
    once = _made_once(manifest)
    tables = []
    for key in dict.fromkeys((g.dut, g.direction, g.ip_version, g.test in once) for g in groups):
        members = [g for g in groups if (g.dut, g.direction, g.ip_version, g.test in once) == key]
        sizes = sorted({size for g in members for size in g.sizes}, key=lambda s: (isinstance(s, str), s))
        tests = {g.test for g in members}
        what = names.title(members[0].test) if len(tests) == 1 else "Pair of gateways" if key[3] else "Tests"
        summed = " (rates: both directions summed)" if key[1] == "both-ways" else ""
        where = "" if key[3] else f", {key[1]}{summed}"
        tables.append(
            FindingAnswer(
                title=f"{what} of {key[0]}{where}, IPv{key[2]}",
                sizes=[] if key[3] else [str(size) for size in sizes],
                rows=[
                    row
                    for g in members
                    for row in _rows(g, g.sizes if key[3] else sizes, notes, names, anchors)
                ],
                labels=labels([f for g in members for f in g.findings], manifest),
            )
        )
    return tables


def _made_once(manifest: Manifest) -> set[str]:
    """Return the tests that have one frame size in a run that has several."""
    sizes: dict[str, set[int | str]] = {}
    for case in manifest.cases:
        sizes.setdefault(case.test, set()).add(case.frame_size)
    several = len(set().union(*sizes.values())) > 1 if sizes else False
    return {test for test, listed in sizes.items() if several and len(listed) == 1}


def _rows(
    group: FindingGroup, sizes: Sequence[int | str], notes: Notes, names: Names, anchors: dict[str, str]
) -> list[FindingAnswerRow]:
    first = next((q for f in group.findings if (q := headline(f))), None)
    what = names.title(group.test)
    if first is not None:
        unit = unit_of(first)
        named = first.name[:1].upper() + first.name[1:]
        what = named if not unit or unit in named.lower().split() else f"{named}, {unit}"
        which = names.which(group.test)
        what += f" ({which})" if which else ""
    return [
        FindingAnswerRow(
            what=what,
            anchor=anchors[group.test],
            name=name,
            encryption=encryption_of(of_arm),
            cells=[_cell([f for f in of_arm if f.frame_size == size], notes) for size in sizes],
            starts_test=position == 0,
        )
        for position, (name, of_arm) in enumerate(group.arms().items())
    ]


def _cell(repeats: list[Finding], notes: Notes) -> FindingCell:
    status = worst([f.status for f in repeats])
    known = [q for f in repeats if (q := headline(f)) and status != "VIOLATED"]
    middle = median_of([q.value for q in known])
    text = "" if middle is None else figure_text(known[0].model_copy(update={"value": middle}))
    flags = {flag.number: flag for f in repeats for flag in notes.flags(f) if flag.word}
    return FindingCell(
        text=at_least(text, is_bound=bool(text) and any(map(is_lower_bound, repeats))),
        status=status,
        instead=_instead(repeats),
        valid_of=f"{len(known)} of {len(repeats)}" if 0 < len(known) < len(repeats) else "",
        flags=list(flags.values()),
        words="; ".join(dict.fromkeys(f.words for f in repeats)),
    )


def _instead(repeats: Sequence[Finding]) -> str:
    """Return the words that replace a figure if there was nothing to measure: `not searched`."""
    return short(next((f.answer for f in repeats if f.status == "OK"), None)) or NONE
