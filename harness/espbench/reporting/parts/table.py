# SPDX-License-Identifier: Apache-2.0
"""Defines a table of text that the HTML and the Markdown templates can print; figures are already rounded."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Table:
    """Rows of text under a head; the first column names the row unless it is numeric."""

    head: list[str]
    rows: list[list[str]]
    numeric: list[int] = field(default_factory=list)  # columns set right-aligned
