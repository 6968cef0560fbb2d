# SPDX-License-Identifier: Apache-2.0
"""Emulated boards whose ports gather interrupts: what a run records of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.plans import pair_plan, write_plan
from support.runs import espbench
from support.virtual.e500_machine import built_by_command

pytestmark = [pytest.mark.virtual_time, pytest.mark.boards]

PATIENCE_S = 1800.0
LOAD_FPS = 40_000
AROUND = {"settle": 0, "residue": "20ms", "warm_up": "10ms", "learning": "10ms"}


def ran(folder: Path, plan: dict[str, Any], *, code: int = 0) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The trials and the manifest."""
    built_by_command()
    done = espbench("run", write_plan(folder, plan), "--out", folder / "runs", timeout=PATIENCE_S)
    assert done.returncode == code, done.stderr
    (run,) = (folder / "runs").iterdir()
    trials = [json.loads(line) for line in (run / "trials.jsonl").read_text().splitlines()]
    assert all(trial["validity"] == "VALID" for trial in trials)
    manifest: dict[str, Any] = json.loads((run / "manifest.json").read_text())
    return trials, manifest


def test_ports_that_gather_interrupts_take_less_of_the_cpu_and_longer(tmp_path: Path) -> None:
    """At a frame each 25 us the timer is first: what came last has waited for nothing, what came first for 205 us."""
    latency = {"load": f"{LOAD_FPS}fps", "trial": "50ms", "repeats": 1} | AROUND
    plan = pair_plan(
        "mpc8548e",
        name="gathering",
        stacks=[{"stack": "plain", "policies": "none"}],
        frame_sizes=[512],
        directions=["one-way"],
        tests=[{"latency": latency}],
    ) | {"dut": ["mpc8548e", "mpc8548e-coalesced"]}
    (each, gathered), manifest = ran(tmp_path, plan)
    assert (each["lost"], gathered["lost"]) == (0, 0)
    for side in ("home", "office"):
        cost = [trial["gateways"][side]["cpu_us_per_frame"] for trial in (each, gathered)]
        assert cost[1] < 0.75 * cost[0]
    waited = gathered["latency_us"]["max"] - each["latency_us"]["max"]
    assert 205 < waited < 2 * 206 + 50
    gathering = {name: of["emulation"]["interrupts"] for name, of in manifest["contexts"].items()}
    assert sorted(gathering.values()) == [
        "receiving: one for 16 frames or 205 µs; sending: one for 16 frames or 205 µs",
        "receiving: one for each frame; sending: one for each frame",
    ]
