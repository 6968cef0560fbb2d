# SPDX-License-Identifier: Apache-2.0
"""Emulated boards from a plan to a finished run, in virtual time: the same to the byte, however busy the host is."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml

from espbench.errors import EspbenchError
from espbench.generators.native import NativeGenerator, binary
from espbench.plan import load_topology
from espbench.platforms.e500 import qemu_e500
from espbench.platforms.virtual import virtual_pair
from espbench.platforms.virtual.parts.kits import E500_KIT, E500_STRONGSWAN_KIT
from espbench.runs.platform_kinds.shared.addressing import addressing_of
from espbench.this_machine.processes import start_time
from espbench.this_machine.registry import Registry
from support.gateways.boxes import leftovers
from support.plans import pair_plan, write_plan
from support.runs import Run, assert_complete, espbench, kill, rows
from support.virtual.e500_machine import COSTS, SEC_HZ, built_by_command
from support.virtual.spoilt_guest import without_a_program
from support.virtual.virtual_runs import (
    PATIENCE_S,
    Measured,
    busy_host,
    frames,
    measured,
    patiently,
    seen_until_its_end,
    without_rights,
    without_the_host,
)

pytestmark = [pytest.mark.virtual_time, pytest.mark.boards]

SIZE = 512


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    """Build the guests in the user's cache; the first test that needs them does it."""
    built_by_command()


def plan(*stacks: Any, **changes: Any) -> dict[str, Any]:
    """Trials as short as they can be, up to a load that every stack but plain misses."""
    throughput = {
        "minimum": "4000fps", "maximum": "120000fps", "trial": "20ms", "final_trial": "40ms",
        "warm_up": "10ms", "resolution": "40%",
    }  # fmt: skip
    few = {"name": "board", "stacks": [*stacks], "suites": ["3des-sha1"], "frame_sizes": [SIZE]}
    return pair_plan("./mine.yaml", throughput=throughput, **few | changes)


def written(folder: Path, what: dict[str, Any]) -> Path:
    """The plan, and beside it a board whose figures no calibration changes."""
    prices = dict(pair.split("=") for pair in COSTS.split(":"))
    engine = {"version": "2.1", "clock": "266MHz", "cycles": {name: float(n) for name, n in prices.items()}}
    board = {
        "device": "MPC8548E", "core": "e500 standing in for e300", "core_clock": "1000MHz",
        "memory_clock": "533MHz", "ns_per_instruction": 1, "sec": engine,
    }  # fmt: skip
    profile = {"name": "mine", "description": "a board", "platform": "qemu_e500", "line_rate": "1Gbps"}
    (folder / "mine.yaml").write_text(yaml.safe_dump(profile | {"memory": "128M", "board": board}))
    return write_plan(folder, what)


def measure(folder: Path, what: dict[str, Any], *options: str, report: bool = False) -> Measured:
    return measured(written(folder, what), folder / "runs", *options, report=report)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """One plan, a case at a time on a quiet machine."""
    return measure(tmp_path_factory.mktemp("quiet"), plan("plain", "xfrm"), "--jobs", "1", report=True)


def test_two_runs_are_the_same_to_the_byte_on_a_busy_host(first: Measured, tmp_path: Path) -> None:
    """The second has all cases at once, while others take the machine's CPUs."""
    with busy_host():
        second = measure(tmp_path, plan("plain", "xfrm"), "--jobs", "2", report=True)
    assert json.dumps(without_the_host(first.trials)) == json.dumps(without_the_host(second.trials))
    assert first.tables == second.tables
    # There was something to differ in.
    assert len(first.tables) > 2
    assert any(trial["lost"] for trial in first.trials)
    assert all(trial["latency_us"]["max"] > trial["latency_us"]["min"] > 100 for trial in first.trials)


def test_every_case_has_its_result(first: Measured) -> None:
    assert_complete(first.directory)
    rate = {row["stack"]: float(row["throughput_fps"]) for row in rows(first.directory)}
    assert rate["plain"] > rate["xfrm"]
    assert all("core: e500 standing in for e300" in row["warnings"] for row in rows(first.directory))
    assert "core: e500 standing in for e300" in (first.directory / "report.md").read_text()
    manifest = json.loads((first.directory / "manifest.json").read_text())
    assert manifest["platform"] == "qemu_e500"
    context = manifest["contexts"]["xfrm-3des-sha1-ipv4"]
    assert context["emulation"]["device"] == "MPC8548E"
    assert "vmlinux sha256" in context["emulation"]["kernel"]
    assert context["crypto engine"]["home"]["computed by"].endswith("talitos")
    assert (first.directory / "report.html").exists()


def test_every_frame_that_crossed_was_encrypted(first: Measured) -> None:
    """Counted by the SAs of the copy of the guests in which the trial ran: no other trial's frames are in them."""
    for trial in first.of("xfrm"):
        home, office = trial["gateways"]["home"], trial["gateways"]["office"]
        assert trial["validity"] == "VALID"
        assert trial["proof"]["proven"], trial["proof"]
        assert trial["tx_frames"] >= home["encrypted_frames"] >= office["decrypted_frames"]
        assert office["decrypted_frames"] >= trial["rx_frames"]
        if not trial["lost"]:
            assert home["encrypted_frames"] == office["decrypted_frames"] == trial["tx_frames"]
        # Each lost frame was lost at a known place.
        assert sum(trial["loss_at"].values()) == trial["lost"]
        assert not {"unaccounted", "receiver overrun"} & set(trial["loss_at"])


def test_a_gateways_cpu_is_that_of_the_frames(first: Measured) -> None:
    """Idle instructions against busy ones, in the guest's own time; test_e500_stacks.py compares other stacks."""
    each = {}
    for stack in ("plain", "xfrm"):
        kept = [trial for trial in first.of(stack) if not trial["lost"]]
        assert kept
        readings = [trial["gateways"][side] for trial in kept for side in ("home", "office")]
        assert all(0 < reading["cpu_pct"] <= 100.5 for reading in readings)
        each[stack] = readings[0]["cpu_us_per_frame"]
    assert each["plain"] < each["xfrm"]


@pytest.mark.slow
def test_neither_rights_nor_network_are_needed(first: Measured, tmp_path: Path) -> None:
    """A user without any capability, and no interface: the same frames."""
    nobody = without_rights(tmp_path)
    run = measured(written(tmp_path, plan("xfrm")), tmp_path / "runs", as_user=nobody)
    assert frames(run.of("xfrm")) == frames(first.of("xfrm"))
    assert list((tmp_path / "espbench").iterdir()) == []  # its journal is gone


@pytest.mark.slow
def test_a_run_is_taken_up_where_it_was_and_ends_alike(first: Measured, tmp_path: Path) -> None:
    """Killed in the middle, nothing of it stays; and what is missing is measured as it would have been."""
    file = written(tmp_path, plan("plain", "xfrm"))
    with Run(tmp_path, file, "--jobs", "1", "--out", tmp_path / "runs") as run:
        patiently(lambda: len(run.trials) >= 3)
        processes = run.processes()
        assert len(processes) >= 3  # the generator and both boards
        kill(run.process.pid)
        run.process.wait()
        patiently(lambda: not [pid for pid, start in processes if start_time(pid) == start])
        directory = run.directory
    assert espbench("clean").returncode == 0
    assert leftovers(run.id) == set()
    done = espbench("run", "--resume", directory, "--jobs", "2", timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    resumed = Measured(directory)
    assert without_the_host(resumed.trials) == without_the_host(first.trials)
    assert resumed.tables == first.tables


@pytest.mark.slow
def test_a_board_that_dies_in_a_run_costs_one_trial(first: Measured, tmp_path: Path) -> None:
    """It is INVALID and says which board; on a new pair it is made again, and nothing else differs."""
    file = written(tmp_path, plan("xfrm"))
    with Run(tmp_path, file, "--jobs", "1", "--out", tmp_path / "runs") as run:
        patiently(lambda: any("-xfrm-" in trial["case"] for trial in run.trials))
        kill(run.pid_of("qemu office"))
        processes = run.processes()
        patiently(lambda: run.process.poll() is not None)
    assert run.process.returncode == 0, run.said
    run.assert_nothing_left(processes)
    (broken,) = [trial for trial in run.trials if trial["validity"] == "INVALID"]
    assert "gateway office died" in " ".join(broken["reasons"])
    whole = [trial for trial in Measured(run.directory).of("xfrm") if trial != broken]
    assert frames(whole) == frames(first.of("xfrm"))


def test_a_guest_that_panics_is_in_the_runs_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here one without a program, in a cache of its own: its console says so; nobody tries again; all is stopped."""
    without_a_program(E500_KIT, tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with Run(tmp_path, written(tmp_path, plan("plain", suites=[])), "--out", tmp_path / "runs") as run:
        processes = seen_until_its_end(run)
    assert run.process.returncode == 3, run.said
    assert re.search(
        r"gateway home died.*\n +Kernel panic - not syncing: No working init", run.said, re.DOTALL
    )
    assert run.said.count("Kernel panic") == 1
    run.assert_nothing_left(processes)
    (row,) = rows(run.directory)
    assert row["status"] == "INVALID"
    assert "Kernel panic" in (run.directory / "logs/home-console.log").read_text()


def test_without_a_build_the_command_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    done = espbench("run", written(tmp_path, plan("plain", suites=[])), "--out", tmp_path / "runs")
    assert done.returncode == 4
    assert "not built" in done.stderr
    assert "espbench build e500" in done.stderr
    assert not (tmp_path / "runs").exists()


@dataclass
class Pair:
    """Two boards and the generator that leads them."""

    registry: Registry
    bed: virtual_pair.VirtualTestbed
    generator: NativeGenerator


@pytest.fixture
def pairs(tmp_path: Path) -> Iterator[Any]:
    """Starts pairs of boards, not yet attached; what is left of them is looked for at the end."""
    with Registry(secrets.token_hex(3), tmp_path / "state") as registry:

        def make(crypto: str = "") -> Pair:
            addressing = addressing_of(load_topology("gateway-to-gateway"), 1500)
            platform = qemu_e500.QemuE500Platform(
                "board", addressing, binary, E500_KIT.require, E500_STRONGSWAN_KIT.require
            )
            machine = qemu_e500.Machine(128, Fraction(1), "2.1", SEC_HZ, COSTS, crypto)
            generator = NativeGenerator(registry, tmp_path / "generator.log")
            bed = platform.build(registry, tmp_path, virtual_pair.placement(), machine, {})
            generator.open([*bed.ports.values()], [])
            return Pair(registry, bed, generator)

        yield make
        processes = [entry.detail["pid"] for entry in registry.entries if entry.kind == "process"]
    assert not [pid for pid in processes if start_time(pid) is not None]
    assert leftovers(registry.run_id) == set()


def test_a_guest_that_panics_shows_its_console(pairs: Any) -> None:
    """Here because its kernel is asked for what it does not know."""
    pair = pairs(crypto="nonsense")
    with pytest.raises(
        EspbenchError, match=r"(?s)gateway home died; its last words:.*Kernel panic.*nonsense"
    ):
        pair.bed.attached(pair.generator)


def test_a_board_that_dies_is_named(pairs: Any) -> None:
    """Whoever asks it next is told; the other one, and all links, end with the test bed."""
    pair = pairs()
    pair.bed.attached(pair.generator)
    assert pair.bed.gateways["office"].cpu_ns() > 0
    office = next(entry for entry in pair.bed.made if entry.name == "qemu office")
    kill(office.detail["pid"])
    with pytest.raises(EspbenchError, match="gateway office died"):
        pair.bed.gateways["office"].cpu_ns()
    pair.bed.close()
    assert not [entry for entry in pair.registry.entries if entry.name.startswith("qemu")]


def test_the_next_trial_knows_nothing_of_the_one_before(pairs: Any) -> None:
    pair = pairs()
    pair.bed.attached(pair.generator)
    home = pair.bed.gateways["home"]
    name = "/proc/sys/net/ipv4/icmp_ratelimit"
    seen = []
    for value in ("70", "90"):
        pair.bed.begin_trial()
        began_s = home.now_s() % 1
        before = home.read([name])[name]
        home.write(name, value)
        seen.append((before, home.read([name])[name], home.cpu_ns()))
        assert began_s < 0.01  # a whole second, and what the gateway needs for two answers
    assert [text for text, *_ in seen] == ["1000\n"] * 2
    assert [text for _, text, _ in seen] == ["70\n", "90\n"]
    assert seen[0][2] == seen[1][2]


@pytest.mark.slow
def test_a_single_board_does_each_operation_by_itself(tmp_path: Path) -> None:
    """The tester is its ESP peer, in virtual time too: proven, and every lossless trial with equal counts."""
    single = measure(tmp_path, plan("xfrm", topology="single-gateway"))
    assert_complete(single.directory)
    by_case = {(row["stack"], row["direction"]): row for row in rows(single.directory)}
    assert list(by_case) == [
        (stack, operation) for stack in ("plain", "xfrm") for operation in ("encryption", "decryption")
    ]
    assert [row["encryption"] for row in by_case.values()] == ["baseline", "baseline", "proven", "proven"]
    lossless = [trial for trial in single.of("xfrm") if trial["tx_frames"] == trial["rx_frames"]]
    for trial in lossless:
        home = trial["gateways"]["home"]
        assert (home["encrypted_frames"] or home["decrypted_frames"]) == trial["tx_frames"]
    assert {next(iter(trial["per_direction"])) for trial in lossless} == {"west-east", "east-west"}
