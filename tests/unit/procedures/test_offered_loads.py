# SPDX-License-Identifier: Apache-2.0
"""A sender that pauses or is too slow moves no figure: whole searches, from what a generator reports to the outcome."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from espbench.generators.base import Offered
from espbench.measure.inputs.setup import Request
from espbench.plan import Case
from espbench.procedures.limits import Limits
from support.simulated import senders
from support.simulated.throughput import MAXIMUM, case

LIMITS = Limits(1000.0, MAXIMUM, MAXIMUM, None)


def short_finals(measured: Case, **changes: Any) -> Case:
    """Return the case with final trials of 10 s and a resolution of 1 %."""
    settings = measured.settings.model_copy(update={"final_trial": 10.0, "resolution": 0.01} | changes)
    return dataclasses.replace(measured, settings=settings)


@pytest.mark.parametrize("lateness", [None, {"p50": 0.0, "p99": 150_000.0, "max": 150_000.0}])
@pytest.mark.parametrize("search", ["bisection", "mlr"])
def test_a_pause_of_the_sender_does_not_lower_the_figure(
    tmp_path: Path, search: str, lateness: dict[str, float] | None
) -> None:
    """The pause lowers the mean by 7 %, but frames that were lost before it were lost at the full rate."""
    truth = 99_000.0
    preset = {"search": search, "preset": "rfc2544" if search == "mlr" else None}
    measured = short_finals(case(tmp_path), **preset)

    def with_pause(request: Request, number: int) -> Offered:
        if number:
            return senders.steady(request, truth)
        return senders.paused_near_the_end(request, truth, lateness_us=lateness)

    quiet, _ = senders.outcome(measured, LIMITS, lambda request, _: senders.steady(request, truth))
    outcome, trials = senders.outcome(measured, LIMITS, with_pause)
    assert (trials[0].validity, trials[0].offered_fps < 0.94 * MAXIMUM) == ("VALID", True)
    assert (quiet.status, outcome.status) == ("OK", "OK")
    assert quiet.throughput_fps == outcome.throughput_fps
    assert outcome.upper_fps is not None
    assert outcome.upper_fps >= truth


def test_a_slower_sender_in_one_direction_does_not_lower_the_figure(tmp_path: Path) -> None:
    """Asked for 100,000, the DUT saw 90,000 until the west was done. The mean was 80,000, at which it loses none.

    More than 80,000 cannot be offered evenly: this is the tester's limit, and the DUT may be faster.
    """
    measured = short_finals(dataclasses.replace(case(tmp_path), direction="both-ways"))
    outcome, trials = senders.outcome(
        measured, LIMITS, lambda request, _: senders.unequal(request, 85_000.0, 40_000.0)
    )
    assert trials[0].offered_fps == pytest.approx(80_000)
    assert trials[0].highest_fps == pytest.approx(90_000)
    assert outcome.is_lower_bound
    assert outcome.throughput_fps == pytest.approx(80_000, rel=0.011)
    assert outcome.upper_fps is None or outcome.upper_fps >= 85_000


@pytest.mark.parametrize("search", ["bisection", "mlr"])
@pytest.mark.parametrize("east_fps", [2_000.0, 20_000.0])
def test_a_pass_counts_for_what_the_slower_direction_carried(
    tmp_path: Path, search: str, east_fps: float
) -> None:
    """The east gives up after 1.5 times the trial. The sum of both is more than twice what it ever carried."""
    preset = {"search": search, "preset": "rfc2544" if search == "mlr" else None}
    measured = short_finals(dataclasses.replace(case(tmp_path), direction="both-ways"), **preset)
    outcome, trials = senders.outcome(measured, LIMITS, lambda request, _: senders.held(request, east_fps))
    assert trials[0].offered_fps > 2.2 * east_fps
    assert trials[0].even_fps == pytest.approx(2 * east_fps, rel=0.001)
    assert outcome.throughput_fps == pytest.approx(2 * east_fps, rel=0.011)
    assert (outcome.throughput_fps or 0.0) <= 2.001 * east_fps
    assert outcome.is_lower_bound
