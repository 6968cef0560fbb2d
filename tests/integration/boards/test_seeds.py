# SPDX-License-Identifier: Apache-2.0
"""Seeds of virtual time: each repeat has random numbers of its own, and they are the same in each run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.plans import pair_plan, write_plan
from support.virtual.virtual_runs import Measured, build, frames, measured

pytestmark = [pytest.mark.virtual_time, pytest.mark.boards, pytest.mark.slow]

SUITE = {"virt-x86": "aes128gcm16", "mpc8548e": "aes128-sha1"}
BUILD = {"virt-x86": "x86", "mpc8548e": "e500"}


def measure(folder: Path, dut: str, **changes: Any) -> Measured:
    """ESP at few loads; enough to tell one stream of random numbers from another."""
    throughput = {
        "minimum": "4000fps", "maximum": "60000fps", "trial": "10ms", "final_trial": "20ms",
        "warm_up": "10ms", "resolution": "40%", "loss_goals": [0],
    }  # fmt: skip
    few = {"name": "seeds", "stacks": ["xfrm"], "suites": [SUITE[dut]], "frame_sizes": [512]}
    folder.mkdir()
    return measured(
        write_plan(folder, pair_plan(dut, throughput=throughput, **few | changes)), folder / "runs"
    )


def repeats(folder: Path, dut: str) -> list[list[dict[str, Any]]]:
    """Measure twice; return the frames of both repeats, which differ in their luck and not in what is measured."""
    build(BUILD[dut])
    run = measure(folder / "twice", dut, repeat=2)
    each = [
        frames([trial for trial in run.of("xfrm") if trial["case"].endswith(f"-r{number}")])
        for number in (1, 2)
    ]
    assert all(each)
    assert each[0] != each[1]
    assert_measured(each[1])
    return each


def assert_measured(trials: list[dict[str, Any]]) -> None:
    assert {trial["validity"] for trial in trials} == {"VALID"}
    assert all(trial["proof"]["proven"] for trial in trials)


def test_repeats_and_seeds_differ_and_are_the_same_in_each_run(tmp_path: Path) -> None:
    dut = "virt-x86"
    first, second = repeats(tmp_path, dut)
    # The first repeat of the first seed is what a plan without either measures: in another run, to the last frame.
    assert frames(measure(tmp_path / "usual", dut).of("xfrm")) == first
    other = frames(measure(tmp_path / "other", dut, seed=2).of("xfrm"))
    assert other not in (first, second)
    assert_measured(other)


def test_repeats_of_boards_differ(tmp_path: Path) -> None:
    """Their seeds come from the same function; that they boot with another one is what is tested."""
    repeats(tmp_path, "mpc8548e")
