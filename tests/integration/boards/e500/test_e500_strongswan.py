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
from support.plans import pair_plan, write_plan
from support.runs import assert_complete, rows
from support.virtual.virtual_runs import Measured, build, frames, measured

pytestmark = [pytest.mark.virtual_time, pytest.mark.boards, pytest.mark.slow]

TESTS: list[dict[str, Any]] = [
    {"set_up_rate": {"tunnels": 2, "public_key": False}},
    {"reset": {"what": "daemon", "gateway": "office", "load": "200fps", "trial": "8s", "at": "1s", "repeats": 1}},
]  # fmt: skip
COUNTED = "/sys/kernel/debug/powerpc/emulated_instructions/math"


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    """Build the guests and their programs in the user's cache; the first test that needs them does it."""
    for kit in ("e500", "e500-strongswan"):
        build(kit)
    assert E500_STRONGSWAN_KIT.find() is not None


def plan(*stacks: Any) -> dict[str, Any]:
    """Measure one suite of the SEC with one frame size."""
    throughput = {
        "minimum": "20000fps", "maximum": "200000fps", "trial": "10ms", "final_trial": "20ms",
        "warm_up": "10ms", "resolution": "20%",
    }  # fmt: skip
    few = {"name": "boards", "stacks": [*stacks], "suites": ["aes128-sha1"], "frame_sizes": [512]}
    return pair_plan("mpc8548e", throughput=throughput, **few)


@pytest.fixture(scope="module")
def throughput(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """Measure it beside xfrm."""
    folder = tmp_path_factory.mktemp("first")
    certificates = {"stack": "strongswan", "auth": "certificates", "label": "certificates"}
    file = write_plan(folder, plan("xfrm", "strongswan", certificates))
    return measured(file, folder / "runs", report=True)


def test_what_charon_negotiated_is_what_static_sas_are(throughput: Measured) -> None:
    """The same code of the kernel carries each frame, and the same engine encrypts it."""
    assert_complete(throughput.directory)
    rate = {row["stack"]: float(row["throughput_fps"]) for row in rows(throughput.directory)}
    assert rate["strongswan"] == rate["certificates"] == pytest.approx(rate["xfrm"], rel=0.25)
    for stack in ("strongswan", "certificates"):
        for trial in throughput.of(stack):
            assert trial["validity"] == "VALID"
            assert trial["proof"]["proven"], trial["proof"]


def test_the_context_says_what_negotiated_and_no_file_has_the_secret(throughput: Measured) -> None:
    contexts = json.loads((throughput.directory / "manifest.json").read_text())["contexts"]
    psk = contexts["strongswan-aes128-sha1-ipv4"]
    assert psk["home"]["daemon"].startswith("strongSwan 5.9")
    assert psk["home"]["authentication"].startswith("pre-shared key")
    assert "strongswan.cpio sha256" in psk["emulation"]["e500-strongswan"]
    assert "RSA" in contexts["certificates-aes128-sha1-ipv4"]["home"]["authentication"]
    made = credentials.make("certificates", Chance())["home"].key_pem.splitlines()[1]
    secrets = [credentials.make("psk", Chance())["home"].psk, made]
    for file in throughput.directory.rglob("*"):
        if file.is_file():
            text = file.read_text(errors="replace")
            assert not any(secret in text for secret in secrets), file


def test_two_runs_are_the_same_to_the_byte(tmp_path: Path) -> None:
    """The restart of a daemon takes the same time to the nanosecond, after other tests and without them."""
    runs = []
    for name, tests in (("all", TESTS), ("last", TESTS[-1:])):
        (tmp_path / name).mkdir()
        text: dict[str, Any] = {**plan("strongswan"), "tests": tests}
        runs.append(measured(write_plan(tmp_path / name, text), tmp_path / name / "runs"))
    results = json.loads((runs[0].directory / "results.json").read_text())
    assert all(finding["status"] == "OK" for finding in results["findings"]), results["findings"]
    first, second = (frames(run.of_test("reset")) for run in runs)
    assert first
    assert json.dumps(first) == json.dumps(second)


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
