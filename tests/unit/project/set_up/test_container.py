# SPDX-License-Identifier: Apache-2.0
"""The container's recipe: the packages of the set-up, in steps that benchmarks/machines/installed.py does."""

from __future__ import annotations

import shutil
from pathlib import Path

import installed
import pytest

CLONE = Path(__file__).parents[4]
TEXT = (CLONE / "Containerfile").read_text()


def test_it_installs_the_packages_of_the_set_up() -> None:
    """They are those for every user and for gateways in virtual time; the generator is in the wheel."""
    common, rest = (CLONE / "scripts/packages.txt").read_text().split("[root]\n")
    wanted = {line.split()[0] for line in f"{common}{rest.split('[virtual]')[1].split('[test]')[0]}".splitlines()
              if line and not line.startswith("#")}  # fmt: skip
    named = set(TEXT.replace("\\\n", " ").split())
    assert wanted - named == {"clang", "libbpf-dev"}


def test_its_steps_can_be_done_without_an_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They run in order, each as its user; the program is that of the entry point."""
    done: list[str] = []
    monkeypatch.setattr(installed, "run_inside", lambda root, command: done.append(command))
    monkeypatch.setattr(shutil, "copy", lambda source, target: None)
    assert installed.recipe(tmp_path) == "/home/somebody/e/bin/espbench"
    assert [command.split()[0] for command in done] == ["apt-get", "useradd", "su", "su"]
    assert done[-1] == "su somebody -c 'cd && ~/e/bin/espbench build x86'"


def test_a_step_that_is_not_known_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Containerfile").write_text("FROM debian\nADD x /y\n")
    monkeypatch.setattr(installed, "REPOSITORY", tmp_path)
    with pytest.raises(SystemExit, match="ADD"):
        installed.recipe(tmp_path)
