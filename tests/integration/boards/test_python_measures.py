# SPDX-License-Identifier: Apache-2.0
"""A plan in virtual time measured from Python: interrupted, gone on with by the same line, held against itself."""

from __future__ import annotations

from pathlib import Path

import pytest

import espbench
from support.plans import pair_plan, write_plan

pytestmark = [pytest.mark.virtual_time, pytest.mark.boards]


class Enough(Exception):
    """What a notebook's user pressed."""


def test_a_plan_is_measured_interrupted_gone_on_with_and_checked(tmp_path: Path) -> None:
    throughput = {
        "loss_goals": [0], "minimum": "10000fps", "maximum": "60000fps", "trial": "20ms", "final_trial": "40ms",
        "warm_up": "10ms", "learning": "10ms", "residue": "10ms", "resolution": "40%",
    }  # fmt: skip
    wanted = pair_plan(
        "mpc8548e", throughput=throughput, name="notebook", stacks=["plain"], frame_sizes=[64, 512]
    )
    write_plan(tmp_path, wanted)
    plan = espbench.Plan(tmp_path / "notebook.yaml")
    seen: list[espbench.Progress] = []

    def stop_after_a_trial(progress: espbench.Progress) -> None:
        seen.append(progress)
        if progress.trials:
            raise Enough

    with pytest.raises(Enough):
        plan.run(tmp_path / "runs", jobs=1, on_progress=stop_after_a_trial)
    begun = seen[-1].run
    assert seen[-1].cases_done < seen[-1].cases == 2

    run = plan.run(tmp_path / "runs", jobs=1, on_progress=seen.append)
    assert run.path == begun
    assert (seen[-1].cases_done, seen[-1].trials) == (2, len(run.trials))
    assert list(run.results["status"]) == ["OK"] * 2

    verdict = espbench.check(plan.path, run.path, out=tmp_path / "checks", jobs=1)
    assert verdict.attrs["verdict"] == "passed", verdict.attrs
    assert set(verdict["word"]) <= {"same", "not judged"}
    assert espbench.history(tmp_path, index=tmp_path / "index.sqlite").series["is_exact"].all()
