# SPDX-License-Identifier: Apache-2.0
"""The lean ESP of emulated boards: the tester opens and seals its packets; at the same load it is cheaper than XFRM."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from espbench.measure.proof.readiness import PROBE_FRAMES
from espbench.platforms.base import SIDES
from support.plans import pair_plan, write_plan
from support.runs import espbench, rows
from support.virtual.e500_machine import built_by_command

pytestmark = [pytest.mark.virtual_time, pytest.mark.boards]

PATIENCE_S = 1800.0
BOARD = "mpc8548e"
SIZE = 390
SUITES = ["3des-sha1", "aes256-sha256", "aes128gcm16"]
THROUGHPUT = {
    "minimum": "1000fps", "maximum": "60000fps", "trial": "20ms", "final_trial": "40ms", "warm_up": "10ms",
    "resolution": "25%",
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    """Build the guests in the user's cache; the first test that needs them does it."""
    built_by_command()


def measure(folder: Path, **changes: Any) -> Path:
    plan = pair_plan(BOARD, throughput=THROUGHPUT, frame_sizes=[SIZE], **changes)
    command = ("run", write_plan(folder, plan), "--no-report", "--jobs", "1", "--out", folder / "runs")
    done = espbench(*command, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    (run_directory,) = (folder / "runs").iterdir()
    return run_directory


def trials(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "trials.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_beside_xfrm_it_encrypts_each_frame_for_less(tmp_path: Path) -> None:
    """The same engine, driver and load: what differs is the stack's code."""
    run = measure(tmp_path, stacks=["xfrm", "lean-esp"], suites=["3des-sha1"])
    encrypted = [trial for trial in trials(run) if "-plain-" not in trial["case"]]
    assert all(trial["validity"] == "VALID" and trial["proof"]["proven"] for trial in encrypted)
    first = {
        stack: next(trial for trial in encrypted if f"-{stack}-" in trial["case"])
        for stack in ("xfrm", "lean-esp")
    }
    assert {trial["intended_fps"] for trial in first.values()} == {60_000}
    cost = {stack: trial["gateways"]["home"]["cpu_us_per_frame"] for stack, trial in first.items()}
    assert cost["lean-esp"] < 0.8 * cost["xfrm"]
    kept = [trial for trial in encrypted if "-lean-esp-" in trial["case"] and not trial["lost"]]
    assert kept
    for trial in kept:
        assert trial["gateways"]["home"]["encrypted_frames"] == trial["tx_frames"]
        assert trial["gateways"]["office"]["decrypted_frames"] == trial["tx_frames"]
    contexts = json.loads((run / "manifest.json").read_text())["contexts"]
    context = contexts["lean-esp-3des-sha1-ipv4"]
    given = {
        stack: [
            contexts[f"{stack}-3des-sha1-ipv4"]["crypto engine"][side]["descriptors before trials"]
            for side in SIDES
        ]
        for stack in ("xfrm", "lean-esp")
    }
    assert given["lean-esp"] == given["xfrm"]  # of the probe frames: one for each
    assert min(given["lean-esp"]) >= 2 * PROBE_FRAMES
    assert context["crypto engine"]["home"]["computed by"] == "authenc-hmac-sha1-cbc-3des-talitos"


def test_without_keys_each_frame_passes_both_gateways(tmp_path: Path) -> None:
    """NULL/NULL, beside XFRM's: the same frames cross, counted by the SAs, for less of the CPU's time."""
    run = measure(tmp_path, stacks=["null", "lean-esp"], suites=["null-null"])
    read = [trial for trial in trials(run) if "-plain-" not in trial["case"]]
    assert all(trial["validity"] == "VALID" and trial["proof"]["proven"] for trial in read)
    kept = [trial for trial in read if not trial["lost"]]
    assert {stack for stack in ("null", "lean-esp") for trial in kept if f"-{stack}-" in trial["case"]} == {
        "null", "lean-esp",
    }  # fmt: skip
    for trial in kept:
        assert trial["gateways"]["home"]["encrypted_frames"] == trial["tx_frames"]
        assert trial["gateways"]["office"]["decrypted_frames"] == trial["tx_frames"]
    first = {stack: next(t for t in kept if f"-{stack}-" in t["case"]) for stack in ("null", "lean-esp")}
    cost = {stack: trial["gateways"]["home"]["cpu_us_per_frame"] for stack, trial in first.items()}
    assert cost["lean-esp"] < 0.8 * cost["null"]


def test_another_esp_opens_and_seals_its_packets(tmp_path: Path) -> None:
    """The tester's, which shares no code with it: every suite, each operation by itself."""
    run = measure(
        tmp_path,
        topology="single-gateway",
        stacks=["lean-esp"],
        suites=SUITES,
        directions=["encryption", "decryption"],
    )
    read = trials(run)
    assert {row["suite"] for row in rows(run) if row["stack"] == "lean-esp"} == set(SUITES)
    of_esp = [trial for trial in read if "-lean-esp-" in trial["case"]]
    assert all(trial["validity"] == "VALID" and trial["proof"]["proven"] for trial in of_esp)
    assert len({trial["case"] for trial in of_esp}) == 2 * len(SUITES)
