# SPDX-License-Identifier: Apache-2.0
"""The tests of IKE between x86-64 gateways in virtual time: each has its figure, and twice it is the same.

Attacks are in stacks/test_ipsec_methodology.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from espbench.paths import data_dir
from espbench.platforms.virtual.parts.kits import X86_KIT
from support.plans import pair_plan, quick, write_plan
from support.virtual.virtual_runs import Measured, build, frames, measured, without_the_host

pytestmark = [pytest.mark.virtual_time, pytest.mark.boards, pytest.mark.slow]

ECDSA = {"stack": "strongswan", "label": "ecdsa", "auth": "certificates", "certificate": "ecdsa256"}
LIBRESWAN = {"stack": "libreswan", "lifetime_bytes": "100MB"}  # what Home's kernel has of these is read back
FIRST_PACKET: dict[str, Any] = {"time_to_first_packet": {"load": "1000fps", "trial": "500ms", "repeats": 2}}
RESET: dict[str, Any] = {
    "reset": {"what": "daemon", "gateway": "office", "load": "200fps", "trial": "8s", "at": "1s", "repeats": 1}
}  # fmt: skip
POWER: dict[str, Any] = {
    "reset": {"what": "power", "gateway": "office", "load": "200fps", "trial": "12s", "at": "1s", "repeats": 1}
}  # fmt: skip
# 3900 frames of 494 B carry 9.63 of these lifetimes.
REKEY_LOSS: dict[str, Any] = {
    "rekey_loss": {
        "load": "2000fps", "trial": "1950ms", "lifetime_bytes": "200kB", "warm_up": 0, "settle": 0,
    }
}  # fmt: skip
SLOW_NS = 10  # for each instruction


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    """Build the guests in the user's cache; the first test that needs them does it."""
    build("x86")
    assert X86_KIT.find() is not None


def run(folder: Path, stack: Any, tests: list[dict[str, Any]], dut: str = "virt-x86") -> Measured:
    few: dict[str, Any] = {"name": "ike", "stacks": [stack], "suites": ["aes128gcm16"], "frame_sizes": [512]}
    plan: dict[str, Any] = {**pair_plan(dut, **few), "tests": tests}
    return measured(write_plan(folder, plan), folder / "runs")


@pytest.fixture(scope="module")
def charon(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """All tests of one charon, which signs with ECDSA."""
    return run(tmp_path_factory.mktemp("charon"), ECDSA, [FIRST_PACKET, RESET, POWER])


@pytest.fixture(scope="module")
def pluto(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    return run(tmp_path_factory.mktemp("pluto"), LIBRESWAN, [REKEY_LOSS, RESET])


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
    """Within what a restart, a boot, and a packet without an SA can take at all."""
    figures = quantities(charon)
    assert 1 < figures["time_to_first_packet: first-packet-time"] < 500
    assert 0.1 < figures["reset: reset-time"] < 7
    assert 1.3 < figures["reset-2: reset-time"] < 11


def test_the_context_names_the_certificates(charon: Measured) -> None:
    """Charon's log has the kind of signature; else there were mismatches, and no case was OK."""
    contexts = json.loads((charon.directory / "manifest.json").read_text())["contexts"]
    assert "ECDSA P-256 certificates" in contexts["ecdsa-aes128gcm16-ipv4"]["keying"]


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


def test_a_power_cycle_boots_the_gateway_in_mid_trial(charon: Measured) -> None:
    [trial] = charon.of_test("reset-2")
    [action] = trial["measured"]["actions"]
    assert 1 < action["boot_s"] < action["ended_s"] - action["began_s"]
    assert action["began_s"] == 1.0


def test_a_power_cycle_with_certificates_is_the_same_twice_to_the_byte(
    charon: Measured, tmp_path: Path
) -> None:
    """Office's certificate, charon's to sign with, is of the seed: ECDSA draws a number."""
    alone = run(tmp_path, ECDSA, [POWER])
    assert_the_same(charon.of_test("reset-2"), alone.of_test("reset"))


def test_pluto_comes_back_and_two_runs_are_the_same_to_the_byte(pluto: Measured, tmp_path: Path) -> None:
    """After its peer deleted the SAs, traffic brings a new tunnel up. Its log has microseconds."""
    assert 0.1 < quantities(pluto)["reset: reset-time"] < 7
    alone = run(tmp_path, LIBRESWAN, [RESET])
    assert_the_same(pluto.of_test("reset"), alone.of_test("reset"))


def test_pluto_replaces_an_sa_somewhat_earlier_than_charon(pluto: Measured) -> None:
    """It chooses 80 to 100 % of the bytes asked for, at random; test_x86_lifetimes.py has charon."""
    (trial,) = pluto.of_test("rekey_loss")
    assert 9 <= trial["measured"]["rekeys"] <= 12
    assert trial["lost"] == 0


def assert_the_same(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> None:
    """Compare the resets, after other tests and without them: the daemons negotiate twice in it, and frames flow."""
    assert one
    assert json.dumps(frames(one)) == json.dumps(frames(other))


def slow_profile(folder: Path) -> str:
    """Make a profile whose gateways execute few instructions in a second, for which OpenSSL repeats each operation."""
    text = (data_dir("dut-profiles") / "virt-x86.yaml").read_text()
    for old, new in (
        ("name: virt-x86", "name: slow"),
        ("ns_per_instruction: 1 ", f"ns_per_instruction: {SLOW_NS} "),
    ):
        assert old in text
        text = text.replace(old, new)
    (folder / "slow.yaml").write_text(text)
    return "./slow.yaml"


def test_public_keys_bound_the_set_ups_and_stand_beside_other_tests(tmp_path: Path) -> None:
    """Both guests execute the same program. All cases of a stack have it in memory: they are one configuration."""
    throughput = quick(minimum="500fps", maximum="1000fps", resolution="50%")
    tests: list[dict[str, Any]] = [
        {"public_key": {"trial": "1s"}}, {"set_up_rate": {"tunnels": 3}}, {"throughput": throughput},
    ]  # fmt: skip
    done = run(tmp_path, ECDSA, tests, slow_profile(tmp_path))
    figures = quantities(done)

    def per_s(operation: str, side: str = "home") -> float:
        return figures[f"public_key: public-key-rate/{operation}/{side}"]

    assert per_s("RSA-1024 sign") > 3 * per_s("RSA-2048 sign") > 0
    assert per_s("RSA-2048 sign") == pytest.approx(per_s("RSA-2048 sign", "office"), rel=0.03)
    assert 0.5 < figures["set_up_rate: set-up-rate/tunnel"] < figures["set_up_rate: public-key-bound"]
    manifest = json.loads((done.directory / "manifest.json").read_text())
    of_case = [manifest["context_of_case"][case["case"]] for case in manifest["cases"]]
    assert of_case == ["plain-none-ipv4"] * 2 + ["ecdsa-aes128gcm16-ipv4"] * 2
    for context in manifest["contexts"].values():
        assert "openssl.cpio" in context["emulation"]["x86-userland"]
