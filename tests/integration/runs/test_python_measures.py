# SPDX-License-Identifier: Apache-2.0
"""A plan measured from Python: interrupted, gone on with by the same line, held against itself."""

from __future__ import annotations

from pathlib import Path

import pytest

import espbench
from espbench.terms import WITH_FIGURE
from support.plans import PINNED, pair_plan, write_plan

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.needs("generator")]


class Enough(Exception):
    """Stands for the key with which a notebook's user interrupts a run."""


def test_a_plan_is_measured_interrupted_gone_on_with_and_checked(tmp_path: Path) -> None:
    search = {"loss_goals": [0], "resolution": "40%"}
    wanted = pair_plan("netns", throughput=search, name="notebook", frame_sizes=[64, 512], **PINNED)
    write_plan(tmp_path, wanted)
    plan = espbench.Plan(tmp_path / "notebook.yaml")
    seen: list[espbench.Progress] = []

    def stop_after_a_trial(progress: espbench.Progress) -> None:
        seen.append(progress)
        if progress.trials:
            raise Enough

    with pytest.raises(Enough):
        plan.run(tmp_path / "runs", wait=True, on_progress=stop_after_a_trial)
    begun = seen[-1].run
    assert seen[-1].cases_done < seen[-1].cases == 2

    run = plan.run(tmp_path / "runs", wait=True, on_progress=seen.append)
    assert run.path == begun
    assert (seen[-1].cases_done, seen[-1].trials) == (2, len(run.trials))
    assert set(run.results["status"]) <= set(WITH_FIGURE)

    verdict = espbench.check(plan.path, run.path, out=tmp_path / "checks", wait=True)
    # One repeat each allows no verdict in real time.
    assert verdict.attrs["verdict"] == "not judged"
    assert set(verdict["word"]) == {"no verdict"}
    assert len(espbench.history(tmp_path, index=tmp_path / "index.sqlite").runs) == 2
