# SPDX-License-Identifier: Apache-2.0
"""Makes the tables of a comparison: every figure of a panel, overheads, and how the verdicts were reached."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from espbench.comparison.sorting.model import Comparison, Overhead, Panel
from espbench.reporting.compared.comparison_wording import (
    confidence,
    has_instructions,
    instructions_of,
    microseconds,
    rate,
    rate_interval,
    ratio_or_bound,
    repeats_note,
    rounded,
    x_title,
)
from espbench.reporting.parts.table import Table
from espbench.reporting.parts.wording import NONE, count, number


def figures_table(panel: Panel, series: Sequence[str]) -> Table:
    """Return the table of a panel's figures: a row for each x and curve; in virtual time instructions are first."""
    counted = has_instructions(panel)
    head = [
        x_title(panel), "Arm", *(["Home / Office, instructions/frame"] if counted else []),
        "Throughput, frames/s", "Interval", "Mbps", "Repeats",
        "Home + Office, µs/frame", "Home, µs/frame", "Office, µs/frame", "Note",
    ]  # fmt: skip
    rows = []
    for x in panel.x:
        for name in series:
            if (point := panel.curves[name].get(x)) is None:
                continue
            rows.append(
                [
                    str(x),
                    name,
                    *([instructions_of(point) or NONE] if counted else []),
                    rate(point),
                    rate_interval(point) or NONE,
                    number(point.mbps.value if point.mbps else None),
                    str(sum(point.statuses.values())),
                    microseconds(point.cpu_us),
                    microseconds(point.cpu_home_us),
                    microseconds(point.cpu_office_us),
                    "; ".join(
                        filter(None, [repeats_note(point), "" if point.proven else "encryption not proven"])
                    )
                    or NONE,
                ]
            )
    numeric = list(range(2, len(head) - 1))
    return Table(head, rows, numeric=[0, *numeric] if _is_numeric(panel) else numeric)


def overheads(position: int, comparison: Comparison) -> Table:
    """Return the table of the arms' overheads over each baseline: a row for each x and arm of one panel.

    A column that would be empty (for instance because the host's clock rate is not known) is left out.
    """
    panel = comparison.panels[position]
    mine = {(o.arm, o.baseline, o.x): o for o in comparison.overheads if o.panel == position}
    baselines = list(dict.fromkeys(baseline for _, baseline, _ in mine))
    arms = list(dict.fromkeys(arm for arm, _, _ in mine))
    columns: list[tuple[str, str, Callable[[Overhead], str]]]
    columns = [(f"Slowdown beside {name}", name, ratio_or_bound) for name in baselines]
    columns += [(f"µs/frame above {name}", name, _extra_us) for name in baselines]
    clock = f"at the {comparison.cpu_mhz:,.0f} MHz read at the start" if comparison.cpu_mhz else ""
    columns += [(f"CPU cycles/frame above {name}, {clock}", name, _extra_cycles) for name in baselines]
    table = [
        [
            str(x),
            arm,
            *(word(mine[arm, name, x]) if (arm, name, x) in mine else NONE for _, name, word in columns),
        ]
        for x in panel.x
        for arm in arms
        if any((arm, name, x) in mine for name in baselines)
    ]
    head = [x_title(panel), "Arm", *(title for title, _, _ in columns)]
    kept = [i for i in range(len(head)) if i < 2 or any(row[i] != NONE for row in table)]
    numeric = [i for i in range(len(kept)) if i >= 2 or (i == 0 and _is_numeric(panel))]
    return Table([head[i] for i in kept], [[row[i] for i in kept] for row in table], numeric)


def facts(comparison: Comparison) -> Table:
    """Return the table of how the verdicts were reached, without the arms and their differences."""
    rows = [
        ["Method", comparison.method],
        ["Confidence", confidence(comparison)],
        ["Verdicts taken together (family)", count(comparison.family)],
        ["Seed of the order", NONE if comparison.seed is None else str(comparison.seed)],
        ["Runs", ", ".join(comparison.runs) or NONE],
    ]
    if comparison.fixed_loads:
        rows.insert(1, ["Method at the same loads", _fixed_method(comparison)])
    rows += [[what, value] for what, value in (comparison.common | comparison.facts).items()]
    return Table(["What", "Value"], rows)


def _fixed_method(comparison: Comparison) -> str:
    stood = "at the same time" if all(v.together for v in comparison.fixed_loads) else "one after the other"
    return (
        "pairs of short trials in the order A B B A; both arms' gateways, built anew for each round, stood "
        f"{stood}. CPU per frame: the Hodges-Lehmann centre of each round; throughput: the rungs passed of a ladder of "
        "loads; Student's t over the rounds, scatter joined as far as points agree, Bonferroni over "
        f"{2 * len(comparison.fixed_loads)} verdicts"
    )


def _is_numeric(panel: Panel) -> bool:
    return all(isinstance(x, int) for x in panel.x)


def _extra_us(overhead: Overhead) -> str:
    return microseconds(overhead.extra_us)


def _extra_cycles(overhead: Overhead) -> str:
    return rounded(overhead.extra_cycles)
