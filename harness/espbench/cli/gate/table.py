# SPDX-License-Identifier: Apache-2.0
"""Prints the verdict of a check: a table of figures that changed, cases that could not be judged, and a sentence."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table

from espbench.gate.telling import figures
from espbench.gate.verdict import UNJUDGED, Check

_STYLES = {"regressed": "red", "improved": "green", "no verdict": "yellow"}


def show(check: Check, console: Console) -> None:
    """Print the verdict; figures that are the same are counted and not listed."""
    for key, (was, now) in check.subjects.items():
        console.print(f"under test: {key}: {was} → {now}", soft_wrap=True)
    for key, was, now in check.allowed_differences:
        console.print(f"allowed to differ: {key}: {was} → {now}", soft_wrap=True)
    if check.moved:
        table = Table(box=box.SIMPLE)
        for column in ("case", "load", "figure", "base", "now", "change", "limit", ""):
            right = column in ("base", "now", "change", "limit")
            table.add_column(column, justify="right" if right else "left", no_wrap=column == "change")
        for row in check.moved:
            table.add_row(
                row.case, figures.load(row), row.name, figures.base(row), figures.now(row),
                figures.change(row), row.limit, row.word, style=_STYLES.get(row.word),
            )  # fmt: skip
        console.print(table)
    for row in check.rows:
        if row.word in UNJUDGED:
            console.print(f"not judged: {row.case}: {row.name}: {row.why}", soft_wrap=True)
    for problem in check.problems:
        console.print(f"not judged: {problem.case}: {problem.why}", soft_wrap=True)
    for text in check.notes:
        console.print(f"note: {text}", soft_wrap=True)
    for text in check.provenance:
        console.print(f"base: {text}", soft_wrap=True)
    console.print(check.sentence, soft_wrap=True)
