# SPDX-License-Identifier: Apache-2.0
"""The trials of a figure, not the plan, say whether it kept RFC 2544's clauses."""

from __future__ import annotations

from typing import Any

import pytest

from espbench.measure.inputs.setup import Waits
from espbench.plan.keys.model import Throughput
from espbench.procedures.rfc2544.throughput import rfc2544_deviations
from espbench.terms import Trial
from support.synthetic import run as synthetic_run

SIZES = (64, 128, 256, 512, 1024, 1280, 1518)
SHAPE = synthetic_run.Shape()
FULL = Waits().recorded()


def trial(seconds: float = 60.0, waits: dict[str, float | None] = FULL, **more: Any) -> Trial:
    """A final trial that took so long."""
    made = synthetic_run.trials_of(synthetic_run.cases_of(SHAPE)[0], SHAPE)[0]
    fields = {"phase": "final", "validity": "VALID", "duration_s": seconds, "intended_duration_s": seconds}
    return made.model_copy(update={**fields, "waits_s": waits, **more})


def deviations(*trials: Trial, asked: Throughput | None = None) -> list[str]:
    listed = rfc2544_deviations(asked or Throughput(), SIZES, trials, trials[-1] if trials else None)
    return [deviation.text for deviation in listed]


def test_trials_of_full_length_with_all_waits_keep_every_clause() -> None:
    """Trials are so with a plan's defaults, whatever the clock's last digits."""
    assert deviations(trial(59.99998)) == []
    assert deviations(trial(60.4, intended_duration_s=60.0)) == []


def test_a_short_trial_is_short_whatever_the_plan_says() -> None:
    """The plan that stands beside it may not be the one it was made by."""
    assert deviations(trial(2.0)) == ["24: final trials of 2 s instead of 60 s"]
    assert deviations(trial(60.0), asked=Throughput.model_validate({"final_trial": "2s"})) == []


def test_every_final_trial_at_the_load_counts() -> None:
    """A figure that two trials decided is as short as the shorter one; trials at other loads only steered."""
    assert deviations(trial(10.0), trial(60.0)) == ["24: final trials of 10 s instead of 60 s"]
    assert deviations(trial(10.0, intended_fps=1.0), trial(60.0)) == []
    assert deviations(trial(10.0, validity="INVALID"), trial(60.0)) == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("learning", "23 b: 0.5 s after learning frames instead of 2 s"),
        ("residue", "23 d: 0.5 s for the residue instead of 2 s"),
        ("settle", "23 e: 0.5 s before the next trial instead of 5 s"),
    ],
)
def test_each_wait_is_that_of_the_trials(name: str, said: str) -> None:
    """One trial with a shorter wait is enough."""
    assert deviations(trial(waits=FULL | {name: 0.5}), trial()) == [said]
    assert deviations(trial(), asked=Throughput.model_validate({name: "500ms"})) == []


def test_a_trial_that_had_no_use_for_a_wait_breaks_no_clause() -> None:
    """Learning frames would bring tunnels up before their time."""
    assert deviations(trial(waits=Waits().recorded(cold=True))) == []


def test_of_older_records_the_settings_are_what_is_known() -> None:
    """Waits were not kept in them."""
    assert deviations(trial(waits={}), asked=Throughput.model_validate({"settle": "1s"})) == [
        "23 e: 1 s before the next trial instead of 5 s"
    ]
