# SPDX-License-Identifier: Apache-2.0
"""Makes the small tables of throughput at the top of a report: suites in rows, frame sizes in columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from espbench.reporting.findings.finding_words import Names
from espbench.reporting.parts.figures import Group
from espbench.reporting.parts.final_trials import encryption_of
from espbench.reporting.parts.notes import Flag, Notes
from espbench.reporting.parts.wording import at_least, count, goal_name, instructions, number, worst
from espbench.terms import Outcome, Status, for_median


@dataclass(frozen=True)
class Cell:
    """The throughput of one suite, size and goal: the median of the repeats that have one; none if one is VIOLATED."""

    instructions: (
        str  # per frame, `9,009 / 7,744` of Home and Office; empty in real time, and without a figure
    )
    fps: str  # `≥ 12,345` if it is a lower bound; empty if there is no figure
    mbps: str
    status: Status | None  # the worst of the repeats; None = all OK, or not measured (yet)
    words: str  # the reason why the figure is a bound
    valid_of: str  # `2 of 3` if some repeats have no figure
    flags: list[Flag]


@dataclass(frozen=True)
class AnswerRow:
    """One suite at one loss goal."""

    name: str
    goal: str
    encryption: str
    cells: list[Cell]


@dataclass(frozen=True)
class Answer:
    """The results for one DUT, direction and IP version."""

    title: str
    sizes: list[str]
    rows: list[AnswerRow]

    @property
    def instructions(self) -> bool:
        """True if any cell has the gateways' instructions per frame; then cells show them first."""
        return any(cell.instructions for row in self.rows for cell in row.cells)


def answers(groups: Sequence[Group], notes: Notes, names: Names) -> list[Answer]:
    """Return one table for each test, DUT, direction and IP version; a table has all stacks."""
    keys = dict.fromkeys((g.test, g.dut, g.direction, g.ip_version) for g in groups)
    tables = []
    for key in keys:
        members = [g for g in groups if (g.test, g.dut, g.direction, g.ip_version) == key]
        sizes = sorted({size for g in members for size in g.sizes}, key=lambda s: (isinstance(s, str), s))
        summed = ", both directions summed" if key[2] == "both-ways" else ""
        tables.append(
            Answer(
                title=f"{names.title(key[0])} of {key[1]}, {key[2]}{summed}, IPv{key[3]}",
                sizes=[str(size) for size in sizes],
                rows=[row for group in members for row in _rows(group, sizes, notes)],
            )
        )
    return tables


def _rows(group: Group, sizes: Sequence[int | str], notes: Notes) -> list[AnswerRow]:
    rows = []
    for suite in dict.fromkeys(o.suite for o in group.outcomes):
        for goal in group.goals:
            mine = [o for o in group.outcomes if o.suite == suite and o.loss_goal == goal]
            if not mine:
                continue
            rows.append(
                AnswerRow(
                    name=group.stack if suite == "none" else f"{group.stack} · {suite}",
                    goal=goal_name(goal),
                    encryption=encryption_of(mine),
                    cells=[_cell([o for o in mine if o.frame_size == size], notes) for size in sizes],
                )
            )
    return rows


def _cell(repeats: list[Outcome], notes: Notes) -> Cell:
    status = worst([o.status for o in repeats])
    usable = for_median(repeats)
    fps = [o.throughput_fps for o in usable if o.throughput_fps is not None]
    mbps = [o.throughput_mbps for o in usable if o.throughput_mbps is not None]
    home = [o.instructions_home_per_frame for o in usable if o.instructions_home_per_frame is not None]
    office = [o.instructions_office_per_frame for o in usable if o.instructions_office_per_frame is not None]
    bounds = [o for o in usable if o.status == "LOWER_BOUND"]
    flags = {flag.number: flag for o in repeats for flag in notes.flags(o) if flag.word}
    return Cell(
        instructions=instructions(median(home) if home else None, median(office) if office else None),
        fps=at_least(count(median(fps)), is_bound=bool(bounds)) if fps else "",
        mbps=at_least(number(median(mbps)), is_bound=bool(bounds)) if mbps else "",
        status=status,
        words="; ".join(dict.fromkeys(o.words for o in bounds)),
        valid_of=f"{len(fps)} of {len(repeats)}" if 0 < len(fps) < len(repeats) else "",
        flags=list(flags.values()),
    )
