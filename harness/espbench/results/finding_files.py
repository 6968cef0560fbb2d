# SPDX-License-Identifier: Apache-2.0
"""Writes `findings.csv`: every figure of the tests other than throughput, a row for each case and quantity."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from espbench.results.outcome_files import table_lines
from espbench.terms import Finding, Quantity

_OF_CASE = (
    "case", "test", "dut", "stack", "suite", "ip_version", "frame_size", "direction", "repeat", "status",
    "rfc2544", "load_fps",
)  # fmt: skip
_OF_QUANTITY = ("name", "unit", "value", "n", "minimum", "maximum", "stdev")
_NONE = Quantity(name="", unit="", value=None, n=0)
COLUMNS = (*_OF_CASE, *("quantity" if name == "name" else name for name in _OF_QUANTITY))


def rows(finding: Finding) -> list[dict[str, Any]]:
    """Return the rows of a finding by column, one for each quantity; without quantities one row shows its status."""
    case = [getattr(finding, name) for name in _OF_CASE]
    return [
        dict(zip(COLUMNS, [*case, *(getattr(quantity, name, None) for name in _OF_QUANTITY)], strict=True))
        for quantity in finding.quantities or [_NONE]
    ]


def csv_lines(finding: Finding) -> str:
    """Return the lines of a finding in `findings.csv`."""
    return table_lines(row.values() for row in rows(finding))


def csv_text(findings: Iterable[Finding], lines: Callable[[Finding], str] = csv_lines) -> str:
    """Return the text of `findings.csv`; an empty cell is a figure that does not exist."""
    return table_lines([COLUMNS]) + "".join(map(lines, findings))
