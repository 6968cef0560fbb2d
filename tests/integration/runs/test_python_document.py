# SPDX-License-Identifier: Apache-2.0
"""docs/python.md says what is true: its blocks run, and print what stands under them."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.python_document import DOCUMENT, make_runs, with_output

pytestmark = [pytest.mark.untimed, pytest.mark.needs("distributed")]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the runs of the document."""
    parent = tmp_path_factory.mktemp("document")
    make_runs(parent)
    return parent


def test_every_block_prints_what_stands_under_it(runs: Path) -> None:
    """Every block does. To write them anew: PYTHONPATH=harness:tests python -m support.python_document"""
    text = DOCUMENT.read_text(encoding="utf-8")
    assert text.count("```python\n") >= 6
    assert with_output(text, runs) == text


def test_output_that_is_not_the_blocks_is_replaced(runs: Path) -> None:
    """Blocks share their names; one that prints nothing has nothing under it."""
    wrong = "```python\nx = 2\n```\n\nThen:\n\n```python\nprint(x)\n```\n\n```text\n3\n```\n\nEnd.\n"
    assert with_output(wrong, runs) == wrong.replace("3", "2")
