# SPDX-License-Identifier: Apache-2.0
"""x86-64 gateways with Debian's kernel, from a plan to a finished run: the same to the byte, on a busy host too.

That neither rights nor a network are needed is in e500/test_qemu_e500.py.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from espbench.platforms.virtual.parts.kits import X86_KIT
from support.plans import pair_plan, write_plan
from support.runs import Run, assert_complete, rows
from support.virtual.spoilt_guest import without_a_program
from support.virtual.virtual_runs import (
    Measured,
    build,
    busy_host,
    measured,
    seen_until_its_end,
    without_the_host,
)

# Tests of these machines in `make test` are in test_x86_daemons.py.
pytestmark = [pytest.mark.virtual_time, pytest.mark.boards, pytest.mark.slow]

SIZE = 512


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    """Build the guests in the user's cache; the first test that needs them does it."""
    build("x86")
    assert X86_KIT.find() is not None


def plan(*stacks: Any, **changes: Any) -> dict[str, Any]:
    """Trials as short as they can be, up to a load that every stack misses."""
    throughput = {
        "minimum": "4000fps", "maximum": "200000fps", "trial": "10ms", "final_trial": "20ms",
        "warm_up": "10ms", "resolution": "20%",
    }  # fmt: skip
    few = {"name": "x86", "stacks": [*stacks], "suites": ["aes128gcm16"], "frame_sizes": [SIZE]}
    return pair_plan("virt-x86", throughput=throughput, **few | changes)


def measure(folder: Path, what: dict[str, Any], *options: str) -> Measured:
    return measured(write_plan(folder, what), folder / "runs", *options)


def boots(run: Measured) -> int:
    """Count how often Home was started: QEMU warns each time that its first hub leads to no network of the host."""
    return (run.directory / "logs" / "home-qemu.log").read_text().count("hub 0 is not connected")


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> tuple[Measured, Measured]:
    """One plan, by two jobs on a quiet machine, and by one while others take its CPUs."""
    asked = plan("plain", "xfrm")
    first = measure(tmp_path_factory.mktemp("quiet"), asked, "--jobs", "2")
    with busy_host():
        second = measure(tmp_path_factory.mktemp("busy"), asked, "--jobs", "1")
    return first, second


def test_two_runs_are_the_same_to_the_byte_on_a_busy_host(twice: tuple[Measured, Measured]) -> None:
    """Also whether a case's guests booted for it or not: for one job they boot once, of two each has them boot."""
    first, second = twice
    assert [boots(run) for run in twice] == [2, 1]
    assert json.dumps(without_the_host(first.trials)) == json.dumps(without_the_host(second.trials))
    assert first.tables == second.tables
    # There was something to differ in.
    assert any(trial["lost"] for trial in first.trials)
    assert all(trial["latency_us"]["max"] > trial["latency_us"]["min"] > 100 for trial in first.trials)


def test_every_case_has_its_result(twice: tuple[Measured, Measured]) -> None:
    first, _ = twice
    assert_complete(first.directory)
    rate = {row["stack"]: float(row["throughput_fps"]) for row in rows(first.directory)}
    assert rate["plain"] > rate["xfrm"]
    manifest = json.loads((first.directory / "manifest.json").read_text())
    assert manifest["platform"] == "qemu_x86"
    context = manifest["contexts"]["xfrm-aes128gcm16-ipv4"]
    assert "amd64" in context["kernel"]["home"]
    assert context["emulation"]["cpu"] == "Haswell-noTSX"
    assert "vmlinux sha256" in context["emulation"]["x86-kernel"]


def test_every_frame_that_crossed_was_encrypted(twice: tuple[Measured, Measured]) -> None:
    """Counted by the SAs of the copy of the guests in which the trial ran: no other trial's frames are in them."""
    first, _ = twice
    for trial in first.of("xfrm"):
        home, office = trial["gateways"]["home"], trial["gateways"]["office"]
        assert trial["validity"] == "VALID"
        assert trial["proof"]["proven"], trial["proof"]
        assert trial["tx_frames"] >= home["encrypted_frames"] >= office["decrypted_frames"]
        if not trial["lost"]:
            assert home["encrypted_frames"] == office["decrypted_frames"] == trial["tx_frames"]
        # Each lost frame was lost at a known place.
        assert sum(trial["loss_at"].values()) == trial["lost"]
        assert not {"unaccounted", "receiver overrun"} & set(trial["loss_at"])


def test_a_gateways_cpu_is_that_of_the_frames(twice: tuple[Measured, Measured]) -> None:
    """Instructions, in the guest's own time."""
    first, _ = twice
    each = {}
    for stack in ("plain", "xfrm"):
        kept = [trial for trial in first.of(stack) if not trial["lost"]]
        assert kept
        readings = [trial["gateways"][side] for trial in kept for side in ("home", "office")]
        # Frames that are queued when the last one is sent are worked off after the trial's 20 ms.
        assert all(0 < reading["cpu_pct"] <= 103 for reading in readings)
        each[stack] = readings[0]["cpu_us_per_frame"]
    assert each["plain"] < each["xfrm"]


def test_a_guest_that_panics_is_in_the_runs_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its initramfs has no program, in a cache of its own: one message quotes its console, and all is stopped."""
    without_a_program(X86_KIT, tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    file = write_plan(tmp_path, plan("plain", suites=[]))
    with Run(tmp_path, file, "--out", tmp_path / "runs") as run:
        processes = seen_until_its_end(run)
    assert run.process.returncode == 3, run.said
    assert re.search(
        r"gateway home died.*\n +(\[ *[\d.]+\] )?Kernel panic - not syncing: No working init",
        run.said,
        re.DOTALL,
    )
    assert run.said.count("Kernel panic") == 1
    run.assert_nothing_left(processes)
    (row,) = rows(run.directory)
    assert row["status"] == "INVALID"
    assert "Kernel panic" in (run.directory / "logs/home-console.log").read_text()
