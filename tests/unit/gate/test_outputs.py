# SPDX-License-Identifier: Apache-2.0
"""The files that `check` and `baseline` write: nothing else of the user's is replaced or removed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from espbench.cli.gate.outputs import Outputs, is_written_directly, write_output
from espbench.errors import UsageError
from espbench.gate import baseline_file
from support.command_line import in_process


@pytest.mark.parametrize("output", ["plan.yaml", "base.json", "link.json", "junit.xml"])
def test_an_output_that_is_something_else_is_refused_before_any_file_is_touched(
    tmp_path: Path, output: str
) -> None:
    """The plan, the base, a link to it, and another output; the file of an earlier check stays, too."""
    plan, base, junit = (tmp_path / name for name in ("plan.yaml", "base.json", "junit.xml"))
    for file in (plan, base, junit):
        file.write_text("mine")
    (tmp_path / "link.json").symlink_to(base)
    outputs = Outputs(junit=junit, markdown=tmp_path / output)
    with pytest.raises(UsageError, match=rf"{output}: expected a file for the verdict alone, got the "):
        outputs.clear({"the plan": plan, "the base": base})
    assert [file.read_text() for file in (plan, base, junit)] == ["mine"] * 3


def test_the_command_knows_its_plan_and_its_base(tmp_path: Path) -> None:
    plan, base = tmp_path / "plan.yaml", tmp_path / "base.json"
    for file in (plan, base):
        file.write_text("mine")
    for output, name in ((plan, "the plan"), (base, "the base")):
        done = in_process("check", plan, "--against", base, "--json", output)
        assert done.returncode == 2
        assert f"got {name}; name another one" in done.stderr
        assert (plan.read_text(), base.read_text()) == ("mine", "mine")


def test_the_file_of_an_earlier_check_is_removed(tmp_path: Path) -> None:
    file = tmp_path / "new" / "check.json"
    Outputs(json=file).clear({})
    file.write_text("earlier")
    Outputs(json=file).clear({})
    assert not file.exists()


def test_a_pipe_is_written_into_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        Outputs(json=pipe, markdown=pipe).clear({})
        write_output(pipe, "a verdict")
        assert os.read(reader, 100) == b"a verdict"
    finally:
        os.close(reader)
    assert pipe.is_fifo()


def test_devices_are_written_into() -> None:
    """A file into which the shell writes stands behind /dev/stdout, and stays there."""
    assert is_written_directly(Path("/dev/null"))
    assert is_written_directly(Path("/dev/stdout"))
    assert not is_written_directly(Path("/nonexistent"))


@pytest.mark.parametrize(
    ("text", "is_replaced"),
    [
        ("name: a plan\n", False),
        ('{"verdict": "passed"}\n', False),
        ('{\n"format": 1,\n<<<<<<< mine\n', True),
        ("", True),
    ],
)
def test_only_a_base_is_replaced_by_one(tmp_path: Path, text: str, is_replaced: bool) -> None:
    """A damaged one too."""
    file = tmp_path / "baseline.json"
    file.write_text(text)
    assert baseline_file.is_one(file) == is_replaced
    done = in_process("baseline", tmp_path / "no run", "--out", file)
    assert done.returncode == 2
    assert ("not replaced" in done.stderr) != is_replaced
    assert file.read_text() == text
