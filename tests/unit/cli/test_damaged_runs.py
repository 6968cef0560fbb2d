# SPDX-License-Identifier: Apache-2.0
"""Commands say what is wrong with a run that cannot be read, and with a folder in which nothing can be written."""

from __future__ import annotations

from pathlib import Path

import pytest

from espbench.errors import UsageError
from espbench.results import RunDirectory
from support.command_line import in_process
from support.synthetic import run as synthetic

DAMAGE = [
    ("manifest.json", "{", "damaged, not JSON: "),
    ("manifest.json", "[]", "damaged: expected an object with keys, got a list"),
    ("manifest.json", None, "cannot read: Is a directory"),
    ("results.json", "[]", "not a results file: expected an object with the keys format and outcomes"),
    ("results.json", '{"format": 99}', "not a results file: format 99; this espbench reads up to "),
    ("results.json", None, "not a results file: "),
    ("trials.jsonl", "", "cannot read: No such file or directory"),
    ("trials.jsonl", None, "cannot read: Is a directory"),
]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A complete run."""
    return synthetic.build(tmp_path).path


@pytest.mark.parametrize(("name", "content", "told"), DAMAGE)
@pytest.mark.parametrize("command", ["report", "compare"])
def test_a_file_that_cannot_be_read_is_one_message_with_what_to_do(
    run: Path, command: str, name: str, content: str | None, told: str
) -> None:
    """content: of the file; none: a directory is there; empty: nothing is there."""
    (run / name).unlink()
    if content is None:
        (run / name).mkdir()
    elif content:
        (run / name).write_text(content)
    done = in_process(command, run, *([run] if command == "compare" else []))
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    if command == "report":
        assert f"{run / name}: {told}" in done.stderr
        assert f"what to do: restore {name} from a copy of the run" in done.stderr


def test_a_folder_for_runs_that_is_a_file_is_a_mistake_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="got: a file\n  what to do: name another folder with --out"):
        RunDirectory.create(tmp_path / "file", "x", synthetic.manifest([], "x"), "")
    done = in_process("history", tmp_path, "--html", tmp_path / "file")
    assert (done.returncode, "expected a folder, got a file" in done.stderr) == (2, True)


def test_history_counts_the_runs_that_it_read_and_says_if_nothing_matches(run: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "manifest.json").write_text("{")
    index = tmp_path / "index"
    done = in_process("history", tmp_path, "--index", index)
    assert done.returncode == 0
    assert "left out: " in done.stderr
    assert "1 runs, " in done.stdout
    done = in_process("history", tmp_path, "--index", index, "--plan", "no such")
    assert "no series has these texts in its names: --plan 'no such'; there are the plans " in done.stderr
