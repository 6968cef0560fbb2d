# SPDX-License-Identifier: Apache-2.0
"""Imports go in one direction: neither modules nor packages stand in a circle."""

from __future__ import annotations

import ast
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

HARNESS = Path(__file__).parents[3] / "harness"


def modules() -> dict[str, Path]:
    """Every module of the harness by its full name; a package's __init__ under the package's."""
    found = {}
    for path in HARNESS.rglob("*.py"):
        name = ".".join(path.relative_to(HARNESS).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = path
    return found


class WithoutTypeChecking(ast.NodeTransformer):
    """Takes out what only type checkers read."""

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return node.orelse
        return self.generic_visit(node)


@cache
def imports() -> dict[str, set[str]]:
    """What each module imports of the harness, inside functions too; under TYPE_CHECKING nothing is imported."""
    known = modules()
    graph: dict[str, set[str]] = {}
    for name, path in known.items():
        wanted = set()
        for node in ast.walk(WithoutTypeChecking().visit(ast.parse(path.read_text(encoding="utf-8")))):
            if isinstance(node, ast.ImportFrom) and node.module in known:
                wanted |= {f"{node.module}.{alias.name}" for alias in node.names} & known.keys() or {
                    node.module
                }
            elif isinstance(node, ast.Import):
                wanted |= {alias.name for alias in node.names} & known.keys()
        graph[name] = wanted - {name}
    return graph


def circle(graph: dict[str, set[str]]) -> str:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return " → ".join(error.args[1])
    return ""


def part_of(module: str) -> str:
    """`espbench.plan` of `espbench.plan.keys.model`; a module of the top level is a part of its own."""
    return ".".join(module.split(".")[:2])


def test_no_module_imports_itself_by_a_detour() -> None:
    """A circle could only be read as one file."""
    assert circle(imports()) == ""


def test_no_two_parts_import_each_other() -> None:
    """ARCHITECTURE.md: arrows point down only."""
    graph: dict[str, set[str]] = {}
    for module, wanted in imports().items():
        part = part_of(module)
        graph.setdefault(part, set()).update({part_of(other) for other in wanted} - {part})
    assert circle(graph) == ""


@pytest.mark.parametrize(
    ("graph", "found"), [({"a": {"b"}, "b": {"a"}}, True), ({"a": {"b"}, "b": set()}, False)]
)
def test_a_circle_is_found(graph: dict[str, set[str]], found: bool) -> None:
    """The tests above can fail."""
    assert bool(circle(graph)) == found
