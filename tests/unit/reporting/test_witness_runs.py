# SPDX-License-Identifier: Apache-2.0
"""Finished runs give the same documents as before, letter for letter.

If a change of them is intended: `PYTHONPATH=harness:tests .venv/bin/python -m support.witness`, and look at the diff.
"""

from pathlib import Path

import pytest

from espbench.results import RunDirectory
from support import witness


@pytest.mark.parametrize("name", witness.NAMES)
def test_a_finished_run_gives_the_same_documents(name: str, tmp_path: Path) -> None:
    made, expected = witness.made(name, tmp_path), witness.expected(name)
    assert set(made) == set(expected)
    for document, text in made.items():
        assert text == expected[document], f"{name}/{document}; intended? see the top of this file"


def test_the_witnesses_are_a_search_a_comparison_and_an_old_run() -> None:
    """They show nothing if they become other runs, or if nothing of theirs is expected."""
    runs = {name: RunDirectory.open(witness.WITNESSES / name).manifest for name in witness.NAMES}
    assert {name: run.format for name, run in runs.items()} == {
        "comparison": 2,
        "format-1": 1,
        "throughput": 2,
    }
    assert runs["comparison"].compare
    assert all("report.md" in witness.expected(name) for name in runs)
