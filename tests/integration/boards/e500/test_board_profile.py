# SPDX-License-Identifier: Apache-2.0
"""Profiles of emulated boards: functions of their own kernel, which add up to what the trial recorded."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

import pytest

from espbench.plan.duts.profiles import load_profile
from espbench.profile.from_run import ROUNDING_NS
from support.plans import coarse, pair_plan, write_plan
from support.runs import espbench
from support.virtual.e500_machine import built_by_command

pytestmark = [pytest.mark.virtual_time, pytest.mark.boards, pytest.mark.slow]

PATIENCE_S = 1800.0
BOARD = "mpc8548e"
CASE = "0002-async-aes128-sha1-512-one-way"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run of a short plan whose ESP is done by the engine, and the profile of that case."""
    built_by_command()
    folder = tmp_path_factory.mktemp("profile")
    plan = pair_plan(
        BOARD, throughput=coarse("5000fps", "60000fps"), name="board",
        stacks=[{"stack": "xfrm", "label": "async", "crypto": "async"}], suites=["aes128-sha1"], frame_sizes=[512],
    )  # fmt: skip
    path = write_plan(folder, plan)
    command = ("run", path, "--out", folder / "runs", "--no-report", "--jobs", "1")
    done = espbench(*command, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    (run,) = (folder / "runs").iterdir()
    done = espbench("profile", run, "--case", CASE, "--out", folder / "profiles", timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert "other gateways" not in done.stderr
    return run, Path(done.stdout.strip().splitlines()[-1]).parent


def rows_of(profiled: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((profiled / "profile.csv").read_text().splitlines()))


def test_the_sum_is_the_time_that_the_trial_recorded(folders: tuple[Path, Path]) -> None:
    """The record has whole nanoseconds, of which an instruction takes a fraction."""
    run, profiled = folders
    trials = [json.loads(line) for line in (run / "trials.jsonl").read_text().splitlines()]
    final = [trial for trial in trials if trial["case"] == CASE][-1]
    board = load_profile(BOARD).board
    assert board is not None
    sums: Counter[str] = Counter()
    unnamed: Counter[str] = Counter()
    for row in rows_of(profiled):
        sums[row["gateway"]] += int(row["instructions"])
        unnamed[row["gateway"]] += int(row["instructions"]) if row["function"] == "[unnamed]" else 0
    for side, reading in final["gateways"].items():
        assert float(sums[side] * board.ns_per_instruction) == pytest.approx(
            reading["cpu_ns"], abs=ROUNDING_NS
        )
        assert unnamed[side] <= 0.005 * sums[side]


def test_the_drivers_functions_are_named(folders: tuple[Path, Path]) -> None:
    """Home encrypts by the engine's driver, Office decrypts; each frame passes both Ethernet ports."""
    _, profiled = folders
    each = {
        (row["gateway"], row["function"]): int(row["instructions"]) / int(row["frames"])
        for row in rows_of(profiled)
    }
    assert each["home", "esp_output"] > 20
    assert each["office", "esp_input"] > 20
    assert ("office", "esp_output") not in each
    for side in ("home", "office"):
        assert each[side, "gfar_start_xmit"] > 50
        assert each[side, "talitos_submit"] > 20


def test_where_a_function_ran_is_known(folders: tuple[Path, Path]) -> None:
    """Frames are forwarded by softirqs, and interrupts lead to them."""
    _, profiled = folders
    ran = {(row["function"], row["where"]) for row in rows_of(profiled)}
    assert ("gfar_start_xmit", "softirq") in ran
    assert ("gfar_receive", "hard interrupt") in ran
