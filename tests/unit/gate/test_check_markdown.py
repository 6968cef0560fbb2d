# SPDX-License-Identifier: Apache-2.0
"""`check --markdown`: what a reader of a pull request must see is in it, however long the table."""

from __future__ import annotations

from dataclasses import replace

from espbench.gate.telling import markdown
from espbench.gate.verdict import Check, Row, Word


def row(number: int, word: Word, change: float) -> Row:
    return Row(
        f"case {number}", 0.0, 1000.0, "instructions", "home", 100.0, 100.0, 100.0, 1, 100.0 + change, change, "0.1%",
        0.1, word,
    )  # fmt: skip


def test_regressed_rows_come_first_the_worst_of_all_at_the_top() -> None:
    """A hundred improvements before them do not push them out of the table."""
    rows = [row(n, "improved", -1.0) for n in range(100)]
    rows += [row(100, "regressed", 1.0), row(101, "moved", 0.05), row(102, "regressed", 2.0)]
    text = markdown.text_of(Check("plan", "base", [], "run", "1", True, rows, [], {}, [], []))
    cases = [line.split(" | ")[0] for line in text.splitlines() if line.startswith("| case ")]
    assert cases[1:5] == ["| case 102", "| case 100", "| case 0", "| case 1"]
    assert "and 43 more, in the JSON file" in text


def test_a_figure_without_a_verdict_is_not_green() -> None:
    """It may be worse without anyone noticing."""
    rows = [row(0, "same", 0.0), replace(row(1, "not judged", 0.0), why="the base missed")]
    check = Check("plan", "base", [], "run", "1", True, rows, [], {}, [], [])
    assert (check.exit_code, check.word) == (3, "not judged")
    assert "Not judged:\n\n* case 1, instructions, home: the base missed" in markdown.text_of(check)
