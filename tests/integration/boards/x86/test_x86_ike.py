# SPDX-License-Identifier: Apache-2.0
"""The tests of IKE between x86-64 gateways in virtual time: each has its figure, and twice it is the same.

Attacks are in stacks/test_ipsec_methodology.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from espbench.platforms.virtual.parts.kits import X86_KIT
from support.plans import pair_plan, quick, write_plan
from support.virtual.virtual_runs import Measured, build, frames, measured, without_the_host

pytestmark = [pytest.mark.virtual_time, pytest.mark.boards, pytest.mark.slow]

# Without the public-key bound, for which all guests of the run have openssl in memory.
SET_UPS: dict[str, Any] = {"set_up_rate": {"tunnels": 3, "public_key": False}}
TESTS: list[dict[str, Any]] = [
    {"set_up_rate": {"tunnels": 3}},
    {"time_to_first_packet": {"load": "1000fps", "trial": "500ms", "repeats": 2}},
    {"reset": {"what": "daemon", "gateway": "office", "load": "200fps", "trial": "8s", "at": "1s", "repeats": 1}},
]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    """Build the guests in the user's cache; the first test that needs them does it."""
    build("x86")
    assert X86_KIT.find() is not None


def run(folder: Path, stack: Any, tests: list[dict[str, Any]]) -> Measured:
    few: dict[str, Any] = {"name": "ike", "stacks": [stack], "suites": ["aes128gcm16"], "frame_sizes": [512]}
    plan: dict[str, Any] = {**pair_plan("virt-x86", **few), "tests": tests}
    return measured(write_plan(folder, plan), folder / "runs")


@pytest.fixture(scope="module")
def charon(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    return run(tmp_path_factory.mktemp("charon"), "strongswan", TESTS)


def quantities(run: Measured) -> dict[str, float]:
    """The figures of all findings, by test and key."""
    results = json.loads((run.directory / "results.json").read_text())
    assert all(finding["status"] == "OK" for finding in results["findings"]), results["findings"]
    return {
        f"{finding['test']}: {q['key']}": q["value"]
        for finding in results["findings"]
        for q in finding["quantities"]
    }


def test_each_has_its_figure(charon: Measured) -> None:
    """Within what three negotiations, a restart, and a packet without an SA can take at all."""
    figures = quantities(charon)
    assert 5 < figures["set_up_rate: set-up-rate/tunnel"] < figures["set_up_rate: public-key-bound"]
    assert 1 < figures["time_to_first_packet: first-packet-time"] < 500
    assert 0.1 < figures["reset: reset-time"] < 7


def test_a_trial_meets_the_daemon_at_another_moment(charon: Measured) -> None:
    """Repeating a trial then says something; but its frames are the same."""
    first, second = charon.of_test("time_to_first_packet")
    assert first["tx_frames"] == second["tx_frames"]
    assert without_the_host([first]) != without_the_host([second])


def test_a_restart_begins_at_its_time(charon: Measured) -> None:
    [trial] = charon.of_test("reset")
    [action] = trial["measured"]["actions"]
    assert action["began_s"] == 1.0
    assert action["ended_s"] > action["began_s"]


def test_pluto_comes_back_and_two_runs_are_the_same_to_the_byte(tmp_path: Path) -> None:
    """After its peer deleted the SAs, traffic brings a new tunnel up. Its log has microseconds."""
    runs = twice(tmp_path, "libreswan", [SET_UPS, TESTS[2]], TESTS[2:])
    assert 0.1 < quantities(runs[0])["reset: reset-time"] < 7
    assert_the_same_reset(runs)


POWER: dict[str, Any] = {
    "reset": {"what": "power", "gateway": "office", "load": "200fps", "trial": "12s", "at": "1s", "repeats": 1}
}  # fmt: skip


def test_a_power_cycle_and_certificates_are_the_same_twice_to_the_byte(tmp_path: Path) -> None:
    """Office boots anew in mid-trial; its certificate, charon's to sign with, is of the seed: ECDSA draws a number."""
    stack = {"stack": "strongswan", "label": "ecdsa", "auth": "certificates", "certificate": "ecdsa256"}
    runs = twice(tmp_path, stack, [SET_UPS, POWER], [POWER])
    figures = quantities(runs[0])
    assert 1 < figures["set_up_rate: set-up-rate/tunnel"] < 1000
    assert 1.3 < figures["reset: reset-time"] < 11
    [trial] = runs[0].of_test("reset")
    [action] = trial["measured"]["actions"]
    assert 1 < action["boot_s"] < action["ended_s"] - action["began_s"]
    assert action["began_s"] == 1.0
    assert_the_same_reset(runs)


def twice(
    folder: Path, stack: Any, tests: list[dict[str, Any]], again: list[dict[str, Any]]
) -> list[Measured]:
    """Return a run of all tests, and a second run, of some of them."""
    (folder / "again").mkdir()
    return [run(folder, stack, tests), run(folder / "again", stack, again)]


def assert_the_same_reset(runs: list[Measured]) -> None:
    """Compare the resets: both daemons negotiate twice in it, and frames flow."""
    first, second = (frames(each.of_test("reset")) for each in runs)
    assert first
    assert json.dumps(first) == json.dumps(second)


def test_public_keys_beside_another_test(tmp_path: Path) -> None:
    """Both guests execute the same program. All cases of the stack have it in memory: they are one configuration."""
    tests = [{"public_key": {"trial": "1s"}}, {"throughput": quick(minimum="1000fps", maximum="2000fps")}]
    done = run(tmp_path, "xfrm", tests)
    figures = quantities(done)

    def per_s(operation: str, side: str = "home") -> float:
        return figures[f"public_key: public-key-rate/{operation}/{side}"]

    assert per_s("RSA-1024 sign") > 3 * per_s("RSA-2048 sign") > 0
    assert per_s("RSA-2048 sign") == pytest.approx(per_s("RSA-2048 sign", "office"), rel=0.03)
    manifest = json.loads((done.directory / "manifest.json").read_text())
    of_case = [manifest["context_of_case"][case["case"]] for case in manifest["cases"]]
    assert of_case == ["plain-none-ipv4", "plain-none-ipv4", "xfrm-aes128gcm16-ipv4"]
    assert "openssl.cpio" in manifest["contexts"]["plain-none-ipv4"]["emulation"]["x86-userland"]
    assert "x86-userland" not in manifest["contexts"]["xfrm-aes128gcm16-ipv4"]["emulation"]
