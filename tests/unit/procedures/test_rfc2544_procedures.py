# SPDX-License-Identifier: Apache-2.0
"""RFC 2544's tests beside throughput, on DUTs whose truth is known by arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from espbench.measure.inputs.setup import Request, Setup, Shape
from espbench.plan.keys.rfc2544_tests import BackToBack, Flood, FrameLoss, Latency, SystemRecovery
from espbench.procedures.procedure import Procedure, TrialMaker
from espbench.runs.procedure_kinds import procedure_for
from espbench.terms import Finding, Quantity, Trial
from support.session.examples import examples
from support.simulated.procedures import LINE, answer, case_of, known, run
from support.simulated.queue import QueueDut


def figures(finding: Finding) -> dict[str, Quantity]:
    return {quantity.name: quantity for quantity in finding.quantities}


def test_latency_is_the_mean_of_the_tagged_frames_at_the_throughput() -> None:
    """26.2: 120 s, tagged after 60 s, 20 repeats; each repeat of this DUT takes a microsecond longer."""
    procedure = procedure_for(case_of(Latency(), "latency"), known(40_000.0), [])
    asked = run(procedure, QueueDut(50_000, latency_us=100.0))
    assert {(r.load_fps, r.duration_s, r.shape.tag_at_s) for r in asked} == {(40_000.0, 120.0, 60.0)}
    assert len(asked) == 20
    finding = answer(procedure)
    first = finding.quantities[0]
    assert (first.value, first.n, first.minimum, first.maximum) == (109.5, 20, 100.0, 119.0)
    assert finding.rfc2544
    assert finding.status == "OK"


def test_a_short_latency_test_is_labelled() -> None:
    asked = Latency.model_validate({"trial": "10s", "repeats": 3})
    finding = answer(_done(procedure_for(case_of(asked, "latency"), known(40_000.0), []), QueueDut(50_000)))
    assert not finding.rfc2544
    assert [*map(str, finding.rfc2544_deviations[:3])] == [
        "26.2: streams of 10 s instead of 120 s",
        "26.2: tagged frames after 5 s instead of 60 s",
        "26.2: repeated 3 times instead of 20 times",
    ]


def _done(procedure: Procedure, dut: QueueDut) -> Procedure:
    run(procedure, dut)
    return procedure


@pytest.mark.parametrize("asked", [Latency(), SystemRecovery(), BackToBack()])
def test_without_a_throughput_nothing_is_measured(asked: Any) -> None:
    procedure = procedure_for(case_of(asked, "x"), known(None), [])
    assert procedure.next() is None
    finding = answer(procedure)
    assert (finding.status, [*map(str, finding.reasons)]) == (
        "INVALID",
        ["its throughput at 0 % is BELOW_MINIMUM"],
    )


def test_the_loss_curve_goes_down_until_two_rates_in_a_row_lose_nothing() -> None:
    """26.3, at 55 % of the line rate: 100, 90, … 60 lose; 50 and 40 do not; 30 is not tried."""
    procedure = procedure_for(case_of(FrameLoss(), "frame_loss"), known(None), [])
    asked = run(procedure, QueueDut(55_000.0))
    assert [round(r.load_fps) for r in asked] == [100_000, 90_000, 80_000, 70_000, 60_000, 50_000, 40_000]
    finding = answer(procedure)
    assert [row["frame_loss_pct"] for row in finding.curve] == [
        pytest.approx(100 * max(0.0, 1 - 55_000 / r.load_fps), abs=1e-4) for r in asked
    ]
    assert [row["forwarding_fps"] for row in finding.curve][:6] == [pytest.approx(55_000)] * 5 + [50_000.0]
    assert figures(finding)["highest lossless load"].value == 50_000.0


def test_a_load_without_loss_that_a_queue_took_is_said_to_be_stored() -> None:
    """26.3 asks for loss alone: the highest load without any stands, and beside it what became of it."""
    procedure = procedure_for(case_of(FrameLoss(), "frame_loss"), known(None), [])
    dut = QueueDut(95_000.0, 10**6)
    while (request := procedure.next()) is not None:
        trial = dut.trial(request, procedure.case.id, len(procedure.trials))
        procedure.add(trial.model_copy(update={"sustained": request.load_fps < dut.rate_fps}))
    finding = answer(procedure)
    assert figures(finding)["highest lossless load"].value == LINE
    assert [*map(str, finding.warnings)] == [
        "at 100,000 frames/s no frame was lost, but a queue grew: that load was stored, not forwarded"
    ]


def test_a_rate_that_could_not_be_offered_is_a_gap_and_never_a_lossless_one() -> None:
    procedure = procedure_for(case_of(FrameLoss(retries=1), "frame_loss"), known(None), [])
    asked = run(procedure, QueueDut(95_000.0), spoil=lambda r: r.load_fps > 99_000)
    assert [(round(r.load_fps), r.attempt) for r in asked[:3]] == [(100_000, 0), (100_000, 1), (90_000, 0)]
    finding = answer(procedure)
    assert [row["frame_loss_pct"] for row in finding.curve] == [None, 0.0, 0.0]
    assert (finding.status, finding.quantities) == ("INVALID", [])
    assert "1 of 3 rates could not be measured (100,000 frames/s)" in finding.words


def test_the_flood_is_set_beside_the_throughput() -> None:
    procedure = procedure_for(case_of(Flood(), "flood"), known(50_000.0), [])
    finding = answer(_done(procedure, QueueDut(40_000.0)))
    assert figures(finding)["of the throughput"].value == pytest.approx(0.8, abs=1e-3)


@pytest.mark.parametrize("lost", [0, 10])
@pytest.mark.parametrize("backlogs", [(50, 50), (50, None)], ids=str)
def test_the_directions_of_a_flood_add_up_to_the_whole(lost: int, backlogs: tuple[int, int | None]) -> None:
    """Late frames of both directions were in transit, or those of both came from a queue."""
    procedure = procedure_for(case_of(Flood(), "flood"), known(50_000.0), [])
    request = procedure.next()
    assert request is not None
    trial = QueueDut(1e9).trial(request, "0001-x", 0)
    half = trial.tx_frames // 2
    one = trial.per_direction["west-east"].model_copy(
        update={"tx_frames": half, "rx_frames": half - lost, "lost": lost}
    )
    ways = zip(("west-east", "east-west"), backlogs, strict=True)
    both = {way: one.model_copy(update={"backlog_frames": backlog}) for way, backlog in ways}
    counts = {"tx_frames": 2 * half, "rx_frames": 2 * (half - lost), "lost": 2 * lost, "per_direction": both}
    procedure.add(trial.model_copy(update=counts))
    finding = answer(procedure)
    parts = [q.value for q in finding.quantities if q.name.startswith("forwarding rate, ")]
    assert len(parts) == 2
    assert sum(part or 0.0 for part in parts) == pytest.approx(finding.quantities[0].value, abs=0.01)


def test_a_flood_below_the_throughput_is_set_beside_nothing() -> None:
    """A DUT without loss would seem to collapse; at the throughput itself it is the line rate's answer."""
    for maximum, ratio in ((30_000.0, None), (50_000.0, 1.0)):
        procedure = procedure_for(case_of(Flood(), "flood"), known(50_000.0, maximum), [])
        finding = answer(_done(procedure, QueueDut(60_000.0)))
        assert figures(finding)["of the throughput"].value == ratio
        assert any("which is no flood" in remark.text for remark in finding.warnings) is (ratio is None)


def test_what_a_queue_gives_out_afterwards_was_not_forwarded_under_flood() -> None:
    """100,000 frames arrive after the sending of 60 s: 40,000 frames/s, not 41,667."""
    procedure = procedure_for(case_of(Flood(), "flood"), known(40_000.0), [])
    finding = answer(_done(procedure, QueueDut(40_000.0, 100_000)))
    assert finding.quantities[0].value == pytest.approx(40_000, abs=1)


def test_the_latency_of_a_queue_is_said_to_be_that() -> None:
    procedure = procedure_for(case_of(Latency(), "latency"), known(40_000.0), [])
    run(procedure, QueueDut(50_000))
    stored = [trial.model_copy(update={"sustained": False}) for trial in procedure.trials]
    warnings = answer(procedure_for(case_of(Latency(), "latency"), known(40_000.0), stored)).warnings
    assert [*map(str, warnings)] == ["in 20 of 20 trials the load was stored, not forwarded"]


@settings(max_examples=examples(60), deadline=None)
@given(rate=st.floats(0.05, 0.9), buffer=st.integers(0, 20_000), searches=st.integers(1, 4))
def test_the_longest_burst_is_found_to_a_thousandth(rate: float, buffer: int, searches: int) -> None:
    """A buffer of exactly N frames: B (1 − throughput / line rate) = N, and the corrected buffer is N."""
    dut = QueueDut(rate * LINE, buffer)
    truth = math.floor(dut.longest_burst(LINE) + 1)  # the last frame may be the one that just fits
    procedure = procedure_for(case_of(BackToBack(searches=searches), "back_to_back"), known(rate * LINE), [])
    asked = run(procedure, dut)
    finding = answer(procedure)
    first = finding.quantities[0]
    assert first.n == searches
    assert first.value == pytest.approx(truth, rel=0.001, abs=2)
    assert figures(finding)["corrected buffer"].value == pytest.approx(buffer, rel=0.002, abs=3)
    # The ones after the first know where to look.
    assert len(asked) <= 22 + (searches - 1) * 14


@dataclass(frozen=True)
class Growing(QueueDut):
    """Its buffer holds everything from this trial on."""

    from_trial: int = 0

    def trial(self, request: Request, case: str, sequence: int) -> Trial:
        dut = QueueDut(self.rate_fps, 10**9 if sequence >= self.from_trial else self.buffer)
        return dut.trial(request, case, sequence)


def test_if_one_search_of_several_passes_the_longest_burst_the_mean_is_a_bound() -> None:
    def answered(searches: int, dut: QueueDut) -> tuple[int, Finding]:
        settings = BackToBack(searches=searches)
        procedure = procedure_for(case_of(settings, "back_to_back"), known(0.5 * LINE), [])
        return len(run(procedure, dut)), answer(procedure)

    trials, alone = answered(1, QueueDut(0.5 * LINE, 1000))
    assert " frames (mean of 1) lost none" in alone.words
    _, mixed = answered(2, Growing(0.5 * LINE, 1000, from_trial=trials))
    assert " frames or more (mean of 2; " in mixed.words
    assert "is larger than that shows" in " ".join(map(str, mixed.warnings))


def test_at_line_rate_no_burst_is_searched() -> None:
    procedure = procedure_for(case_of(BackToBack(), "back_to_back"), known(LINE), [])
    assert procedure.next() is None
    finding = answer(procedure)
    assert (finding.status, finding.quantities) == ("OK", [])
    assert finding.words.startswith("Not searched")


def _bursts(procedure: Procedure, dut: QueueDut, tester_fps: float) -> None:
    """Everything it asks for, from a tester whose bursts leave at no more than that rate."""
    while (request := procedure.next()) is not None:
        rate = min(tester_fps, request.load_fps)
        trial = dut.trial(replace(request, load_fps=rate), procedure.case.id, len(procedure.trials))
        trial = trial.model_copy(update={"intended_fps": request.load_fps})
        maker = TrialMaker(cast("Setup", None), lambda request, actions, made=trial: made)  # type: ignore[misc]
        procedure.add(procedure.measure(request, maker))
        assert len(procedure.trials) < 500


@given(share=st.floats(0.6, 0.97), kept=st.integers(0, 40))
def test_a_tester_too_slow_for_the_line_makes_its_bursts_at_its_own_rate(share: float, kept: int) -> None:
    """The corrected buffer is the same at any rate above the throughput; the deviation says which it was."""
    dut, own_fps = QueueDut(0.5 * LINE, 1000), round(share * LINE, 3)
    case = case_of(BackToBack(searches=2, retries=2), "back_to_back")
    procedure = procedure_for(case, known(0.5 * LINE), [])
    _bursts(procedure, dut, own_fps)
    finding = answer(procedure)
    assert finding.load_fps == pytest.approx(own_fps)
    assert finding.quantities[0].value == pytest.approx(dut.longest_burst(own_fps), rel=0.001, abs=2)
    assert figures(finding)["corrected buffer"].value == pytest.approx(1000, rel=0.002, abs=3)
    assert not finding.rfc2544
    assert "26.4: bursts at the tester's or the plan's maximum, not at the line rate" in [
        *map(str, finding.rfc2544_deviations)
    ]
    resumed = procedure_for(case, known(0.5 * LINE), procedure.trials[:kept])
    _bursts(resumed, dut, own_fps)
    assert answer(resumed) == finding


@dataclass(frozen=True)
class Refusing(QueueDut):
    """Behind a port whose driver has no room for so many frames of each burst: they never leave."""

    unsent: float = 0.0  # frames; below 1 a share of the burst

    def trial(self, request: Request, case: str, sequence: int) -> Trial:
        burst = request.shape.burst_frames or 0
        sent = max(1, burst - round(self.unsent if self.unsent >= 1 else self.unsent * burst))
        return super().trial(replace(request, shape=Shape(burst_frames=sent)), case, sequence)


@pytest.mark.parametrize("buffer", [10, 1000, 10**6])
def test_a_frame_that_never_left_is_not_waited_for_for_ever(buffer: int) -> None:
    """One frame of each burst finds no room at the port: to the resolution it is that burst, and the search ends."""
    dut = Refusing(0.5 * LINE, buffer, unsent=1)
    procedure = procedure_for(case_of(BackToBack(searches=2), "back_to_back"), known(0.5 * LINE), [])
    _bursts(procedure, dut, LINE)
    finding = answer(procedure)
    assert finding.quantities[0].value == pytest.approx(min(2 * buffer, 2 * LINE), rel=0.001, abs=2)


def test_a_burst_of_which_too_many_never_left_is_void() -> None:
    """Three of a thousand: it says nothing of the burst that was asked for, and it is not asked for without end."""
    procedure = procedure_for(case_of(BackToBack(retries=2), "back_to_back"), known(0.5 * LINE), [])
    _bursts(procedure, Refusing(0.5 * LINE, 10**6, unsent=0.003), LINE)
    finding = answer(procedure)
    assert (finding.status, len(procedure.trials)) == ("INVALID", 3)
    assert "99.70 %" in finding.reasons[0].text


@pytest.mark.parametrize(
    ("buffer", "pause_us", "validity"),
    [(10_000, 1900, "VALID"), (10_000, 2100, "INVALID"), (100, 10_000, "VALID")],
    ids=["too short to matter", "drains more than 1 %", "lost all the same"],
)
def test_a_pause_of_the_tester_matters_as_far_as_the_dut_drains_in_it(
    buffer: int, pause_us: float, validity: str
) -> None:
    """At half the line rate 10,000 frames pass; at 50,000 frames/s 2 ms drain 100, which makes room for 200 more."""
    procedure = procedure_for(case_of(BackToBack(), "back_to_back"), known(0.5 * LINE), [])
    request = Request(LINE, 0.5, "measure", shape=Shape(burst_frames=20_000))
    made = QueueDut(0.5 * LINE, buffer).trial(request, "0001-x", 0)
    made = made.model_copy(update={"host": {"lateness_us": {"west-east": {"max": pause_us}}}})
    maker = TrialMaker(cast("Setup", None), lambda request, actions: made)
    assert procedure.measure(request, maker).validity == validity


def test_a_tester_no_faster_than_the_dut_fills_no_buffer() -> None:
    procedure = procedure_for(case_of(BackToBack(retries=1), "back_to_back"), known(0.5 * LINE), [])
    _bursts(procedure, QueueDut(0.499 * LINE, 1000), 0.5 * LINE)
    assert len(procedure.trials) == 2
    assert (answer(procedure).status, answer(procedure).quantities) == ("INVALID", [])


def test_recovery_is_from_the_fall_of_the_load_to_the_last_lost_frame() -> None:
    """26.5: 110 % of the throughput for 60 s, then half of that."""
    procedure = procedure_for(case_of(SystemRecovery(), "system_recovery"), known(50_000.0), [])
    asked = run(procedure, QueueDut(50_000.0, recovers_after_s=1.25))
    assert asked[0] == Request(55_000.000000000007, 120.0, "measure", shape=asked[0].shape)
    assert asked[0].shape.steps == ((60.0, 0.5),)
    finding = answer(procedure)
    assert finding.quantities[0].value == pytest.approx(1.25)
    assert finding.rfc2544


def test_each_direction_has_its_own_recovery_time_and_the_slower_is_the_answer() -> None:
    """One recovers after 1.25 s, the other after 0.5 s."""
    procedure = procedure_for(case_of(SystemRecovery(repeats=1), "system_recovery"), known(50_000.0), [])
    request = procedure.next()
    assert request is not None
    trials = [QueueDut(50_000.0, recovers_after_s=s).trial(request, "0001-x", 0) for s in (1.25, 0.5)]
    readings = [trial.per_direction["west-east"] for trial in trials]
    both = {"per_direction": dict(zip(("west-east", "east-west"), readings, strict=True))}
    procedure.add(trials[0].model_copy(update=both))
    finding = figures(answer(procedure))
    assert [finding[f"system recovery time{way}"].value for way in ("", ", west-east", ", east-west")] == [
        1.25,
        1.25,
        0.5,
    ]


@pytest.mark.parametrize(("last_lost_s", "validity"), [(None, "INVALID"), (61.0, "VALID")])
def test_a_loss_without_a_time_is_no_recovery_in_0_s(last_lost_s: float | None, validity: str) -> None:
    """Frames that never left, or arrived damaged, hide which frames were lost, and when."""
    procedure = procedure_for(case_of(SystemRecovery(), "system_recovery"), known(50_000.0), [])
    request = procedure.next()
    assert request is not None
    trial = QueueDut(50_000.0, recovers_after_s=1.25).trial(request, "0001-x", 0)
    reading = trial.per_direction["west-east"].model_copy(update={"last_lost_s": last_lost_s})
    made = trial.model_copy(update={"per_direction": {"west-east": reading}})
    maker = TrialMaker(cast("Setup", None), lambda request, actions: made)
    measured = procedure.measure(request, maker)
    assert measured.validity == validity
    assert all(str(r) == f"it is not known when {trial.lost:,} frames were lost" for r in measured.reasons)


def test_who_does_not_recover_in_time_has_no_figure() -> None:
    procedure = procedure_for(case_of(SystemRecovery(repeats=1), "system_recovery"), known(50_000.0), [])
    finding = answer(_done(procedure, QueueDut(50_000.0, recovers_after_s=59.9)))
    assert (finding.status, finding.quantities) == ("UNRESOLVABLE", [])


def test_what_cannot_be_overloaded_has_nothing_to_recover_from() -> None:
    procedure = procedure_for(case_of(SystemRecovery(), "system_recovery"), known(LINE), [])
    assert procedure.next() is None
    finding = answer(procedure)
    assert (finding.status, finding.quantities) == ("OK", [])
    assert finding.words.startswith("Not overloaded")


@pytest.mark.parametrize("asked", [Latency(), FrameLoss(), Flood(), BackToBack(searches=2), SystemRecovery()])
def test_a_resumed_test_ends_as_an_uninterrupted_one(asked: Any) -> None:
    """Fed with any number of its first trials it asks for the same ones, and answers the same."""
    dut = QueueDut(50_000.0, 500, recovers_after_s=0.5)
    whole = procedure_for(case_of(asked, "x"), known(50_000.0), [])
    run(whole, dut)
    for kept in (0, 1, len(whole.trials) // 2, len(whole.trials)):
        resumed = procedure_for(case_of(asked, "x"), known(50_000.0), whole.trials[:kept])
        run(resumed, dut)
        assert answer(resumed) == answer(whole)


def test_a_trial_that_is_invalid_again_and_again_ends_the_test() -> None:
    procedure = procedure_for(case_of(Latency(retries=2), "latency"), known(40_000.0), [])
    asked = run(procedure, QueueDut(50_000), spoil=lambda request: True)
    assert [r.attempt for r in asked] == [0, 1, 2]
    assert (answer(procedure).status, answer(procedure).quantities) == ("INVALID", [])
