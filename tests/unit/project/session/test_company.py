# SPDX-License-Identifier: Apache-2.0
"""Tests that failed beside others are tried once more alone, and no more than a few files of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.session import company

pytest_plugins = ["pytester"]

CONFTEST = "from support.session.company import *"
MOODY = """
import os
def test_moody(): assert "ALONE" in os.environ
def test_sound(): pass
"""


@pytest.fixture
def folder(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Return a folder for sessions that keep what failed."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeconftest(CONFTEST)
    return pytester


def again(folder: pytest.Pytester) -> pytest.RunResult:
    """The second session."""
    return folder.runpytest_inprocess(
        "--last-failed", "--last-failed-no-failures", "none", company.OPTION, "."
    )


@pytest.mark.parametrize(
    ("alone", "code"), [(True, pytest.ExitCode.OK), (False, pytest.ExitCode.TESTS_FAILED)]
)
def test_only_what_failed_is_tried_again_and_named(
    folder: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, alone: bool, code: int
) -> None:
    """It is green only if it passes now."""
    folder.makepyfile(test_one=MOODY)
    assert folder.runpytest_inprocess().ret == pytest.ExitCode.TESTS_FAILED
    if alone:
        monkeypatch.setenv("ALONE", "1")
    result = again(folder)
    assert result.ret == code
    result.stdout.fnmatch_lines([f"{company.TITLE}: test_one.py::test_moody"])
    assert "test_sound" not in result.stdout.str()


def test_failures_in_many_files_are_not_excused(
    folder: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not, though each would pass now."""
    folder.makepyfile(**{f"test_{n}": MOODY for n in range(company.MOST_FILES + 1)})
    folder.runpytest_inprocess()
    monkeypatch.setenv("ALONE", "1")
    result = again(folder)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "passed" not in result.stdout.str()


def test_where_no_test_failed_nothing_is_green(folder: pytest.Pytester) -> None:
    """A session that was red for another reason stays red."""
    folder.makepyfile(test_one="def test_sound(): pass")
    folder.runpytest_inprocess()
    assert again(folder).ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_make_test_uses_it() -> None:
    """All parts whose tests run beside each other use it."""
    root = Path(__file__).parents[4]
    assert (root / "Makefile").read_text().count("$(call BESIDE,") == 3
    assert company.OPTION in (root / "scripts" / "beside.sh").read_text()
