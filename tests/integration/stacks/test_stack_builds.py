# SPDX-License-Identifier: Apache-2.0
"""`version:` and `prefix:`: it is that build which runs in the gateways, and two of one stack are told apart."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from espbench.measure.inputs.traffic import Traffic
from espbench.measure.proof import readiness
from espbench.stacks.daemons import packages
from support.gateways.own_build import own_strongswan
from support.gateways.workshop import workshop
from support.plans import PINNED, pair_plan, quick, write_plan
from support.runs import espbench
from support.session.unsettled import require_settled

pytestmark = pytest.mark.uml


@pytest.fixture(scope="module")
def own_build() -> Iterator[Path]:
    """Make a DESTDIR image below /var, over which its own var/ is laid."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="espbench-test-") as folder:
        yield own_strongswan(Path(folder) / "image")


def available(package: str) -> list[str]:
    """The versions of a package that apt can fetch here, newest first."""
    shown = subprocess.run(["apt-cache", "madison", package], capture_output=True, text=True, check=True)
    return list(dict.fromkeys(re.findall(r"^[^|]*\| *(\S+) *\|", shown.stdout, re.MULTILINE)))


@pytest.mark.slow
def test_two_builds_of_one_stack_are_compared(own_build: Path, tmp_path: Path) -> None:
    """Side by side in one run, each with its own files; the Security Context has each one's own words."""
    stacks = [{"stack": "strongswan", "label": "mine", "prefix": str(own_build)}, "strongswan"]
    plan = pair_plan(
        "uml", stacks=stacks, suites=["aes128gcm16"], frame_sizes=[256], name="builds",
        compare={"by": "version", "at": False}, repeat=3, throughput=quick(), **PINNED,
    )  # fmt: skip
    done = espbench("run", write_plan(tmp_path, plan), "--out", tmp_path / "runs", timeout=1800)
    assert done.returncode in (0, 3), done.stderr
    (run,) = (tmp_path / "runs").iterdir()
    with (run / "results.csv").open() as table:
        require_settled(list(csv.DictReader(table)))
    manifest = json.loads((run / "manifest.json").read_text())
    versions = {name: context.get("stack_version") for name, context in manifest["contexts"].items()}
    mine = next(v for name, v in versions.items() if name.startswith("mine"))
    debian = next(v for name, v in versions.items() if name.startswith("strongswan"))
    assert mine["office"] == mine["home"]
    assert re.fullmatch(r"strongSwan 7\.[\d.]+ \(own build [0-9a-f]{12}\)", mine["home"])
    assert re.fullmatch(r"strongSwan (5\.[\d.]+) \(\1-\S+\)", debian["home"])
    report = (run / "report.md").read_text()
    assert "Comparison by version: mine, strongswan" in report
    assert all(version["home"] in report for version in (mine, debian))


@pytest.mark.slow
@pytest.mark.untimed
def test_a_package_version_is_fetched_and_run(tmp_path: Path) -> None:
    """The oldest that apt has; where it has only one, that one by its full name."""
    version = available("strongswan-charon")[-1]
    folder = packages.unpacked("strongswan", version)
    assert packages.listed(folder)["strongswan-charon"] == version
    with (
        workshop(tmp_path) as shop,
        shop.pair({"stack": "strongswan", "version": version}, "aes128gcm16") as (setup, _),
    ):
        readiness.establish(setup, Traffic(((256, 1),), 4, "one-way"))
        assert setup.stack is not None
        assert setup.stack.security_context()["stack_version"]["home"] == (
            f"strongSwan {version.partition('-')[0]} ({version})"
        )


@pytest.mark.slow
def test_an_unknown_version_is_answered_with_those_there_are(tmp_path: Path) -> None:
    stacks = [{"stack": "strongswan", "version": "1.2.3-4"}]
    plan = pair_plan("uml", stacks=stacks, suites=["aes128gcm16"])
    done = espbench("run", write_plan(tmp_path, plan), "--out", tmp_path / "runs")
    assert done.returncode == 2
    assert "1.2.3-4" in done.stderr
    assert all(version in done.stderr for version in available("strongswan-charon"))


def test_a_prefix_that_is_no_build_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    plan = pair_plan("uml", stacks=[{"stack": "strongswan", "prefix": "./empty"}], suites=["aes128gcm16"])
    done = espbench("run", write_plan(tmp_path, plan), "--out", tmp_path / "runs")
    assert done.returncode == 2
    assert "prefix: expected a build of strongswan, an install prefix or a DESTDIR image" in done.stderr
    assert not (tmp_path / "runs").exists()
