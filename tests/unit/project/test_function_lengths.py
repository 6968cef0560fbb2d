# SPDX-License-Identifier: Apache-2.0
"""No function is longer than a reader can keep in mind (CONTRIBUTING.md, "How we write")."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LIMIT = 60  # lines, from `def` to the last, with the docstring


def lengths(source: str) -> Iterator[tuple[str, int, int]]:
    """Yield the name of each function and method, the line of its `def`, and its number of lines."""
    # Only statements hold functions: without a look at their expressions this is five times as fast.
    waiting: list[ast.AST] = [ast.parse(source)]
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, field, None)
            waiting += inner if isinstance(inner, list) else []


def too_long(file: str, source: str) -> list[str]:
    """Return a sentence for each function of a file that is above the limit."""
    return [
        f"{file}:{line}: {name} has {lines} lines, at most {LIMIT} are allowed: give its steps names of their own"
        for name, line, lines in lengths(source)
        if lines > LIMIT
    ]


def tracked() -> list[str]:
    """Return the names of all Python files that git tracks; skip the test where there is no git tree."""
    done = subprocess.run(
        ["git", "ls-files", "-z", "*.py"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"git does not list the project's files: {done.stderr.strip()}")
    return [name for name in done.stdout.split("\0") if name and (ROOT / name).exists()]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f():\n    return 1\n\n\nx = 1\n", [("f", 1, 2)]),
        ('async def f():\n    """Wait.\n\n    Long.\n    """\n', [("f", 1, 5)]),
        ("class A:\n    @property\n    def f(self):\n        return 1\n", [("f", 3, 2)]),
        ("def f():\n    def g():\n        return 1\n\n    return g\n", [("f", 1, 5), ("g", 2, 2)]),
        ("x = [\n    1,\n]\n", []),
        ("try:\n    pass\nexcept E:\n    def f():\n        pass\n", [("f", 4, 2)]),
        (
            "match x:\n    case 1:\n        if y:\n            pass\n        else:\n            def f(): ...\n",
            [("f", 6, 1)],
        ),
    ],
)
def test_lines_of_a_function_are_counted(source: str, expected: list[tuple[str, int, int]]) -> None:
    """A function has the lines from its `def` to its end: methods, functions in functions, docstrings included."""
    assert list(lengths(source)) == expected


def test_a_function_above_the_limit_is_named() -> None:
    """A function may have as many lines as the limit; one more, and the message says where it is and what to do."""
    within = "def f():\n" + "    x = 1\n" * (LIMIT - 1)
    assert too_long("a.py", within) == []
    assert too_long("a.py", within + "    x = 1\n") == [
        "a.py:1: f has 61 lines, at most 60 are allowed: give its steps names of their own"
    ]


def test_no_function_is_too_long() -> None:
    """No function of the project's Python files is above the limit."""
    files = tracked()
    assert "harness/espbench/measure/record.py" in files
    found = [long for name in files for long in too_long(name, (ROOT / name).read_text(encoding="utf-8"))]
    assert found == [], "\n".join(found)
