# SPDX-License-Identifier: Apache-2.0
"""The modules of each Rust crate depend on each other in one direction, and say in one line what they are.

The crates are the native generator and the network processors. The tests read the paths `crate::…` of the sources.
They compile nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
# Crate → its sources, and that so many modules at least are found there.
CRATES = {
    "traffic": (ROOT / "traffic" / "src", 50),
    "machine": (ROOT / "harness" / "network_processor" / "machine" / "src", 10),
}
SOURCES = [src for src, _ in CRATES.values()]
FILES = sorted(file for src in SOURCES for file in src.rglob("*.rs"))
# Words with which no sentence begins whose subject comes first.
OPENINGS = "What|Of|As|Who|Whose|Whether|Why|How|Where|Which|None|Those|From"

Graph = dict[str, set[str]]


def without_comments(text: str) -> str:
    return re.sub(r"(?m)(^|\s)//.*$", r"\1", text)


def paths(tree: str) -> Iterator[str]:
    """Expands the braces of a path: `a::{b, c::{d, e}}` is `a::b`, `a::c::d` and `a::c::e`."""
    head, brace, body = tree.partition("{")
    if not brace:
        yield head.strip()
        return
    depth, part = 0, ""
    for letter in body.rstrip().removesuffix("}") + ",":
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            if part.strip():
                yield from (head.strip() + rest for rest in paths(part))
            part = ""
        else:
            part += letter


def used(text: str) -> set[str]:
    """Lists the paths from the root of the crate that a source names, in `use` or anywhere else."""
    text = without_comments(text)
    imports = re.findall(r"\buse crate::([^;]*);", text)
    names = {path for tree in imports for path in paths(tree)}
    rest = re.sub(r"\buse crate::[^;]*;", "", text)
    return {path.removesuffix("::self") for path in names} | set(
        re.findall(r"\bcrate::((?:\w+::)*\w+)", rest)
    )


def module_of(file: Path, src: Path) -> str:
    """Names a file's module: `esp/mod.rs` is `esp`, `esp/suite.rs` is `esp::suite`."""
    parts = file.relative_to(src).with_suffix("").parts
    return "::".join(parts[:-1] if parts[-1] == "mod" else parts)


def listed(src: Path) -> list[str]:
    """Lists the modules of main.rs in their order; those that only tests have stand outside of it."""
    return re.findall(r"(?m)(?<!^#\[cfg\(test\)\]\n)^mod (\w+);", (src / "main.rs").read_text())


def graph_of(src: Path) -> Graph:
    """Maps each module to the modules that it uses; main.rs and tests.rs, which may use all, are left out."""
    without = ("main.rs", "tests.rs")
    sources = {
        module_of(file, src): file.read_text() for file in src.rglob("*.rs") if file.name not in without
    }
    graph: Graph = {module: set() for module in sources}
    for module, text in sources.items():
        again = {f"{module}::{child}" for child in re.findall(r"(?m)^pub use (\w+)::", text)}
        for path in used(text) | again:
            parts = path.split("::")
            prefixes = ("::".join(parts[:length]) for length in range(len(parts), 0, -1))
            target = next((prefix for prefix in prefixes if prefix in sources), None)
            if target is not None and target != module:
                graph[module].add(target)
    return graph


def folders_of(graph: Graph) -> Graph:
    """Joins the modules of each folder."""
    joined: Graph = {module.split("::")[0]: set() for module in graph}
    for module, targets in graph.items():
        folder = module.split("::")[0]
        joined[folder] |= {target.split("::")[0] for target in targets} - {folder}
    return joined


def circle(graph: Graph) -> list[str]:
    """Finds a circle of dependencies, from a module back to itself; nothing if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_every_kind_of_path_is_found(tmp_path: Path) -> None:
    """Braces within braces, paths outside of `use`, and what a folder exports again: none hides a dependency."""
    for name, text in {
        "main.rs": "mod a;",
        "a.rs": "use crate::b::{self, deep::{C, D}};\n// crate::comment\nuse std::fmt;\nfn f() { crate::e::g::h(1) }",
        "b/mod.rs": "pub use inner::*;",
        "b/inner.rs": "use crate::{a, e::g};",
        "b/deep.rs": "",
        "e/g.rs": "",
        "comment.rs": "",
    }.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    graph = graph_of(tmp_path)
    assert graph == {
        "a": {"b", "b::deep", "e::g"},
        "b": {"b::inner"},
        "b::inner": {"a", "e::g"},
        "b::deep": set(),
        "e::g": set(),
        "comment": set(),
    }
    assert set(circle(graph)) == {"a", "b", "b::inner"}


@pytest.mark.parametrize("crate", CRATES)
def test_no_module_depends_on_itself(crate: str) -> None:
    src, least = CRATES[crate]
    graph = graph_of(src)
    assert len(graph) > least
    assert circle(graph) == []


@pytest.mark.parametrize("src", SOURCES, ids=CRATES)
def test_folders_stand_one_above_the_other(src: Path) -> None:
    """A folder, or a module beside main.rs, uses only those that main.rs lists below it."""
    order = listed(src)
    folders = folders_of(graph_of(src))
    assert sorted(order) == sorted(folders)
    upwards = [
        (folder, target)
        for folder, targets in folders.items()
        for target in targets
        if order.index(target) <= order.index(folder)
    ]
    assert upwards == []


def test_paths_begin_at_the_root() -> None:
    """A path that begins with `super` or `self` would be a dependency that these tests do not see."""
    relative = [
        f"{file.relative_to(ROOT)}: {line}"
        for file in FILES
        for line in file.read_text().splitlines()
        if re.search(r"\b(super|self)::(?!\*;)\w", without_comments(line))
        and not line.startswith("    use super::")
    ]
    assert relative == []


def test_no_two_files_have_one_name() -> None:
    """The files of both crates count together, since a name is looked for without the folder."""
    names = Counter(file.name for file in FILES if file.name not in ("mod.rs", "main.rs"))
    assert [name for name, count in names.items() if count > 1] == []


def test_every_file_says_what_it_is() -> None:
    silent = [str(file.relative_to(ROOT)) for file in FILES if "\n//! " not in file.read_text()[:200]]
    assert silent == []


def test_doc_comments_begin_with_their_subject() -> None:
    """A doc comment begins with subject or verb, not with a bare "Of …", "What …" or "As …"."""
    opening = re.compile(rf"^\s*//[/!] (?:{OPENINGS})\b")
    refused: list[str] = []
    for file in FILES:
        before = ""
        for number, line in enumerate(file.read_text().splitlines(), 1):
            begins = not before.strip().startswith(("///", "//!")) or before.strip() in ("///", "//!")
            if begins and opening.match(line):
                refused.append(f"{file.relative_to(ROOT)}:{number}: {line.strip()}")
            before = line
    assert refused == []
