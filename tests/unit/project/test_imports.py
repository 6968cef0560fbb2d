# SPDX-License-Identifier: Apache-2.0
"""Imports go in one direction, folder by folder; each folder says what it may import, and none is a heap."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from espbench.own_code import READERS

HARNESS = Path(__file__).parents[3] / "harness"
MOST_MODULES = 15  # of a folder, beside its __init__

# The modules of each folder may import these beside each other and the words (espbench's top modules),
# from the bottom up: a row names rows above it. `plan.*` is plan and its folders. A row's folder says the same in the
# docstring of its __init__.
MAY_IMPORT = {
    "catalogue": "",
    "this_machine": "",
    "results": "",
    "results.exports": "results",
    "search": "",
    "plan.reading": "",
    "plan.traffic": "plan.reading catalogue",
    "plan.keys": "plan.reading plan.traffic catalogue",
    "plan.duts": "plan.reading plan.keys",
    "plan.resolved": "plan.reading plan.traffic plan.keys plan.duts catalogue",
    "plan.checks": "plan.reading plan.traffic plan.keys plan.duts plan.resolved catalogue",
    "plan": "plan.* catalogue",
    "platforms": "this_machine",
    "platforms.uml": "platforms this_machine",
    "platforms.remote": "platforms this_machine",
    "platforms.virtual": "platforms this_machine",
    "platforms.virtual.parts": "platforms platforms.virtual this_machine",
    "platforms.virtual.own": "platforms platforms.virtual.parts this_machine",
    "platforms.e500": "platforms platforms.virtual platforms.virtual.own platforms.virtual.parts this_machine",
    "platforms.x86": "platforms platforms.virtual platforms.virtual.own platforms.virtual.parts this_machine",
    "stacks": "platforms catalogue",
    "stacks.daemons": "stacks platforms this_machine catalogue",
    "stacks.strongswan": "stacks stacks.daemons platforms catalogue",
    "stacks.libreswan": "stacks.daemons platforms catalogue",
    "npcrypt.ciphers": "",
    "npcrypt": "this_machine results plan.keys plan.duts platforms platforms.e500 platforms.virtual "
    "platforms.virtual.parts npcrypt.ciphers",
    "generators": "platforms this_machine",
    "measure.inputs": "platforms stacks generators",
    "measure.proof": "platforms stacks generators measure.inputs",
    "measure.validity": "this_machine stacks stacks.daemons generators measure.inputs",
    "measure": "platforms generators measure.*",
    "procedures": "plan.reading plan.keys plan.resolved measure.inputs",
    "procedures.rfc2544": "plan.keys plan.resolved search measure.inputs procedures",
    "procedures.ipsec": "plan.keys plan.resolved platforms stacks stacks.daemons generators measure measure.inputs "
    "measure.proof measure.validity procedures",
    "procedures.boards": "catalogue this_machine results plan plan.keys plan.duts plan.resolved platforms "
    "platforms.e500 platforms.uml platforms.virtual platforms.virtual.parts npcrypt generators measure.inputs "
    "measure.validity procedures",
    "runs.platform_kinds.shared": "this_machine plan plan.reading plan.keys plan.duts plan.resolved platforms "
    "platforms.remote platforms.virtual.own platforms.virtual.parts stacks.daemons",
    "runs.platform_kinds": "this_machine plan plan.keys plan.duts platforms.* stacks stacks.daemons npcrypt generators "
    "procedures.boards runs.platform_kinds.shared",
    "runs": "catalogue this_machine plan.* platforms.* stacks.* generators measure.* procedures.* "
    "runs.platform_kinds.*",
    "runs.workers": "this_machine results plan plan.keys plan.resolved platforms platforms.virtual.own "
    "platforms.virtual.parts generators measure measure.inputs procedures procedures.boards runs "
    "runs.platform_kinds.shared",
    "comparison.sorting": "results",
    "comparison.deciding": "comparison.sorting",
    "comparison.telling": "comparison.sorting comparison.deciding",
    "comparison": "results comparison.*",
    "gate": "results comparison.sorting",
    "profile": "results",
    "gate.telling": "results.exports gate",
    "gate.commits": "results",
    "over_time": "this_machine results comparison.sorting gate",
    "claims": "catalogue results plan plan.reading plan.resolved",
    "reporting.parts": "this_machine results",
    "reporting.findings": "results reporting.parts",
    "reporting.one_run": "results reporting.parts reporting.findings",
    "reporting.compared": "results comparison.* reporting.parts",
    "reporting.published": "results plan.duts claims npcrypt.ciphers comparison.sorting reporting.parts",
    "reporting.kernels": "results npcrypt.ciphers reporting.parts reporting.published",
    "reporting.over_time": "results over_time reporting.parts",
    "reporting": "results results.exports comparison comparison.sorting reporting.*",
    "frames": "plan.reading results runs.workers comparison comparison.sorting over_time profile",
    "cli.gate": "results plan plan.resolved runs comparison gate gate.*",
    "cli.profile": "results plan runs gate profile cli.gate",
    "cli.bisect": "results plan runs gate gate.commits profile cli.gate cli.profile",
    "cli.history": "over_time reporting.over_time",
    "cli.finished": "plan plan.resolved results measure.inputs procedures runs comparison comparison.* reporting "
    "reporting.*",
    "cli": "catalogue this_machine results.* plan.* platforms.* stacks.daemons generators measure.* procedures.boards "
    "runs runs.platform_kinds.* runs.workers reporting.* cli.bisect cli.finished cli.gate cli.history "
    "cli.profile",
}
# These may be imported by whoever is no part of a folder: the Python API, and `python -m espbench`.
DOORS = {"espbench": "frames", "espbench.__main__": "cli"}
WORDS = "espbench"
# Scapy is GPL-2.0-only: a process of its own, which shares no module with espbench.
APART = "espbench_scapy"


def modules() -> dict[str, Path]:
    """Every module of the harness by its full name; a package's __init__ under the package's."""
    paths = {}
    for path in HARNESS.rglob("*.py"):
        name = ".".join(path.relative_to(HARNESS).with_suffix("").parts)
        paths[name.removesuffix(".__init__")] = path
    return paths


KNOWN = modules()


def imports(text: str) -> set[str]:
    """Return what a module imports of the harness, inside functions and for type checkers too."""
    wanted = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, (
                f"line {node.lineno}: expected the module's whole name, got a relative import"
            )
            if node.module in KNOWN:
                of_names = {f"{node.module}.{alias.name}" for alias in node.names} & KNOWN.keys()
                wanted |= of_names or {node.module}
        elif isinstance(node, ast.Import):
            wanted |= {alias.name for alias in node.names} & KNOWN.keys()
    return wanted


@cache
def graph() -> dict[str, set[str]]:
    """Every module with what it imports; read once by the worker that tests it."""
    return {name: imports(path.read_text(encoding="utf-8")) - {name} for name, path in KNOWN.items()}


def folder_of(module: str) -> str:
    """`plan.keys` of `espbench.plan.keys.model`; `espbench` of the words."""
    folder = ".".join(KNOWN[module].parent.relative_to(HARNESS).parts)
    return folder.removeprefix("espbench.")


def allowed(folder: str, row: str) -> Iterator[str]:
    """Every folder that a row of the table allows, and the folder itself."""
    yield folder
    for name in row.split():
        part = name.removesuffix(".*")
        yield part
        if name != part:
            yield from (other for other in MAY_IMPORT if other.startswith(f"{part}."))


def trespasses(graph: dict[str, set[str]]) -> list[str]:
    """Imports that the table does not allow, a sentence each."""
    wrong = []
    for module, wanted in sorted(graph.items()):
        folder = folder_of(module)
        if folder == APART:
            free = {APART}
        elif folder == WORDS:
            free = {WORDS, *DOORS.get(module, "").split()}
        else:
            free = {WORDS, *allowed(folder, MAY_IMPORT[folder])}
        for other in sorted(wanted):
            if folder_of(other) not in free or (other in DOORS and folder != WORDS):
                wrong.append(f"{module} imports {other}, and {folder} may not import {folder_of(other)}")
    return wrong


def circle(graph: dict[str, set[str]]) -> str:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return " → ".join(error.args[1])
    return ""


def test_no_module_imports_itself_by_a_detour() -> None:
    """A circle could only be read as one file."""
    assert circle(graph()) == ""


def test_each_folder_imports_what_the_table_allows() -> None:
    """ARCHITECTURE.md: arrows point down only."""
    assert trespasses(graph()) == []


def test_nothing_that_measures_imports_what_only_reads() -> None:
    """A base says which code measured it, without the folders that only read results (own_code.py)."""
    readers = {name.replace("/", ".") for name in READERS}
    assert readers <= {folder for name in KNOWN for folder in _within(folder_of(name))}
    measuring, wanted = set[str](), {name for name in KNOWN if folder_of(name).startswith("runs")}
    while wanted:
        measuring |= wanted
        wanted = {other for name in wanted for other in graph()[name]} - measuring
    assert {name for name in measuring if readers & _within(folder_of(name))} == set()


def _within(folder: str) -> set[str]:
    """Return a folder and those that contain it."""
    parts = folder.split(".")
    return {".".join(parts[: n + 1]) for n in range(len(parts))}


def test_the_table_has_each_folder_and_points_upwards_to_none() -> None:
    """A row names rows above it, so no two folders import each other."""
    folders = {folder_of(name) for name in KNOWN} - {WORDS, APART}
    assert folders == set(MAY_IMPORT)
    above: set[str] = set()
    for folder, row in MAY_IMPORT.items():
        own = {name for name in allowed(folder, row) if name != folder}
        assert own <= above, f"{folder} names {sorted(own - above)}, which stand below it"
        above.add(folder)


def test_the_table_allows_nothing_that_nobody_uses() -> None:
    """The table would otherwise say less and less of the structure."""
    for folder, row in MAY_IMPORT.items():
        used = {folder_of(o) for m, wanted in graph().items() if folder_of(m) == folder for o in wanted}
        idle = [name for name in row.split() if not used & (set(allowed("", name)) - {folder})]
        assert idle == [], folder


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_each_folder_says_what_lives_there_and_what_it_may_import(folder: str) -> None:
    """A paragraph of its __init__ says so, in the words of the table."""
    docstring = ast.get_docstring(ast.parse(KNOWN[f"espbench.{folder}"].read_text(encoding="utf-8"))) or ""
    first, said, names = " ".join(docstring.split()).partition("May import ")
    assert first
    assert said, f"{folder}/__init__.py: expected a sentence `May import …`"
    assert sorted(re.findall(r"`([\w.*]+)`", names)) == sorted(MAY_IMPORT[folder].split())


def test_the_architecture_says_what_the_api_may_import() -> None:
    """It says so once, in the words of the table."""
    text = (HARNESS.parent / "ARCHITECTURE.md").read_text(encoding="utf-8")
    _, *said = text.split("`frames` may import")
    assert len(said) == 1
    names = re.findall(r"`([\w.*]+)`", said[0].partition(". ")[0])
    assert sorted(names) == sorted(MAY_IMPORT["frames"].split())


def test_no_folder_is_a_heap() -> None:
    """One looks through fifteen names at a glance."""
    for folder in {path.parent for path in KNOWN.values()}:
        names = [path.name for path in folder.glob("*.py") if path.name != "__init__.py"]
        assert len(names) <= MOST_MODULES, f"{folder}: {len(names)} modules; which of them belong together?"


@pytest.mark.parametrize(
    ("graph", "is_circle"), [({"a": {"b"}, "b": {"a"}}, True), ({"a": {"b"}, "b": set()}, False)]
)
def test_a_circle_is_found(graph: dict[str, set[str]], is_circle: bool) -> None:
    """The tests above can fail."""
    assert bool(circle(graph)) == is_circle


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("espbench.platforms.base", "from espbench.stacks import base"),
        ("espbench.plan.keys.model", "def late():\n    from espbench.this_machine import registry"),
        ("espbench.search.goals", "if TYPE_CHECKING:\n    from espbench.results import RunDirectory"),
        ("espbench.terms", "import espbench.plan.keys.model"),
        ("espbench.runs.session", "from espbench import load"),
        ("espbench_scapy.frames", "from espbench.terms import Trial"),
        ("espbench.generators.scapy", "from espbench_scapy import generator"),
    ],
)
def test_a_trespass_is_found(module: str, text: str) -> None:
    """Inside a function and for type checkers, too."""
    assert len(trespasses({module: imports(text)})) == 1
