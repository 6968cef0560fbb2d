# SPDX-License-Identifier: Apache-2.0
"""What the throughput procedure makes of trials that the tester spoilt."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from espbench.errors import UsageError
from espbench.measure.faults import UNSENT
from espbench.plan import Case, cases, load_plan
from espbench.plan.model import Throughput
from espbench.procedures.limits import Limits, limits
from espbench.procedures.throughput import ThroughputCase, rfc2544_deviations
from espbench.search import MlrSearch
from espbench.terms import Trial

PLAN = """\
name: t
topology: gateway-to-gateway
dut: uml
stacks: [plain]
frame_sizes: [512]
tests: [{throughput: {loss_goals: [0]}}]
"""
MAXIMUM = 100_000.0
SHORT = f"{UNSENT} 6500 of 10000 frames (65.00 %)"


def case(folder: Path) -> Case:
    file = folder / "plan.yaml"
    file.write_text(PLAN)
    return cases(load_plan(file))[0]


def spoilt(case: Case, sequence: int, reason: str) -> Trial:
    """A first trial at the maximum, its `sequence`-th attempt, of which the tester sent 65 %."""
    return Trial(
        case=case.id, sequence=sequence, phase="search", attempt=sequence, intended_fps=MAXIMUM,
        offered_fps=0.65 * MAXIMUM, duration_s=2.0, intended_duration_s=2.0, tx_frames=130_000,
        rx_frames=130_000, lost=0, duplicated=0, reordered=0, corrupted=0, frame_loss_ratio=0.0,
        validity="INVALID", reasons=[reason],
    )  # fmt: skip


def maximum_after(folder: Path, *reasons: str) -> float:
    measured = case(folder)
    trials = [spoilt(measured, n, reason) for n, reason in enumerate(reasons)]
    running = ThroughputCase(measured, Limits(1000.0, MAXIMUM, MAXIMUM, None), [512], trials)
    return running.search.maximum_fps


def test_a_plans_maximum_is_held_to_line_rate_where_frames_are_too_large_for_it(tmp_path: Path) -> None:
    """300,000 frames/s of 512 B do not fit a link of 1 Gbps (234,962), of 64 B they do."""
    file = tmp_path / "plan.yaml"
    maximum = "{loss_goals: [0], maximum: 300000fps}"
    file.write_text(PLAN.replace("{loss_goals: [0]}", maximum).replace("[512]", "[64, 512]"))
    small, large = (limits(each, 1e9, None).maximum_fps for each in cases(load_plan(file)))
    assert small == 300_000
    assert large == pytest.approx(234_962.4)


def test_a_generator_that_falls_short_twice_bounds_the_search(tmp_path: Path) -> None:
    """Beyond what it managed nothing can be said of this DUT."""
    assert maximum_after(tmp_path, SHORT, SHORT) < 0.65 * MAXIMUM


def overloaded(case: Case, sent: float, lost: float, reason: str, late_ms: float = 0.0) -> Trial:
    """A first trial at the maximum of which the tester sent one share and the DUT lost another."""
    tx = int(2.0 * MAXIMUM * sent)
    return spoilt(case, 0, reason).model_copy(
        update={
            "tx_frames": tx, "rx_frames": round(tx * (1 - lost)), "lost": round(tx * lost),
            "frame_loss_ratio": lost, "host": {"lateness_us": {"west-east": {"p99": 1e3 * late_ms}}},
        }
    )  # fmt: skip


@pytest.mark.parametrize(
    ("sent", "lost", "reason", "late_ms", "bounds"),
    [
        (0.98, 0.97, SHORT, 40.0, True),
        (0.999, 0.97, "departures late: 98 % of the frames", 9.0, True),
        (0.98, 0.03, SHORT, 0.0, False),  # what was not sent may explain it
        (0.6, 0.75, SHORT, 0.0, False),
        (0.98, 0.97, SHORT, 1900.0, False),
        (0.98, 0.97, "receiver overrun: 7 frames", 0.0, False),
    ],
)
def test_a_dut_that_loses_most_misses_although_the_tester_fell_a_little_short(
    tmp_path: Path, sent: float, lost: float, reason: str, late_ms: float, bounds: bool
) -> None:
    """98 % sent, 97 % of that lost: the trial is INVALID, the next load is lower all the same."""
    measured = case(tmp_path)
    trial = overloaded(measured, sent, lost, reason, late_ms)
    assert trial.validity == "INVALID"
    running = ThroughputCase(measured, Limits(1000.0, MAXIMUM, MAXIMUM, None), [512], [trial])
    wanted = running.next()
    assert wanted is not None
    assert (wanted.load_fps < MAXIMUM) == bounds
    assert wanted.attempt == (0 if bounds else 1)


def test_once_is_no_bound(tmp_path: Path) -> None:
    assert maximum_after(tmp_path, SHORT) == MAXIMUM


def test_what_the_host_spoilt_before_does_not_count(tmp_path: Path) -> None:
    """The first attempt was the host's fault: the generator alone has fallen short only once."""
    assert maximum_after(tmp_path, "host starvation: others used 30 %", SHORT) == MAXIMUM
    assert maximum_after(tmp_path, "host starvation: others used 30 %", SHORT, SHORT) < MAXIMUM


@pytest.mark.parametrize(
    ("written", "trial", "final_trial", "sum_s", "exceed"),
    [
        ({"search": "mlr"}, 2.0, 60.0, 60.0, 0.0),
        ({"search": "mlr", "preset": None}, 2.0, 60.0, 60.0, 0.0),
        ({"search": "mlr", "preset": "tst009"}, 2.0, 60.0, 120.0, 0.5),
        ({"search": "mlr", "preset": "csit"}, 1.0, 1.0, 21.0, 0.5),
        ({"search": "mlr", "preset": "tst009", "trial": "500ms", "final_trial": "3s"}, 0.5, 3.0, 6.0, 0.5),
    ],
)
def test_a_preset_sets_what_the_plan_does_not_say(
    tmp_path: Path, written: dict[str, str], trial: float, final_trial: float, sum_s: float, exceed: float
) -> None:
    """The trials' number is the preset's, their length may be the plan's."""
    settings = Throughput.model_validate(written)
    assert (settings.trial, settings.final_trial) == (trial, final_trial)
    measured = dataclasses.replace(case(tmp_path), settings=settings)
    search = ThroughputCase(measured, Limits(1000.0, MAXIMUM, MAXIMUM, None), [512]).search
    assert isinstance(search, MlrSearch)
    assert (search.duration_sum_s, search.exceed_ratio) == (sum_s, exceed)


def test_what_tolerates_a_lossy_trial_is_not_rfc_2544() -> None:
    """26.1 does not: such a figure is not marked as the standard's."""
    sizes = [64, 128, 256, 512, 1024]

    def deviations(**written: object) -> list[str]:
        return rfc2544_deviations(Throughput.model_validate(written), sizes)

    assert deviations() == deviations(search="mlr") == []
    assert deviations(search="mlr", preset="tst009") == [
        "26.1: a load passes although up to 50 % of the time its trials miss the goal"
    ]
    assert deviations(search="mlr", preset="csit")[0] == "24: final trials of 1 s instead of 60 s"
    assert deviations(loss_verification=2)[0].startswith("26.1: a load that missed the goal was tried again")


def test_trials_of_another_search_are_named(tmp_path: Path) -> None:
    """A run that an older espbench began cannot be resumed, and says so."""
    measured = case(tmp_path)
    stranger = spoilt(measured, 0, SHORT).model_copy(update={"intended_fps": 77_000.0})
    with pytest.raises(UsageError, match="begun by another version"):
        ThroughputCase(measured, Limits(1000.0, MAXIMUM, MAXIMUM, None), [512], [stranger])
