# SPDX-License-Identifier: Apache-2.0
"""RFC 2544's tests on DUTs that are known to the nanosecond and to the frame, in virtual time: they find just that."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from espbench.measure.inputs.actions import Action
from espbench.measure.inputs.setup import Request, Waits
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.record import OfCase
from espbench.measure.trial import measure
from espbench.plan import Case
from espbench.plan.keys.rfc2544_tests import (
    AroundTrials,
    BackToBack,
    Flood,
    FrameLoss,
    Latency,
    SystemRecovery,
)
from espbench.plan.keys.stack_choice import StackChoice
from espbench.procedures.limits import Limits
from espbench.procedures.procedure import CaseFacts, Known, TrialMaker
from espbench.runs.procedure_kinds import procedure_for
from espbench.terms import Finding, Outcome, Trial, line_rate_fps
from support.virtual import truth_dut
from support.virtual.truth_dut import TruthDut, latency_ns

pytestmark = [pytest.mark.virtual_time, pytest.mark.needs("generator", "gcc")]

SIZE = 64
LINE_FPS = line_rate_fps(SIZE, 1e9)
SERVICE_NS = 20_000
RATE_FPS = 1e9 / SERVICE_NS
SHORT = {"settle": 0, "residue": "200ms", "warm_up": 0, "learning": "10ms"}


def finding_of(
    dut: TruthDut, asked: AroundTrials, *, maximum_fps: float = LINE_FPS, throughput_fps: float = RATE_FPS
) -> Finding:
    """The test's answer on this DUT, its throughput given."""
    case = Case(
        id="0001", test="x", settings=asked, stack=StackChoice(stack="plain"), suite="none", frame_size=SIZE,
        sizes=((SIZE, 1),), mean_frame_size=SIZE, direction="one-way", ip_version=4, repeat=1, dut="truth",
    )  # fmt: skip
    outcome = Outcome(
        case="0000", test="throughput", dut="truth", stack="plain", suite="none", ip_version=4, frame_size=SIZE,
        direction="one-way", loss_goal=0.0, status="OK", throughput_fps=throughput_fps, throughput_mbps=None,
        line_rate_pct=None, trials=1, final_trial_s=1.0, rfc2544=False, cpu_home_pct=None, cpu_office_pct=None,
        repeat=1, encryption="baseline",
    )  # fmt: skip
    known = Known(Limits(1000.0, maximum_fps, LINE_FPS, None, 1e9), {0.0: outcome}, [SIZE])
    procedure = procedure_for(case, known, [])
    traffic = Traffic(frames=((SIZE, 1),), ip_version=4, direction="one-way")
    waits = Waits(asked.learning, asked.residue, asked.settle)

    def trial(request: Request, actions: Sequence[Action]) -> Trial:
        return measure(
            dut.setup, traffic, request, OfCase(case.id, len(procedure.trials), 0.01), waits, actions=actions
        )

    while (request := procedure.next()) is not None:
        procedure.add(procedure.measure(request, TrialMaker(dut.setup, trial)))
    (answer,) = procedure.results(CaseFacts("truth", "baseline", []))
    assert isinstance(answer, Finding)
    return answer


def figure(answer: Finding, name: str) -> float | None:
    return next(quantity.value for quantity in answer.quantities if quantity.name == name)


def settings(kind: type[AroundTrials], **asked: Any) -> AroundTrials:
    return kind.model_validate(SHORT | asked)


def test_latency_is_the_fixed_delay_of_the_dut(tmp_path: Path) -> None:
    with truth_dut.set_up(tmp_path, delay_ns=123_000, service_ns=5_000) as dut:
        answer = finding_of(dut, settings(Latency, trial="1s", repeats=2), throughput_fps=10_000)
    truth_us = latency_ns(SIZE, delay_ns=123_000, service_ns=5_000) / 1e3
    first = answer.quantities[0]
    assert (first.value, first.minimum, first.maximum, first.n) == (truth_us, truth_us, truth_us, 2)
    assert figure(answer, "latency, greatest") == pytest.approx(
        truth_us, rel=1e-3
    )  # a histogram of three digits


def test_the_loss_curve_is_that_of_the_service_rate(tmp_path: Path) -> None:
    """A server of 50,000 frames/s behind a link of 100,000: half is lost at the top, none at a half and below."""
    with truth_dut.set_up(tmp_path, service_ns=SERVICE_NS, buffer=8) as dut:
        answer = finding_of(
            dut, settings(FrameLoss, trial="1s", step="20%", maximum="100000fps"), maximum_fps=100_000
        )
        loads = [row["offered_fps"] for row in answer.curve]
    assert loads == [pytest.approx(fps) for fps in (100_000, 80_000, 60_000, 40_000, 20_000)]
    for row in answer.curve:
        truth = max(0.0, 100 * (1 - RATE_FPS / row["offered_fps"]))
        assert row["frame_loss_pct"] == pytest.approx(truth, abs=0.02)  # the buffer's eight frames of 20,000
    assert figure(answer, "highest lossless load") == pytest.approx(40_000)


def test_a_collapse_under_flood_shows_beside_the_throughput(tmp_path: Path) -> None:
    """Flooded, it forwards half of its throughput."""
    with truth_dut.set_up(tmp_path, service_ns=2 * SERVICE_NS, buffer=8) as dut:
        answer = finding_of(dut, settings(Flood, trial="1s"), maximum_fps=100_000)
    assert figure(answer, "of the throughput") == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize("buffer", [1, 64, 5000])
def test_the_buffer_of_exactly_n_frames_is_found(tmp_path: Path, buffer: int) -> None:
    """The longest burst at line rate that fits, to the frame; corrected by what was forwarded, it is N."""
    with truth_dut.set_up(tmp_path, service_ns=SERVICE_NS, buffer=buffer) as dut:
        answer = finding_of(dut, settings(BackToBack, searches=2, longest="100ms"))
    gap_ns = 1e9 / LINE_FPS
    done = truth_dut.served([round(n * gap_ns) for n in range(8000)], SERVICE_NS, buffer)
    longest = next(n for n, at in enumerate(done) if at is None)
    burst = answer.quantities[0]
    assert burst.value == pytest.approx(longest, abs=max(1, longest // 1000))
    assert burst.minimum is not None
    assert burst.minimum <= longest
    assert figure(answer, "corrected buffer") == pytest.approx(buffer, rel=0.002, abs=1.1)


def test_recovery_takes_as_long_as_the_dut_does(tmp_path: Path) -> None:
    """It drops everything until 0.25 s after the load has fallen."""
    with truth_dut.set_up(tmp_path, service_ns=SERVICE_NS, buffer=8, recover_ns=250_000_000) as dut:
        answer = finding_of(dut, settings(SystemRecovery, overload="1s", recovery="1s", repeats=2))
    recovery = answer.quantities[0]
    assert recovery.value == pytest.approx(0.25, abs=2 / (0.55 * RATE_FPS))
    assert recovery.n == 2


def test_one_that_recovers_at_once_takes_no_time(tmp_path: Path) -> None:
    with truth_dut.set_up(tmp_path, service_ns=SERVICE_NS, buffer=8) as dut:
        answer = finding_of(dut, settings(SystemRecovery, overload="1s", recovery="1s", repeats=1))
    assert answer.quantities[0].value == pytest.approx(0, abs=3 / RATE_FPS)
    lost = figure(answer, "frame loss over the trial")
    assert lost is not None
    assert lost > 1
