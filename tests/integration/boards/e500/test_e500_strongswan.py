# SPDX-License-Identifier: Apache-2.0
"""strongSwan on emulated boards: charon negotiates, the SEC encrypts, twice it is the same, few instructions trap."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from espbench.measure.proof import readiness
from espbench.platforms.chance import Chance
from espbench.platforms.gateway_time import pause
from espbench.platforms.virtual.parts.kits import E500_STRONGSWAN_KIT
from espbench.stacks.daemons import credentials
from support.gateways.workshop import TRAFFIC, Workshop
from support.plans import pair_plan, quick, write_plan
from support.runs import rows
from support.virtual.virtual_runs import Measured, build, frames, measured

pytestmark = [pytest.mark.virtual_time, pytest.mark.boards, pytest.mark.slow]

CERTIFICATES = {"stack": "strongswan", "auth": "certificates", "label": "certificates"}
THROUGHPUT: dict[str, Any] = {
    "throughput": quick(
        minimum="20000fps", maximum="200000fps", trial="10ms", final_trial="20ms", warm_up="10ms", resolution="20%"
    )
}  # fmt: skip
RESET: dict[str, Any] = {
    "reset": {"what": "daemon", "gateway": "office", "load": "200fps", "trial": "8s", "at": "1s", "repeats": 1}
}  # fmt: skip
COUNTED = "/sys/kernel/debug/powerpc/emulated_instructions/math"


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    """Build the guests and their programs in the user's cache; the first test that needs them does it."""
    for kit in ("e500", "e500-strongswan"):
        build(kit)
    assert E500_STRONGSWAN_KIT.find() is not None


def plan(stacks: list[Any], tests: list[dict[str, Any]]) -> dict[str, Any]:
    """Measure one suite of the SEC with one frame size."""
    few: dict[str, Any] = {
        "name": "boards",
        "stacks": stacks,
        "suites": ["aes128-sha1"],
        "frame_sizes": [512],
    }
    return {**pair_plan("mpc8548e", **few), "tests": tests}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """Measure charon beside xfrm; each restart of charon takes long, so it is restarted in one test only."""
    folder = tmp_path_factory.mktemp("first")
    file = write_plan(folder, plan(["xfrm", CERTIFICATES], [THROUGHPUT, RESET]))
    return measured(file, folder / "runs", report=True)


def test_what_charon_negotiated_is_what_static_sas_are(first: Measured) -> None:
    """The same code of the kernel carries each frame, and the same engine encrypts it."""
    table = {row["stack"]: row for row in rows(first.directory) if row["test"] == "throughput"}
    assert [*table] == ["plain", "xfrm", "certificates"]
    assert {row["status"] for row in table.values()} == {"OK"}
    rate = {stack: float(row["throughput_fps"]) for stack, row in table.items()}
    assert rate["certificates"] == pytest.approx(rate["xfrm"], rel=0.25)
    of_charon = [
        trial for trial in first.of_test("throughput") if trial["case"] == table["certificates"]["case"]
    ]
    assert of_charon
    for trial in of_charon:
        assert trial["validity"] == "VALID"
        assert trial["proof"]["proven"], trial["proof"]


def test_the_context_says_what_negotiated_and_no_file_has_the_key(first: Measured) -> None:
    contexts = json.loads((first.directory / "manifest.json").read_text())["contexts"]
    context = contexts["certificates-aes128-sha1-ipv4"]
    assert context["home"]["daemon"].startswith("strongSwan 5.9")
    assert "RSA" in context["home"]["authentication"]
    assert "strongswan.cpio sha256" in context["emulation"]["e500-strongswan"]
    key = credentials.make("certificates", Chance())["home"].key_pem.splitlines()[1]
    for file in first.directory.rglob("*"):
        if file.is_file():
            assert key not in file.read_text(errors="replace"), file


def test_two_runs_are_the_same_to_the_byte(first: Measured, tmp_path: Path) -> None:
    """The restart of a daemon takes the same time to the nanosecond, after another test and without it."""
    findings = json.loads((first.directory / "results.json").read_text())["findings"]
    assert {finding["test"]: finding["status"] for finding in findings} == {"reset": "OK"}
    alone = measured(write_plan(tmp_path, plan([CERTIFICATES], [RESET])), tmp_path / "runs")
    one, other = (frames(run.of_test("reset")) for run in (first, alone))
    assert one
    assert json.dumps(one) == json.dumps(other)


def test_hardly_an_instruction_of_charon_is_a_floating_point_one(shop: Workshop) -> None:
    """The kernel counts those that it stands in for. The start of any program has 18, in setjmp()."""
    with shop.pair("strongswan", "aes128-sha1", dut="mpc8548e") as (setup, _):
        assert setup.stack is not None
        home = setup.bed.gateways["home"]

        def trapped() -> int:
            return int(home.read([COUNTED])[COUNTED] or "0")

        home.run(["mount", "-t", "debugfs", "debugfs", "/sys/kernel/debug"])
        readiness.establish(setup, TRAFFIC)
        up = trapped()
        assert 0 < up < 40_000
        home.run(["true"])
        assert trapped() == up + 18
        pause(home, 2.0)
        assert trapped() == up + 18  # charon has none while nothing happens
        context = setup.stack.security_context()
    assert context["mismatches"] == []
    assert context["home"]["authentication"].startswith("pre-shared key")
