# SPDX-License-Identifier: Apache-2.0
"""A change of the code that builds guests is noticed: the keys of built parts have only the files of these."""

from __future__ import annotations

import ast
import hashlib
import io
import tokenize
from pathlib import Path

import pytest

from espbench.platforms.virtual.parts import recipe

PARTS = Path(recipe.__file__).parent
NO_BUILDERS = {"__init__", "build", "copies", "recipe"}  # they find, move and name what the others make
DIGITS = 12
Place = tuple[int, int]


def code(source: str) -> str:
    """Return a module without comments, docstrings and empty lines: the same text in each version of Python."""
    lines = source.splitlines()
    # The last is taken away first, so that the places of the others stay true.
    for (first, begin), (last, end) in sorted(comments(source) + docstrings(source), reverse=True):
        lines[first - 1 : last] = [lines[first - 1][:begin] + lines[last - 1][end:]]
    return "\n".join(line.rstrip() for line in lines if line.strip())


def comments(source: str) -> list[tuple[Place, Place]]:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return [(token.start, token.end) for token in tokens if token.type == tokenize.COMMENT]


def docstrings(source: str) -> list[tuple[Place, Place]]:
    """Return where each docstring begins, and the end of its last line."""
    may_have_one = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    places = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, may_have_one) and ast.get_docstring(node) is not None:
            text = node.body[0]
            last = text.end_lineno or text.lineno
            places.append(((text.lineno, text.col_offset), (last, len(source.splitlines()[last - 1]))))
    return places


def digest(source: str) -> str:
    return hashlib.sha256(code(source).encode()).hexdigest()[:DIGITS]


@pytest.mark.parametrize("module", sorted(recipe.BUILDERS))
def test_whoever_changes_a_builder_is_asked_whether_it_builds_something_else(module: str) -> None:
    now = digest((PARTS / f"{module}.py").read_text(encoding="utf-8"))
    assert recipe.BUILDERS[module] == now, (
        f"{module}.py is not what it was when its digest was noted in recipe.py. Does it make another product of the "
        f"same files? Then increase RECIPE ({recipe.RECIPE}) there, so that every machine builds its guests again. In "
        f"both cases, note the new digest: BUILDERS[{module!r}] = {now!r}"
    )


def test_each_module_is_a_builder_or_none() -> None:
    assert {file.stem for file in PARTS.glob("*.py")} == recipe.BUILDERS.keys() | NO_BUILDERS


MODULE = '''"""A module,
of two lines."""
import os  # for f

X = "# no comment"


def f():
    """Return 1."""
    # It is the least.
    return 1
'''


@pytest.mark.parametrize(
    ("old", "new", "is_same"),
    [
        ("of two lines", "of the same two lines\n\nand more", True),
        ("  # for f", "", True),
        ("    # It is the least.\n", "\n\n", True),
        ('    """Return 1."""\n', "", True),
        ("Return 1.", "Return 1 — one.", True),
        ("return 1\n", "return 2\n", False),
        ("# no comment", "# no", False),
    ],
)
def test_only_code_changes_a_digest(old: str, new: str, is_same: bool) -> None:
    assert old in MODULE
    assert (code(MODULE.replace(old, new)) == code(MODULE)) is is_same
