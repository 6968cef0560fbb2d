# SPDX-License-Identifier: Apache-2.0
"""A digest and a commit say which espbench measured: of clones made up here, and in reports' words."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from espbench import own_code
from espbench.cli.resumption import code_of_all, other_code
from espbench.terms import Manifest
from support.synthetic.run import manifest

GIT = ["git", "-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false"]


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A clone with one Python file, from which espbench seems to run; its program is two bytes."""
    package = tmp_path / "clone" / "harness" / "espbench"
    package.mkdir(parents=True)
    (package / "a.py").write_text("one = 1\n")
    root = tmp_path / "clone"
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*GIT, *words], cwd=root, check=True)
    program = tmp_path / "program"
    program.write_bytes(b"ab")
    monkeypatch.setattr(own_code, "_PACKAGE", package)
    monkeypatch.setattr(own_code, "clone_root", lambda: root)
    monkeypatch.setattr(own_code, "data_dir", lambda kind: root / kind)
    monkeypatch.setattr(own_code, "program", lambda name, variable: program)
    yield root
    own_code.own_code.cache_clear()  # else later tests of this process would be of that clone


def described() -> dict[str, str]:
    """Return what a new process would say."""
    own_code.own_code.cache_clear()
    return own_code.own_code()


def test_each_change_shows_and_nothing_else_does(clone: Path) -> None:
    """Code, its names, the program; a file of no matter only in the commit."""
    first = described()
    assert len(first["commit"]) == 40
    (clone / "notes.txt").write_text("not of the clone")
    assert described() == first
    file = clone / "harness" / "espbench" / "a.py"
    file.write_text("one = 2\n")
    changed = described()
    assert changed["code"] != first["code"]
    assert (changed["commit"], changed["changed"], "changed" in first) == (first["commit"], "yes", False)
    assert changed["generator"] == first["generator"]
    file.write_text("one = 1\n")
    assert described() == first
    file.rename(file.with_name("b.py"))
    assert described()["code"] != first["code"]


def test_code_that_only_reads_results_does_not_measure(clone: Path) -> None:
    first = described()
    for name in ("reporting/parts/b.py", "cli/finished/b.py"):
        file = clone / "harness/espbench" / name
        file.parent.mkdir(parents=True)
        file.write_text("two = 2\n")
    assert described()["measuring"] == first["measuring"]
    assert described()["code"] != first["code"]
    (clone / "harness/espbench/cli/b.py").write_text("two = 2\n")
    assert described()["measuring"] != first["measuring"]


@pytest.mark.parametrize(
    "name", ["harness/espbench/catalogue/suites.yaml", "topologies/t.yaml", "traffic/rfc2544.yaml"]
)
def test_the_files_that_say_what_is_measured_do_measure(clone: Path, name: str) -> None:
    """A suite of another ICV costs a frame more, and the conditions of a run have only its name."""
    file = clone / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("icv_bits: 96\n")
    first = described()
    file.write_text("icv_bits: 128\n")
    assert described()["measuring"] != first["measuring"]
    assert described()["code"] == first["code"]


def test_a_copy_within_another_clone_has_no_commit(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit would be of something else."""
    monkeypatch.setattr(own_code, "clone_root", lambda: clone / "harness")
    assert described().keys() == {"code", "measuring", "generator"}


def test_what_is_not_there_is_left_out(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Installed from a wheel, without git, or with no generator built."""

    def absent(name: str, variable: str) -> Path:
        raise FileNotFoundError(name)

    monkeypatch.setattr(own_code, "program", absent)
    monkeypatch.setenv("PATH", "/nonexistent")
    assert described().keys() == {"code", "measuring"}
    monkeypatch.setattr(own_code, "clone_root", lambda: None)
    assert described().keys() == {"code", "measuring"}


def test_the_words() -> None:
    """Older runs have the version alone; runs in between had the changes behind the commit."""
    of = manifest([], "words")
    assert of.made_by == "0.1.0"
    commit = f"{'0123456789abcdef' * 2}01234567"
    for code in (
        {"commit": commit, "changed": "yes", "code": "ab"},
        {"commit": f"{commit} with changes", "code": "ab"},
    ):
        read = Manifest.model_validate(of.model_dump() | {"code": code})
        assert read.made_by == "0.1.0, commit 0123456789ab with changes, code ab"
        assert read.code["commit"] == commit
    unchanged = of.model_copy(update={"code": {"commit": commit}})
    assert unchanged.made_by == "0.1.0, commit 0123456789ab"


def test_a_run_that_goes_on_with_other_code_is_no_base_of_either() -> None:
    """Its manifest does not say any more which code measured it."""
    begun = {"code": "1", "commit": "c", "measuring": own_code.own_code()["measuring"]}
    assert code_of_all(begun) == begun
    assert code_of_all(begun | {"measuring": "another"}) == {"code": "1", "commit": "c"}
    assert code_of_all({"code": "1"}) == {"code": "1"}


def test_a_run_that_goes_on_with_other_code_says_so() -> None:
    """The same code says nothing, and neither does an older run that did not record it."""
    begun = manifest([], "begun")
    assert other_code(begun) == []
    now = own_code.own_code()
    assert other_code(begun.model_copy(update={"code": now | {"commit": "another"}})) == []
    (said,) = other_code(begun.model_copy(update={"code": now | {"code": "0123"}}))
    assert "begun by 0.1.0" in said
    assert "code 0123" in said
    assert f"code {now['code']}" in said
