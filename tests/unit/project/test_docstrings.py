# SPDX-License-Identifier: Apache-2.0
"""Docstrings are sentences: they begin with a subject or a verb (CONTRIBUTING.md, "How we write")."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOLDERS = ("harness/espbench", "harness/espbench_scapy", "benchmarks", "tests/support")
FILES = sorted(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py"))
# "What the gateways said." is not a sentence; "Return what the gateways said." is one.
BANNED = {
    "As", "By", "For", "From", "How", "In", "Of", "On", "That", "Those", "What", "When", "Where", "Whether",
    "Which", "Who", "Whose", "Why", "With",
}  # fmt: skip


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each docstring, those of attributes included."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            own = node.body[:1]
            attributes = [
                below for above, below in pairwise(node.body) if isinstance(above, ast.Assign | ast.AnnAssign)
            ]
            for statement in (*own, *attributes):
                match statement:
                    case ast.Expr(value=ast.Constant(value=str(text))):
                        yield statement.lineno, text.strip()


def riddles(source: str) -> list[str]:
    """Return the first lines of docstrings that open with a banned word, with their line numbers."""
    return [
        f"{line}: {text.splitlines()[0]}"
        for line, text in docstrings(source)
        if text.split(maxsplit=1)[:1] and text.split(maxsplit=1)[0] in BANNED
    ]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('"""What a run found."""', ["1: What a run found."]),
        ('"""Whatever a run found."""', []),
        ('class A:\n    x: int\n    """Of frames."""', ["3: Of frames."]),
        ('def f():\n    """Return what a run found."""', []),
        ('def f():\n    """How\n    many."""', ["2: How"]),
        ('x = "What is no docstring"', []),
    ],
)
def test_a_bare_question_word_is_found(source: str, expected: list[str]) -> None:
    """The test finds docstrings of modules, classes, functions and attributes, and nothing else."""
    assert riddles(source) == expected


def test_docstrings_begin_with_a_subject_or_a_verb() -> None:
    """No docstring of the program, its benchmarks and what tests share opens with a banned word."""
    found = [f"{file.relative_to(ROOT)}:{riddle}" for file in FILES for riddle in riddles(file.read_text())]
    assert found == []
