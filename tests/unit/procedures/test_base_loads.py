# SPDX-License-Identifier: Apache-2.0
"""A case at the loads of a base: a trial each, and one more where it misses."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espbench.plan.keys.model import Throughput
from espbench.procedures.procedure import Known
from espbench.procedures.rfc2544.base_loads import BaseLoadsCase
from espbench.runs.procedure_kinds import procedure_for
from espbench.search.loads import Loads
from espbench.terms import AT_BASE_LOADS, BaseLoad
from support.simulated.procedures import answer, case_of, known, run
from support.simulated.queue import QueueDut

LOADS = [BaseLoad(goal=0.0, load_fps=40_000.0, duration_s=0.1, floor_fps=39_200.0),
         BaseLoad(goal=1e-5, load_fps=41_000.0, duration_s=0.1, floor_fps=40_180.0)]  # fmt: skip


def at_base(loads: list[BaseLoad] = LOADS) -> Known:
    return replace(known(40_000.0), base_loads=loads)


@pytest.mark.parametrize(
    ("rate_fps", "asked"),
    [
        (50_000, [40_000.0, 41_000.0]),
        (40_500, [40_000.0, 41_000.0, 40_180.0]),
        (39_000, [40_000.0, 39_200.0, 41_000.0, 40_180.0]),
    ],
)
def test_each_load_is_tried_and_where_it_misses_the_floor(rate_fps: float, asked: list[float]) -> None:
    procedure = procedure_for(case_of(Throughput(), "throughput"), at_base(), [])
    assert isinstance(procedure, BaseLoadsCase)
    requests = run(procedure, QueueDut(rate_fps))
    assert [request.load_fps for request in requests] == asked
    assert {request.duration_s for request in requests} == {0.1}
    finding = answer(procedure)
    assert (finding.test, finding.status, finding.trials) == (AT_BASE_LOADS, "OK", len(asked))


def test_a_floor_that_is_not_lower_is_not_tried() -> None:
    """It is the same trial: of a check without any limit, or of a profile, whose loss decides nothing."""
    for goal, rate_fps in ((0.0, 39_000), (1.0, 20_000)):
        load = BaseLoad(goal=goal, load_fps=40_000.0, duration_s=0.1, floor_fps=40_000.0)
        procedure = BaseLoadsCase(case_of(Throughput(), "throughput"), at_base([load]))
        assert [request.load_fps for request in run(procedure, QueueDut(rate_fps))] == [40_000.0]
        assert answer(procedure).status == "OK"


def test_an_interrupted_case_goes_on() -> None:
    case, dut = case_of(Throughput(), "throughput"), QueueDut(39_000)
    whole = BaseLoadsCase(case, at_base())
    run(whole, dut)
    for n in range(4):
        part = BaseLoadsCase(case, at_base(), whole.trials[:n])
        assert len(run(part, dut)) == 4 - n
        assert answer(part) == answer(whole)


def test_a_trial_that_stays_invalid_ends_the_case() -> None:
    procedure = BaseLoadsCase(case_of(Throughput(retries=1), "throughput"), at_base())
    assert len(run(procedure, QueueDut(50_000), spoil=lambda request: True)) == 2
    assert answer(procedure).status == "INVALID"


@given(st.data())
def test_a_load_of_the_search_is_met_exactly(data: st.DataObject) -> None:
    """Records round it to a thousandth; a trial at the rounded one would not be the same trial."""
    maximum = data.draw(st.floats(50.0, 2e6))
    settings = Throughput(resolution=0.01)
    limits = replace(known(None).limits, minimum_fps=maximum / 100, maximum_fps=maximum)
    row = Loads(limits.minimum_fps, limits.maximum_fps, settings.resolution)
    load = row[data.draw(st.integers(0, 200))]
    base = BaseLoad(goal=0.0, load_fps=round(load, 3), duration_s=0.1, floor_fps=1.0)
    procedure = BaseLoadsCase(case_of(settings, "throughput"), replace(at_base([base]), limits=limits))
    request = procedure.next()
    assert request is not None
    assert request.load_fps == load
