# SPDX-License-Identifier: Apache-2.0
"""A plan's boxes behind labgrid are checked against labgrid's file before anything is opened."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from espbench.cli.main import app
from espbench.errors import MachineLacks, UsageError
from espbench.plan import load_profile
from espbench.platforms.remote import labgrid_board
from espbench.runs.platform_kinds.boxes import boxes_of
from support.plans import pair_plan, write_plan

_POWER = {"ExternalPowerDriver": {"cmd_on": "true", "cmd_off": "true"}}
_CONSOLE = {"ExternalConsoleDriver": {"cmd": "cat"}}


def written(folder: Path, targets: dict[str, Any] | None, what: str = "power", **labgrid: str) -> Path:
    """A plan that resets Home's box, its profile, and labgrid's file with these targets' drivers."""
    if targets is not None:
        environment = {"targets": {name: {"drivers": drivers} for name, drivers in targets.items()}}
        (folder / "lab.yaml").write_text(yaml.safe_dump(environment))
    box = {"lan": "eth1", "wan": "eth2"}
    profile = {
        "name": "mine", "description": "d", "platform": "remote", "line_rate": "1Gbps",
        "ports": {"west": {"netns": "t1", "interface": "e0"}, "east": {"netns": "t2", "interface": "e0"}},
        "boxes": {
            "home": {"host": "192.0.2.10", **box, "labgrid": {"config": "lab.yaml", **labgrid}},
            "office": {"host": "192.0.2.20", **box},
        },
    }  # fmt: skip
    (folder / "mine.yaml").write_text(yaml.safe_dump(profile, sort_keys=False))
    plan = pair_plan(
        "./mine.yaml", name="plan", stacks=["strongswan"], suites=["aes128gcm16"], frame_sizes=[256],
        tests=[{"reset": {"what": what, "load": "1000fps"}}],
    )  # fmt: skip
    return write_plan(folder, plan)


def refused(plan: Path) -> str:
    """Return what `validate` says is wrong, which must be one line that names the key in the profile."""
    with pytest.raises(UsageError) as raised:
        CliRunner().invoke(app, ["validate", str(plan)], standalone_mode=False, catch_exceptions=False)
    at = re.match(rf"{re.escape(str(plan.with_name('mine.yaml')))}:(\d+):(\d+): (.*)\Z", str(raised.value))
    assert at is not None, raised.value
    assert int(at[1]) > 1
    return at[3]


@pytest.mark.needs("labgrid")
@pytest.mark.usefixtures("read_here")
@pytest.mark.parametrize(
    ("targets", "labgrid", "words"),
    [
        (None, {}, r"boxes.home.labgrid.config: expected a labgrid environment file, got .*lab\.yaml \(no such file\)"),
        (
            {"board": _POWER}, {},
            r"boxes.home.labgrid.target: expected a target of .*lab\.yaml \(board\), got main; choose one of them",
        ),
        (
            {"main": _CONSOLE}, {},
            r"boxes.home.labgrid.target: expected a target with a power driver, since tests\[0\].reset switches home "
            r"off and on, got main of .*lab\.yaml with ExternalConsoleDriver; add a power driver",
        ),
    ],
)  # fmt: skip
def test_validate_names_what_is_missing(
    tmp_path: Path, targets: dict[str, Any] | None, labgrid: dict[str, str], words: str
) -> None:
    assert re.match(words, refused(written(tmp_path, targets, **labgrid)))


@pytest.mark.needs("labgrid")
@pytest.mark.usefixtures("read_here")
@pytest.mark.parametrize(
    ("drivers", "what"), [(_POWER, "power"), (_POWER | _CONSOLE, "power"), (_CONSOLE, "daemon")]
)
def test_validate_takes_what_can_do_what_the_plan_asks(
    tmp_path: Path, drivers: dict[str, Any], what: str
) -> None:
    done = CliRunner().invoke(app, ["validate", str(written(tmp_path, {"main": drivers}, what))])
    assert done.exit_code == 0, done.exception
    assert "ok" in done.stdout


def test_validate_says_how_to_get_labgrid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    plan = written(tmp_path, {"main": _POWER})
    with pytest.raises(MachineLacks, match=r"pip install 'espbench\[lab\]'"):
        CliRunner().invoke(app, ["validate", str(plan)], standalone_mode=False, catch_exceptions=False)


def test_the_platform_gets_what_the_profile_says(tmp_path: Path) -> None:
    """The file stands beside the profile; a box has five minutes unless it says otherwise."""
    written(tmp_path, {"board": _POWER}, target="board")
    home = boxes_of(load_profile(str(tmp_path / "mine.yaml"))).boxes["home"].labgrid
    assert home == labgrid_board.LabgridTarget(tmp_path / "lab.yaml", "board", 300.0)
    written(tmp_path, None, back_within="90s")
    profile = load_profile(str(tmp_path / "mine.yaml"))
    assert boxes_of(profile).boxes["home"].labgrid == labgrid_board.LabgridTarget(
        tmp_path / "lab.yaml", "main", 90.0
    )
    assert boxes_of(profile).boxes["office"].labgrid is None
    assert json.loads(profile.model_dump_json())["boxes"]["home"]["labgrid"]["back_within"] == "90s"
