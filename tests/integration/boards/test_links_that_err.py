# SPDX-License-Identifier: Apache-2.0
"""Gateways in virtual time on links that err: what goes wrong is counted, booked to its place, the same each time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.plans import pair_plan, write_plan
from support.virtual.virtual_runs import Measured, build, measured, without_the_host

pytestmark = [pytest.mark.virtual_time, pytest.mark.boards, pytest.mark.slow]

LOAD_FPS, TRIAL_MS, SIZE = 20_000, 250, 512
FRAMES = LOAD_FPS * TRIAL_MS // 1000
BIT_ERRORS, LOSS, LATE = 5e-6, 0.02, 0.04
LINKS = {
    "seed": 5,
    "west": {"bit_errors": BIT_ERRORS},
    "middle": {"loss": LOSS, "delay": "2ms", "reordering": {"share": LATE, "by": "300us"}},
}
MACHINES = [("mpc8548e", "e500", "3des-sha1"), ("virt-x86", "x86", "aes128gcm16")]
LATENCY = {
    "load": f"{LOAD_FPS}fps", "trial": f"{TRIAL_MS}ms", "repeats": 1,
    "settle": 0, "residue": "20ms", "warm_up": "10ms", "learning": "10ms",
}  # fmt: skip


def spread(share: float, of: int = FRAMES) -> Any:
    """Expect that so many are hit, within four standard deviations."""
    return pytest.approx(of * share, abs=4 * (of * share * (1 - share)) ** 0.5)


def measure(folder: Path, machine: tuple[str, str, str]) -> Measured:
    """Measure one machine's gateways, plain and with ESP."""
    dut, kit, suite = machine
    build(kit)
    stacks = [{"stack": "plain", "policies": "none"}, "xfrm"]
    plan = pair_plan(dut, stacks=stacks, suites=[suite], frame_sizes=[SIZE], links=LINKS)
    plan["tests"] = [{"latency": LATENCY}]
    return measured(write_plan(folder, plan), folder / "runs")


@pytest.fixture(scope="module", params=MACHINES, ids=[dut for dut, *_ in MACHINES])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    return measure(tmp_path_factory.mktemp("one"), request.param)


def test_what_links_do_is_counted_and_booked_to_them(run: Measured) -> None:
    """Frames the middle link loses were encrypted and not decrypted; those with a wrong FCS never entered Home."""
    trials = run.trials
    assert len(trials) == 2
    for trial in trials:
        assert (trial["tx_frames"], trial["validity"]) == (FRAMES, "VALID"), trial["reasons"]
        links = trial["measured"]["links"]
        assert links["east"] == {"lost": 0, "damaged": 0, "late": 0}
        assert links["west"] == {"lost": 0, "damaged": links["west"]["damaged"], "late": 0}
        assert links["west"]["damaged"] == spread(1 - (1 - BIT_ERRORS) ** (8 * SIZE))
        assert links["middle"]["lost"] == spread(LOSS)
        assert links["middle"]["late"] == spread(LATE)
        # The port that received them said so, to the last one; the eTSEC's driver calls them dropped.
        errors = trial["measured"]["port_errors"]
        assert sum(errors["home"]["lan"].values()) == links["west"]["damaged"]
        assert (
            errors["home"]["wan"]
            == errors["office"]["lan"]
            == errors["office"]["wan"]
            == {"errors": 0, "dropped": 0}
        )
        assert trial["loss_at"] == {
            "first port into home": links["west"]["damaged"],
            "middle link": links["middle"]["lost"],
        }
        assert trial["lost"] == sum(trial["loss_at"].values())
        # Six frames come within 300 us: each late one is behind some.
        assert trial["reordered"] == links["middle"]["late"]
        assert trial["latency_us"]["min"] > 3 * 50 + 2_000
        assert trial["latency_us"]["max"] > trial["latency_us"]["min"] + 250
    home, office = (trials[1]["gateways"][side] for side in ("home", "office"))
    assert home["encrypted_frames"] - office["decrypted_frames"] == trials[1]["loss_at"]["middle link"]


# One kind of machine is enough: the errors are the generator's, which is the same for both.
@pytest.mark.parametrize("run", MACHINES[:1], ids=[MACHINES[0][0]], indirect=True)
def test_two_runs_are_the_same_to_the_byte(run: Measured, tmp_path: Path) -> None:
    again = measure(tmp_path, MACHINES[0])
    assert json.dumps(without_the_host(run.trials)) == json.dumps(without_the_host(again.trials))
    assert run.tables == again.tables


def test_the_manifest_says_what_goes_wrong(run: Measured) -> None:
    manifest = json.loads((run.directory / "manifest.json").read_text())
    said = {"west": "bit errors 5e-06", "middle": "loss 0.02, delay 2ms, 0.04 of frames 300us late"}
    assert manifest["conditions"]["links"] == said | {"seed": 5}
    for context in manifest["contexts"].values():
        each = "; ".join(f"{name}: {text}" for name, text in said.items())
        assert context["emulation"]["links"] == f"50 µs long; {each}"
