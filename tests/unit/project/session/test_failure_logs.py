# SPDX-License-Identifier: Apache-2.0
"""A failed test also shows the logs of what it started, and what ended one of its threads."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

CONFTEST = "from support.session.logs import pytest_runtest_makereport"
FAILING = """
def test_it(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "generator.log").write_text("x" * 5000 + " its last words")
    (tmp_path / "stderr0").write_text("what espbench said")
    (tmp_path / "empty.log").touch()
    (tmp_path / "results.csv").write_text("no log")
    assert {outcome}
"""
THREAD = """
import threading
def test_it():
    def fail():
        raise ConnectionError("no room for more frames")
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
"""


@pytest.fixture
def ours(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> pytest.Pytester:
    """A session with the project's own treatment of warnings."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    (treatment,) = request.config.getini("filterwarnings")
    pytester.makeini(f"[pytest]\nfilterwarnings = {treatment}")
    pytester.makeconftest(CONFTEST)
    return pytester


def test_a_failed_test_shows_the_ends_of_its_logs(ours: pytest.Pytester) -> None:
    """All that anything wrote there, but nothing of empty files or results."""
    ours.makepyfile(FAILING.format(outcome=False))
    shown = ours.runpytest_inprocess("-p", "no:cacheprovider")
    shown.assert_outcomes(failed=1)
    shown_logs = shown.stdout.str().partition("the end of")[2]
    assert "x its last words" in shown_logs
    assert "x" * 2001 not in shown_logs
    assert "what espbench said" in shown_logs
    assert "empty.log" not in shown_logs
    assert "results.csv" not in shown_logs


def test_a_test_that_passed_shows_none(ours: pytest.Pytester) -> None:
    ours.makepyfile(FAILING.format(outcome=True))
    shown = ours.runpytest_inprocess("-p", "no:cacheprovider", "-rA")
    shown.assert_outcomes(passed=1)
    assert "its last words" not in shown.stdout.str()


def test_the_death_of_a_thread_fails_its_test(ours: pytest.Pytester) -> None:
    """The report says what it died of."""
    ours.makepyfile(THREAD)
    shown = ours.runpytest_inprocess("-p", "no:cacheprovider")
    assert shown.ret == pytest.ExitCode.TESTS_FAILED
    assert "ConnectionError: no room for more frames" in shown.stdout.str()
