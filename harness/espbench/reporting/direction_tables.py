# SPDX-License-Identifier: Apache-2.0
"""Each direction of a test beside throughput by itself, where both were loaded at once."""

from __future__ import annotations

from espbench.reporting.finding_groups import WAYS, FindingGroup, arm_of, way_of
from espbench.reporting.finding_tables import unit_of
from espbench.reporting.table import Table
from espbench.reporting.wording import count, figure
from espbench.terms import Finding, Quantity

_NOTHING = Quantity(name="", unit="", value=None, n=0)


def directions(group: FindingGroup) -> Table:
    """Each direction's own figures (RFC 2544 14); no rows where one alone was loaded."""
    rows: dict[tuple[str, ...], dict[str, Quantity]] = {}
    for f in group.findings:
        case = [arm_of(f), str(f.frame_size), *([str(f.repeat)] if group.repeats else [])]
        for q in (*f.quantities, *_loss_by_direction(f)):
            name, way = way_of(q.name)
            if way:
                unit = unit_of(q)
                of_way = rows.setdefault((*case, way.replace("-", " → ")), {})
                of_way[f"{name}, {unit}" if unit else name] = q
    names = list(dict.fromkeys(name for found in rows.values() for name in found))
    head = ["Stack and suite", "Frame, bytes", *(["Repeat"] if group.repeats else []), "Direction"]
    numbers = [*range(1, len(head) - 1)]
    # How much it scattered is told of what the test is about, of the rest in findings.csv.
    spread = any(found.get(names[0], _NOTHING).n > 1 for found in rows.values()) if names else False
    columns = [name[:1].upper() + name[1:] for name in names]
    if spread:
        columns[1:1] = ["Least", "Greatest", "Standard deviation", "n"]
    cells = []
    for key, found in rows.items():
        figures = [figure(found.get(name, _NOTHING).value) for name in names]
        if spread:
            q = found.get(names[0], _NOTHING)
            figures[1:1] = [*map(figure, (q.minimum, q.maximum, q.stdev)), count(q.n)]
        cells.append([*key, *figures])
    numbers += range(len(head), len(head) + len(columns))
    return Table([*head, *columns], cells, numeric=numbers)


def _loss_by_direction(f: Finding) -> list[Quantity]:
    """At the highest load of a loss curve, whose points have it of each direction."""
    highest = max(f.curve, key=lambda point: float(point.get("intended_fps") or 0), default={})
    return [
        Quantity(name=f"frame loss at the highest load, {way}", unit="%", value=highest[key])
        for way in WAYS
        if (key := f"frame_loss_pct {way}") in highest
    ]
