# SPDX-License-Identifier: Apache-2.0
"""Prepares the findings of a run for a report: a section for each test, in the form of its standard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from espbench.reporting.findings.direction_tables import directions
from espbench.reporting.findings.finding_curves import curves
from espbench.reporting.findings.finding_groups import FindingGroup, groups_of, headline
from espbench.reporting.findings.finding_panels import Figure, figure_of
from espbench.reporting.findings.finding_tables import FindingTable, table
from espbench.reporting.findings.finding_words import Names
from espbench.reporting.parts.final_trials import NOT_PROVEN
from espbench.reporting.parts.labels import VIRTUAL
from espbench.reporting.parts.notes import Notes
from espbench.reporting.parts.table import Table
from espbench.results.run_directory import slug
from espbench.terms import Finding, Manifest

SHORTENED = "shorter than the standard asks: not RFC 2544"


@dataclass(frozen=True)
class FindingPart:
    """One group: its charts, its table, the figures of each direction, and the points of its curves."""

    anchor: str
    title: str
    labels: list[str]
    figure: Figure | None
    table: FindingTable
    caption: str  # of the table
    directions: Table
    curves: list[tuple[str, Table]]


@dataclass(frozen=True)
class FindingSection:
    """All groups of one test of the plan."""

    test: str
    anchor: str
    title: str
    about: str
    parts: list[FindingPart]


def sections(
    findings: Sequence[Finding], manifest: Manifest, notes: Notes, colour_of: dict[str, str]
) -> list[FindingSection]:
    """Make the sections of a report, in the order in which the tests ran."""
    groups, names = groups_of(findings), Names.of(manifest)
    made = []
    for test in dict.fromkeys(group.test for group in groups):
        # The anchors of parts end with "-part-N": `latency-2` would be the second latency test of a plan.
        anchor = f"test-{slug(test).lower().replace('_', '-')}"
        made.append(
            FindingSection(
                test=test,
                anchor=anchor,
                title=names.title(test),
                about=names.about(test),
                parts=[
                    _part(group, f"{anchor}-part-{position}", manifest, notes, colour_of)
                    for position, group in enumerate((g for g in groups if g.test == test), start=1)
                ],
            )
        )
    return made


def _part(
    group: FindingGroup, anchor: str, manifest: Manifest, notes: Notes, colour_of: dict[str, str]
) -> FindingPart:
    caption = {
        "latency": "All frames: the minimum and the maximum are over all trials; the other figures are the mean of "
        "the trials.",
        "back_to_back": "Bursts are per direction." if group.directions == 2 else "",
        "frame_loss": "The points of the curves are in the table below.",
    }.get(group.kind, "")
    summed = "Rates are the sum of both directions." if group.directions == 2 else ""
    return FindingPart(
        anchor=anchor,
        title=f"{group.dut} · {group.direction} · IPv{group.ip_version}",
        labels=labels(group.findings, manifest),
        figure=figure_of(group, anchor, manifest.line_rate_bps, colour_of),
        table=table(group, notes, manifest.line_rate_bps),
        caption=" ".join(filter(None, (caption, summed))),
        directions=directions(group),
        curves=curves(group),
    )


def labels(findings: Sequence[Finding], manifest: Manifest) -> list[str]:
    """Return the labels to print wherever these figures are shown: virtual, shortened, encryption not proven."""
    applicable = (
        (VIRTUAL, manifest.is_virtual),
        (SHORTENED, any(f.is_short for f in findings)),
        (NOT_PROVEN, any(map(is_unproven, findings))),
    )
    return [label for label, applies in applicable if applies]


def is_unproven(f: Finding) -> bool:
    """Return whether a finding has a figure that may be of cleartext."""
    return f.encryption == "not proven" and headline(f) is not None
