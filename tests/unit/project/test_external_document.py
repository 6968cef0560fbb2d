# SPDX-License-Identifier: Apache-2.0
"""docs/external.md: its keys, tests, addresses and its first run are those of the program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from espbench.cli.main import app
from espbench.plan.checks.external_checks import _TESTS_OF_GATEWAYS
from espbench.plan.keys.model import Test
from espbench.plan.keys.ports import ExternalPort
from espbench.plan.traffic.traffic_profiles import rfc2544_frame
from espbench.runs.session import _NOBODY
from support.plans import external_text

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/external.md").read_text()


def row(begin: str) -> str:
    """Return the second cell of a row of the page."""
    (cell,) = re.findall(rf"^\| {begin} \| (.+) \|$", PAGE, re.MULTILINE)
    return str(cell)


def test_each_key_of_a_port_has_a_row() -> None:
    assert [key for key in (*ExternalPort.model_fields, "line_rate") if f"\n| `{key}` |" not in PAGE] == []


def test_the_addresses_are_those_of_the_program() -> None:
    frame = rfc2544_frame()
    assert _NOBODY in PAGE
    assert f"port {frame.udp_source}, to the east port's address, port {frame.udp_destination}." in PAGE


def test_the_refused_tests_are_refused_and_the_others_possible(tmp_path: Path) -> None:
    refused = re.findall(r"`(\w+)`", row("refused tests"))
    assert sorted(refused) == sorted(_TESTS_OF_GATEWAYS)
    possible = re.findall(r"`(\w+)`", row("possible tests"))
    assert possible[0] == "throughput"  # the others use its result
    plan = tmp_path / "plan.yaml"
    plan.write_text(external_text(tests="[" + ", ".join(f"{name}: {{}}" for name in possible) + "]"))
    done = CliRunner().invoke(app, ["validate", str(plan)])
    assert done.exit_code == 0, done.exception
    on_boards = {"bus", "accelerator", "public_key_unit", "cipher_kernels"}
    assert {*refused, *possible} | on_boards == {*Test.model_fields}


@pytest.mark.parametrize("key", ["compare: stack", "capture: true", "links: {west: {loss: 1%}}", "seed: 7"])
def test_the_refused_keys_are_refused(tmp_path: Path, key: str) -> None:
    name, _, value = key.partition(": ")
    assert f"`{name}`" in row("refused keys")
    plan = tmp_path / "plan.yaml"
    plan.write_text(external_text(**{name: value}))
    assert f" {name}: expected no " in str(CliRunner().invoke(app, ["validate", str(plan)]).exception)


def test_the_first_run_takes_as_long_as_the_page_says(tmp_path: Path) -> None:
    changed = yaml.safe_load(re.findall(r"^```yaml\n(frame_sizes.*?)^```", PAGE, re.DOTALL | re.MULTILINE)[0])
    plan = tmp_path / "first.yaml"
    shipped = yaml.safe_load((ROOT / "plans/external-example.yaml").read_text())
    plan.write_text(yaml.safe_dump(shipped | changed))
    printed = CliRunner().invoke(app, ["run", str(plan), "--dry-run"]).output
    (minutes,) = re.findall(r"# about (\d+) minutes$", PAGE, re.MULTILINE)
    assert f"about {minutes} min" in printed
