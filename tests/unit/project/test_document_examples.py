# SPDX-License-Identifier: Apache-2.0
"""The documents: the commands of espbench that they name exist, with their options, and their plans have valid keys."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from pydantic import ValidationError

from espbench.cli.main import app
from espbench.plan.keys.model import Plan

ROOT = Path(__file__).parents[3]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
GROUP = typer.main.get_command(app)
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
# A command in a block of commands begins its line; in prose it is a span of code.
IN_BLOCK = re.compile(r"^[ -]*(?:run: )?(?:\S*\.venv/bin/)?espbench (.+)$", re.MULTILINE)
IN_PROSE = re.compile(r"`espbench ([^`]+)`")
# These keys complete an example that shows only some keys of a plan.
REST = {"name": "example", "topology": "gateway-to-gateway", "tests": [{"flood": {}}]}
OF_PROFILES = {"platform", "kernel", "sizes"}  # keys that only profiles of devices and of traffic have


def _commands(text: str) -> Iterator[list[str]]:
    """Yield each command line of espbench in a document, as words after `espbench`."""
    prose = BLOCK.sub("", text)
    blocks = "".join(block for _, block in BLOCK.findall(text)).replace("\\\n", " ")
    for written in [*IN_BLOCK.findall(blocks), *IN_PROSE.findall(re.sub(r"\s+", " ", prose))]:
        try:
            yield shlex.split(written, comments=True)
        except ValueError:  # a quotation that goes on in the next line, as in a listing of output
            continue


def _unknown(words: list[str]) -> list[str]:
    """Return the words of a command line that espbench does not know: the command, or options of it."""
    command: Any = GROUP
    if not words[0].startswith("-"):
        if words[0].isupper():  # COMMAND stands for any
            return []
        command = GROUP.commands.get(words[0])  # type: ignore[attr-defined]
        if command is None:
            return [words[0]]
    known = {"--help"} | {name for parameter in command.params for name in parameter.opts}
    return [word for word in words if word.startswith("--") and word.partition("=")[0] not in known]


def _examples(text: str) -> Iterator[dict[str, Any]]:
    """Yield the examples of plans in a document, whole or in part, as plans."""
    for kind, block in BLOCK.findall(text):
        shown = yaml.safe_load(block) if kind == "yaml" and "…" not in block else None
        if not isinstance(shown, dict) or shown.keys() & OF_PROFILES:
            continue
        if shown.keys() & Plan.model_fields.keys() - {"name"}:
            yield REST | shown


def _wrong(example: dict[str, Any]) -> list[str]:
    """Return what is wrong with the keys and values of a plan."""
    try:
        Plan.model_validate(example)
    except ValidationError as error:
        return [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
    return []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_commands_and_options_exist(document: Path) -> None:
    assert [words for words in _commands(document.read_text()) if _unknown(words)] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_plans_have_valid_keys(document: Path) -> None:
    """Each key exists and has a possible value; this does not check that the plan fits a machine or a device."""
    found = [(example, wrong) for example in _examples(document.read_text()) if (wrong := _wrong(example))]
    assert found == []


def test_what_is_wrong_is_found() -> None:
    """The checks above see most documents' examples, and can fail."""
    assert _unknown(["run", "plan.yaml", "--dry-run", "--seed=7"]) == []
    assert _unknown(["run", "--no-such-option"]) == ["--no-such-option"]
    assert _unknown(["measure", "plan.yaml"]) == ["measure"]
    assert _wrong(REST | {"stacks": [{"stack": "xfrm", "label": "two words"}]})
    assert _wrong(REST | {"tests": [{"throughput": {"loss_goal": 0}}]})
    texts = [document.read_text() for document in DOCUMENTS]
    assert sum(len(list(_commands(text))) for text in texts) > 150
    assert sum(len(list(_examples(text))) for text in texts) > 20
