# SPDX-License-Identifier: Apache-2.0
"""Tests of the estimate of a run's duration."""

from __future__ import annotations

from pathlib import Path

import pytest

from espbench.cli.progress import rough
from espbench.plan import cases, load_plan
from espbench.runs.expected_time import expected_s
from support.plans import plan_text


def expected(folder: Path, tests: str) -> float:
    file = folder / "plan.yaml"
    file.write_text(plan_text(stacks="[plain]", suites=None, frame_sizes="[512]", tests=tests))
    plan = load_plan(file)
    return expected_s(plan.plan, cases(plan), 1e9)


def test_the_standards_latency_takes_most_of_an_hour(tmp_path: Path) -> None:
    """20 trials of 120 s with waits of 9 s, although their load is not known yet."""
    throughput = expected(tmp_path, "[{throughput: {}}]")
    both = expected(tmp_path, "[{throughput: {}}, {latency: {}}]")
    assert 60 < throughput < 600
    assert both - throughput == pytest.approx(20 * 129, rel=0.05)


def test_every_plan_that_comes_with_espbench_has_an_estimate() -> None:
    for file in sorted((Path(__file__).parents[3] / "plans").glob("*.yaml")):
        plan = load_plan(file)
        assert (expected_s(plan.plan, cases(plan), 1e9) > 0) == bool(cases(plan)), file.name


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0 s"), (89, "89 s"), (91, "2 min"), (5390, "1 h 30 min"), (24300, "6 h 45 min")],
)
def test_a_time_in_words(seconds: float, words: str) -> None:
    assert rough(seconds) == words
