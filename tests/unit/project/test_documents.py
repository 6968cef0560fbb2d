# SPDX-License-Identifier: Apache-2.0
"""The documents: links lead somewhere, lists are whole, and the code cites rules that are there."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

import espbench
from espbench.plan.keys.fixed_loads import FixedLoads
from espbench.plan.keys.model import Compare, Plan, Throughput

ROOT = Path(__file__).parents[3]
NOT_OURS = {".git", ".venv", "target", "runs", "build", "node_modules"}
# Records of what was: the files they name may be gone.
HISTORY = {"CHANGELOG.md"}
README_LINES = 120
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
OUR_PATH = re.compile(
    r"`((?:benchmarks|docs|dut-profiles|harness|plans|reports|scripts|tests|topologies|traffic)/[\w./-]+)`"
)


def _ours(*endings: str) -> Iterator[Path]:
    """Yield the project's files with these endings, below no folder that a tool made."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(set(folders) - NOT_OURS)
        for name in sorted(names):
            if name.endswith(endings):
                yield Path(folder) / name


def _prose(text: str) -> str:
    """Return a document without its code blocks, in which brackets are no links."""
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def _anchors(text: str) -> set[str]:
    """Return the anchors of a document's headings, as GitHub makes them."""
    anchors: set[str] = set()
    for heading in re.findall(r"^#+ +(.+)$", _prose(text), re.MULTILINE):
        words = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower())
        anchor = words.strip().replace(" ", "-")
        n = 1
        while (anchor if n == 1 else f"{anchor}-{n - 1}") in anchors:
            n += 1
        anchors.add(anchor if n == 1 else f"{anchor}-{n - 1}")
    return anchors


def _dead(document: Path, target: str) -> bool:
    """Say whether a relative link leads nowhere: no such file, or no such heading in it."""
    path, _, anchor = target.partition("#")
    file = document if not path else document.parent / path
    if not file.exists() or ROOT not in file.resolve().parents:
        return True
    return bool(anchor) and file.suffix == ".md" and anchor not in _anchors(file.read_text())


DOCUMENTS = list(_ours(".md"))
DECISIONS = sorted((ROOT / "docs/decisions").glob("*.md"))


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("document", DOCUMENTS, ids=_name)
def test_every_relative_link_leads_somewhere(document: Path) -> None:
    """A file that is there and, with an anchor, a heading in it."""
    targets = LINK.findall(_prose(document.read_text()))
    assert [t for t in targets if "://" not in t and _dead(document, t)] == []


def test_a_link_to_no_file_and_to_no_heading_is_dead() -> None:
    """The check above can fail."""
    readme = ROOT / "README.md"
    assert _dead(readme, "docs/nowhere.md")
    assert _dead(readme, "docs/method.md#no-such-rule")
    assert _dead(readme, "../outside.md")
    assert not _dead(readme, "docs/method.md#rule-6-a-queue-is-not-throughput")
    assert _anchors("# A `b`, c!\n## A b c\n### 0.001 % is\n") == {"a-b-c", "a-b-c-1", "0001--is"}


@pytest.mark.parametrize(
    "document", [d for d in DOCUMENTS if d.name not in HISTORY and d not in DECISIONS], ids=_name
)
def test_every_path_that_prose_names_is_there(document: Path) -> None:
    """A path from the project's root, such as `tests/unit/project/test_documents.py`, in a document of today."""
    named = OUR_PATH.findall(_prose(document.read_text()))
    made_by_a_tool = [path for path in named if NOT_OURS & set(Path(path).parts)]
    assert [path for path in named if path not in made_by_a_tool and not (ROOT / path).exists()] == []


def test_the_readme_is_short() -> None:
    """It has what a newcomer needs first; the rest is in docs/."""
    assert len((ROOT / "README.md").read_text().splitlines()) <= README_LINES


def test_the_index_names_every_document() -> None:
    """docs/README.md links to each page beside it."""
    index = (ROOT / "docs/README.md").read_text()
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert {page for page in pages if f"]({page})" not in index} == set()


def test_decisions_are_numbered_dated_and_listed() -> None:
    """Each has the next number, a date, the four parts, and its line in ARCHITECTURE.md."""
    listed = (ROOT / "ARCHITECTURE.md").read_text()
    assert [int(d.name[:4]) for d in DECISIONS] == list(range(1, len(DECISIONS) + 1))
    for decision in DECISIONS:
        text = decision.read_text()
        assert re.match(
            rf"# {decision.name[:4]}\. \S.*\n\n\*\d{{4}}-\d\d-\d\d · (accepted|replaced by )", text
        )
        assert re.findall(r"^## (.+)$", text, re.MULTILINE) == [
            "Context",
            "Decision",
            "Refused",
            "Consequence",
        ]
        assert f"](docs/decisions/{decision.name})" in listed


def test_cited_documents_and_rules_are_there() -> None:
    """References in code to docs/method.md and its neighbours lead somewhere."""
    rules = {
        int(n) for n in re.findall(r"^### Rule (\d+):", (ROOT / "docs/method.md").read_text(), re.MULTILINE)
    }
    assert rules == set(range(1, 10))
    for file in _ours(".py", ".rs", ".c", ".h", ".yaml"):
        text = file.read_text(errors="replace")
        for cited in re.findall(r"\bdocs/[\w.-]+\.md\b", text):
            if file != Path(__file__):
                assert (ROOT / cited).exists(), f"{_name(file)} cites {cited}"
        for words in re.findall(r"docs/method\.md, rules? ([\d, and]+)", text):
            assert {int(n) for n in re.findall(r"\d+", words)} <= rules, _name(file)


@pytest.mark.parametrize("model", [Plan, Throughput])
def test_every_key_of_a_plan_is_explained(model: type[BaseModel]) -> None:
    """docs/plan.md names each key of a plan and of its throughput test."""
    text = (ROOT / "docs/plan.md").read_text()
    assert [key for key in model.model_fields if f"`{key}`" not in text] == []


def test_every_key_of_compare_is_explained() -> None:
    """docs/comparison.md has a row for each key, and for each value of `by`."""
    text = (ROOT / "docs/comparison.md").read_text()
    values = get_args(Compare.model_fields["by"].annotation)
    rows = [*Compare.model_fields, *FixedLoads.model_fields, *values]
    assert [row for row in rows if f"\n| `{row}` |" not in text] == []


def test_the_changelog_begins_with_this_version() -> None:
    """The newest version that it describes is the package's."""
    versions = re.findall(
        r"^## \[([\d.]+)\] - \d{4}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    assert versions[0] == espbench.__version__
