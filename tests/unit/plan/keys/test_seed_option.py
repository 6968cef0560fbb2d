# SPDX-License-Identifier: Apache-2.0
"""Another seed than a plan's own: in its text, so in the run directory, and nothing else of the plan changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from espbench.errors import UsageError
from espbench.plan import load_plan
from espbench.plan.reading.changing import with_value

PLAN = """\
name: seeded
topology: gateway-to-gateway  # ä
dut: virt-x86
stacks: [plain]
frame_sizes: [64]
tests:
  - throughput: {}
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name: a\nseed: 1  # why\nrepeat: 2\n", "name: a\nseed: 77  # why\nrepeat: 2\n"),
        ("name: ä\nseed:\n", "name: ä\nseed: 77\n"),
        ("name: a", "name: a\nseed: 77\n"),
        ("  name: a\n  repeat: 2\n", "  name: a\n  repeat: 2\n  seed: 77\n"),
        ("{name: a, repeat: 2}\n", "{seed: 77, name: a, repeat: 2}\n"),
        ("name: a\nlinks: {seed: 1}\n", "name: a\nlinks: {seed: 1}\nseed: 77\n"),
        ("---\nname: a\n...\n", "---\nname: a\nseed: 77\n...\n"),
        ("- no\n- mapping\n", "- no\n- mapping\n"),
    ],
)
def test_a_value_is_put_into_the_text(text: str, expected: str) -> None:
    assert with_value(text, "seed", 77) == expected


def test_a_plan_is_read_with_another_seed(tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(PLAN, encoding="utf-8")
    own, other = load_plan(file), load_plan(file, seed=7)
    assert (own.plan.seed, other.plan.seed) == (1, 7)
    assert other.plan.model_copy(update={"seed": 1}) == own.plan
    kept = tmp_path / "kept.yaml"
    kept.write_text(other.text, encoding="utf-8")
    assert load_plan(kept).plan == other.plan


def test_a_seed_that_is_none_is_refused_as_in_the_plan(tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(PLAN, encoding="utf-8")
    with pytest.raises(UsageError, match=r"plan.yaml with --seed -1:8:\d+: seed"):
        load_plan(file, seed=-1)
    file.write_text(PLAN.replace("virt-x86", "netns"), encoding="utf-8")
    with pytest.raises(UsageError, match=r"plan.yaml with --seed 5:8:1: seed: expected no seed with netns"):
        load_plan(file, seed=5)
