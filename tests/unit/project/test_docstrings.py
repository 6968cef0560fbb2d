# SPDX-License-Identifier: Apache-2.0
"""Docstrings and comments are sentences, with a subject and a verb (CONTRIBUTING.md, "How we write")."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOLDERS = ("harness/espbench", "harness/espbench_scapy", "benchmarks", "scripts", "tests")
FILES = sorted(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py"))
# "What the gateways said." is not a sentence; "Return what the gateways said." is one.
BANNED = {
    "And", "As", "By", "Else", "For", "From", "How", "In", "Nor", "Of", "On", "That", "Those", "Though", "What",
    "When", "Where", "Whether", "Which", "Who", "Whose", "Why", "With",
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


def comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each comment that has its lines for itself; one may have several lines.

    A comment behind code may be a phrase that completes it: `SHARE = 0.2  # of the line rate`.
    """
    lines = source.splitlines()
    begun, text = 0, ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        (line, column), words = token.start, token.string
        if token.type != tokenize.COMMENT or lines[line - 1][:column].strip():
            continue
        if begun and line == begun + text.count("\n") + 1:
            text += f"\n{words.lstrip('# ')}"
            continue
        if begun:
            yield begun, text
        begun, text = line, words.lstrip("# ")
    if begun:
        yield begun, text


def begins_one(source: str, before: str) -> bool:
    """Say whether a banned word stands behind what begins a text: a file without one need not be parsed."""
    return re.search(rf"(?:{before})(?:\\?\s)*(?:{'|'.join(sorted(BANNED))})\b", source) is not None


def riddles(texts: Iterator[tuple[int, str]]) -> list[str]:
    """Return the first lines of the texts that open with a banned word, with their line numbers."""
    return [
        f"{line}: {text.splitlines()[0]}"
        for line, text in texts
        if text.split(maxsplit=1)[:1] and text.split(maxsplit=1)[0] in BANNED
    ]


def files() -> Iterator[tuple[str, str]]:
    """Yield the names of the files and what is in them."""
    for file in FILES:
        yield file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8")


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
    assert riddles(docstrings(source)) == expected
    assert begins_one(source, "[\"']") or not expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("# What a run found.\nx = 1", ["1: What a run found."]),
        ("# A run found\n# what it asks for.\nx = 1", []),
        ("# Of a run.\nx = 1\n# With two\n# lines.\ny = 1", ["1: Of a run.", "3: With two"]),
        ("def f():\n    # Whose it is.\n    return 1", ["2: Whose it is."]),
        ("x = 0.2  # of the line rate", []),
        ("x = 0.2  # A share:\n# Of the line rate.", ["2: Of the line rate."]),
        ('x = "# What is no comment"', []),
    ],
)
def test_a_comment_that_is_a_riddle_is_found(source: str, expected: list[str]) -> None:
    """The test finds the first lines of comments, but not those of comments behind code."""
    assert riddles(comments(source)) == expected
    assert begins_one(source, "#") or not expected


def test_docstrings_begin_with_a_subject_or_a_verb() -> None:
    """No docstring of the program, its benchmarks, scripts and tests opens with a banned word."""
    refused = [
        f"{name}:{riddle}"
        for name, source in files()
        if begins_one(source, "[\"']")
        for riddle in riddles(docstrings(source))
    ]
    assert refused == []


def test_comments_begin_with_a_subject_or_a_verb() -> None:
    """No comment that has its lines for itself opens with a banned word."""
    refused = [
        f"{name}:{riddle}"
        for name, source in files()
        if begins_one(source, "#")
        for riddle in riddles(comments(source))
    ]
    assert refused == []
