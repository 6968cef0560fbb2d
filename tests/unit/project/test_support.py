# SPDX-License-Identifier: Apache-2.0
"""Tests share things in one place, say their needs by markers, and are skipped or fail by what is lacking."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from espbench.platforms.base import Readiness
from support.session import needs

pytest_plugins = ["pytester"]

TESTS = Path(__file__).parents[2]
FILES = sorted(TESTS.rglob("test_*.py"))
SOURCES = sorted(TESTS.rglob("*.py"))
STEMS = {file.stem for file in FILES}
DECLARED = tomllib.loads((TESTS.parent / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"][
    "markers"
]
OURS = {line.partition(":")[0].partition("(")[0] for line in DECLARED}
MOST_FILES = 15  # of a folder
SKIPS = re.compile(r"skipif|importorskip")


def imported(file: Path) -> Iterator[str]:
    """Yield the top-level names of all modules that a file imports, wherever in it, if it may import a test file.

    Only a file with a line that begins like one is parsed: to parse all of them takes seconds.
    """
    text = file.read_text()
    if not re.search(r"^\s*(from|import)\s.*\btest_", text, re.MULTILINE):
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


def markers(file: Path) -> set[str]:
    """Return the names of `pytest.mark.<name>` in a file."""
    return set(re.findall(r"\bpytest\.mark\.(\w+)", file.read_text()))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_test_file_imports_no_other_and_skips_by_markers(file: Path) -> None:
    """Code that two tests need is in tests/support; needs.py alone says what the machine lacks."""
    assert STEMS.isdisjoint(imported(file))
    if file.name != Path(__file__).name:
        assert not SKIPS.findall(file.read_text())
        assert not re.search(r"geteuid\(\).*\n\s*pytest\.skip", file.read_text())


def test_an_import_of_a_test_file_is_found(tmp_path: Path) -> None:
    """It may stand in a function, and be one of several; a string that looks like one is none."""
    (file := tmp_path / "a.py").write_text("import os\n\ndef f():\n    import re, test_plan as plan\n")
    assert set(imported(file)) == {"os", "re", "test_plan"}
    file.write_text("from test_plan import (\n    f,\n)\n")
    assert set(imported(file)) == {"test_plan"}
    file.write_text('x = """\nimport test_plan\n"""\n')
    assert set(imported(file)) == set()


def test_test_files_have_names_of_their_own_and_stand_in_folders() -> None:
    """Pytest imports them by their bare names; and one looks through fifteen at a glance."""
    names = [file.name for file in FILES]
    assert sorted(set(names)) == sorted(names)
    modules = Counter(file.parent for file in SOURCES if file.name not in ("__init__.py", "conftest.py"))
    assert {folder: number for folder, number in modules.items() if number > MOST_FILES} == {}
    assert {file.relative_to(TESTS).parts[0] for file in FILES} == {"unit", "integration"}


def test_each_module_of_support_is_used() -> None:
    """A test, a benchmark or another module imports it."""
    text = "\n".join(
        path.read_text()
        for folder in ("tests", "benchmarks")
        for path in (TESTS.parent / folder).rglob("*.py")
    )
    used = set(re.findall(r"from support[\w.]*\.(\w+) import|\b(\w+)\.py\b", text))
    names = {name for pair in used for name in pair}
    names |= {name for line in re.findall(r"import (.*)", text) for name in re.findall(r"\w+", line)}
    modules = {module.stem for module in (TESTS / "support").rglob("*.py")} - {"__init__"}
    assert modules - names == set()


def test_each_marker_is_declared_and_used() -> None:
    used = set().union(*(markers(file) for file in FILES))
    assert used >= OURS
    assert used - OURS <= {"parametrize", "usefixtures", "filterwarnings"}
    assert set(needs.MARKERS) | {"needs"} <= OURS


@pytest.fixture
def session(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Sessions on a machine that has no root and no gcc, but TUN devices."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    here = {"root": needs.Lack("needs root: be it", False), "gcc": needs.Lack("needs gcc: install it", True)}
    monkeypatch.setattr(needs, "lack_of", here.get)
    pytester.makeini("[pytest]\nmarkers =\n  root\n  needs\n")
    pytester.makeconftest("from support.session.needs import pytest_addoption, pytest_runtest_setup")
    return pytester


@pytest.mark.parametrize(
    ("marker", "options", "outcome", "said"),
    [
        ("root", [], "skipped", "*needs root: be it"),
        ("root", [needs.OPTION], "skipped", "*needs root: be it"),
        ('needs("gcc")', [], "skipped", "*needs gcc: install it"),
        ('needs("gcc")', [needs.OPTION], "errors", "*needs gcc: install it (--nothing-missing: *"),
        ('needs("tun")', [needs.OPTION], "passed", "*1 passed*"),
        ('needs("tun", "gcc")', [], "skipped", "*needs gcc: install it"),
    ],
)
def test_what_is_missing_skips_a_test_or_fails_it(
    session: pytest.Pytester, marker: str, options: list[str], outcome: str, said: str
) -> None:
    """It does so before its fixtures; --nothing-missing skips only what the set-up cannot install."""
    session.makepyfile(f"import pytest\n@pytest.mark.{marker}\ndef test_it():\n    pass\n")
    result = session.runpytest_inprocess("-p", "no:cacheprovider", "-ra", *options)
    result.assert_outcomes(**{outcome: 1})
    result.stdout.fnmatch_lines([said])


def test_a_need_that_nobody_knows_is_an_error(session: pytest.Pytester) -> None:
    """It would be skipped never, or always."""
    session.makepyfile('import pytest\n@pytest.mark.needs("gc")\ndef test_it():\n    pass\n')
    result = session.runpytest_inprocess("-p", "no:cacheprovider")
    assert result.ret != pytest.ExitCode.OK
    assert "needs() names ['gc']" in result.stdout.str() + result.stderr.str()


def test_what_is_missing_is_told_with_what_mends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs by their Debian package; the host's own rights and devices are not the set-up's to give."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("espbench.platforms.virtual.parts.build.Kit.find", lambda kit: None)
    monkeypatch.setattr(needs, "find_browser", lambda: None)
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    monkeypatch.delenv("TREX_DIR", raising=False)
    lacks = {name: needs.NEEDS[name]() for name in ("root", "boards", "browser", "nftables", "TREX_DIR")}
    assert {name: lack and lack.reason for name, lack in lacks.items()} == {
        "root": "needs root: run pytest as root",
        "boards": "needs the emulated boards: run `espbench build e500` (4 minutes)",
        "browser": "needs chromium: apt-get install chromium",
        "nftables": "needs nftables: apt-get install nftables",
        "TREX_DIR": "needs TREX_DIR: set it to the folder of a TRex",
    }
    assert {name for name, lack in lacks.items() if lack and not lack.is_installed} == {"root", "TREX_DIR"}


def test_without_rights_the_lack_of_guests_is_the_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The set-up should have installed a kernel that is missing as well."""
    rights = Readiness("root", False, "no rights", "be root")
    kernel = Readiness("kernel", False, "no kernel", "apt-get install user-mode-linux")
    for missing, is_installed in (([rights], False), ([rights, kernel], True)):
        monkeypatch.setattr("espbench.platforms.uml.uml_kernel.readiness", lambda missing=missing: missing)
        lack = needs.NEEDS["uml"]()
        assert lack is not None
        assert lack.is_installed is is_installed
        assert lack.reason.endswith("; ".join(f"{need.missing}: {need.install}" for need in missing))
