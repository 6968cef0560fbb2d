# SPDX-License-Identifier: Apache-2.0
"""Makes tables of the curves of findings: with fixed columns for frame loss tests, with all keys for other tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from espbench.quantities import UNIT_OF_ENDING, WAYS, ending_of, key_of_way, way_of
from espbench.reporting.findings.finding_groups import FindingGroup
from espbench.reporting.parts.table import Table
from espbench.reporting.parts.wording import NONE, count, figure, flat, number
from espbench.terms import Finding

# The key of a point → the title of its column and the function that writes its figure. Columns without figures are
# left out.
_LOSS: dict[str, tuple[str, Callable[[float | None], str]]] = {
    "intended_pct_of_line_rate": ("Load, % of line rate", lambda v: number(v, 3)),
    "intended_fps": ("Intended, frames/s", count),
    "offered_fps": ("Offered, frames/s", count),
    "forwarding_fps": ("Forwarded, frames/s", count),
    "frame_loss_pct": ("Frame loss, %", figure),
    **{key_of_way("frame_loss_pct", way): (f"Loss {way.replace('-', ' → ')}, %", figure) for way in WAYS},
    "cpu_home_pct": ("Home CPU, %", lambda v: number(v, 3)),
    "cpu_office_pct": ("Office CPU, %", lambda v: number(v, 3)),
}


def curves(group: FindingGroup) -> list[tuple[str, Table]]:
    """Return a table of all points of the curves, for each stack and suite."""
    tell = _loss_points if group.kind == "frame_loss" else _points
    return [
        (name, tell(of_arm, repeats=group.repeats))
        for name, of_arm in group.arms().items()
        if any(f.curve for f in of_arm)
    ]


def _case(f: Finding, *, repeats: bool) -> list[str]:
    return [str(f.frame_size), *([str(f.repeat)] if repeats else [])]


def _case_head(*, repeats: bool) -> list[str]:
    return ["Frame, bytes", *(["Repeat"] if repeats else [])]


def _loss_points(findings: Sequence[Finding], *, repeats: bool) -> Table:
    keys = [key for key in _LOSS if any(row.get(key) is not None for f in findings for row in f.curve)]
    head = [*_case_head(repeats=repeats), *(_LOSS[key][0] for key in keys), "Trial", "Verdict"]
    rows = [
        [
            *_case(f, repeats=repeats),
            *(_LOSS[key][1](row.get(key)) for key in keys),
            str(row.get("trial", NONE)),
            str(row.get("validity", NONE)),
        ]
        for f in findings
        for row in f.curve
    ]
    return Table(head, rows, numeric=list(range(len(head) - 1)))


def _points(findings: Sequence[Finding], *, repeats: bool) -> Table:
    keys = list(dict.fromkeys(key for f in findings for row in f.curve for key in row))
    head = [*_case_head(repeats=repeats), *map(column_title, keys)]
    rows = [
        [*_case(f, repeats=repeats), *(_text(row.get(key)) for key in keys)]
        for f in findings
        for row in f.curve
    ]
    first = len(head) - len(keys)
    numbers = [
        first + i
        for i, key in enumerate(keys)
        if all(isinstance(row.get(key), int | float | None) for f in findings for row in f.curve)
    ]
    return Table(head, rows, numeric=[*range(first), *numbers])


def column_title(key: str) -> str:
    """Return the column title of a key: `Setup rate, frames/s, west → east` of `setup_rate_fps west-east`."""
    if key in _LOSS:
        return _LOSS[key][0]
    name, way = way_of(key)
    ending = ending_of(name)
    words = name.removesuffix(ending).replace("_", " ").strip()
    parts = [words[:1].upper() + words[1:], UNIT_OF_ENDING.get(ending, ""), way.replace("-", " → ")]
    return ", ".join(filter(None, parts))


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return count(value)
    if isinstance(value, float):
        return figure(value)
    return flat(value)
