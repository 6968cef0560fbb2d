# SPDX-License-Identifier: Apache-2.0
"""`findings.csv`: every figure of the tests beside throughput, one row a case and quantity."""

from __future__ import annotations

from collections.abc import Iterable

from espbench.results.outcome_files import table_text
from espbench.terms import Finding, Quantity

_OF_CASE = (
    "case", "test", "dut", "stack", "suite", "ip_version", "frame_size", "direction", "repeat", "status",
    "rfc2544", "load_fps",
)  # fmt: skip
_OF_QUANTITY = ("name", "unit", "value", "n", "minimum", "maximum", "stdev")
_NONE = Quantity(name="", unit="", value=None, n=0)


def csv_text(findings: Iterable[Finding]) -> str:
    """Empty = no figure; a finding without any figure has one row, so that its status stands there."""
    rows: list[list[object]] = []
    for finding in findings:
        case = [getattr(finding, name) for name in _OF_CASE]
        for quantity in finding.quantities or [_NONE]:
            rows.append([*case, *(getattr(quantity, name, None) for name in _OF_QUANTITY)])
    columns = ("quantity" if name == "name" else name for name in _OF_QUANTITY)
    return table_text((*_OF_CASE, *columns), rows)
