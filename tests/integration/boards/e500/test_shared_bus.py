# SPDX-License-Identifier: Apache-2.0
"""Emulated boards whose Ethernet ports and SEC wait for one bus of the memory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from support.plans import pair_plan, write_plan
from support.virtual.e500_machine import built_by_command
from support.virtual.virtual_runs import Measured, measured

pytestmark = [pytest.mark.virtual_time, pytest.mark.boards, pytest.mark.slow]

DUT_PROFILES = Path(__file__).parents[4] / "dut-profiles"
LATENCY = {
    "load": "2000fps",
    "trial": "50ms",
    "repeats": 1,
    "settle": 0,
    "residue": "20ms",
    "warm_up": "10ms",
    "learning": "10ms",
}
BUS = {"width": 8, "efficiency": "5%", "misses_per_us": 0, "assumed": ["width", "efficiency"]}
MBPS = 26.65  # 533 MHz x 8 bits x 5 %, in MB/s
SIZE = 512
RECEIVED, SENT = SIZE + 16, SIZE - 4 + 16  # with its descriptor read and written back; the FCS is not fetched


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """Boards with a slow bus beside boards whose memory has none; plain and with ESP by the engine."""
    built_by_command()
    folder = tmp_path_factory.mktemp("bus")
    usual = yaml.safe_load((DUT_PROFILES / "mpc8548e.yaml").read_text())
    for name, more in (("free", {}), ("slow", {"bus": BUS})):
        profile = usual | {"name": name, "board": usual["board"] | more}
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(profile))
    stacks = [{"stack": "plain", "policies": "none"}, {"stack": "xfrm", "crypto": "async"}]
    plan = pair_plan("mpc8548e", name="bus", stacks=stacks, suites=["3des-sha1"], frame_sizes=[SIZE])
    plan |= {"dut": ["./free.yaml", "./slow.yaml"], "directions": ["one-way"]}
    plan["tests"] = [{"latency": LATENCY}]
    return measured(write_plan(folder, plan), folder / "runs")


def latency_us(run: Measured, dut: str, stack: str) -> float:
    """Return the latency of a case, which has one trial."""
    (trial,) = [trial for trial in run.trials if f"-{dut}-{stack}-" in trial["case"]]
    assert (trial["lost"], trial["validity"]) == (0, "VALID")
    return float(trial["latency_us"]["min"])


def later_us(run: Measured, stack: str) -> float:
    return latency_us(run, "slow", stack) - latency_us(run, "free", stack)


def test_frames_are_as_late_as_the_bus_takes_for_them(run: Measured) -> None:
    """Nothing else is on the bus: four transfers, two in each gateway, and each as long as its bytes say."""
    assert later_us(run, "plain") == pytest.approx(2 * (RECEIVED + SENT) / MBPS, abs=2)


def test_the_context_says_which_bus_there_is(run: Measured) -> None:
    manifest = json.loads((run.directory / "manifest.json").read_text())
    told = {
        case: manifest["contexts"][name]["emulation"].get("memory's bus")
        for case, name in manifest["context_of_case"].items()
    }
    assert {text for case, text in told.items() if "-slow-" in case} == {
        "8 bits (assumed), 5 % of its data rate used (assumed), 0 cache misses per µs; 26.65 MB/s for devices"
    }
    assert {text for case, text in told.items() if "-free-" in case} == {None}


def test_the_engine_waits_for_the_bus_too(run: Measured) -> None:
    """Its bytes cross the bus as well, twice in each gateway: later than those of the ports alone make it."""
    assert later_us(run, "xfrm") > (2 * (RECEIVED + SENT) + 2 * 2 * SIZE) / MBPS
