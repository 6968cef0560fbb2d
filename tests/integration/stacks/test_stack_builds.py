# SPDX-License-Identifier: Apache-2.0
"""`version:` and `prefix:`: it is that build which runs in the gateways, and two of one stack are told apart."""

from __future__ import annotations

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
from support.gateways.workshop import Workshop, workshop
from support.plans import pair_plan, write_plan
from support.runs import espbench

pytestmark = [pytest.mark.uml, pytest.mark.untimed]


@pytest.fixture(scope="module")
def own_build() -> Iterator[Path]:
    """Make a DESTDIR image below /var, over which its own var/ is laid."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="espbench-test-") as folder:
        yield own_strongswan(Path(folder) / "image")


def available(package: str) -> list[str]:
    """The versions of a package that apt can fetch here, newest first."""
    shown = subprocess.run(["apt-cache", "madison", package], capture_output=True, text=True, check=True)
    return list(dict.fromkeys(re.findall(r"^[^|]*\| *(\S+) *\|", shown.stdout, re.MULTILINE)))


def version_that_carries(shop: Workshop, stack: dict[str, str]) -> str:
    """Bring the stack up on a new pair, and return the version that both of its daemons told."""
    with shop.pair(stack, "aes128gcm16") as (setup, _):
        readiness.establish(setup, Traffic(((256, 1),), 4, "one-way"))
        assert setup.stack is not None
        versions: dict[str, str] = setup.stack.security_context()["stack_version"]
    assert versions["office"] == versions["home"]
    return versions["home"]


@pytest.mark.slow
def test_each_of_two_builds_of_one_stack_runs_with_its_own_files(own_build: Path, tmp_path: Path) -> None:
    """The Security Context has each one's own words; how runs of both compare is in unit/comparison."""
    with workshop(tmp_path) as shop:
        mine = version_that_carries(shop, {"stack": "strongswan", "label": "mine", "prefix": str(own_build)})
        debian = version_that_carries(shop, {"stack": "strongswan"})
    assert re.fullmatch(r"strongSwan 7\.[\d.]+ \(own build [0-9a-f]{12}\)", mine)
    assert re.fullmatch(r"strongSwan (5\.[\d.]+) \(\1-\S+\)", debian)


@pytest.mark.slow
def test_a_package_version_is_fetched_and_run(tmp_path: Path) -> None:
    """The oldest that apt has; where it has only one, that one by its full name."""
    version = available("strongswan-charon")[-1]
    folder = packages.unpacked("strongswan", version)
    assert packages.listed(folder)["strongswan-charon"] == version
    with workshop(tmp_path) as shop:
        told = version_that_carries(shop, {"stack": "strongswan", "version": version})
    assert told == f"strongSwan {version.partition('-')[0]} ({version})"


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
