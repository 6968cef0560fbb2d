# SPDX-License-Identifier: Apache-2.0
"""docs/ci.md: its plans are plans, its commands are commands of espbench, and its jobs make what they use."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from espbench.cli.gate.bases import own_paths
from espbench.cli.main import app
from espbench.plan import load_plan
from espbench.runs.beds import choose, virtual

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs/ci.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
YAML = [text for kind, text in BLOCKS if kind == "yaml"]
FILES = {text.split()[1]: text for text in YAML if text.startswith("# ci/")}
JOBS: list[dict[str, Any]] = [yaml.safe_load(text)["gate"] for text in YAML if text.startswith("gate:")]
JOBS += [yaml.safe_load(text)["jobs"]["gate"] for text in YAML if text.startswith("name: gate")]
# A command of a job goes on in the next line, and one of a list begins with a dash.
COMMANDS = [
    shlex.split(words, comments=True)
    for _, text in BLOCKS
    for words in re.findall(
        r"^[ -]*(?:run: )?(?:espbench/\.venv/bin/)?espbench (.+)$", text.replace("\\\n", " "), re.MULTILINE
    )
]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder with the files of the document, and the plans that come with espbench."""
    place = tmp_path / "gate"
    for folder in (place / "bin", tmp_path / "ci", *(tmp_path / "opt" / name for name in ("base", "change"))):
        folder.mkdir(parents=True)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text.replace("/opt/", f"{tmp_path}/opt/").replace("/opt/gate", "/gate"))
    (tmp_path / "plans").symlink_to(ROOT / "plans")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _asked(command: list[str]) -> dict[str, Any]:
    """Return what a command line asks for; click refuses an option that is not there."""
    group = typer.main.get_command(app)
    name, *arguments = command
    subcommand = group.get_command(None, name)  # type: ignore[attr-defined]
    assert subcommand is not None, name
    return dict(subcommand.make_context(name, arguments).params)


def test_there_are_commands_of_each_kind() -> None:
    assert {command[0] for command in COMMANDS} == {"run", "baseline", "check", "bisect", "build"}
    assert sum("--build" in command for command in COMMANDS) == 4
    assert len(FILES) == 5
    assert len(JOBS) == 2


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: " ".join(words)[:60])
def test_a_command_can_work_as_it_is_written(command: list[str], tree: Path) -> None:
    """Its plan is one; a revision is built where the plan looks; bisect is in virtual time."""
    asked = _asked(command)
    if "plan" not in asked:
        return
    resolved = load_plan(Path(asked["plan"]))
    choices = choose(resolved)
    if asked.get("build"):
        paths = own_paths(resolved)
        assert paths
        for path in paths:
            assert str(path).replace(f"{tree}/gate", "/opt/gate") in asked["build"]
    if command[0] == "bisect":
        assert virtual(choices)
    if asked.get("against", "").endswith(".json"):
        assert virtual(choices)
        assert resolved.plan.repeat == 5  # a band from five seeds
    if asked.get("against") == "base":
        assert resolved.plan.compare is not None
        assert resolved.plan.compare.reference == "base"


@pytest.mark.parametrize("job", JOBS, ids=["GitLab", "GitHub"])
def test_a_job_makes_what_it_uses(job: dict[str, Any]) -> None:
    """It is in a Debian 12, installs what builds the gateways, and makes .venv before it calls espbench."""
    image = job.get("image") or job["container"]["image"]
    assert image == "debian:12"
    lines = (
        job["before_script"] + job["script"] if "script" in job else [s.get("run", "") for s in job["steps"]]
    )
    script = "\n".join(lines).replace("\\\n", " ")
    packages = (ROOT / "scripts/packages.txt").read_text().split("\n[virtual]\n")[1].split("\n[test]\n")[0]
    wanted = {line.split()[0] for line in packages.splitlines() if line and not line.startswith("#")}
    install = next(line for line in script.splitlines() if "apt-get install" in line)
    assert wanted <= set(install.split())
    order = ["apt-get install", "make -C espbench setup", "espbench build x86", "espbench check"]
    assert [script.index(words) for words in order] == sorted(script.index(words) for words in order)


def test_what_the_caches_are_named_after_is_checked_out() -> None:
    """Everything is in the folder espbench, where a job has it."""
    named = re.findall(r"hashFiles\((.*?)\)", TEXT)
    patterns = [word.strip(" '") for words in named for word in words.split(",")]
    patterns += JOBS[0]["cache"]["key"]["files"]
    assert len(patterns) == 4
    for pattern in patterns:
        folder, _, rest = pattern.partition("/")
        assert folder == "espbench"
        assert any(path.is_file() for path in ROOT.glob(rest + "/*" * rest.endswith("**"))), pattern
    github = next(job for job in JOBS if "steps" in job)
    checkouts = [step for step in github["steps"] if step.get("uses", "").startswith("actions/checkout")]
    assert [step.get("with", {}).get("path") for step in checkouts] == [None, "espbench"]
