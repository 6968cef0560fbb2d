# SPDX-License-Identifier: Apache-2.0
"""Emulated boards count what they move over their memory's bus for a frame, to the byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.plans import pair_plan, write_plan
from support.virtual.e500_machine import built_by_command
from support.virtual.virtual_runs import measured

pytestmark = [pytest.mark.virtual_time, pytest.mark.boards, pytest.mark.slow]

LOAD_FPS, TRIAL_MS, SIZE = 20_000, 100, 512
FRAMES = LOAD_FPS * TRIAL_MS // 1000
ESP_SIZE = 562  # 3des-sha1 in tunnel mode, with FCS
FCS, DESCRIPTOR = 4, 8


def test_devices_count_every_byte_of_each_frame(tmp_path: Path) -> None:
    built_by_command()
    bus = {
        "load": f"{LOAD_FPS}fps",
        "trial": f"{TRIAL_MS}ms",
        "settle": 0,
        "residue": "20ms",
        "learning": "10ms",
    }
    stacks = [{"stack": "plain", "policies": "none"}, {"stack": "xfrm", "crypto": "async"}]
    plan = pair_plan("mpc8548e", stacks=stacks, suites=["3des-sha1"], frame_sizes=[SIZE])
    plan |= {"directions": ["one-way"], "tests": [{"bus": bus}]}
    run = measured(write_plan(tmp_path, plan), tmp_path / "runs")
    plain, esp = run.trials
    for trial in (plain, esp):
        assert (trial["tx_frames"], trial["lost"], trial["validity"]) == (FRAMES, 0, "VALID")
    home, office = (plain["measured"]["bus"][side] for side in ("home", "office"))
    # Written with their FCS as they come, read without as they go.
    assert home["port_frame_written"] == office["port_frame_written"] == FRAMES * SIZE
    assert home["port_frame_read"] == office["port_frame_read"] == FRAMES * (SIZE - FCS)
    assert (home["sec_read"], home["sec_written"], home["sec_descriptors"]) == (0, 0, 0)
    home, office = (esp["measured"]["bus"][side] for side in ("home", "office"))
    assert home["sec_descriptors"] == esp["gateways"]["home"]["encrypted_frames"] == FRAMES
    assert office["sec_descriptors"] == esp["gateways"]["office"]["decrypted_frames"] == FRAMES
    assert home["port_frame_read"] == FRAMES * (ESP_SIZE - FCS)
    assert office["port_frame_written"] == FRAMES * ESP_SIZE
    assert home["sec_read"] > home["sec_written"] > FRAMES * (SIZE - 18)
    # Descriptors, each read and written back, beside the frames.
    for moved in (home, office):
        assert moved["port_read"] - moved["port_frame_read"] == 2 * DESCRIPTOR * FRAMES
    counted = {f["stack"]: f for f in json.loads((run.directory / "results.json").read_text())["findings"]}
    assert counted["plain"]["quantities"][1]["value"] == 2 * SIZE - FCS
