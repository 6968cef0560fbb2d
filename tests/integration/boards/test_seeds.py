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


@pytest.mark.parametrize("dut", ["virt-x86", "mpc8548e"])
def test_repeats_and_seeds_differ_and_are_the_same_in_each_run(tmp_path: Path, dut: str) -> None:
    build(BUILD[dut])

    def of_repeat(run: Measured, repeat: int) -> list[dict[str, Any]]:
        return frames([trial for trial in run.of("xfrm") if trial["case"].endswith(f"-r{repeat}")])

    twice = measure(tmp_path / "twice", dut, repeat=2)
    first, second = of_repeat(twice, 1), of_repeat(twice, 2)
    assert first
    assert second
    assert first != second
    # The first repeat of the first seed is what a plan without either measures: in another run, to the last frame.
    assert frames(measure(tmp_path / "usual", dut).of("xfrm")) == first
    other = frames(measure(tmp_path / "other", dut, seed=2).of("xfrm"))
    assert other not in (first, second)
    # It is the luck that differs, not what is measured.
    for trials in (second, other):
        assert {trial["validity"] for trial in trials} == {"VALID"}
        assert all(trial["proof"]["proven"] for trial in trials)
