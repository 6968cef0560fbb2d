# SPDX-License-Identifier: Apache-2.0
"""Shows each direction by itself, for tests other than throughput that loaded both directions at once."""

from __future__ import annotations

from espbench.quantities import WAYS, Key, key_of_way
from espbench.quantities import figure as figure_of
from espbench.reporting.findings.finding_groups import FindingGroup, arm_of
from espbench.reporting.findings.finding_tables import unit_of
from espbench.reporting.parts.table import Table
from espbench.reporting.parts.wording import count, figure
from espbench.terms import Finding, Quantity

_NOTHING = Quantity(name="", unit="", value=None, n=0)


def directions(group: FindingGroup) -> Table:
    """Return the table of each direction's own figures (RFC 2544 14); no rows if only one direction was loaded."""
    rows: dict[tuple[str, ...], dict[str, Quantity]] = {}
    for f in group.findings:
        case = [arm_of(f), str(f.frame_size), *([str(f.repeat)] if group.repeats else [])]
        for q in (*f.quantities, *_loss_by_direction(f)):
            if q.way:
                rows.setdefault((*case, q.way.replace("-", " → ")), {})[q.key] = q
    found_keys = {key: q for of_way in rows.values() for key, q in of_way.items()}
    keys = list(found_keys)
    head = ["Stack and suite", "Frame, bytes", *(["Repeat"] if group.repeats else []), "Direction"]
    numbers = [*range(1, len(head) - 1)]
    # The table shows the scatter of the test's main figure; findings.csv has that of the others.
    spread = any(of_way.get(keys[0], _NOTHING).n > 1 for of_way in rows.values()) if keys else False
    columns = [_title(q) for q in found_keys.values()]
    if spread:
        columns[1:1] = ["Least", "Greatest", "Standard deviation", "n"]
    cells = []
    for case_and_way, of_way in rows.items():
        figures = [figure(of_way.get(key, _NOTHING).value) for key in keys]
        if spread:
            q = of_way.get(keys[0], _NOTHING)
            figures[1:1] = [*map(figure, (q.minimum, q.maximum, q.stdev)), count(q.n)]
        cells.append([*case_and_way, *figures])
    numbers += range(len(head), len(head) + len(columns))
    return Table([*head, *columns], cells, numeric=numbers)


def _title(q: Quantity) -> str:
    """Return a column's title: the quantity's label without its direction, and the unit."""
    return ", ".join(filter(None, [q.label[:1].upper() + q.label[1:], unit_of(q)]))


def _loss_by_direction(f: Finding) -> list[Quantity]:
    """Return the loss of each direction at the highest load of a loss curve."""
    highest = max(f.curve, key=lambda point: float(point.get("intended_fps") or 0), default={})
    return [
        figure_of(Key.LOSS_AT_HIGHEST, highest[key], way=way)
        for way in WAYS
        if (key := key_of_way("frame_loss_pct", way)) in highest
    ]
