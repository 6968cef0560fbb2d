# SPDX-License-Identifier: Apache-2.0
"""Emulated boards whose Ethernet ports and SEC wait for one bus of the memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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
}
MBPS = 26.65  # 533 MHz x 8 bits x 5 %, in MB/s
SIZE = 512
RECEIVED, SENT = SIZE + 16, SIZE - 4 + 16  # with its descriptor read and written back; the FCS is not fetched


def ran(folder: Path, bus: dict[str, Any] | None, stack: dict[str, Any]) -> Measured:
    built_by_command()
    profile = yaml.safe_load((DUT_PROFILES / "mpc8548e.yaml").read_text()) | {"name": "mine"}
    if bus:
        profile["board"]["bus"] = bus
    folder.mkdir()
    (folder / "mine.yaml").write_text(yaml.safe_dump(profile))
    plan = pair_plan("./mine.yaml", name="bus", stacks=[stack], frame_sizes=[SIZE])
    if stack["stack"] != "plain":
        plan["suites"] = ["3des-sha1"]
    plan |= {"directions": ["one-way"], "tests": [{"latency": LATENCY | {"learning": "10ms"}}]}
    return measured(write_plan(folder, plan), folder / "runs")


def latency_us(run: Measured) -> float:
    trial = run.trials[-1]
    assert (trial["lost"], trial["validity"]) == (0, "VALID")
    return float(trial["latency_us"]["min"])


def slow_bus() -> dict[str, Any]:
    return {"width": 8, "efficiency": "5%", "misses_per_us": 0, "assumed": ["width", "efficiency"]}


def test_frames_are_as_late_as_the_bus_takes_for_them(tmp_path: Path) -> None:
    """Nothing else is on the bus: four transfers, two in each gateway, and each as long as its bytes say."""
    stack = {"stack": "plain", "policies": "none"}
    free = ran(tmp_path / "free", None, stack)
    slow = ran(tmp_path / "slow", slow_bus(), stack)
    assert latency_us(slow) - latency_us(free) == pytest.approx(2 * (RECEIVED + SENT) / MBPS, abs=2)
    contexts = json.loads((slow.directory / "manifest.json").read_text())["contexts"].values()
    assert {of["emulation"]["memory's bus"] for of in contexts} == {
        "8 bits (assumed), 5 % of its data rate used (assumed), 0 cache misses per µs; 26.65 MB/s for devices"
    }
    contexts = json.loads((free.directory / "manifest.json").read_text())["contexts"].values()
    assert not any("memory's bus" in of["emulation"] for of in contexts)


def test_the_engine_waits_for_the_bus_too(tmp_path: Path) -> None:
    """Its bytes cross the bus as well, twice in each gateway: later than those of the ports alone make it."""
    stack = {"stack": "xfrm", "crypto": "async"}
    late = latency_us(ran(tmp_path / "slow", slow_bus(), stack)) - latency_us(
        ran(tmp_path / "free", None, stack)
    )
    assert late > (2 * (RECEIVED + SENT) + 2 * 2 * SIZE) / MBPS
