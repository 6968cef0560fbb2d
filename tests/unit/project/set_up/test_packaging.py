# SPDX-License-Identifier: Apache-2.0
"""The wheel's programs, the manual page and the Debian package's dependencies are what users need."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import installed
import pytest
import typer
from typer.testing import CliRunner

from espbench import paths
from espbench.cli.main import app

CLONE = Path(__file__).parents[4]
LARGEST_BYTES = 1_000_000


def script(name: str) -> ModuleType:
    """A file of scripts/, as a module."""
    spec = importlib.util.spec_from_file_location(name, CLONE / f"scripts/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_manual_page_names_every_command_and_option() -> None:
    """But those that are hidden; and troff has nothing to say against it."""
    man_page = script("man_page")
    group = typer.main.get_command(app)
    text = "\n".join(man_page.page(group))
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        assert f".SS espbench {name}" in text
        for parameter in command.params:
            for written in parameter.opts if parameter.param_type_name == "option" else []:
                escaped = str(written).replace("-", "\\-")
                assert (f"\\fB{escaped}\\fR" in text) != parameter.hidden, written
    if shutil.which("groff"):
        done = subprocess.run(
            ["groff", "-man", "-Tutf8", "-ww"], input=text, capture_output=True, text=True, check=True
        )
        assert done.stderr == ""


def test_the_manual_page_has_the_exit_codes_of_the_docs() -> None:
    codes = re.findall(r"^\| (\d+) \|", (CLONE / "docs/commands.md").read_text(), re.MULTILINE)
    assert [str(code) for code in script("man_page").EXIT_CODES] == codes


@pytest.mark.parametrize(
    ("version", "given", "names"),
    [
        ("standard", True, ["espbench/_data/bin/espbench-ixp", "espbench/_data/bin/espbench-traffic"]),
        ("standard", False, []),
        ("editable", True, []),
    ],
)
def test_programs_are_put_into_the_wheel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, given: bool, names: list[str]
) -> None:
    """The script that built them says so; then the wheel is one for machines that run them."""
    for name in ("espbench-traffic", "espbench-ixp"):
        (tmp_path / name).write_text("")
    if given:
        monkeypatch.setenv("ESPBENCH_PROGRAMS", str(tmp_path))
        monkeypatch.setenv("ESPBENCH_PLATFORM", "manylinux_2_34_x86_64")
    data = built(version)
    assert list(data["force_include"].values()) == names
    assert data.get("tag") == ("py3-none-manylinux_2_34_x86_64" if names else None)


@pytest.mark.parametrize(
    ("version", "places"), [("standard", ["share/man/man1/espbench.1"]), ("editable", [])]
)
def test_the_manual_page_is_put_into_the_wheel(
    monkeypatch: pytest.MonkeyPatch, version: str, places: list[str]
) -> None:
    """It is where pipx looks for the pages of what it installs."""
    assert built("standard")["shared_data"] == {}
    monkeypatch.setenv("ESPBENCH_MAN_PAGE", "espbench.1")
    assert list(built(version)["shared_data"].values()) == places


def built(version: str) -> dict[str, Any]:
    """Return what hatchling is told when it builds a wheel."""
    data: dict[str, Any] = {"force_include": {}, "shared_data": {}}
    script("wheel_programs").WheelPrograms("", {}, None, None, "", "").initialize(version, data)
    return data


def test_an_installed_wheel_finds_its_programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A wheel without programs says what a user of it can do."""
    monkeypatch.setattr(paths, "_CLONE", tmp_path)
    monkeypatch.setattr(paths, "_PACKAGE", tmp_path / "espbench")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError):
        paths.program("it", "NO_SUCH_VARIABLE")
    assert "wheel for this kind of processor" in paths.how_to_build()
    there = tmp_path / "espbench/_data/bin/it"
    there.parent.mkdir(parents=True)
    there.write_text("")
    there.chmod(0o755)
    assert paths.program("it", "NO_SUCH_VARIABLE") == there


def test_the_debian_package_has_every_extra_that_a_message_names() -> None:
    """It has no pip that could install one."""
    package = CLONE / "harness/espbench"
    named = [
        name
        for file in package.rglob("*.py")
        for name in re.findall(r'install_extra\("(\w+)"\)', file.read_text(encoding="utf-8"))
    ]
    installs = re.search(r'"\$\{wheel\}\[([\w,]+)\]"', (CLONE / "scripts/deb.sh").read_text(encoding="utf-8"))
    assert installs is not None
    assert sorted(installs[1].split(",")) == sorted(named)
    extras = tomllib.loads((CLONE / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    packages = [name for extra in named for name in extras[extra]]
    imported = {re.split("[>=]", name)[0].replace("-", "_") for name in packages}
    assert set(re.findall(r"\w+", installed.IMPORT_EXTRAS.partition("import ")[2])) == imported


def test_every_plan_and_profile_that_comes_with_espbench_can_be_printed() -> None:
    """Whole, and with its first sentence in the list; profiles have the name of their folder in front."""
    listed = CliRunner().invoke(app, ["example"]).stdout
    files = {file.stem: file for file in (CLONE / "plans").glob("*.yaml")}
    files |= {f"dut-profiles/{file.stem}": file for file in (CLONE / "dut-profiles").glob("*.yaml")}
    assert len(listed.splitlines()) == len(files)
    for name, file in files.items():
        assert re.search(rf"^{name} +\S", listed, re.MULTILINE)
        assert CliRunner().invoke(app, ["example", name]).stdout == file.read_text()
    wrong = CliRunner().invoke(app, ["example", "quik"])
    assert "expected the name of a plan, or dut-profiles/" in str(wrong.exception)


def test_no_page_or_plan_tells_to_copy_a_file_of_a_clone() -> None:
    """A user of a wheel has no clone; `espbench example` prints the file everywhere."""
    to_copy = re.compile(r"\bcopy `?(?:dut-profiles|plans)/", re.IGNORECASE)
    read = [*(CLONE / "docs").glob("*.md"), *(CLONE / "plans").glob("*.yaml")]
    assert [file.name for file in read if to_copy.search(file.read_text())] == []


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    """Return the files of the clone that git knows."""
    done = subprocess.run(
        ["git", "-C", str(CLONE), "ls-files", "-z"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip("no clone: an archive has no list of its files")
    files = [CLONE / name for name in done.stdout.split("\0") if (CLONE / name).is_file()]
    assert len(files) > 1000
    return files


def test_no_file_of_the_project_is_a_dump(tracked: list[Path]) -> None:
    """A file that is committed by mistake stays in the history of every clone."""
    assert [file for file in tracked if file.stat().st_size > LARGEST_BYTES] == []


def test_no_file_has_the_marks_of_a_merge(tracked: list[Path]) -> None:
    """Git leaves them where two changes meet, and a document with them is still a document."""
    mark = re.compile(rb"^(<{7}|>{7}) ", re.MULTILINE)
    assert [file for file in tracked if mark.search(file.read_bytes())] == []
