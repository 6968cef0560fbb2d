# SPDX-License-Identifier: Apache-2.0
"""Writes `results-wide.csv`: a row for each configuration and repeat, a column for each test, size, goal and figure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from espbench.results.outcome_files import rounded, table_text
from espbench.sentences import goal_name
from espbench.terms import PAIRED, Finding, Outcome

ROW_COLUMNS = ("dut", "stack", "suite", "ip_version", "direction", "repeat")
_OF_OUTCOME = (
    "status", "throughput_fps", "is_lower_bound", "encryption", "rfc2544", "is_short", "throughput_mbps",
    "line_rate_pct", "cpu_home_pct", "cpu_office_pct", "cpu_home_us_per_frame", "cpu_office_us_per_frame",
    "instructions_home_per_frame", "instructions_office_per_frame",
)  # fmt: skip
_OF_FINDING = ("status", "encryption", "rfc2544", "is_short")
_LATENCIES = ("p50", "p99")


def csv_text(results: Iterable[Outcome | Finding]) -> str:
    """Return the text of the file; columns are in the order in which their cases were measured, without empty ones.

    A column is named `test/size/goal/figure`. Only throughput tests have a goal; figures of other tests have their unit
    in brackets: `throughput/64/0.001 %/throughput_fps`, `latency/64/latency, p99 [µs]`. Empty = no figure.
    """
    rows: dict[tuple[object, ...], dict[str, object]] = {}
    columns: dict[str, None] = {}
    for result in results:
        if result.test == PAIRED:  # belongs to no case of the plan
            continue
        row = rows.setdefault(tuple(getattr(result, name) for name in ROW_COLUMNS), {})
        cells = _of_outcome(result) if isinstance(result, Outcome) else _of_finding(result)
        for column, value in cells:
            if value is not None:
                columns.setdefault(column)
                row[column] = value
    body = ([*key, *(row.get(column) for column in columns)] for key, row in rows.items())
    return table_text([*ROW_COLUMNS, *columns], body)


def _of_outcome(outcome: Outcome) -> Iterator[tuple[str, object]]:
    figures = rounded(outcome)
    place = f"{outcome.test}/{outcome.frame_size}/{goal_name(outcome.loss_goal)}"
    for name in _OF_OUTCOME:
        yield f"{place}/{name}", getattr(figures, name)
    for name in _LATENCIES:
        yield f"{place}/latency_{name}_us", getattr(figures.latency_us, name)


def _of_finding(finding: Finding) -> Iterator[tuple[str, object]]:
    place = f"{finding.test}/{finding.frame_size}"
    for name in _OF_FINDING:
        yield f"{place}/{name}", getattr(finding, name)
    for quantity in finding.quantities:
        yield f"{place}/{quantity.name} [{quantity.unit}]", quantity.value
